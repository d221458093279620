"""A uvicorn that says nothing of itself: no banner, no access log, and word once it listens."""

import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext

import uvicorn
from starlette.types import ASGIApp

CONCURRENT_MAX = 1000  # requests at once; who comes beyond that is told to come again (503)
IDLE_S = 15  # how long a connection may be silent between two requests


class Listening(uvicorn.Server):
    """A server that calls `begun` once it listens."""

    begun: Callable[[], None]
    heeds_signals: bool

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Take SIGINT and SIGTERM, or leave them to the program that it serves beside."""
        with super().capture_signals() if self.heeds_signals else nullcontext():
            yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        await super().startup(sockets=sockets)
        self.begun()


def listen_at(host: str, port: int) -> socket.socket:
    """Return a socket that listens; raises `OSError`. What is accepted from it sends at once.

    asyncio turns Nagle's algorithm off only for sockets that name their protocol, which those of
    `socket.create_server` do not: each answer would wait 40 ms for an acknowledgement.
    """
    door = socket.create_server(
        (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET
    )
    door.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return door


def listening(
    api: ASGIApp, *, farewell_s: int, begun: Callable[[], None], heeds_signals: bool = True
) -> Listening:
    """Return a server for an app; a request that is under way at the end has `farewell_s`."""
    server = Listening(
        uvicorn.Config(
            api,
            lifespan="off",
            log_level="warning",
            access_log=False,
            server_header=False,
            limit_concurrency=CONCURRENT_MAX,
            timeout_keep_alive=IDLE_S,
            timeout_graceful_shutdown=farewell_s,
        )
    )
    server.begun = begun
    server.heeds_signals = heeds_signals
    return server
