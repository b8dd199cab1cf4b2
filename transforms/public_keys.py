"""Public keys of groups from the rows of a Parquet file."""

from collections.abc import Sequence

import pyarrow.parquet as pq

from transforms.group_keys import GroupKeys, check_keys
from transforms.key_labels import Truncate
from transforms.list_files import File, InputError, filesystem, short


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
