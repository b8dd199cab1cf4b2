from tests.mutants.tables import accounting, clusters, looks, ordered, parts, questions, samplers, smooth

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
    *questions.COSTS,
    *questions.STRANDS,
    *questions.SHOWN,
)
"""Every wrong version."""
