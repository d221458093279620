"""A mail server that says what a test wrote down, byte for byte, and remembers what it was sent."""

import socket
import ssl
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self

PEM = Path(__file__).with_name("localhost.pem")


class Last(bytes):
    """A whole reply, after which the connection ends all the same."""


Reply = bytes | Callable[[], bytes]
Replies = Mapping[str, Reply]

WAIT_MAX_S = 20.0
HANG = b"<hang>"

FINE: Mapping[str, bytes] = {
    "HELLO": b"220 far.example\r\n",
    "EHLO": b"250 far.example\r\n",
    "HELO": b"502 5.5.1 no\r\n",
    "MAIL": b"250 2.1.0 OK\r\n",
    "RCPT": b"250 2.1.5 OK\r\n",
    "DATA": b"354 go on\r\n",
    ".": b"250 2.0.0 taken\r\n",
    "QUIT": b"221 bye\r\n",
    "STARTTLS": b"220 go ahead\r\n",
    "AUTH": b"235 2.7.0 welcome\r\n",
}


class ScriptedServer:
    """Answers each command by its reply in `replies`; one that is not whole is also the last.

    `HELLO` is the greeting and `.` the end of the text. `HANG` is no answer at all, a function is
    asked for the reply. Of several scripts each is for one connection, the last for all the others.
    `tls` is used from the first byte where `tls_at_once`, else at STARTTLS.
    """

    def __init__(
        self,
        *scripts: Replies,
        tls: ssl.SSLContext | None = None,
        tls_at_once: bool = False,
    ) -> None:
        self._scripts = scripts or ({},)
        self._tls = tls
        self._tls_at_once = tls_at_once
        self.commands: list[str] = []
        self.texts: list[bytes] = []
        self.connections = 0
        self.ended = threading.Semaphore(0)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._open: list[socket.socket] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for line in self._open:
            with suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)
        self._thread.join(WAIT_MAX_S)

    def wait_for_end(self) -> None:
        """Return once a connection has ended."""
        assert self.ended.acquire(timeout=WAIT_MAX_S)

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                line, _ = self._listener.accept()
                script = self._scripts[min(self.connections, len(self._scripts) - 1)]
                self.connections += 1
                with suppress(OSError), self._wrapped(line, at_once=True) as wrapped:
                    self._talk(wrapped, {**FINE, **script})
                self.ended.release()

    def _wrapped(self, line: socket.socket, *, at_once: bool) -> socket.socket:
        if self._tls is not None and self._tls_at_once is at_once:
            line = self._tls.wrap_socket(line, server_side=True)
        self._open.append(line)
        return line

    def _talk(self, line: socket.socket, replies: Replies, *, greets: bool = True) -> None:
        going, in_text, received = not greets or _say(line, replies["HELLO"]), False, b""
        while going:
            end = b"\r\n.\r\n" if in_text else b"\r\n"
            while end not in received:
                piece = line.recv(65_536)
                if not piece:
                    return
                received += piece
            said, _, received = received.partition(end)
            if in_text:
                self.texts.append(said + b"\r\n")
                command = "."
            else:
                self.commands.append(said.decode())
                command = said.split()[0].decode().upper()
            reply = replies.get(command, b"500 what?\r\n")
            in_text = command == "DATA" and not callable(reply) and reply.startswith(b"354")
            going = _say(line, reply)
            if going and command == "STARTTLS":
                with self._wrapped(line, at_once=False) as private:
                    self._talk(private, replies, greets=False)
                return


def _say(line: socket.socket, reply: Reply) -> bool:
    """Say it; false when that was the last of it."""
    said = reply() if callable(reply) else reply
    if said == HANG:
        line.recv(1)
        return False
    line.sendall(said)
    return said.endswith(b"\n") and not isinstance(said, Last)


def server_tls() -> ssl.SSLContext:
    """The server's side of TLS, as `localhost`."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(PEM)
    return tls


def client_tls() -> ssl.SSLContext:
    """A client's side of TLS that trusts that server."""
    return ssl.create_default_context(cafile=str(PEM))
