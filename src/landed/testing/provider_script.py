"""The script of a provider that no network is needed for: what came, and what is answered."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from landed.core.canonical import Json
from landed.testing.provider_checks import refusal_of
from landed.testing.provider_streams import PATHS, Protocol, Reply


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """One request as it came; `left` is set when the client left before the reply was over."""

    path: str
    protocol: Protocol
    headers: Mapping[str, str]
    body: Mapping[str, Json]
    left: asyncio.Event = field(default_factory=asyncio.Event)


class Script:
    """Replies in order, to whoever asks.

    replies   the script; `say` adds to it. A request beyond it gets a 500 that says so
    forever   the reply to every request beyond the script, where there is one
    key       what a request must carry as `Authorization: Bearer` or `x-api-key`; "" for nothing

    `received` holds every request, `came` waits for one.
    """

    def __init__(self, *replies: Reply, forever: Reply | None = None, key: str = "") -> None:
        self.received: list[Received] = []
        self._script = list(replies)
        self._forever = forever
        self._key = key
        self._came = asyncio.Condition()

    def say(self, *replies: Reply) -> None:
        """Add to the script."""
        self._script += replies

    async def came(self, count: int = 1) -> Received:
        """Wait until so many requests have come, and return the last of them."""
        async with self._came:
            await self._came.wait_for(lambda: len(self.received) >= count)
        return self.received[count - 1]

    async def answer(
        self, path: str, headers: Mapping[str, str], body: bytes
    ) -> tuple[Received, Reply]:
        """Note the request, and return what to reply. Header names are in lower case."""
        protocol = PATHS.get(path)
        asked = cast("Mapping[str, Json]", json.loads(body or b"{}"))
        spoken: Protocol = protocol or "anthropic"
        received = Received(path=path, protocol=spoken, headers=headers, body=asked)
        if protocol is None:
            return received, Reply(status=404, says=f"no such path: {path}")
        async with self._came:
            self.received.append(received)
            self._came.notify_all()
        return received, self._reply(received)

    def _reply(self, received: Received) -> Reply:
        carried = received.headers.get("authorization", "").removeprefix("Bearer ")
        carried = carried or received.headers.get("x-api-key", "")
        if self._key and carried != self._key:
            # Some services repeat the key that they refuse.
            return Reply(status=401, says=f"Incorrect API key provided: {carried}")
        if why := refusal_of(received.protocol, received.body):
            return Reply(status=400, says=why)
        if self._script:
            return self._script.pop(0)
        return self._forever or Reply(status=500, says="the script has no reply for this request")
