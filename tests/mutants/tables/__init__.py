from tests.mutants.tables import accounting, clusters, ordered, smooth

MUTANTS = (
    *clusters.ROUNDS,
    *clusters.NOISE,
    *clusters.SAMPLES,
    *ordered.ROUNDS,
    *ordered.NOISE,
    *ordered.ARRIVAL,
    *smooth.ROUNDS,
    *smooth.BOUNDS,
    *accounting.COSTS,
    *accounting.CHECKS,
)
"""Every wrong version."""
