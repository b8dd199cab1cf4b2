"""Public keys of groups from the rows of a Parquet file."""

from collections.abc import Sequence

import pyarrow.parquet as pq

from core.grouping import MOST_KEYS
from transforms.group_keys import GroupKeys, check_keys
from transforms.key_labels import Truncate
from transforms.list_files import File, InputError, cause_of, filesystem, short


def read_keys(path: str, columns: Sequence[str], truncate: Sequence[Truncate | None]) -> list[str]:
    """Return the labels of the keys in a public Parquet file, which has the key columns.

    Raises:
        InputError: the file cannot be read, lacks a column, or has too many rows, a null or a long key.
    """
    file = File(path, path.rsplit("/", 1)[-1])
    keys = GroupKeys(tuple(columns), tuple(truncate))
    labels: list[str] = []
    try:
        system, inside = filesystem(path)
    except InputError as error:  # of the scheme or the credentials
        raise InputError(str(error).replace("input.path", "group_by.keys", 1)) from None
    try:
        with system.open_input_file(inside) as opened:
            parquet = pq.ParquetFile(opened)
            check_keys(keys, [file], [parquet.schema_arrow])
            rows = parquet.metadata.num_rows
            if rows > MOST_KEYS:  # before they are read
                raise InputError(
                    f"group_by.keys: {short(file.name)} has {rows:,} rows; each row is a key, of which there "
                    f"may be at most {MOST_KEYS:,}."
                )
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
    except FileNotFoundError:
        raise InputError(
            f"group_by.keys: {short(file.name)} does not exist; give a Parquet file, a list, or private."
        ) from None
    except Exception as error:  # damaged bytes may cause any type of error
        cause = cause_of(path, error)
        why = "cannot be read as Parquet; give a Parquet file, a list, or private"
        why = why if cause is None else f"cannot be opened: {cause}"
        raise InputError(f"group_by.keys: {short(file.name)} {why}.") from None
    return labels
