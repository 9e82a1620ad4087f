"""The documentation names only what exists, and its commands can be run.

`python -m benchmarks.docs.commands` runs them; here each is parsed by what would run it.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from benchmarks.docs.commands import PAGES as RUN
from benchmarks.docs.commands import Command, commands, write_own_file
from benchmarks.docs.links import broken_links
from benchmarks.docs.pages import collect
from benchmarks.docs.reference import PAGES as GENERATED
from benchmarks.docs.site import not_in_navigation
from stream.cli.command_line import CommandLine
from stream.cli.main import COMMANDS, _parser, main
from stream.cli.overrides import check_command_line
from stream.config.paths import conf_folder
from stream.errors import UserError
from stream.run.settings import register_groups

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
REFERENCE = {ROOT / f"docs/reference/{name}.md" for name in GENERATED}
# A path in the repository begins with one of its folders; runs/DATE or checkpoint/ does not.
TOP = "stream|analysis|benchmarks|tests|conf|docs|results"
PATH = re.compile(rf"(?<![\w./-])(?:\.\./)?((?:{TOP})/[\w./-]*[\w/])")
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")
OWN = "(?:stream|analysis|benchmarks)"
MODULE = re.compile(rf"python -m ({OWN}[\w.]*)|`({OWN}(?:\.\w+){{2,}})`")
PLACEHOLDER = re.compile(r"\b(NAME|TASK)\b")
FENCED = re.compile(r"```.*?```", re.DOTALL)

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
each_run_page = pytest.mark.parametrize("name", RUN)


def modules_in(text: str) -> set[str]:
    return {run or quoted for run, quoted in MODULE.findall(text)}


@each_page
def test_paths_exist(page: Path) -> None:
    named = {path for path in PATH.findall(page.read_text()) if not PLACEHOLDER.search(path)}
    assert sorted(path for path in named if not (ROOT / path).exists()) == []


@each_page
def test_links_lead_somewhere(page: Path) -> None:
    links = [page.parent / link for link in LINK.findall(FENCED.sub("", page.read_text()))]
    lost = [link for link in links if not link.exists() and link.resolve() not in REFERENCE]
    assert lost == []


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


def test_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150


def test_the_example_of_a_method_is_the_method() -> None:
    page = (ROOT / "docs/how-to/add-a-method.md").read_text()
    assert f"```python\n{(ROOT / 'stream/learners/bitfit.py').read_text()}```" in page


def test_every_page_is_in_the_navigation_and_no_other(tmp_path: Path) -> None:
    notebooks = collect(ROOT, tmp_path)
    pages = [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.md")]
    pages += [f"notebooks/{notebook.stem}.md" for notebook in notebooks]
    pages += [f"reference/{name}.md" for name in GENERATED]
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]
    assert not_in_navigation(pages, nav) == []
    assert not_in_navigation([*pages, "new.md"], nav) == ["new.md"]


def test_a_page_of_the_site_links_as_it_did_in_the_repository(tmp_path: Path) -> None:
    root, site = tmp_path / "repository", tmp_path / "site"
    pages = {
        "README.md": "[a](docs/a.md#here) ![p](docs/p.png) [n](docs/n/b.ipynb) [r](docs/r/gone.md)",
        "docs/a.md": "[home](../README.md) [far](../results/list.md) [web](https://x.org/a.md)",
        "docs/p.png": "p",
        "docs/n/b.ipynb": "{}",
        "results/list.md": "[back](../docs/a.md) [proof](proof.txt)\n```\n[a](../docs/a.md)\n```",
        "results/proof.txt": "yes",
    }
    for name, text in pages.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    assert collect(root, site) == [root / "docs/n/b.ipynb"]
    assert {str(p.relative_to(site)): p.read_text() for p in site.rglob("*") if p.is_file()} == {
        "index.md": "[a](a.md#here) ![p](p.png) [n](n/b.md) [r](docs/r/gone.md)",
        "a.md": "[home](index.md) [far](repository/results/list.md) [web](https://x.org/a.md)",
        "p.png": "p",
        "repository/results/list.md": "[back](../../a.md) [proof](proof.txt)"
        "\n```\n[a](../docs/a.md)\n```",
        "repository/results/proof.txt": "yes",
    }


def test_broken_links_of_a_site_are_found(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "p.png").touch()
    (tmp_path / "a.html").write_text(
        "<h1 id=top></h1><a href='#top'></a><a href='#no'></a><img src='p.png'><img src='q.png'>"
        "<a href='in/b.html#b'></a><a href='in/b.html#c'></a><a href='https://x.org'></a>"
        "<script src='https://x.org/s.js'></script><img src='data:image/png;base64,'>"
    )
    (tmp_path / "in/b.html").write_text("<h2 id=b></h2><a href='../a.html'></a><a href='c.html'>")
    assert broken_links(tmp_path, given=[Path("in/b.html")]) == [
        "a.html: #no has no such anchor",
        "a.html: https://x.org/s.js is loaded from another server",
        "a.html: in/b.html#c has no such anchor",
        "a.html: q.png leads nowhere",
    ]
    assert broken_links(tmp_path)[-1] == "in/b.html: c.html leads nowhere"


@each_run_page
def test_commands_can_be_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_own_file(tmp_path)
    register_groups()
    found = commands((ROOT / name).read_text())
    assert found
    known = {Path("reviews.csv")}  # what the reader has, and what the commands before have made
    for command in found:
        for program in command.programs:
            parse(program, command.body, known)
        known |= set(made(command))


def parse(words: list[str], body: str, known: set[Path]) -> None:
    """Have a command parsed by what it would call; `inspect` is called: others read its YAML."""
    program, *rest = words
    if program == "make":
        assert set(rest) <= set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M))
    elif program == "python":
        ast.parse(rest[1] if rest[0] == "-c" else body.removesuffix("END"))
    elif program != "task-stream":
        assert (program, *rest) == ("source", ".venv/bin/activate") or program == "printf"
    elif rest[0] == "run":
        check_command_line(conf_folder(), CommandLine(rest[1:]))
    elif rest[0] in COMMANDS:
        if rest[:2] == ["tasks", "inspect"]:
            assert main(rest) == 0
        read = vars(_parser(rest[:1]).parse_args(rest))
        runs = read.get("runs") or [read["run"]] if {"run", "runs"} & set(read) else []
        assert set(runs) <= known, "a command before makes each run folder"
    else:
        assert rest == ["--help"]


def made(command: Command) -> Iterator[Path]:
    """Yield the run folder that a command makes."""
    for word in command.words:
        key, _, value = word.partition("=")
        if key == "sweep":
            yield Path("runs/sweeps") / value
        elif key == "hydra.run.dir":
            yield Path(value)


def test_a_mistake_in_a_command_is_found() -> None:
    text = """```bash
task-stream run learner=finetuned \\
    seed=1  # two
echo 'a # b' | task-stream predict runs/a --task b
python - > x <<'END'
1 +
END
```
```text
task-stream nonsense
```"""
    run, pipe, here = commands(text)
    assert run.line.split() == ["task-stream", "run", "learner=finetuned", "seed=1"]
    assert pipe.programs[1] == ["task-stream", "predict", "runs/a", "--task", "b"]
    assert (here.programs, here.body) == ([["python", "-"]], "1 +\nEND")
    register_groups()
    with pytest.raises(UserError, match="finetuned"):
        parse(run.programs[0], "", set())
    with pytest.raises(AssertionError):
        parse(pipe.programs[1], "", set())
    with pytest.raises(SyntaxError):
        parse(here.programs[0], here.body, set())
    assert "seed=1 backbone=tiny" in " ".join(run.shortened().split())
