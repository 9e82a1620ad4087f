"""The documentation names only files, folders and modules that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
# A path in the repository begins with one of its folders; runs/DATE or checkpoint/ does not.
TOP = "stream|analysis|benchmarks|tests|conf|docs|results"
PATH = re.compile(rf"(?<![\w./-])(?:\.\./)?((?:{TOP})/[\w./-]*[\w/])")
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")
MODULE = re.compile(r"python -m ([\w.]+)|`((?:stream|analysis|benchmarks)(?:\.\w+){2,})`")
PLACEHOLDER = re.compile(r"\b(NAME|TASK)\b")
FENCED = re.compile(r"```.*?```", re.DOTALL)

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def modules_in(text: str) -> set[str]:
    return {run or quoted for run, quoted in MODULE.findall(text)}


@each_page
def test_paths_exist(page: Path) -> None:
    named = {path for path in PATH.findall(page.read_text()) if not PLACEHOLDER.search(path)}
    assert sorted(path for path in named if not (ROOT / path).exists()) == []


@each_page
def test_links_lead_somewhere(page: Path) -> None:
    links = LINK.findall(FENCED.sub("", page.read_text()))
    assert [link for link in links if not (page.parent / link).exists()] == []


@each_page
def test_modules_exist(page: Path) -> None:
    paths = {name: ROOT / name.replace(".", "/") for name in modules_in(page.read_text())}
    missing = [n for n, p in paths.items() if not p.is_dir() and not p.with_suffix(".py").is_file()]
    assert missing == []


def test_the_patterns_find_what_is_named() -> None:
    text = "`stream/no.py`, [x](no.md), python -m benchmarks.no, `stream.run.no`, runs/DATE/x"
    assert PATH.findall(text) == ["stream/no.py"]
    assert LINK.findall(text) == ["no.md"]
    assert modules_in(text) == {"benchmarks.no", "stream.run.no"}
