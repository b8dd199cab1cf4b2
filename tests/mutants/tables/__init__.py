from tests.mutants.tables import accounting, clusters, ordered, parts, samplers, smooth

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
    *parts.DRAWS,
    *parts.SHOWN,
)
"""Every wrong version."""
