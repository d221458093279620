"""The exchange of our own: a request over httpx2, and the reply as events or in one piece."""

import asyncio
import json
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, TypeAlias

from landed.agent.providers.dialect import Dialect, fields
from landed.agent.providers.draft import Draft, ReplyError
from landed.agent.providers.sse import Event, Events
from landed.agent.providers.wire import AgainError, RefusedError, drained, refusal

if TYPE_CHECKING:
    import httpx2

REPLY_MAX_BYTES = 32 * 1024 * 1024
"""Bytes read of one reply, with everything around its words."""

REFUSAL_MAX_BYTES = 64 * 1024
"""Bytes read of what a provider says that turned a request away."""

_OURS = {
    "accept": "text/event-stream, application/json",
    "accept-encoding": "identity",
    "content-type": "application/json",
    "user-agent": "landed",
}


_Clients: TypeAlias = "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, httpx2.AsyncClient]"


class HttpExchange:
    """Sends to one URL. A `transport` that is given is closed by its owner.

    Otherwise connections are made for each loop; `aclose` closes those of the running one.
    """

    def __init__(
        self,
        dialect: Dialect,
        url: str,
        *,
        connect_s: float,
        transport: "httpx2.AsyncBaseTransport | None" = None,
    ) -> None:
        self._dialect = dialect
        self._url = url
        self._connect_s = connect_s
        self._transport = transport
        # Connections belong to the loop they were made on; on another they are of no use.
        self._clients: _Clients = weakref.WeakKeyDictionary()

    async def __call__(
        self, body: bytes, headers: Mapping[str, str], draft: Draft, alive: Callable[[], None]
    ) -> None:
        """Send the request once, and read the reply to its end."""
        response = await self._sent(body, headers)
        async with aclosing(response), aclosing(_chunks(response, alive)) as chunks:
            await self._read(response, chunks, draft)

    def secrets(self) -> Sequence[str]:
        """Return nothing: it sends what it is given."""
        return ()

    async def aclose(self) -> None:
        """Close the connections of this loop; the next request makes new ones."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None and self._transport is None:
            await client.aclose()

    async def _sent(self, body: bytes, headers: Mapping[str, str]) -> "httpx2.Response":
        import httpx2

        client, every = self._opened(), _OURS | dict(headers)
        request = client.build_request("POST", self._url, content=body, headers=every)
        try:
            return await client.send(request, stream=True)
        except httpx2.TransportError as error:
            raise AgainError(f"nothing answered ({type(error).__name__})") from error

    async def _read(
        self, response: "httpx2.Response", chunks: AsyncIterator[bytes], draft: Draft
    ) -> None:
        if response.status_code != 200:
            raise self._refusal(response, await _start_of(chunks))
        if response.headers.get("content-type", "").startswith("application/json"):
            whole = b"".join([chunk async for chunk in chunks])
            self._dialect.whole(draft, _object(whole))
            return
        events = Events()
        async for chunk in chunks:
            for event in events.feed(chunk):
                self._hear(draft, event)
                if draft.over:
                    await drained(chunks)
                    return

    def _hear(self, draft: Draft, event: Event) -> None:
        if self._dialect.done and event.text.strip() == self._dialect.done:
            draft.over = True
        else:
            self._dialect.hear(draft, _object(event.text))

    def _refusal(self, response: "httpx2.Response", body: bytes) -> AgainError | RefusedError:
        status, headers = response.status_code, response.headers
        try:
            error = fields(fields(json.loads(body)).get("error"))
        except (ValueError, RecursionError):
            error = fields({"message": body[:200].decode(errors="replace")} if body else None)
        return refusal(status, error, headers.get("retry-after", ""))

    def _opened(self) -> "httpx2.AsyncClient":
        import httpx2

        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            bounds = httpx2.Timeout(None, connect=self._connect_s)
            client = httpx2.AsyncClient(transport=self._transport, timeout=bounds)
            self._clients[loop] = client
        return client


async def _chunks(
    response: "httpx2.Response", alive: Callable[[], None]
) -> AsyncGenerator[bytes, None]:
    """Yield the bytes of the reply, `alive` at each.

    Raises `ReplyError` where they end too early, or do not end.
    """
    import httpx2

    size = 0
    try:
        async with aclosing(response.aiter_bytes()) as chunks:
            async for chunk in chunks:
                alive()
                size += len(chunk)
                if size > REPLY_MAX_BYTES:
                    raise ReplyError(f"the reply has more than {REPLY_MAX_BYTES} bytes")
                yield chunk
    except httpx2.TransportError as error:
        raise ReplyError(f"the reply was cut off ({type(error).__name__})") from error


async def _start_of(chunks: AsyncIterator[bytes]) -> bytes:
    body = bytearray()
    with suppress(ReplyError):
        async for chunk in chunks:
            body += chunk
            if len(body) > REFUSAL_MAX_BYTES:
                break
    return bytes(body)


def _object(body: str | bytes) -> Mapping[str, object]:
    try:
        return fields(json.loads(body))
    except (ValueError, RecursionError):
        raise ReplyError("the reply can't be read: it is no JSON") from None
