"""Services as providers run them: where each wants its key, how it lists, how it versions.

Each is a small fake of what the catalogue says of a provider; it holds what it made, and can be
reached over real sockets (`served`) or without any (`transport`).
"""

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2

Answer = tuple[int, Mapping[str, str], Any]


@dataclass
class Asked:
    """One request; header names in lower case, the query with one value for each name."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any


@dataclass
class Service(ABC):
    """A far side; `asked` is what it was asked, `busy` how often it says 429 before it listens."""

    made: list[dict[str, Any]] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    busy: int = 0
    retry_after: str = "1"

    def answer(self, asked: Asked) -> Answer:
        """Answer one request."""
        self.asked.append(asked)
        if asked.method == "POST" and self.busy:
            self.busy -= 1
            return 429, {"retry-after": self.retry_after}, {"message": "too many requests"}
        return self.serve(asked)

    @abstractmethod
    def serve(self, asked: Asked) -> Answer:
        """Do what it asks, or refuse to."""

    async def holds(self) -> Any:
        """What it holds, for `check_tool`."""
        return [dict(each) for each in self.made]

    @property
    def transport(self) -> httpx2.MockTransport:
        """A way to it without sockets."""
        return httpx2.MockTransport(self._mocked)

    def _mocked(self, request: httpx2.Request) -> httpx2.Response:
        headers = {name.lower(): value for name, value in request.headers.items()}
        said = self.answer(_asked(request.method, str(request.url), headers, request.content))
        status, more, body = said
        return httpx2.Response(status, headers=dict(more), json=body)


class Striped(Service):
    """Refunds as Stripe makes them: a key in a header, a list by payment, a mark in metadata.

    It compares payloads, and lists the newest first, two to a page (`has_more`).
    """

    page = 2

    def serve(self, asked: Asked) -> Answer:
        if asked.method == "GET":
            return 200, {}, self._listed(asked.query)
        key = asked.headers["idempotency-key"]
        for each in self.made:
            if each["_key"] == key:
                same = each["_body"] == asked.body
                return (200, {}, _shown(each)) if same else (400, {}, {"message": "key reused"})
        if asked.body["amount"] < 1:
            return 400, {}, {"message": "amount must be positive"}
        made = {
            "id": f"re_{len(self.made) + 1}",
            "created": 1_000 + len(self.made),
            **asked.body,
            "_key": key,
            "_body": asked.body,
        }
        self.made.append(made)
        return 200, {}, _shown(made)

    def _listed(self, query: Mapping[str, str]) -> Any:
        newest = [
            _shown(each)
            for each in reversed(self.made)
            if query.get("payment_intent") in (None, each["payment_intent"])
            and each["created"] >= int(query.get("created[gte]", "0"))
        ]
        ids = [each["id"] for each in newest]
        start = ids.index(query["starting_after"]) + 1 if "starting_after" in query else 0
        page = newest[start : start + self.page]
        return {"data": page, "has_more": start + self.page < len(newest)}


class Squared(Service):
    """Payments as Square makes them: the key in the body, an amount as an object, a cursor."""

    page = 2

    def serve(self, asked: Asked) -> Answer:
        if asked.method == "GET":
            start = int(asked.query.get("cursor", "0"))
            page = [_shown(each) for each in self.made[start : start + self.page]]
            body: dict[str, Any] = {"payments": page} if page else {}
            if start + self.page < len(self.made):
                body["cursor"] = str(start + self.page)
            return 200, {}, body
        key = asked.body["idempotency_key"]
        for each in self.made:
            if each["_key"] == key:
                same = each["_body"] == asked.body
                return (200, {}, {"payment": _shown(each)}) if same else (400, {}, _REUSED)
        if asked.body["amount_money"]["amount"] < 1:
            return 400, {}, {"message": "INVALID_VALUE"}
        kept = {name: value for name, value in asked.body.items() if name != "idempotency_key"}
        self.made.append({"id": f"p{len(self.made) + 1}", **kept, "_key": key, "_body": asked.body})
        return 200, {}, {"payment": _shown(self.made[-1])}


_REUSED = {"message": "IDEMPOTENCY_KEY_REUSED"}


class Calendar(Service):
    """Events as Google Calendar keeps them: the caller's id, and an ETag for each version.

    An id has letters a to v and digits. `meanwhile` is run after each GET, as somebody else would.
    """

    meanwhile: Any = None

    def serve(self, asked: Asked) -> Answer:
        if asked.method == "POST":
            return self._insert(asked.body)
        id = asked.path.rpartition("/")[2]
        event = next((each for each in self.made if each["id"] == id), None)
        if event is None:
            return 404, {}, {"message": "Not Found"}
        if asked.method == "GET":
            said = 200, {"ETag": _tag(event)}, dict(event)
            if self.meanwhile:
                self.meanwhile(event)
            return said
        if asked.headers.get("if-match") != _tag(event):
            return 412, {"ETag": _tag(event)}, {"message": "Precondition Failed"}
        event |= {**asked.body, "version": event["version"] + 1}
        return 200, {"ETag": _tag(event)}, dict(event)

    def _insert(self, body: Any) -> Answer:
        if not set(body["id"]) <= set("0123456789abcdefghijklmnopqrstuv"):
            return 400, {}, {"message": "Invalid resource id value."}
        if not body["summary"]:
            return 400, {}, {"message": "no summary"}
        if any(each["id"] == body["id"] for each in self.made):
            return 409, {}, {"message": "The requested identifier already exists."}
        self.made.append({"version": 1, **body})
        return 200, {"ETag": _tag(self.made[-1])}, dict(self.made[-1])


def _tag(event: Mapping[str, Any]) -> str:
    return f'"{event["version"]}"'


def _shown(made: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in made.items() if not name.startswith("_")}


def _asked(method: str, target: str, headers: Mapping[str, str], body: bytes) -> Asked:
    url = urlsplit(target)
    return Asked(
        method=method,
        path=url.path,
        query={name: values[0] for name, values in parse_qs(url.query).items()},
        headers=headers,
        body=json.loads(body) if body else None,
    )


@asynccontextmanager
async def served(service: Service) -> AsyncIterator[str]:
    """Serve it on a port of this machine; the value is its URL."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            method, target, _ = head[0].split(" ")
            headers = {
                name.lower(): value
                for name, _, value in (line.partition(": ") for line in head[1:] if line)
            }
            sent = await reader.readexactly(int(headers.get("content-length", "0")))
            status, more, said = service.answer(_asked(method, target, headers, sent))
            body = json.dumps(said).encode()
            lines = [f"HTTP/1.1 {status} Said", f"Content-Length: {len(body)}"]
            lines += [f"{name}: {value}" for name, value in more.items()]
            writer.write("\r\n".join([*lines, "Connection: close", "", ""]).encode() + body)
            await writer.drain()
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
