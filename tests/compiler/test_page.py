"""Every block of docs/compile.md runs, in order."""

import re
import runpy
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "compile.md"


def test_the_page(tmp_path):
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 6
    path = tmp_path / "page.py"
    path.write_text("\n".join(blocks))  # a real file: what runs eagerly is named with its line
    scope = runpy.run_path(str(path))
    for name in ("step", "scaled", "smooth", "penalty"):
        assert scope[name].history == []
