"""A module that only one function imports, and no test."""
