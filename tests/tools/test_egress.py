"""Over real sockets: the address that was checked is the one reached, in the name of the host."""

import asyncio
import ssl
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest

from landed.core.outcome import Acknowledged, NotSent
from landed.tools.egress import CheckedTransport, ForbiddenAddressError
from landed.tools.http import HttpTool
from tests.tools.calls import call_of, run
from tests.tools.test_addresses import PUBLIC, names
from tests.tools.test_http_wire import REPLY, far_side, saying, unused_port


class Rebinding:
    """A resolver that says a public address when it is asked first, and ours from then on."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        answer = self.answers[min(self.asked, len(self.answers) - 1)]
        self.asked += 1
        return answer


async def post(transport: CheckedTransport, url: str) -> httpx2.Response:
    request = httpx2.Request(
        "POST", url, content=b"{}", extensions={"timeout": httpx2.Timeout(2.0).as_dict()}
    )
    response = await transport.handle_async_request(request)
    await response.aread()
    await response.aclose()
    return response


@pytest.mark.fault("X92")
def test_the_connection_goes_to_the_address_that_was_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resolver = Rebinding([PUBLIC], ["127.0.0.1"])
    reached: list[httpx2.Request] = []

    async def recorded(self: object, request: httpx2.Request) -> httpx2.Response:
        reached.append(request)
        return httpx2.Response(200)

    monkeypatch.setattr(httpx2.AsyncHTTPTransport, "handle_async_request", recorded)

    async def main() -> None:
        transport = CheckedTransport(resolver=resolver)
        await post(transport, "https://shop.example/hook")
        with pytest.raises(ForbiddenAddressError, match=r"127\.0\.0\.1: loopback"):
            await post(transport, "https://shop.example/hook")

    run(main())
    (request,) = reached
    assert (request.url.host, request.headers["host"]) == (PUBLIC, "shop.example")
    assert request.extensions["sni_hostname"] == "shop.example"
    assert resolver.asked == 2


@pytest.mark.fault("X92")
def test_a_name_that_is_rebound_after_the_check_reaches_nobody_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The system's own answer is another one at each look; only the checked one is connected to."""
    looked: list[object] = []
    real = asyncio.BaseEventLoop.getaddrinfo

    async def looking(self: asyncio.BaseEventLoop, host: object, *more: object, **named: object):
        looked.append(host)
        return await real(self, host, *more, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", looking)

    async def main() -> bytes:
        async with far_side(saying(REPLY)) as far:
            transport = CheckedTransport(resolver=Rebinding(["127.0.0.1"]), loopback=True)
            await post(transport, f"http://shop.example:{far.port}/hook")
            await transport.aclose()
            return far.requests[0]

    head = run(main()).decode()
    assert "host: shop.example:" in head.lower()
    assert "shop.example" not in looked


PEM = Path(__file__).with_name("localhost.pem")


def trusting() -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(PEM))


async def over_tls(name: str) -> tuple[httpx2.Response | None, list[str | None]]:
    """Post to a TLS server at 127.0.0.1 whose certificate is that of `localhost`."""
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(PEM)
    asked: list[str | None] = []
    serving.sni_callback = lambda _, server_name, __: asked.append(server_name)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"{}")
        writer.write(REPLY)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=serving)
    port = server.sockets[0].getsockname()[1]
    transport = CheckedTransport(
        resolver=Rebinding(["127.0.0.1"]), loopback=True, trusts=trusting()
    )
    try:
        return await post(transport, f"https://{name}:{port}/hook"), asked
    except httpx2.ConnectError:
        return None, asked
    finally:
        await transport.aclose()
        server.close()


@pytest.mark.fault("X92")
def test_the_certificate_is_that_of_the_name_and_not_of_the_address() -> None:
    response, asked = run(over_tls("localhost"))
    assert response is not None
    assert response.status_code == 201
    assert asked == ["localhost"]
    response, asked = run(over_tls("shop.example"))
    assert response is None
    assert asked == ["shop.example"]


@pytest.mark.fault("X92")
def test_one_connection_serves_one_request() -> None:
    """The far side would keep it open, for whatever name comes next to the same address."""

    async def main() -> int:
        ended: list[asyncio.Event] = []

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            ended.append(end := asyncio.Event())
            with suppress(asyncio.IncompleteReadError):
                while True:
                    await reader.readuntil(b"\r\n\r\n{}")
                    writer.write(REPLY)
            writer.close()
            await writer.wait_closed()
            end.set()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        transport = CheckedTransport(resolver=Rebinding(["127.0.0.1"]), loopback=True)
        for name in ("one.example", "two.example", "one.example"):
            await post(transport, f"http://{name}:{port}/")
        await transport.aclose()
        for end in ended:
            await end.wait()
        server.close()
        return len(ended)

    assert run(main()) == 3


@pytest.mark.fault("X92")
def test_where_nobody_answers_the_next_checked_address_is_tried() -> None:
    async def main() -> tuple[int, int]:
        async with far_side(saying(REPLY)) as far:
            resolver = Rebinding(["::1", "127.0.0.1"])  # Nobody listens at the first.
            transport = CheckedTransport(resolver=resolver, loopback=True)
            response = await post(transport, f"http://shop.example:{far.port}/")
            await transport.aclose()
            return response.status_code, far.connections

    assert run(main()) == (201, 1)


@pytest.mark.fault("X92")
def test_an_egress_proxy_is_asked_for_the_checked_address() -> None:
    said = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"

    async def main() -> bytes:
        asked: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            asked.set_result(await reader.readuntil(b"\r\n\r\n"))
            writer.write(said)
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        proxy = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        transport = CheckedTransport(resolver=names, proxy=proxy)
        with pytest.raises(httpx2.ProxyError):
            await post(transport, "https://shop.example/hook")
        with pytest.raises(ForbiddenAddressError):
            await post(transport, "https://metadata.example/hook")
        await transport.aclose()
        server.close()
        return await asked

    assert run(main()).startswith(f"CONNECT {PUBLIC}:443 ".encode())


@pytest.mark.fault("X92")
def test_a_tool_over_it_is_not_sent_to_a_forbidden_address() -> None:
    async def main() -> tuple[object, object, object]:
        async with far_side(saying(REPLY)) as far:
            inside = HttpTool(
                name="tell", effect="irreversible", url=far.url, transport=CheckedTransport()
            )
            test = HttpTool(
                name="tell",
                effect="irreversible",
                url=far.url,
                transport=CheckedTransport(loopback=True),
            )
            nobody = HttpTool(
                name="tell",
                effect="irreversible",
                url=f"http://127.0.0.1:{unused_port()}",
                transport=CheckedTransport(loopback=True),
            )
            call = call_of(key="")
            return await inside.send(call), await test.send(call), await nobody.send(call)

    forbidden, reached, nobody = run(main())
    assert isinstance(forbidden, NotSent)
    assert isinstance(reached, Acknowledged)
    assert isinstance(nobody, NotSent)
