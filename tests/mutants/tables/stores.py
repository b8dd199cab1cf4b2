"""Wrong versions of how object storage is read and written."""

from tests.mutants.mutant import Mutant, Selection

_FOLDER = "tests/pipelines/storage/test_store_folder.py"
_FILES = "tests/transforms/test_object_store.py"

WRITES = (
    Mutant(
        12,
        "pipelines/storage/store_folder.py",
        "a file that is there is overwritten",
        'mode: Any = "create" if version is None',
        'mode: Any = "overwrite" if version is None',
        Selection((_FOLDER,), "created_once"),
    ),
    Mutant(
        12,
        "pipelines/storage/store_folder.py",
        "a swap overwrites what others have written since",
        'else {"e_tag": version}',
        'else "overwrite"',
        Selection((_FOLDER,), "between_look_and_swap"),
    ),
    Mutant(
        12,
        "pipelines/storage/object_folder.py",
        "a swap looks at what is there, and not at what the caller saw",
        "if found is None or found[0] != seen:",
        "if found is None:",
        Selection((_FOLDER,), "needs_what_was_seen"),
    ),
    Mutant(
        12,
        "pipelines/storage/object_folder.py",
        "whoever finds the file of another has created it",
        "return found[0] == data  #",
        "return True  #",
        Selection((_FOLDER,), "created_once"),
    ),
    Mutant(
        12,
        "pipelines/storage/object_folder.py",
        "a server that ignores preconditions is taken",
        'if self.write(".probe", b"", self.never):',
        'if self.write(".probe", b"", self.never) and False:',
        Selection((_FOLDER,), "ignores_preconditions"),
    ),
    Mutant(
        12,
        "pipelines/storage/store_folder.py",
        "what arrives damaged is taken",
        "if whole and sent in",
        "if True or sent in",
        Selection((_FOLDER,), "what_arrives"),
    ),
)

READS = (
    Mutant(
        12,
        "transforms/object_store.py",
        "ranges of two versions of a file are put together",
        '"if_match": self._version}',
        '"if_match": None}',
        Selection((_FILES,), "one_version"),
    ),
    Mutant(
        12,
        "transforms/object_store.py",
        "a file is fetched whole for each range of it",
        '{"range": (self._place, end), "if_match"',
        '{"range": (0, self._size), "if_match"',
        Selection((_FILES,), "where_it_is_read or only_what_is_read"),
    ),
    Mutant(
        12,
        "transforms/object_store.py",
        "an object has two names",
        'if key.startswith("/"):',
        'if key.startswith("//"):',
        Selection((_FILES,), "no_path"),
    ),
    Mutant(
        12,
        "transforms/list_files.py",
        "a file that is written again within a second is the same",
        'return f"{file.path} {system.version(path)}"',
        'return f"{file.path} {system.get_file_info(path).mtime_ns // 10**9}"',
        Selection((_FILES,), "one_version"),
    ),
)
