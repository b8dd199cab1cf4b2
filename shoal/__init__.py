"""Differentially private answers about personal data."""
