"""Runs a world as an operating-system process of its own, under uvicorn.

    python -m landed.testing.worlds.serve restaurant \
        --db PATH --port 0 --faults JSON --settings JSON

prints one line, `ready http://127.0.0.1:PORT`, and serves until it is terminated; the
other worlds it knows are in `WORLDS`. `start` does the same from Python and waits for that
line.
"""

import argparse
import asyncio
import json
import logging
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import Any, Protocol, Self

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from landed.testing.worlds import chain, cluster, invoicing, payments, restaurant, texts
from landed.testing.worlds.faults import CUT, Clock, Fault
from landed.testing.worlds.weather import Weather, Weathered

Settings = (
    chain.Chain
    | cluster.Cluster
    | invoicing.Invoicing
    | payments.Payments
    | restaurant.Restaurant
    | texts.Texts
)

HOST = "127.0.0.1"
LINE_MAX = 200


class _Build(Protocol):
    def __call__(
        self, path: str, clock: Clock, faults: Sequence[Fault], *, settings: Any
    ) -> ASGIApp: ...


@dataclass(frozen=True, slots=True)
class _World:
    build: _Build
    settings: Callable[..., object]


WORLDS = {
    "chain": _World(chain.app, chain.Chain),
    "cluster": _World(cluster.app, cluster.Cluster),
    "invoicing": _World(invoicing.app, invoicing.Invoicing),
    "payments": _World(payments.app, payments.Payments),
    "restaurant": _World(restaurant.app, restaurant.Restaurant),
    "texts": _World(texts.app, texts.Texts),
}
"""The worlds that can be served, by name."""


class WorldStartError(RuntimeError):
    """The process of a world ended, or said nothing in time, before it was ready."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedWorld:
    """A world that runs as a child process. As a context manager it stops at the end."""

    url: str
    process: subprocess.Popen[bytes]

    @property
    def pid(self) -> int:
        """The process id, for whoever wants to kill it."""
        return self.process.pid

    def stop(self, within_s: float = 5.0) -> None:
        """Terminate the process, kill it after `within_s`, and reap it. May be repeated."""
        self.process.terminate()
        try:
            self.process.wait(within_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(within_s)
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


def start(
    world: str,
    *,
    db: str,
    port: int = 0,
    faults: Sequence[Fault] = (),
    settings: Settings | None = None,
    weather: Weather | None = None,
    ready_within_s: float = 20.0,
) -> ServedWorld:
    """Start `world` in a child process, in its `weather`, and return once it accepts requests.

    The child also ends when this process does, however that ends. What it has to say goes to our
    standard error. Raises WorldStartError when it isn't ready within `ready_within_s` seconds; it
    is then stopped.
    """
    command = [sys.executable, "-m", "landed.testing.worlds.serve", world, "--with-parent"]
    command += ["--db", db, "--port", str(port)]
    command += ["--faults", json.dumps([asdict(fault) for fault in faults])]
    command += ["--settings", json.dumps(asdict(settings) if settings else {})]
    command += ["--weather", json.dumps(asdict(weather))] if weather else []
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    line = _first_line(process, ready_within_s)
    served = ServedWorld(url=line.removeprefix("ready "), process=process)
    if not line.startswith("ready "):
        served.stop()
        raise WorldStartError(f"{world} did not start (exit status {process.returncode})")
    return served


def _first_line(process: subprocess.Popen[bytes], within_s: float) -> str:
    """What the process prints first, or what there is of it at its end or at the deadline."""
    assert process.stdout is not None
    pipe, line = process.stdout.fileno(), b""
    deadline = time.monotonic() + within_s
    while not line.endswith(b"\n") and len(line) < LINE_MAX:
        ready, _, _ = select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))
        piece = os.read(pipe, LINE_MAX) if ready else b""
        if not piece:
            break
        line += piece
    return line.decode().strip()


class _WallClock:
    def now(self) -> float:
        return time.time()


class _DroppableProtocol(H11Protocol):
    """uvicorn's HTTP/1.1, plus the one thing the faults need: a connection that just drops."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.app_state = {**self.app_state, CUT: transport.abort}


class _Server(uvicorn.Server):
    """Says `ready` once it accepts requests; with `parent`, ends when that stream does."""

    def __init__(self, config: uvicorn.Config, listener: socket.socket, parent: int | None) -> None:
        super().__init__(config)
        self._listener = listener
        self._parent = parent

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self._parent is not None:
            asyncio.get_running_loop().add_reader(self._parent, self._parent_spoke)
        port = self._listener.getsockname()[1]
        sys.stdout.write(f"ready http://{HOST}:{port}\n")
        sys.stdout.flush()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # Whoever still waits, or is still delayed, is meant to be cut short: no answer, no alarm.
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        for connection in self.server_state.connections:
            connection.transport.abort()
        await super().shutdown(sockets)

    def _parent_spoke(self) -> None:
        # Nothing is ever written to this stream: it becomes readable when the parent is gone.
        assert self._parent is not None
        asyncio.get_running_loop().remove_reader(self._parent)
        self.should_exit = True


def _faults(text: str) -> tuple[Fault, ...]:
    return tuple(Fault(**one) for one in json.loads(text))


def _settings(world: _World, text: str) -> object:
    return world.settings(**json.loads(text))


def _weather(text: str) -> Weather | None:
    return Weather(**json.loads(text)) if text else None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m landed.testing.worlds.serve")
    parser.add_argument("world", choices=sorted(WORLDS))
    parser.add_argument("--db", required=True, help="the world's SQLite file")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--faults", default="[]", help="a JSON list of faults")
    parser.add_argument("--settings", default="{}", help="a JSON object of the world's settings")
    parser.add_argument("--weather", default="", help="a JSON object: share, late_s, seed")
    parser.add_argument(
        "--with-parent", action="store_true", help="end when standard input is closed"
    )
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve the world that the command line names; exits with 2 when it makes no sense."""
    parser = _parser()
    given = parser.parse_args(arguments)
    world = WORLDS[given.world]
    try:
        faults, settings = _faults(given.faults), _settings(world, given.settings)
        weather = _weather(given.weather)
    except (TypeError, ValueError, AttributeError) as error:
        parser.error(f"bad --faults or --settings or --weather: {error}")
    app: ASGIApp = world.build(given.db, _WallClock(), faults, settings=settings)
    app = Weathered(app, weather, asyncio.sleep) if weather else app
    config = uvicorn.Config(
        app,
        http=_DroppableProtocol,
        ws="none",
        loop="asyncio",
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=1,
    )
    parent = sys.stdin.fileno() if given.with_parent else None
    with socket.create_server((HOST, given.port)) as listener:
        _Server(config, listener, parent).run(sockets=[listener])


if __name__ == "__main__":
    main()
