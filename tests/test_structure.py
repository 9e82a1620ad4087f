"""The house: what modules say, what start-up imports, and the tree in docs/developing.md."""

import re
import subprocess
import sys
import types
from pathlib import Path

import pytest

from stream.learners import LEARNERS

ROOT = Path(__file__).parent.parent
SOURCES = ("stream", "analysis", "benchmarks")


def test_every_module_says_what_it_is_for() -> None:
    modules = [path for name in SOURCES for path in ROOT.glob(f"{name}/**/*.py")]
    assert len(modules) > 100
    silent = [path for path in modules if not path.read_text().startswith('"""')]
    assert silent == []


@pytest.mark.parametrize("name", sorted(LEARNERS))
def test_a_method_is_one_short_file(name: str) -> None:
    assert len((ROOT / f"stream/learners/{name}.py").read_text().splitlines()) <= 120


def test_start_up_imports_nothing_heavy() -> None:
    """Machines without these packages run `tracking=none data=files`."""
    code = (
        "import sys, run_stream; "
        "late = {'wandb', 'datasets', 'transformers', 'matplotlib', 'sklearn', 'scipy.stats'}; "
        "heavy = late & set(sys.modules); "
        "sys.exit(f'imported at start-up: {heavy}' if heavy else 0)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_readme_tree_names_every_folder() -> None:
    readme = (ROOT / "README.md").read_text()
    tree = re.search(r"```text\n(conf/.*?)```", readme, re.DOTALL)
    assert tree is not None
    named = {line.split("/")[0] for line in tree.group(1).splitlines()}
    listed = ["git", "ls-tree", "-d", "--name-only", "HEAD"]
    done = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=False)
    folders = {name for name in done.stdout.split() if not name.startswith(".")}
    assert named == folders or done.returncode  # not a clone


def test_tree_of_the_packages_names_every_one() -> None:
    """One line for each; what lies inside a package is in the package's docstring."""
    page = (ROOT / "docs/developing.md").read_text()
    tree = re.search(r"```text\n(run_stream\.py.*?)```", page, re.DOTALL)
    assert tree is not None
    named: list[str] = []
    outer: dict[int, str] = {}  # the folders around a line, by how far they are indented
    for line in tree.group(1).splitlines():
        indent = len(line) - len(line.lstrip())
        first = line.split()[0] if line.strip() else ""
        if not first.endswith("/"):
            continue
        outer = {depth: name for depth, name in outer.items() if depth < indent}
        named.append(f"{outer[max(outer)] if outer else ''}{first}")
        outer[indent] = named[-1]
    assert all((ROOT / name).is_dir() for name in named)
    assert len(named) == len(set(named))
    inits = [path for name in SOURCES for path in ROOT.glob(f"{name}/*/__init__.py")]
    packages = {f"{path.parent.relative_to(ROOT)}/" for path in inits}
    inner = {name for name in named if name.startswith(SOURCES) and name.count("/") > 1}
    assert inner == packages


def test_the_example_of_a_learner_is_a_learner(stream, three_tasks) -> None:
    """The example of how to add one, as it stands, keeps its promise."""
    page = (ROOT / "docs/how-to/add-a-method.md").read_text()
    code = re.search(r"```python\n(.*?)```", page, re.DOTALL)
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
