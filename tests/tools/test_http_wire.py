"""Over real sockets: each way a reply can be lost ends in doubt, and one send is one connection."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest

from landed.core.outcome import Acknowledged, AnswerLost, NoAnswer, NotSent
from landed.core.tool import Call
from landed.tools.exchange import REPLY_MAX_BYTES
from landed.tools.http import HttpTool
from tests.tools.calls import call_of, run

REPLY = b'HTTP/1.1 201 Created\r\nContent-Length: 12\r\n\r\n{"id": "R1"}'
UNFRAMED = b'HTTP/1.1 201 Created\r\nConnection: close\r\n\r\n{"id": "R1"}'
CHUNKED = (
    b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n"
    b'6\r\n{"id":\r\n6\r\n "R1"}\r\n0\r\n\r\n'
)
YES = Acknowledged(result={"id": "R1"})

Script = Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass
class FarSide:
    """A server that reads each request whole, and then does what its script says."""

    script: Script
    port: int = 0
    connections: int = 0
    requests: list[bytes] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            self.requests.append(await reader.readuntil(b"\r\n\r\n{}"))
            await self.script(writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/pay"


@asynccontextmanager
async def far_side(script: Script) -> AsyncIterator[FarSide]:
    far = FarSide(script)
    server = await asyncio.start_server(far.serve, "127.0.0.1", 0)
    far.port = server.sockets[0].getsockname()[1]
    try:
        yield far
    finally:
        server.close()


def paying(url: str, **promises: Any) -> HttpTool:
    return HttpTool(name="pay", effect="irreversible", url=url, **promises)


async def outcome_of(script: Script, call: Call | None = None) -> tuple[object, FarSide]:
    async with far_side(script) as far:
        pay = paying(far.url)
        try:
            return await pay.send(call or call_of(key="")), far
        finally:
            await pay.aclose()


def saying(reply: bytes) -> Script:
    async def script(writer: asyncio.StreamWriter) -> None:
        writer.write(reply)
        await writer.drain()

    return script


def reset(after: bytes) -> Script:
    async def script(writer: asyncio.StreamWriter) -> None:
        writer.write(after)
        await writer.drain()
        own: socket.socket = writer.get_extra_info("socket")
        own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    return script


def falls_silent(after: bytes) -> Script:
    async def script(writer: asyncio.StreamWriter) -> None:
        writer.write(after)
        await writer.drain()
        await asyncio.get_running_loop().create_future()

    return script


@pytest.mark.parametrize("reply", [REPLY, UNFRAMED, CHUNKED], ids=["length", "close", "chunked"])
def test_a_whole_reply_is_a_yes(reply: bytes) -> None:
    outcome, far = run(outcome_of(saying(reply)))
    assert outcome == YES
    assert far.connections == 1


@pytest.mark.req("S4-01")
@pytest.mark.fault("X62")
@pytest.mark.parametrize("reply", [REPLY, UNFRAMED, CHUNKED], ids=["length", "close", "chunked"])
def test_a_reply_that_is_cut_at_any_byte_leaves_doubt(reply: bytes) -> None:
    cuts = iter(range(len(reply)))

    async def cut_short(writer: asyncio.StreamWriter) -> None:
        await saying(reply[: next(cuts)])(writer)

    async def main() -> None:
        async with far_side(cut_short) as far:
            pay = paying(far.url)
            for end in range(len(reply)):
                outcome = await pay.send(call_of(key=""))
                assert isinstance(outcome, AnswerLost), reply[:end]
            await pay.aclose()
            assert far.connections == len(reply)

    run(main())


@pytest.mark.req("S4-01", "S4-43")
@pytest.mark.fault("X52", "X62")
@pytest.mark.parametrize("sent", [b"", REPLY[:20], REPLY[:-3]], ids=["at once", "head", "body"])
def test_a_reset_leaves_doubt_and_nothing_is_sent_again(sent: bytes) -> None:
    outcome, far = run(outcome_of(reset(sent)))
    assert isinstance(outcome, AnswerLost)
    assert far.connections == len(far.requests) == 1


@pytest.mark.fault("X62")
@pytest.mark.parametrize(
    ("length", "body"), [(20, b'{"id": "R1"}'), (5, b'{"id": "R1"}'), (0, b""), (3, b"12345")]
)
def test_a_wrong_content_length_leaves_doubt(length: int, body: bytes) -> None:
    reply = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (length, body)
    outcome, _ = run(outcome_of(saying(reply)))
    assert isinstance(outcome, AnswerLost)


@pytest.mark.fault("X63")
@pytest.mark.parametrize("reply", [b"SSH-2.0-OpenSSH_9.6\r\n", b"\x00" * 64, b"HTTP/1.1 2\r\n\r\n"])
def test_a_reply_that_is_no_http_leaves_doubt(reply: bytes) -> None:
    outcome, _ = run(outcome_of(saying(reply)))
    assert isinstance(outcome, AnswerLost)


@pytest.mark.fault("X64")
@pytest.mark.req("S4-01")
@pytest.mark.parametrize("sent", [b"", REPLY[:20], REPLY[:-3]], ids=["at once", "head", "body"])
def test_silence_ends_at_the_deadline_of_the_call(sent: bytes) -> None:
    outcome, far = run(outcome_of(falls_silent(sent), call_of(key="", deadline_s=0.75)))
    assert isinstance(outcome, AnswerLost)
    assert len(far.requests) == 1


@pytest.mark.fault("X64")
def test_a_reply_without_end_is_cut_off() -> None:
    async def floods(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(64 * REPLY_MAX_BYTES // 65_536):
            writer.write(b"10000\r\n" + b" " * 65_536 + b"\r\n")
            await writer.drain()

    outcome, _ = run(outcome_of(floods))
    assert isinstance(outcome, AnswerLost)
    assert f"more than {REPLY_MAX_BYTES} bytes" in outcome.reason


@pytest.mark.fault("X65")
def test_a_redirect_reaches_nobody_else() -> None:
    async def main() -> tuple[object, int]:
        async with far_side(saying(REPLY)) as elsewhere:
            location = elsewhere.url.encode()
            redirect = (
                b"HTTP/1.1 307 Temporary Redirect\r\nContent-Length: 0\r\nLocation: %b\r\n\r\n"
                % location
            )
            outcome, _ = await outcome_of(saying(redirect))
            return outcome, elsewhere.connections

    outcome, connections = run(main())
    assert isinstance(outcome, AnswerLost)
    assert connections == 0


def unused_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


@pytest.mark.req("S4-01")
def test_a_refused_connection_is_not_sent() -> None:
    async def main() -> tuple[object, object]:
        url = f"http://127.0.0.1:{unused_port()}/pay"
        pay = paying(url, lookup=url)
        try:
            return await pay.send(call_of(key="")), await pay.lookup(call_of(key=""))
        finally:
            await pay.aclose()

    sent, looked = run(main())
    assert isinstance(sent, NotSent)
    assert isinstance(looked, NoAnswer)


@pytest.mark.req("S4-01")
def test_a_failed_handshake_is_not_sent() -> None:
    async def main() -> tuple[object, list[bytes]]:
        async with far_side(saying(REPLY)) as far:
            pay = paying(far.url.replace("http:", "https:"))
            try:
                return await pay.send(call_of(key="", deadline_s=3.0)), far.requests
            finally:
                await pay.aclose()

    outcome, requests = run(main())
    assert isinstance(outcome, NotSent)
    assert requests == []


def test_a_cancelled_send_is_cancelled() -> None:
    async def main() -> None:
        arrived = asyncio.Event()

        async def script(writer: asyncio.StreamWriter) -> None:
            arrived.set()
            await asyncio.get_running_loop().create_future()

        sending = asyncio.create_task(outcome_of(script))
        await arrived.wait()
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending

    run(main())


@pytest.fixture
def transports(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, object]]:
    """The settings of each transport that a tool makes for itself."""
    made: list[dict[str, object]] = []
    real = httpx2.AsyncHTTPTransport

    def recording(**settings: Any) -> httpx2.AsyncHTTPTransport:
        made.append(settings)
        return real(**settings)

    monkeypatch.setattr(httpx2, "AsyncHTTPTransport", recording)
    return made


@pytest.mark.req("S4-43")
@pytest.mark.fault("X52")
def test_the_transport_that_it_makes_does_not_retry(transports: list[dict[str, object]]) -> None:
    assert run(outcome_of(saying(REPLY)))[0] == YES
    assert transports == [{"retries": 0}]


def test_each_loop_has_connections_of_its_own(transports: list[dict[str, object]]) -> None:
    pay = paying("http://127.0.0.1:{port}/pay", arguments={"port": int})

    async def main() -> list[object]:
        async with far_side(saying(UNFRAMED)) as far:
            return [await pay.send(call_of({"port": far.port}, key="")) for _ in range(2)]

    first = asyncio.new_event_loop()  # Still there while the next one runs: no loop is mistaken.
    assert first.run_until_complete(main()) == [YES, YES]
    assert len(transports) == 1
    assert run(main()) == [YES, YES]
    assert len(transports) == 2
    first.close()


def test_one_tool_serves_one_loop_after_another() -> None:
    pay = paying("http://127.0.0.1:{port}/pay", arguments={"port": int})

    async def main() -> object:
        async with far_side(saying(REPLY)) as far:
            try:
                return await pay.send(call_of({"port": far.port}, key=""))
            finally:
                await pay.aclose()
                await pay.aclose()

    assert [run(main()), run(main())] == [YES, YES]
