"""Calls the events of a served page over raw HTTP, as a stranger with the source could."""

from __future__ import annotations

import json
from typing import Any

import httpx

PREDICT = "/gradio_api/run/predict"


class Caller:
    """Knows the events by their names and the fields by their element ids, as /config tells."""

    def __init__(self, served: Any) -> None:
        self.url = served.url
        # Without cookies; making one takes longer than a hundred calls.
        self.client = httpx.Client(timeout=30)
        config = served.page.config
        parts = config["components"]
        self.ids = {part["id"]: part["props"].get("elem_id") or "" for part in parts}
        self.held = {part["id"]: part["props"].get("value") for part in parts}
        self.events = {
            event["api_name"]: event for event in config["dependencies"] if event["backend_fn"]
        }

    def inputs(self, name: str) -> list[str]:
        """Element ids of what the event takes."""
        return [self.ids[part] for part in self.events[name]["inputs"]]

    def call(
        self, name: str, client: httpx.Client | None = None, headers: Any = None, **values: Any
    ) -> httpx.Response:
        """With these values by element id; every other field holds what a fresh page has in it."""
        data = [
            values.get(self.ids[part].replace("-", "_"), self.held[part])
            for part in self.events[name]["inputs"]
        ]
        body = {"data": data, "fn_index": self.events[name]["id"], "session_hash": "test"}
        client = client or self.client
        return client.post(f"{self.url}{PREDICT}", json=body, headers=headers)

    def found(self, name: str, client: httpx.Client | None = None, **values: Any) -> dict[str, Any]:
        """What the event answers, by element id."""
        answer = self.call(name, client, **values).json()["data"]
        return dict(zip(map(self.ids.get, self.events[name]["outputs"]), answer, strict=True))

    def body(self, name: str, *values: str, session: str = "test") -> bytes:
        """A call with values that are JSON already, for what no library would write."""
        number, data = self.events[name]["id"], ", ".join(values)
        text = f'{{"data": [{data}], "fn_index": {number}, "session_hash": "{session}"}}'
        return text.encode()


def tree(root: Any) -> dict[str, bytes | None]:
    """Every file below `root` with its content, and every folder."""
    return {str(p): p.read_bytes() if p.is_file() else None for p in sorted(root.rglob("*"))}


def as_json(value: Any) -> str:
    """One value of a body."""
    return json.dumps(value)
