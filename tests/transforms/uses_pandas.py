"""Functions of a module that imports pandas."""

import math

import pandas as pd
import pyarrow as pa


def nulls(rows: pa.Table) -> list[float]:
    """Answer how many nulls Arrow makes of a NaN of pandas: one if it knows pandas."""
    return [float(pa.array(pd.Series([0.0, math.nan])).null_count)]
