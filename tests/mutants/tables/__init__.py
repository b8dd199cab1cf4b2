from tests.mutants.tables import accounting, clusters, looks, ordered, parts, plane, samplers, smooth

MUTANTS = (
    *clusters.ROUNDS,
    *clusters.NOISE,
    *clusters.SAMPLES,
    *ordered.ROUNDS,
    *ordered.NOISE,
    *ordered.ARRIVAL,
    *looks.LOOKS,
    *plane.COLUMNS,
    *plane.RANGES,
    *smooth.ROUNDS,
    *smooth.BOUNDS,
    *smooth.GRAPHS,
    *accounting.COSTS,
    *accounting.CHECKS,
    *samplers.SAMPLERS,
    *parts.DRAWS,
    *parts.SHOWN,
)
"""Every wrong version."""
