"""The logs of a run over plain GET: the whole file, lines found in it, and text further up.

    /log/RUN/KEY                      the file as it is now, to be saved
    /log/RUN/KEY/find?words=TEXT      {"found": [{"offset", "line", "text"}], "sentence"}
    /log/RUN/KEY/before?offset=N      {"text", "start", "offset"}: whole lines that end at N
    /log/RUN/KEY/around?offset=N      the same around N

They only read, and only what `log_choices` offers; host, origin and login are checked in front of
them as for everything else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.responses import JSONResponse, StreamingResponse

from app.page.roles import user_of
from app.views.desk import Desk
from app.views.logs import LogChunk, find_in_log, log_path, read_around, read_before
from ringside.rundir import RunDir
from ringside.words import say

BLOCK_BYTES = 1 << 18


def serve_logs(server: FastAPI, desk: Desk) -> None:
    """Add the routes to a server that runs already; handlers work in threads."""
    login = [Depends(require_login(server))]

    def named(run_id: str, key: str) -> tuple[RunDir, Path]:
        run = desk.exact(run_id)
        path = log_path(run, key) if run else None
        if run is None or path is None or not path.is_file():
            raise HTTPException(404, say("log.no_file"))
        return run, path

    def whole(run_id: str, key: str) -> StreamingResponse:
        run, path = named(run_id, key)
        return StreamingResponse(
            _blocks(path, path.stat().st_size),
            media_type="text/plain; charset=utf-8",
            headers={"content-disposition": f'attachment; filename="{run.id}.{key}.log"'},
        )

    def find(run_id: str, key: str, request: Request) -> JSONResponse:
        run, _ = named(run_id, key)
        hits = find_in_log(run, key, request.query_params.get("words", ""))
        n = len(hits.found)
        how = "more" if hits.more else "none" if not n else "one" if n == 1 else ""
        sentence = say(f"log.found_{how}" if how else "log.found", n=n)
        return JSONResponse({"found": [asdict(hit) for hit in hits.found], "sentence": sentence})

    def before(run_id: str, key: str, request: Request) -> JSONResponse:
        run, _ = named(run_id, key)
        return _chunk(read_before(run, key, _offset(request)))

    def around(run_id: str, key: str, request: Request) -> JSONResponse:
        run, _ = named(run_id, key)
        return _chunk(read_around(run, key, _offset(request)))

    for path, handler in (("", whole), ("/find", find), ("/before", before), ("/around", around)):
        server.add_api_route(
            f"/log/{{run_id}}/{{key}}{path}", handler, methods=["GET"], dependencies=login,
            include_in_schema=False, response_model=None,
        )  # fmt: skip


def require_login(server: Any) -> Callable[[Request], None]:
    """Refuses whoever has not logged in."""

    def require(request: Request) -> None:
        if server.auth is None and server.auth_dependency is None:
            return
        if user_of(server, request.cookies) is None:
            raise HTTPException(401, say("log.login"))

    return require


def _chunk(chunk: LogChunk) -> JSONResponse:
    return JSONResponse({"text": chunk.text, "start": chunk.start, "offset": chunk.offset})


def _offset(request: Request) -> int:
    text = request.query_params.get("offset", "")
    if not (text.isascii() and text.isdecimal() and len(text) < 16):
        raise HTTPException(422, say("log.no_offset"))
    return int(text)


def _blocks(path: Path, size: int) -> Iterator[bytes]:
    """The first `size` bytes; a log that grows meanwhile would never end."""
    with path.open("rb") as stream:
        while size > 0 and (block := stream.read(min(BLOCK_BYTES, size))):
            size -= len(block)
            yield block
