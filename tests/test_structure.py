"""The house: what modules say, and the README's tree."""

import re
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


def test_readme_tree_names_every_package() -> None:
    """One line for each; what lies inside a package is in the package's docstring.

    The tree of packages is in docs/developing.md; the README has the folders around them.
    """
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
    short = re.search(r"```text\n(conf/.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert short is not None
    folders = {line.split("/")[0] for line in short.group(1).splitlines()}
    assert folders == {name.split("/")[0] for name in named if not name.startswith(".")}


@pytest.mark.parametrize(
    ("number", "name", "trained"),
    [(0, "BitFit", ("bias",)), (1, "Ssf", ("ssf.scale", "ssf.shift"))],
)
def test_the_examples_of_learners_are_learners(
    number: int, name: str, trained: tuple[str, ...], stream, three_tasks
) -> None:
    """The examples of how to add one, as they stand, keep their promise."""
    page = (ROOT / "docs/how-to/add-a-method.md").read_text()
    code = re.findall(r"```python\n(.*?)```", page, re.DOTALL)[number]
    module = types.ModuleType(name)
    sys.modules[name] = module  # dataclasses look their module up
    exec(code, module.__dict__)
    run = stream(getattr(module, name)(), three_tasks)
    run.run()
    assert run.matrix.memory() == (2, 2)
    names = [n for n in run.learner.trained_parameters() if not n.startswith("heads.")]
    assert names
    assert all(name.endswith(trained) for name in names)
