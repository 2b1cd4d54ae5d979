"""Write the public methods and functions, and their table, from the declarations in `jitgrad._ops`.

    python tools/gen_api.py            write src/jitgrad/_tensor/{_methods,_functions,_nodes}.py, docs/ops.md and
                                       the list of functions in src/jitgrad/__init__.py
    python tools/gen_api.py --check    write nothing; exit with 1 where a file is stale

An elementwise op of one or two operands gets its common case spelled out, straight-line: plain tensors of equal Meta.
All others are two lines that call the op. The parts are in `tools/apigen`.
"""

import argparse
import sys

from apigen import ROOT
from apigen.files import generated_files


def main() -> int:
    """Bring the files up to date, or say which are not."""
    parser = argparse.ArgumentParser(description="Write the public API from the declarations in jitgrad._ops.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 where a file is stale")
    check = parser.parse_args().check
    stale = {
        path: text
        for path, text in generated_files().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    }
    for path, text in stale.items():
        if not check:
            path.write_text(text, encoding="utf-8")
        print("stale:" if check else "wrote", path.relative_to(ROOT))
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
