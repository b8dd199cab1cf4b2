from tests.mutants.tables import accounting, clusters, looks, ordered, parts, rows, samplers, smooth

MUTANTS = (
    *clusters.ROUNDS,
    *clusters.NOISE,
    *clusters.SAMPLES,
    *ordered.ROUNDS,
    *ordered.NOISE,
    *ordered.ARRIVAL,
    *looks.LOOKS,
    *smooth.ROUNDS,
    *smooth.BOUNDS,
    *smooth.GRAPHS,
    *accounting.COSTS,
    *accounting.CHECKS,
    *samplers.SAMPLERS,
    *parts.DRAWS,
    *parts.SHOWN,
    *rows.READY,
)
"""Every wrong version."""
