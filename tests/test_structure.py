"""The house: module sizes, what start-up imports, and the README's tree."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MODULES = sorted(
    [*ROOT.glob("stream/**/*.py"), *ROOT.glob("analysis/*.py"), ROOT / "run_stream.py"]
)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_modules_stay_readable(path: Path) -> None:
    lines = path.read_text().splitlines()
    assert len(lines) <= 260
    assert lines[0].startswith('"""')  # says what it is for


def test_start_up_imports_nothing_heavy() -> None:
    """Machines without these packages run `tracking=none data=files`."""
    code = (
        "import sys, run_stream; "
        "heavy = {'wandb', 'datasets', 'transformers'} & set(sys.modules); "
        "sys.exit(f'imported at start-up: {heavy}' if heavy else 0)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_readme_tree_names_what_is_there() -> None:
    """Every module has its line in the README's annotated tree, and every line its module."""
    readme = (ROOT / "README.md").read_text()
    tree = re.search(r"```text\n(run_stream\.py.*?)```", readme, re.DOTALL)
    assert tree is not None
    named = set(re.findall(r"[\w]+\.py", tree.group(1)))
    real = {path.name for path in MODULES if path.name != "__init__.py"}
    assert named - {"__init__.py"} == real
