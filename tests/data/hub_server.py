"""A stand-in for the hub on loopback: the few answers that `datasets` needs, from dicts."""

import hashlib
import json
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from urllib.parse import parse_qs, unquote, urlsplit


@dataclass
class Repository:
    """Files by commit; what each branch stands for; an error to answer with instead."""

    commits: dict[str, dict[str, bytes]]
    branches: dict[str, str]
    refusal: tuple[int, str] | None = None


NOWHERE = Repository({}, {}, (401, "RepoNotFound"))


@dataclass
class Hub:
    repositories: dict[str, Repository] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    stalled: str = "never"  # paths that end so are not answered until `end`
    end: Event = field(default_factory=Event)
    url: str = ""

    def commit(self, repository: str, revision: str, files: dict[str, bytes]) -> str:
        """Put files under a branch of a repository; return the commit."""
        content = repr(sorted(files.items())) + revision
        sha = hashlib.sha1(content.encode()).hexdigest()
        kept = self.repositories.setdefault(repository, Repository({}, {}))
        kept.commits[sha] = files
        kept.branches[revision] = sha
        return sha

    def pause(self, path: str) -> None:
        """Keep a stalled path waiting."""
        if path.endswith(self.stalled):
            self.end.wait(60)


def serve(hub: Hub) -> ThreadingHTTPServer:
    """Start to answer for a hub; `shutdown` and `server_close` end it."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            hub.pause(self.path)
            self._reply(*answer(hub, unquote(self.path), self._body()))

        do_HEAD = do_POST = do_GET  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            hub.requests.append(format % args)

        def _body(self) -> bytes:
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))

        def _reply(self, status: int, headers: dict[str, str], body: bytes) -> None:
            wanted = self.headers.get("Range", "")
            if status == 200 and wanted.startswith("bytes="):
                start, _, end = wanted[6:].partition("-")
                total = len(body)
                body = body[int(start) : int(end) + 1 if end else None]
                last = int(start) + len(body) - 1
                headers = {**headers, "Content-Range": f"bytes {start}-{last}/{total}"}
                status = 206
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub.url = f"http://127.0.0.1:{server.server_port}"
    Thread(target=server.serve_forever, daemon=True).start()
    return server


def answer(hub: Hub, path: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
    """Return status, headers and body for a path."""
    kind, *parts = [part for part in urlsplit(path).path.split("/") if part] or ["home"]
    if kind == "home":
        return 200, {}, b"hub"
    api = kind == "api"
    name = "/".join(parts[1:3] if api else parts[:2])
    repository = hub.repositories.get(name, NOWHERE)
    if repository.refusal and not (api and repository.refusal[1] == "GatedRepo"):
        return refuse(*repository.refusal)
    verb, *rest = (parts[3:] if api else parts[2:]) or ["revision", "main"]
    sha, inner = revision_in(repository, "/".join(rest))
    if sha is None:
        return refuse(404, "RevisionNotFound")
    files = repository.commits[sha]
    if verb == "resolve":
        return resolved(files, sha, inner)
    if verb == "revision":
        return as_json({"id": name, "sha": sha, "siblings": [{"rfilename": f} for f in files]})
    return listed(files, inner, urlsplit(path).query, body)


def revision_in(repository: Repository, where: str) -> tuple[str | None, str]:
    """Split ``REVISION/path`` (a revision may hold slashes); return the commit and the path."""
    for revision in [*repository.branches, *repository.commits]:
        if where == revision or where.startswith(f"{revision}/"):
            return repository.branches.get(revision, revision), where[len(revision) + 1 :]
    return None, ""


def listed(
    files: dict[str, bytes], folder: str, query: str, body: bytes
) -> tuple[int, dict[str, str], bytes]:
    """Answer for a folder, or for the paths that the body asks for."""
    if body:
        asked = parse_qs(body.decode()).get("paths") or json.loads(body)["paths"]
        return as_json([entry for entry in tree(files, "", deep=True) if entry["path"] in asked])
    entries = tree(files, folder, deep="recursive=true" in query.lower())
    return as_json(entries) if entries else refuse(404, "EntryNotFound")


def resolved(files: dict[str, bytes], sha: str, name: str) -> tuple[int, dict[str, str], bytes]:
    """Answer for one file."""
    if name not in files:
        status, headers, body = refuse(404, "EntryNotFound")
        return status, {**headers, "X-Repo-Commit": sha}, body
    etag = hashlib.sha1(files[name]).hexdigest()
    return 200, {"ETag": f'"{etag}"', "X-Repo-Commit": sha, "Accept-Ranges": "bytes"}, files[name]


def tree(files: dict[str, bytes], folder: str, *, deep: bool) -> list[dict[str, object]]:
    """List a folder, as the hub's API does."""
    prefix = f"{folder}/" if folder else ""
    entries: dict[str, dict[str, object]] = {}
    for name, content in files.items():
        if not name.startswith(prefix):
            continue
        parents = name[len(prefix) :].split("/")[:-1]
        for depth in range(1, len(parents) + 1):
            path = prefix + "/".join(parents[:depth])
            if deep or depth == 1:
                oid = hashlib.sha1(path.encode()).hexdigest()
                entries[path] = {"type": "directory", "path": path, "oid": oid, "size": 0}
        if deep or not parents:
            oid = hashlib.sha1(content).hexdigest()
            entries[name] = {"type": "file", "path": name, "oid": oid, "size": len(content)}
    return list(entries.values())


def as_json(value: object) -> tuple[int, dict[str, str], bytes]:
    return 200, {"Content-Type": "application/json"}, json.dumps(value).encode()


def refuse(status: int, code: str) -> tuple[int, dict[str, str], bytes]:
    return status, {"X-Error-Code": code, "X-Error-Message": code}, b""
