"""The house: module sizes, what start-up imports, and the README's tree."""

import re
import subprocess
import sys
import types
from itertools import takewhile
from pathlib import Path

import pytest

from stream.learners import LEARNERS

ROOT = Path(__file__).parent.parent
FOLDERS = ("stream/**", "analysis", "benchmarks")
READABLE = sorted(
    [ROOT / "run_stream.py", *(path for name in FOLDERS for path in ROOT.glob(f"{name}/*.py"))]
)


@pytest.mark.parametrize("path", READABLE, ids=lambda path: str(path.relative_to(ROOT)))
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
    """Every module has its line in the README's annotated tree, in its folder, and only that."""
    readme = (ROOT / "README.md").read_text()
    tree = re.search(r"```text\n(run_stream\.py.*?)```", readme, re.DOTALL)
    assert tree is not None
    named: list[str] = []
    folders: dict[int, str] = {0: ""}  # by how far their lines are indented
    for line in tree.group(1).splitlines():
        first, indent = line.split()[0], len(line) - len(line.lstrip())
        outer = folders[max(depth for depth in folders if depth <= indent)]
        if first.endswith("/"):
            folders = {depth: name for depth, name in folders.items() if depth <= indent}
            folders[indent + 1] = f"{outer}{first}"
            assert (ROOT / outer / first).is_dir()
        else:
            column = line.strip().partition("  ")[0].split()
            files = takewhile(lambda name: Path(name).suffix or name == "Makefile", column)
            named += [f"{outer}{name}" for name in files]
    others = {name for name in named if not name.endswith(".py")}
    assert all((ROOT / name).is_file() for name in others)
    modules = [str(path.relative_to(ROOT)) for path in READABLE if path.name != "__init__.py"]
    assert sorted(set(named) - others) == sorted(modules)
    assert len(named) == len(set(named))


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
