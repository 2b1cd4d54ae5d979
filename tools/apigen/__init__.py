"""What `tools/gen_api.py` is made of: it reads the declarations in `jitgrad._ops` and spells out the public API.

`declarations` gives the items in order, `signatures` their parameters, `templates` fills text in. `common_case` says
what the straight-line code of an elementwise op needs, `forward` and `nodes` write it. `methods`, `functions` and
`table` write an entry per item, `files` whole files.

The package `jitgrad` can't be imported here, since its own `__init__` needs the files that are written: an empty module
stands for it.
"""

import sys
import types
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
PACKAGE: Final = ROOT / "src" / "jitgrad"

_stand_in = types.ModuleType("jitgrad")
_stand_in.__path__ = [str(PACKAGE)]
sys.modules["jitgrad"] = _stand_in
