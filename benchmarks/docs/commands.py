"""The commands of README.md, the tutorial and the how-to pages, run as they are printed.

Run: python -m benchmarks.docs.commands [PAGE.md ...]. A page's bash and Python blocks run in order
in an empty folder, with settings appended that make a run short; each must end with exit code 0.
`make` and `source` are left out: CI runs them itself. tests/test_docs.py parses the same commands.
"""

import argparse
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
HOW_TO = ("add-a-method", "compare", "sweeps", "streams", "python", "encoders")
PAGES = ("README.md", "docs/tutorial.md", *(f"docs/how-to/{name}.md" for name in HOW_TO))
BLOCK = re.compile(r"^```(bash|python)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
HERE = re.compile(r"<<'(\w+)'")
SHORT = {
    "backbone": "tiny",
    "limits.train": "16",
    "limits.eval": "8",
    "training.epochs": "1",
    "training.min_steps": "1",
    "tracking": "none",
    "device": "cpu",
}
OWN_FILE = "reviews.csv"
"""What README.md calls the reader's own file."""
WORDS = (("lovely", "good"), ("dull", "bad"))


@dataclass(frozen=True)
class Command:
    """One command of a page.

    Attributes:
        line: what is typed, without a comment.
        body: the text that stands behind it as its input, with the line that ends it.
    """

    line: str
    body: str = ""

    @property
    def words(self) -> list[str]:
        """The words of the line; what the shell acts on (``|``, ``<``, ``>``) are words too."""
        lexer = shlex.shlex(self.line, posix=True, punctuation_chars="|<>&;")
        lexer.whitespace_split = True
        return list(lexer)

    @property
    def programs(self) -> list[list[str]]:
        """The words of each program of a pipeline, without redirections."""
        found: list[list[str]] = [[]]
        words = iter(self.words)
        for word in words:
            if word == "|":
                found.append([])
            elif word in ("<", ">", "<<"):
                next(words)
            else:
                found[-1].append(word)
        return found

    def shortened(self) -> str:
        """Return the text for a shell, with a run's settings that make it short."""
        line = self.line
        if self.words[:2] == ["task-stream", "run"]:
            given = {word.partition("=")[0] for word in self.words}
            line = " ".join([line, *(f"{k}={v}" for k, v in SHORT.items() if k not in given)])
        return f"{line}\n{self.body}"


def commands(page: str) -> list[Command]:
    """Return the commands of a page, in order; a block of Python is one."""
    return [c for language, block in BLOCK.findall(page) for c in _of_block(language, block)]


def _of_block(language: str, block: str) -> Iterator[Command]:
    """Yield the commands of one block."""
    if language == "python":
        yield Command("python - <<'END'", f"{block}END")
        return
    lines = iter(block.replace("\\\n", " ").splitlines())
    for line in lines:
        text = re.sub(r"(^|\s+)#[^'\"]*$", "", line).strip()
        here = HERE.search(text)
        body: list[str] = []
        while here and (not body or body[-1] != here.group(1)):
            body.append(next(lines))
        if text:
            yield Command(text, "\n".join(body))


def write_own_file(folder: Path) -> None:
    """Write the file that the reader of README.md has."""
    rows = (f"the {word} film number {i},{v}" for i in range(40) for word, v in WORDS)
    (folder / OWN_FILE).write_text("\n".join(["review,verdict", *rows]) + "\n", encoding="utf-8")


def run(page: Path, programs: Path) -> int:
    """Run the commands of a page in an empty folder; return how many failed, at most one.

    Args:
        page: the file.
        programs: the folder of ``task-stream`` and ``python``.
    """
    environment = os.environ | {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "WANDB_MODE": "offline",
    }
    with tempfile.TemporaryDirectory(prefix="docs-") as folder:
        write_own_file(Path(folder))
        for command in commands(page.read_text(encoding="utf-8")):
            if command.words[0] in ("make", "source"):
                continue
            start = time.monotonic()
            done = subprocess.run(
                ["bash", "-e", "-o", "pipefail", "-c", command.shortened()],
                cwd=folder,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            print(f"{page.name}: {time.monotonic() - start:5.1f} s  {command.line}", flush=True)
            if done.returncode:
                print(f"{done.stdout}\nexit code {done.returncode}", file=sys.stderr)
                return 1
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the commands of all pages; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("pages", type=Path, nargs="*", default=[ROOT / page for page in PAGES])
    parser.add_argument(
        "--programs",
        type=Path,
        default=Path(sys.executable).parent,
        help="the folder of task-stream and python, such as ENVIRONMENT/bin",
    )
    given = parser.parse_args(arguments)
    failed = sum(run(page, given.programs.absolute()) for page in given.pages)
    print(f"{len(given.pages)} pages, {failed} with a command that fails")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
