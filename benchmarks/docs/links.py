"""Checks the links of a built site: pages, anchors, pictures; nothing may come from elsewhere."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
"""What a browser loads by itself, and where it says from where."""


@dataclass
class Page(HTMLParser):
    """What a page links to, what it loads, and which anchors it has."""

    ids: set[str] = field(default_factory=set)
    links: set[str] = field(default_factory=set)
    loaded: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        given = dict(attrs)
        self.ids |= {value for key in ("id", "name") if (value := given.get(key))}
        if tag == "a" and given.get("href"):
            self.links.add(given["href"] or "")
        if value := given.get(LOADED.get(tag, "")):
            self.loaded.add(value)


def broken_links(site: Path, given: Collection[Path] = ()) -> list[str]:
    """Return a line for each link that leads nowhere, and for what is loaded from another server.

    Args:
        site: the folder of the site.
        given: pages that are not the site's own, whose links are not looked at.
    """
    pages: dict[Path, Page] = {}
    for path in sorted(site.rglob("*.html")):
        pages[path] = Page()
        pages[path].feed(path.read_text(encoding="utf-8"))
    own = [path for path in pages if path.relative_to(site) not in given]
    return [line for path in own for line in _problems(path, pages, site)]


def _problems(path: Path, pages: dict[Path, Page], site: Path) -> Iterator[str]:
    """Yield what is wrong with the links of one page."""
    page, shown = pages[path], path.relative_to(site)
    for link in sorted(page.links | page.loaded):
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            if link in page.loaded and parts.scheme != "data":
                yield f"{shown}: {link} is loaded from another server"
            continue
        base = site if parts.path.startswith("/") else path.parent
        target = (base / unquote(parts.path).lstrip("/")).resolve() if parts.path else path
        target = target / "index.html" if target.is_dir() else target
        ids = pages[target].ids if target in pages else {unquote(parts.fragment)}
        if not target.is_file():
            yield f"{shown}: {link} leads nowhere"
        elif parts.fragment and unquote(parts.fragment) not in ids:
            yield f"{shown}: {link} has no such anchor"
