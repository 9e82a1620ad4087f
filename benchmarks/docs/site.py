"""Builds the documentation as a site: pages, generated reference, executed notebooks, links.

Run: python -m benchmarks.docs.site (`make docs`). Nothing is read from a network.
"""

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import yaml

from benchmarks.docs import reference
from benchmarks.docs.links import broken_links
from benchmarks.docs.pages import ELSEWHERE, collect

ROOT = Path(__file__).parent.parent.parent
CONFIG = ROOT / "mkdocs.yml"


def named(nav: object) -> Iterator[str]:
    """Yield every page of a navigation."""
    if isinstance(nav, str):
        yield nav
    elif isinstance(nav, dict | list):
        for inner in nav.values() if isinstance(nav, dict) else nav:
            yield from named(inner)


def not_in_navigation(pages: Iterable[str], nav: object) -> list[str]:
    """Return what is in one of them alone: pages that nobody finds, names without a page."""
    own = {page for page in pages if not page.startswith(ELSEWHERE)}
    return sorted(own ^ set(named(nav)))


def execute(notebooks: Iterable[Path], out: Path) -> None:
    """Execute notebooks, each in an empty folder of its own, and write them as Markdown.

    Raises:
        subprocess.CalledProcessError: a cell failed.
    """
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    quiet = {"WANDB_MODE": "offline", "PYTHONWARNINGS": "ignore:IProgress not found"}
    environment = os.environ | quiet | {"PATH": programs}
    for notebook in notebooks:
        target = out / notebook.relative_to(ROOT / "docs").parent
        folder = ROOT / "build/notebooks" / notebook.stem
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        copy = folder / notebook.name
        copy.write_bytes(notebook.read_bytes())
        command = [sys.executable, "-m", "nbconvert", "--to", "markdown", "--execute", str(copy)]
        command += ["--output-dir", str(target), "--log-level", "WARN"]
        subprocess.run(command, check=True, cwd=folder, env=environment)


def main() -> int:
    """Build the site; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.parse_args()
    settings = yaml.safe_load(CONFIG.read_text(encoding="utf-8"))
    pages, site = ROOT / settings["docs_dir"], ROOT / settings["site_dir"]
    notebooks = collect(ROOT, pages)
    reference.write(pages / "reference")
    execute(notebooks, pages)
    lost = not_in_navigation(
        (str(path.relative_to(pages)) for path in pages.rglob("*.md")), settings["nav"]
    )
    build = ["-m", "zensical", "build", "--strict", "--clean", "--config-file", str(CONFIG)]
    code = subprocess.run([sys.executable, *build], check=False, cwd=ROOT).returncode
    problems = [f"{name}: not both a page and in the navigation" for name in lost]
    problems += broken_links(
        site, given={path.relative_to(pages) for path in pages.rglob("*.html")}
    )
    for problem in problems:
        print(problem, file=sys.stderr)
    if not problems and code == 0:
        print(f"the site: {(site / 'index.html').relative_to(ROOT)}")
    return 1 if problems or code else 0


if __name__ == "__main__":
    sys.exit(main())
