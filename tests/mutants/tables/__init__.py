from tests.mutants.tables import clusters, ordered

MUTANTS = (*clusters.ROUNDS, *ordered.ROUNDS)
"""Every wrong version."""
