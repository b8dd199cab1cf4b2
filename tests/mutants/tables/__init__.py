from tests.mutants.tables import accounting, clusters, looks, ordered, parts, samplers, smooth, statistics

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
    *statistics.TOTALS,
    *statistics.CONTRIBUTIONS,
    *statistics.KEYS,
)
"""Every wrong version."""
