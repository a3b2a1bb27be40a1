"""A Hub on this machine with one repository: what `huggingface_hub` and `datasets` ask of it."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

REPOSITORY = "some/pets"
COMMIT = "0123456789" * 4
_API = re.compile(rf"/api/datasets/{REPOSITORY}(?:/(revision|tree)/([^/]+)(.*))?")
_FILE = re.compile(rf"/datasets/{REPOSITORY}/resolve/[^/]+/(.+)")
_RANGE = re.compile(r"bytes=(\d+)-(\d*)")


class FakeHub(ThreadingHTTPServer):
    """Serves the files of `folder` as the only commit, which `main` names too."""

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.folder = folder
        self.asked: list[str] = []
        self.entries = {
            path.relative_to(folder).as_posix(): _entry(folder, path) for path in folder.rglob("*")
        }

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


def _entry(folder: Path, path: Path) -> dict[str, Any]:
    content = path.read_bytes() if path.is_file() else b""
    return {
        "type": "file" if path.is_file() else "directory",
        "path": path.relative_to(folder).as_posix(),
        "size": len(content),
        "oid": hashlib.sha1(content).hexdigest(),
    }


@contextmanager
def serving(folder: Path) -> Iterator[FakeHub]:
    """The server, in a thread of its own; a child finds it by HF_ENDPOINT."""
    hub = FakeHub(folder)
    thread = threading.Thread(target=hub.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        hub.shutdown()
        hub.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FakeHub

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        self.server.asked.append(path)
        if api := _API.fullmatch(path):
            self._repository(*api.groups())
        elif file := _FILE.fullmatch(path):
            self._file(file[1])
        else:
            self._refuse(401, "RepoNotFound")

    do_HEAD = do_GET  # noqa: N815

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        is_json = "json" in self.headers.get("Content-Type", "")
        paths = json.loads(body)["paths"] if is_json else parse_qs(body).get("paths", [])
        entries = self.server.entries
        self._answer(200, [entries[path] for path in paths if path in entries])

    def _repository(self, what: str | None, revision: str | None, rest: str | None) -> None:
        if revision not in (None, "main", COMMIT):
            self._refuse(404, "RevisionNotFound")
        elif what == "tree":
            inside = f"{rest.strip('/')}/" if rest else ""
            entries = self.server.entries
            found = [entries[name] for name in entries if name.startswith(inside)]
            self._answer(200, found) if found else self._refuse(404, "EntryNotFound")
        else:
            siblings = [{"rfilename": name} for name in self.server.entries]
            self._answer(200, {"id": REPOSITORY, "sha": COMMIT, "siblings": siblings, "tags": []})

    def _file(self, name: str) -> None:
        if name not in self.server.entries:
            self._refuse(404, "EntryNotFound")
            return
        etag = f'"{self.server.entries[name]["oid"]}"'
        headers = {"ETag": etag, "X-Repo-Commit": COMMIT, "Accept-Ranges": "bytes"}
        content = (self.server.folder / name).read_bytes()
        wanted = _RANGE.fullmatch(self.headers.get("Range", ""))
        if wanted is None:
            self._answer(200, content, headers)
            return
        first, last = int(wanted[1]), min(int(wanted[2] or len(content)), len(content) - 1)
        headers["Content-Range"] = f"bytes {first}-{last}/{len(content)}"
        self._answer(206, content[first : last + 1], headers)

    def _refuse(self, status: int, code: str) -> None:
        self._answer(status, {}, {"X-Error-Code": code, "X-Repo-Commit": COMMIT})

    def _answer(self, status: int, content: Any, headers: dict[str, str] | None = None) -> None:
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass
