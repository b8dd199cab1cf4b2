from tests.mutants.tables import accounting, clusters, ordered, samplers, smooth

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
    *samplers.SAMPLERS,
)
"""Every wrong version."""
