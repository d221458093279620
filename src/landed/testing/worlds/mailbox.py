"""The mailbox: a real SMTP server whose mails can be read, in this process or one of its own.

It knows nothing of the runtime. It takes every mail for every recipient, but for its faults, keeps
it in a SQLite file (or in memory) before it says so, and never looks for a second copy: two mails
with one Message-ID are two mails, as they would be in an inbox.

    with Mailbox(":memory:") as box, serving(box, faults=[MailFault(kind="lose_reply")]) as port:
        ...
        [mail] = box.mails()

As a process of its own, on a file that others may read meanwhile:

    python -m landed.testing.worlds.mailbox --db PATH --port 0 --faults JSON

prints one line, `ready smtp://127.0.0.1:PORT`, and serves until it is terminated; `start` does the
same from Python and waits for that line.
"""

import argparse
import asyncio
import json
import os
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default as policy
from queue import SimpleQueue
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn, Self
from weakref import WeakSet

from aiosmtpd.smtp import SMTP, Envelope, Session

from landed.testing.worlds.mail_faults import At, MailFault, MailFaults

if TYPE_CHECKING:
    import sqlite3

    from landed.testing.worlds.serve import ServedWorld
else:
    try:
        from pysqlite3 import dbapi2 as sqlite3
    except ImportError:
        import sqlite3

HOST = "127.0.0.1"
NAME = "mailbox.example"
PAGE_MAX = 1_000
LINE_MAX = 200
STOP_WITHIN_S = 5.0

Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """One mail that was taken; `at` is UTC, seconds since the epoch, `source` what came in."""

    number: int
    at: float
    message_id: str
    sender: str
    to: str
    source: bytes

    @property
    def subject(self) -> str:
        """Its subject, decoded."""
        return self.header("Subject")

    @property
    def body(self) -> str:
        """Its text, decoded."""
        return str(_read(self.source).get_content())

    def header(self, name: str) -> str:
        """One of its headers, decoded; "" where it has none."""
        return str(_read(self.source)[name] or "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of the server's log, numbered from 1; `at` is UTC, seconds since the epoch."""

    number: int
    at: float
    kind: str
    text: str


_SCHEMA = """
CREATE TABLE IF NOT EXISTS mail (
    number INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, message_id TEXT NOT NULL,
    sender TEXT NOT NULL, recipient TEXT NOT NULL, source BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS mail_by_message_id ON mail (message_id);
CREATE TABLE IF NOT EXISTS log (
    number INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL,
    kind TEXT NOT NULL, text TEXT NOT NULL
);
"""
_MAIL = "SELECT number, at, message_id, sender, recipient, source FROM mail"


class Mailbox:
    """The mails in one SQLite file, or ":memory:"; may be used from any thread.

    `now` is where the times come from (UTC, seconds since the epoch). Several processes may have
    the file open. As a context manager it closes at the end.
    """

    def __init__(self, path: str, *, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._sql = sqlite3.connect(
            path, isolation_level=None, timeout=5.0, check_same_thread=False
        )
        self._sql.execute("PRAGMA journal_mode = WAL")
        self._sql.execute("PRAGMA synchronous = FULL")
        self._sql.executescript(_SCHEMA)

    def take(self, *, sender: str, to: str, source: bytes) -> None:
        """Keep one mail; it is durable when this returns."""
        message_id = str(_read(source)["Message-ID"] or "")
        with self._lock:
            self._sql.execute(
                "INSERT INTO mail (at, message_id, sender, recipient, source)"
                " VALUES (?, ?, ?, ?, ?)",
                (self._now(), message_id, sender, to, source),
            )

    def note(self, kind: str, text: str) -> None:
        """Add a line to the log."""
        with self._lock:
            self._sql.execute(
                "INSERT INTO log (at, kind, text) VALUES (?, ?, ?)", (self._now(), kind, text)
            )

    def mails(self, *, to: str = "", after: int = 0) -> list[Mail]:
        """Return the mails, of one recipient if named, that follow number `after`; a page."""
        where = "number > ? AND (? = '' OR recipient = ?) ORDER BY number LIMIT ?"
        return self._mails(where, (after, to, to, PAGE_MAX))

    def found(self, message_id: str) -> list[Mail]:
        """Return the mails of one Message-ID, which is more than one if it was sent again."""
        return self._mails("message_id = ? ORDER BY number LIMIT ?", (message_id, PAGE_MAX))

    def log(self, *, after: int = 0) -> list[Entry]:
        """Return the lines of the log that follow number `after`; a page."""
        select = "SELECT number, at, kind, text FROM log WHERE number > ? ORDER BY number LIMIT ?"
        with self._lock:
            rows = self._sql.execute(select, (after, PAGE_MAX)).fetchall()
        return [Entry(number=n, at=at, kind=kind, text=text) for n, at, kind, text in rows]

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._sql.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _mails(self, where: str, values: tuple[object, ...]) -> list[Mail]:
        with self._lock:
            rows = self._sql.execute(f"{_MAIL} WHERE {where}", values).fetchall()
        return [
            Mail(number=n, at=at, message_id=name, sender=sender, to=to, source=source)
            for n, at, name, sender, to, source in rows
        ]


def _read(source: bytes) -> EmailMessage:
    return message_from_bytes(source, _class=EmailMessage, policy=policy)


class _Desk:
    """What the server asks at each point of the dialogue."""

    def __init__(self, box: Mailbox, faults: Sequence[MailFault], sleep: Sleep) -> None:
        self._box = box
        self._faults = MailFaults(faults)
        self._sleep = sleep
        self._lines: WeakSet[SMTP] = WeakSet()

    def greet(self) -> asyncio.BaseProtocol:
        """Return who talks to the next connection."""
        fault = self._faults.due(At.CONNECT)
        if fault is not None:
            self._box.note(fault.kind, fault.reply or "dropped a connection")
            return _Closed(fault.reply)
        line = SMTP(self, hostname=NAME, ident="mailbox", loop=asyncio.get_running_loop())
        self._lines.add(line)
        return line

    async def take_recipient(
        self, server: SMTP, session: Session, envelope: Envelope, to: str, options: list[str]
    ) -> str:
        """Take or refuse a recipient."""
        fault = self._faults.due(At.RECIPIENT, to)
        if fault is not None:
            self._box.note(fault.kind, f"{to}: {fault.reply}")
            return fault.reply
        envelope.rcpt_tos.append(to)
        envelope.rcpt_options.extend(options)
        return "250 2.1.5 OK"

    async def take_text(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        """Take or refuse a mail whose text has come to its end."""
        to = ", ".join(envelope.rcpt_tos)
        fault = self._faults.due(At.TEXT, to)
        if fault is None or fault.keeps:
            assert isinstance(envelope.content, bytes)
            self._box.take(sender=envelope.mail_from or "", to=to, source=envelope.content)
            self._box.note("took", f"took a mail for {to}")
        if fault is None:
            return "250 2.0.0 OK"
        self._box.note(fault.kind, f"{to}: {fault.reply or fault.kind.replace('_', ' ')}")
        if fault.kind == "delay_reply":
            await self._sleep(fault.seconds)
            return "250 2.0.0 OK, at last"
        return fault.reply or await _cut(server)

    # The names by which aiosmtpd asks.
    handle_RCPT = take_recipient  # noqa: N815
    handle_DATA = take_text  # noqa: N815

    def hang_up(self) -> None:
        """End every connection."""
        for line in self._lines:
            _abort(line)


async def _cut(server: SMTP) -> NoReturn:
    """End the connection without an answer; whoever talks there is cancelled by that."""
    _abort(server)
    await asyncio.get_running_loop().create_future()
    raise AssertionError("the connection was cut")


def _abort(line: SMTP) -> None:
    if isinstance(line.transport, asyncio.WriteTransport):
        line.transport.abort()


class _Closed(asyncio.Protocol):
    """Says one line, or nothing, and ends the connection."""

    def __init__(self, reply: str) -> None:
        self._reply = reply

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        if self._reply:
            transport.write(f"{self._reply}\r\n".encode())
            transport.close()
        else:
            transport.abort()


# Serving it.


async def serve(desk: _Desk, listener: socket.socket, end: asyncio.Event) -> None:
    """Serve on a listening socket until `end` is set."""
    # Inherited by each connection, whose replies of several lines would wait for one another.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    server = await asyncio.get_running_loop().create_server(desk.greet, sock=listener)
    try:
        await end.wait()
    finally:
        server.close()
        desk.hang_up()
        await asyncio.sleep(0)  # So that each connection hears of its end.


@contextmanager
def serving(
    box: Mailbox,
    *,
    faults: Sequence[MailFault] = (),
    port: int = 0,
    sleep: Sleep = asyncio.sleep,
) -> Generator[int]:
    """Serve a mailbox from a thread with an event loop of its own; gives the port.

    Delays go through `sleep`, which is awaited on that loop.
    """
    desk = _Desk(box, faults, sleep)
    handed: SimpleQueue[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = SimpleQueue()

    async def main() -> None:
        end = asyncio.Event()
        handed.put((asyncio.get_running_loop(), end))
        await serve(desk, listener, end)

    with socket.create_server((HOST, port)) as listener:
        thread = threading.Thread(target=lambda: asyncio.run(main()), name="mailbox", daemon=True)
        thread.start()
        loop, end = handed.get()
        try:
            yield int(listener.getsockname()[1])
        finally:
            loop.call_soon_threadsafe(end.set)
            thread.join(STOP_WITHIN_S)


def start(
    *,
    db: str,
    port: int = 0,
    faults: Sequence[MailFault] = (),
    ready_within_s: float = 20.0,
) -> "ServedWorld":
    """Start a mailbox in a child process and return once it accepts connections.

    Its `url` is `smtp://127.0.0.1:PORT`; `Mailbox(db)` reads what it took. The child also ends when
    this process does. Raises WorldStartError when it isn't ready within `ready_within_s` seconds.
    """
    from landed.testing.worlds.serve import ServedWorld, WorldStartError

    command = [sys.executable, "-m", "landed.testing.worlds.mailbox", "--with-parent"]
    command += ["--db", db, "--port", str(port)]
    command += ["--faults", json.dumps([asdict(fault) for fault in faults])]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    line = _first_line(process, ready_within_s)
    served = ServedWorld(url=line.removeprefix("ready "), process=process)
    if not line.startswith("ready "):
        served.stop()
        raise WorldStartError(f"the mailbox did not start (exit status {process.returncode})")
    return served


def _first_line(process: "subprocess.Popen[bytes]", within_s: float) -> str:
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


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m landed.testing.worlds.mailbox")
    parser.add_argument("--db", required=True, help="the mailbox's SQLite file")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--faults", default="[]", help="a JSON list of faults")
    parser.add_argument(
        "--with-parent", action="store_true", help="end when standard input is closed"
    )
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve a mailbox; exits with 2 when the command line makes no sense."""
    parser = _parser()
    given = parser.parse_args(arguments)
    try:
        faults = [MailFault(**one) for one in json.loads(given.faults)]
    except (TypeError, ValueError) as error:
        parser.error(f"bad --faults: {error}")
    parent = sys.stdin.fileno() if given.with_parent else None
    with Mailbox(given.db) as box, socket.create_server((HOST, given.port)) as listener:
        asyncio.run(_serve_process(_Desk(box, faults, asyncio.sleep), listener, parent))


async def _serve_process(desk: _Desk, listener: socket.socket, parent: int | None) -> None:
    end = asyncio.Event()
    if parent is not None:
        # Nothing is ever written to this stream: it becomes readable when the parent is gone.
        asyncio.get_running_loop().add_reader(parent, end.set)
    sys.stdout.write(f"ready smtp://{HOST}:{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    await serve(desk, listener, end)
    if parent is not None:
        asyncio.get_running_loop().remove_reader(parent)


if __name__ == "__main__":
    main()
