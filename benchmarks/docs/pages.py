"""The pages of the site, collected from the repository, with links that hold inside the site.

README.md becomes the home page, what lies in docs/ keeps its place. A file elsewhere in the
repository to which a page links comes along, below repository/.
"""

import posixpath
import re
import shutil
from pathlib import Path

HOME = "README.md"
DOCS = "docs/"
ELSEWHERE = "repository/"
LINK = re.compile(r"(\]\(|src=\")((?!\w+:|#)[^)#\"\s]+)(#[^)\"\s]*)?(?=[)\"])")
NO_BREAK = "\u00a0±\u00a0"
FENCED = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)


def place(path: str) -> str:
    """Return where a file of the repository is in the site.

    >>> place("README.md"), place("docs/how-to/resume.md"), place("results/x.txt")
    ('index.md', 'how-to/resume.md', 'repository/results/x.txt')
    """
    if path == HOME:
        return "index.md"
    return path.removeprefix(DOCS) if path.startswith(DOCS) else ELSEWHERE + path


def rewritten(text: str, path: str, root: Path) -> tuple[str, set[str]]:
    """Return a page with links for the site, and the files to which it links.

    Args:
        text: the page, in Markdown.
        path: where it is in the repository.
        root: the repository.
    """
    targets: set[str] = set()

    def changed(match: re.Match[str]) -> str:
        before, link, anchor = match.group(1), match.group(2), match.group(3) or ""
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), link))
        if not (root / target).is_file():
            return match.group(0)  # a generated page, or nothing: the check of links will tell
        targets.add(target)
        there = posixpath.relpath(_shown(place(target)), posixpath.dirname(place(path)) or ".")
        return f"{before}{there}{anchor}"

    parts = FENCED.split(text)
    parts[::2] = [LINK.sub(changed, part).replace(" ± ", NO_BREAK) for part in parts[::2]]
    return "".join(parts), targets


def _shown(place: str) -> str:
    """Return the page of a notebook, or the place itself."""
    return f"{place.removesuffix('.ipynb')}.md" if place.endswith(".ipynb") else place


def collect(root: Path, out: Path) -> list[Path]:
    """Copy every page, and what they link to, into a new folder; return the notebooks.

    Args:
        root: the repository.
        out: the folder, which is replaced.
    """
    shutil.rmtree(out, ignore_errors=True)
    pages = [*(root / DOCS).rglob("*.md"), *(root / DOCS).rglob("*.css")]
    waiting = [HOME, *(str(path.relative_to(root)) for path in sorted(pages))]
    met = set(waiting)
    notebooks = sorted((root / DOCS).rglob("*.ipynb"))
    while waiting:
        path = waiting.pop()
        target = out / place(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        if not path.endswith(".md"):
            shutil.copyfile(root / path, target)
            continue
        text, linked = rewritten((root / path).read_text(encoding="utf-8"), path, root)
        target.write_text(text, encoding="utf-8")
        new = {name for name in linked - met if not name.endswith(".ipynb")}
        met |= new
        waiting += sorted(new)
    return notebooks
