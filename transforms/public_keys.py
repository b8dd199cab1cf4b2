"""Public keys of groups: combinations of values, or the rows of a Parquet file."""

import itertools
import math
from collections.abc import Sequence

import pyarrow.parquet as pq

from transforms.group_keys import GroupKeys, KeyValue, Truncate, check_keys, label_of
from transforms.list_files import File, InputError, filesystem, short


def product_of(lists: Sequence[Sequence[KeyValue]], most: int) -> list[str]:
    """Return the labels of all combinations of values, one list for each key column.

    Raises:
        InputError: there are more than `most`.
    """
    many = math.prod(len(values) for values in lists)
    if many > most:
        raise InputError(f"group_by.keys has {many:,} combinations: there may be at most {most:,}.")
    return [label_of(values) for values in itertools.product(*lists)]


def read_keys(path: str, columns: Sequence[str], truncate: Sequence[Truncate | None]) -> list[str]:
    """Return the labels of the keys in a public Parquet file, which has the key columns.

    Raises:
        InputError: the file cannot be read, lacks a column, or has a null or a key of too many bytes.
    """
    file = File(path, path.rsplit("/", 1)[-1])
    keys = GroupKeys(tuple(columns), tuple(truncate))
    labels: list[str] = []
    try:
        system, inside = filesystem(path)
        with system.open_input_file(inside) as opened:
            parquet = pq.ParquetFile(opened)
            check_keys(keys, [file], [parquet.schema_arrow])
            for batch in parquet.iter_batches(columns=list(columns)):
                groups, found = keys.read(batch)
                if (groups < 0).any():
                    raise InputError(
                        f"group_by.keys: {short(file.name)} has a row with a null or with a key that is too "
                        "long; each row is a key."
                    )
                labels += [found[number].decode() for number in groups]
    except InputError:
        raise
    except Exception:  # damaged bytes may cause any type of error
        raise InputError(
            f"group_by.keys: {short(file.name)} cannot be read as Parquet; give a Parquet file, a list, or "
            "private."
        ) from None
    return labels
