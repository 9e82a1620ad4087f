"""The house: module sizes, what start-up imports, and the README's tree."""

import re
import subprocess
import sys
import types
from pathlib import Path

import pytest

from stream.learners import LEARNERS

ROOT = Path(__file__).parent.parent
MODULES = sorted(
    [*ROOT.glob("stream/**/*.py"), *ROOT.glob("analysis/*.py"), ROOT / "run_stream.py"]
)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_modules_stay_readable(path: Path) -> None:
    lines = path.read_text().splitlines()
    assert len(lines) <= 260
    assert lines[0].startswith('"""')  # says what it is for


@pytest.mark.parametrize("name", sorted(LEARNERS))
def test_a_method_is_one_short_file(name: str) -> None:
    assert len((ROOT / f"stream/learners/{name}.py").read_text().splitlines()) <= 120


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
    real = {path.name for path in [*MODULES, *ROOT.glob("benchmarks/*.py")]} - {"__init__.py"}
    assert named - {"__init__.py"} == real


def test_readme_learner_is_a_learner(stream, three_tasks) -> None:
    """The README's example, as it stands, keeps its promise."""
    readme = (ROOT / "README.md").read_text()
    code = re.search(r"```python\n(.*?)```", readme, re.DOTALL)
    assert code is not None
    module = types.ModuleType("bitfit")
    sys.modules["bitfit"] = module  # dataclasses look their module up
    exec(code.group(1), module.__dict__)
    run = stream(module.BitFit(), three_tasks)
    run.run()
    assert run.matrix.memory() == (2, 2)
    names = [n for n in run.learner.trained_parameters() if not n.startswith("heads.")]
    assert names
    assert all(name.endswith(".bias") for name in names)
