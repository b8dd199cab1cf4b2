"""Plant every mutant, or those whose file or description holds one of the words given."""

import sys
from pathlib import Path

from tests.mutants.runner import report
from tests.mutants.tables import MUTANTS

ROOT = Path(__file__).resolve().parents[2]


def main(words: list[str]) -> int:
    chosen = [m for m in MUTANTS if not words or any(word in f"{m.file} {m.wrong}" for word in words)]
    if not chosen:
        print(f"No mutant has {' or '.join(words)} in its file or description.", file=sys.stderr)
        return 1
    return report(ROOT, chosen)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
