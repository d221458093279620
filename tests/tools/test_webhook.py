"""Telling somebody's server: over real sockets that cut, hang, redirect, refuse and say "later"."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest

from landed.core.errors import ContractError, ProposalError
from landed.core.outcome import Acknowledged, NoAnswer, Refused
from landed.core.pacing import Backoff
from landed.testing.loop import VirtualLoop
from landed.tools.egress import CheckedTransport, SignedTransport
from landed.tools.http import HttpTool
from landed.tools.signing import Rejected, Replayed, Verified, Verifier, new_secret
from landed.tools.webhook import PAYLOAD_MAX_BYTES, Delivered, Tries, Webhook
from tests.tools.calls import call_of, run
from tests.tools.test_egress import Rebinding
from tests.tools.test_http_wire import falls_silent, far_side, reset, saying, unused_port

SECRET = new_secret(lambda size: b"s" * size)
NEXT = new_secret(lambda size: b"n" * size)
STARTED_AT = 1_700_000_000.0
FACTS = {"type": "case.opened", "operation": "op-1", "amount": "9 €"}

Script = Callable[[asyncio.StreamWriter], Awaitable[None]]


def status(code: int, *headers: str) -> Script:
    lines = [f"HTTP/1.1 {code} Said", "Content-Length: 0", *headers, "", ""]
    return saying("\r\n".join(lines).encode())


YES = status(200)


@dataclass
class Receiver:
    """A server that answers each request by the next script, and by the last one ever after."""

    scripts: Sequence[Script]
    port: int = 0
    requests: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    serving: "set[asyncio.Task[Any]]" = field(default_factory=set)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.serving.add(task)
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            headers = {
                name.lower(): value.strip()
                for name, _, value in (line.partition(":") for line in head.splitlines()[1:])
                if name
            }
            body = await reader.readexactly(int(headers["content-length"]))
            self.requests.append((headers, body))
            number = min(len(self.requests), len(self.scripts)) - 1
            await self.scripts[number](writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        except asyncio.CancelledError:
            pass  # `receiving` is over: a script that hangs is ended with it.
        finally:
            writer.close()
            self.serving.discard(task)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"


@dataclass
class Clock:
    """A clock that only waiting moves."""

    at: float = STARTED_AT
    waits: list[float] = field(default_factory=list)

    def now(self) -> float:
        return self.at

    async def sleep(self, wait_s: float) -> None:
        self.waits.append(wait_s)
        self.at += wait_s


@asynccontextmanager
async def receiving(*scripts: Script) -> AsyncIterator[Receiver]:
    receiver = Receiver(scripts)
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", 0)
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        server.close()
        for task in (hanging := [*receiver.serving]):
            task.cancel()
        await asyncio.gather(*hanging)


QUICK = Tries(most=4, try_s=2.0, within_s=100.0, backoff=Backoff(first_s=2.0, longest_s=60.0))


def hook(url: str, clock: Clock, **more: Any) -> Webhook:
    given: dict[str, Any] = {"tries": QUICK, "secrets": SECRET, "chance": lambda: 0.0, **more}
    transport = given.pop("transport", None) or CheckedTransport(loopback=True)
    return Webhook(
        url, given.pop("secrets"), transport=transport, now=clock.now, sleep=clock.sleep, **given
    )


def told(*scripts: Script, **more: Any) -> tuple[Any, Receiver, Clock]:
    """Deliver one event to a receiver that answers like that."""

    async def main() -> tuple[Any, Receiver, Clock]:
        clock = Clock()
        async with receiving(*scripts) as receiver:
            outcome = await hook(receiver.url, clock, **more).deliver("case-1", FACTS)
            return outcome, receiver, clock

    return run(main())


@pytest.mark.fault("X93")
def test_a_receiver_believes_what_is_delivered() -> None:
    outcome, receiver, _ = told(YES)
    assert outcome == Delivered(status=200, tries=1)
    ((headers, body),) = receiver.requests
    assert json.loads(body) == FACTS
    assert headers["content-type"] == "application/json"
    believed = Verifier(SECRET).verify(headers.items(), body, now=STARTED_AT)
    assert believed == Verified(webhook_id="case-1", sent_at=int(STARTED_AT))
    assert isinstance(Verifier(NEXT).verify(headers.items(), body, now=STARTED_AT), Rejected)


def test_while_secrets_change_a_receiver_with_either_believes_it() -> None:
    _, receiver, _ = told(YES, secrets=[NEXT, SECRET])
    ((headers, body),) = receiver.requests
    for secret in (SECRET, NEXT):
        believed = Verifier(secret).verify(headers.items(), body, now=STARTED_AT)
        assert isinstance(believed, Verified)


def test_nothing_is_sent_but_the_payload_and_what_a_request_needs() -> None:
    _, receiver, _ = told(YES)
    ((headers, body),) = receiver.requests
    assert set(headers) == {
        "host", "content-type", "content-length", "user-agent", "accept-encoding",
        "webhook-id", "webhook-timestamp", "webhook-signature",
    }  # fmt: skip
    assert SECRET[6:20] not in f"{headers}{body!r}"


@pytest.mark.parametrize("code", [200, 201, 202, 204, 299])
def test_each_2xx_is_a_yes(code: int) -> None:
    assert told(status(code))[0] == Delivered(status=code, tries=1)


FAILURES: dict[str, Script] = {
    "500": status(500),
    "503": status(503),
    "404": status(404),
    "429": status(429),
    "closed at once": saying(b""),
    "cut in the head": saying(b"HTTP/1.1 200 O"),
    "cut in the headers": saying(b"HTTP/1.1 200 OK\r\nContent-"),
    "reset": reset(b""),
    "no HTTP": saying(b"SSH-2.0-OpenSSH_9.6\r\n"),
}


@pytest.mark.fault("X66")
@pytest.mark.parametrize("failure", FAILURES)
def test_a_failure_is_tried_again_as_the_same_event_signed_anew(failure: str) -> None:
    outcome, receiver, clock = told(FAILURES[failure], FAILURES[failure], YES)
    assert outcome == Delivered(status=200, tries=3)
    assert clock.waits == [2.0, 4.0]
    assert [headers["webhook-id"] for headers, _ in receiver.requests] == ["case-1"] * 3
    assert len({body for _, body in receiver.requests}) == 1
    moments = [int(headers["webhook-timestamp"]) - STARTED_AT for headers, _ in receiver.requests]
    assert moments == [0, 2, 6]
    verifier = Verifier(SECRET)
    for (headers, body), at in zip(receiver.requests, moments, strict=True):
        believed = verifier.verify(headers.items(), body, now=STARTED_AT + at)
        assert isinstance(believed, Replayed if at else Verified)
        verifier.taken("case-1", now=STARTED_AT + at)


@pytest.mark.parametrize(
    ("failure", "value"),
    [
        ("500", NoAnswer),
        ("429", NoAnswer),
        ("closed at once", NoAnswer),
        ("reset", NoAnswer),
        ("404", Refused),
    ],
)
def test_after_the_last_try_it_says_what_it_knows(failure: str, value: type) -> None:
    outcome, receiver, clock = told(FAILURES[failure])
    assert isinstance(outcome, value)
    assert "4 tries" in str(outcome)
    assert len(receiver.requests) == 4
    assert clock.waits == [2.0, 4.0, 8.0]


def test_one_try_without_an_answer_among_refusals_leaves_doubt() -> None:
    outcome, _, _ = told(status(404), reset(b""), status(404))
    assert isinstance(outcome, NoAnswer)
    outcome, receiver, _ = told(status(503), status(410))
    assert isinstance(outcome, NoAnswer)
    assert "410" in outcome.reason
    assert len(receiver.requests) == 2


def test_a_yes_whose_body_never_ends_is_a_yes() -> None:
    endless = falls_silent(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\nabc")
    assert told(endless)[0] == Delivered(status=200, tries=1)


def test_headers_without_end_are_cut_off() -> None:
    async def floods(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n")
        for number in range(100_000):
            writer.write(b"x-%d: %b\r\n" % (number, b"x" * 1000))
            await writer.drain()

    outcome, receiver, _ = told(floods, tries=Tries(most=1, try_s=10.0))
    assert isinstance(outcome, NoAnswer)
    assert len(receiver.requests) == 1


@pytest.mark.fault("X92")
@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_a_redirect_is_refused_and_reaches_nobody_else(code: int) -> None:
    async def main() -> tuple[object, int, int]:
        async with far_side(YES) as elsewhere:
            moved = status(code, f"Location: {elsewhere.url}")
            async with receiving(moved) as receiver:
                outcome = await hook(receiver.url, Clock()).deliver("case-1", FACTS)
                return outcome, len(receiver.requests), elsewhere.connections

    outcome, requests, connections = run(main())
    assert isinstance(outcome, Refused)
    assert "redirect" in outcome.reason
    assert (requests, connections) == (1, 0)


def test_a_receiver_that_is_gone_is_left_alone() -> None:
    outcome, receiver, clock = told(status(410))
    assert isinstance(outcome, Refused)
    assert len(receiver.requests) == 1
    assert clock.waits == []


# Hanging, and never for ever.


@pytest.mark.fault("X64")
@pytest.mark.parametrize("sent", [b"", b"HTTP/1.1 200 OK\r\nContent-"], ids=["at once", "head"])
def test_a_receiver_that_hangs_is_waited_for_within_bounds(sent: bytes) -> None:
    bounds = Tries(most=2, try_s=0.2, within_s=10.0, backoff=Backoff(first_s=2.0))
    outcome, receiver, clock = told(falls_silent(sent), tries=bounds)
    assert isinstance(outcome, NoAnswer)
    assert len(receiver.requests) == 2
    assert clock.waits == [2.0]


@pytest.mark.fault("X64")
def test_the_bound_on_one_try_holds_in_every_phase_of_it() -> None:
    """On virtual time: a resolver and a transport that never come back."""

    async def never(*_: object) -> Any:
        await asyncio.get_running_loop().create_future()

    class Silent(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            return await never()

    async def main(transport: httpx2.AsyncBaseTransport) -> float:
        loop = asyncio.get_running_loop()
        hanging = Webhook(
            "https://shop.example/hook",
            SECRET,
            transport=transport,
            tries=Tries(most=3, try_s=15.0, backoff=Backoff(first_s=4.0)),
            now=lambda: STARTED_AT + loop.time(),
            chance=lambda: 0.0,
        )
        outcome = await hanging.deliver("case-1", FACTS)
        assert isinstance(outcome, NoAnswer)
        return loop.time()

    for transport in (Silent(), CheckedTransport(resolver=never)):
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            assert runner.run(main(transport)) == pytest.approx(3 * 15.0 + 4.0 + 8.0)


def test_all_tries_end_within_their_bound() -> None:
    bounds = Tries(most=1000, try_s=1.0, within_s=60.0, backoff=Backoff(first_s=1.0))
    outcome, receiver, clock = told(status(500), tries=bounds)
    assert isinstance(outcome, NoAnswer)
    assert sum(clock.waits) <= 60.0
    assert len(receiver.requests) == 6
    assert "too late" in outcome.reason


def test_a_clock_that_is_set_back_does_not_make_it_wait_for_ever() -> None:
    clock = Clock()

    async def setting_back(wait_s: float) -> None:
        clock.waits.append(wait_s)
        clock.at -= 86_400.0

    async def main() -> object:
        async with receiving(status(503, "Retry-After: 20")) as receiver:
            webhook = Webhook(
                receiver.url,
                SECRET,
                tries=QUICK,
                transport=CheckedTransport(loopback=True),
                now=clock.now,
                sleep=setting_back,
            )
            return await webhook.deliver("case-1", FACTS)

    assert isinstance(run(main()), NoAnswer)
    assert len(clock.waits) == 1
    assert clock.waits[0] < 100.0


def test_a_cancelled_delivery_is_cancelled() -> None:
    async def main() -> None:
        arrived = asyncio.Event()

        async def script(writer: asyncio.StreamWriter) -> None:
            arrived.set()
            await asyncio.get_running_loop().create_future()

        async with receiving(script) as receiver:
            delivering = asyncio.ensure_future(hook(receiver.url, Clock()).deliver("case-1", FACTS))
            await arrived.wait()
            delivering.cancel()
            with pytest.raises(asyncio.CancelledError):
                await delivering

    run(main())


# Pace.


@pytest.mark.fault("X66")
def test_chance_spreads_the_tries_of_many() -> None:
    _, _, clock = told(status(500), chance=lambda: 0.5)
    assert clock.waits == [1.5, 3.0, 6.0]


@pytest.mark.fault("X66")
@pytest.mark.parametrize("code", [429, 503, 500])
@pytest.mark.parametrize(
    "asked", ["Retry-After: 30", "Retry-After: Tue, 14 Nov 2023 22:13:50 GMT"], ids=["s", "date"]
)
def test_a_retry_after_is_honoured_with_jitter_behind_it(code: int, asked: str) -> None:
    outcome, receiver, clock = told(status(code, asked), YES)
    assert outcome == Delivered(status=200, tries=2)
    assert clock.waits == [32.0]
    assert [headers["webhook-id"] for headers, _ in receiver.requests] == ["case-1"] * 2


@pytest.mark.fault("X66")
@pytest.mark.parametrize("asked", ["soon", "-5", "1e9", "", "٣"])
def test_a_retry_after_that_is_none_changes_nothing(asked: str) -> None:
    async def says(writer: asyncio.StreamWriter) -> None:
        head = f"HTTP/1.1 503 No\r\nContent-Length: 0\r\nRetry-After: {asked}\r\n\r\n"
        await saying(head.encode())(writer)

    _, _, clock = told(says, YES)
    assert clock.waits == [2.0]


@pytest.mark.fault("X66")
def test_a_retry_after_beyond_the_bound_ends_it_and_holds_for_the_next_event() -> None:
    async def main() -> None:
        clock = Clock()
        async with receiving(status(429, "Retry-After: 3600"), YES) as receiver:
            webhook = hook(receiver.url, clock)
            for event in ("case-1", "case-2"):
                outcome = await webhook.deliver(event, FACTS)
                assert isinstance(outcome, NoAnswer)
                assert "too late" in outcome.reason
            assert len(receiver.requests) == 1
            assert clock.waits == []
            clock.at += 3590.0
            assert await webhook.deliver("case-2", FACTS) == Delivered(status=200, tries=1)
            assert clock.waits == [pytest.approx(12.0)]

    run(main())


# Addresses.


@pytest.mark.fault("X92")
@pytest.mark.parametrize(
    "url", ["http://shop.example/", "https://127.0.0.1/", "https://me@shop.example/", "x", ""]
)
def test_a_url_that_can_be_seen_to_be_wrong_makes_no_webhook(url: str) -> None:
    with pytest.raises(ContractError):
        Webhook(url, SECRET)


@pytest.mark.fault("X92")
def test_a_name_that_leads_into_our_network_is_refused_at_once() -> None:
    async def main() -> tuple[object, Clock, int]:
        clock = Clock()
        resolver = Rebinding(["10.0.0.5"])
        webhook = hook(
            "https://shop.example/", clock, transport=CheckedTransport(resolver=resolver)
        )
        return await webhook.deliver("case-1", FACTS), clock, resolver.asked

    outcome, clock, asked = run(main())
    assert isinstance(outcome, Refused)
    assert "10.0.0.5: private" in outcome.reason
    assert (clock.waits, asked) == ([], 1)


@pytest.mark.fault("X92")
def test_a_name_that_is_rebound_between_two_tries_is_refused_at_the_second() -> None:
    async def main() -> tuple[object, Receiver]:
        async with receiving(status(500)) as receiver:
            resolver = Rebinding(["127.0.0.1"], ["169.254.169.254"])
            webhook = hook(
                f"http://shop.example:{receiver.port}/",
                Clock(),
                transport=CheckedTransport(resolver=resolver, loopback=True),
            )
            return await webhook.deliver("case-1", FACTS), receiver

    outcome, receiver = run(main())
    assert isinstance(outcome, NoAnswer)  # The first try may have arrived.
    assert "169.254.169.254" in outcome.reason
    assert len(receiver.requests) == 1


def test_a_receiver_that_is_not_there_is_tried_again() -> None:
    async def main() -> tuple[object, Clock]:
        clock = Clock()
        webhook = hook(f"http://127.0.0.1:{unused_port()}/", clock)
        return await webhook.deliver("case-1", FACTS), clock

    outcome, clock = run(main())
    assert isinstance(outcome, NoAnswer)
    assert len(clock.waits) == 3


# What can be sent.


@pytest.mark.parametrize("event_id", ["", "case.1", "case 1", "case\r\n1", "é", "e" * 257])
def test_an_event_id_that_cannot_be_signed_is_refused(event_id: str) -> None:
    webhook = Webhook("https://shop.example/", SECRET)
    with pytest.raises(ProposalError):
        run(webhook.deliver(event_id, FACTS))


@pytest.mark.parametrize("payload", [{"x": float("nan")}, {"x": "x" * PAYLOAD_MAX_BYTES}])
def test_a_payload_that_cannot_be_sent_is_refused(payload: dict[str, Any]) -> None:
    webhook = Webhook("https://shop.example/", SECRET)
    with pytest.raises(ProposalError):
        run(webhook.deliver("case-1", payload))


@pytest.mark.parametrize("secret", ["", "secret", []])
def test_a_webhook_without_a_secret_is_none(secret: Any) -> None:
    with pytest.raises(ContractError):
        Webhook("https://shop.example/", secret)


def test_it_closes_what_it_opened_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[object] = []

    async def close(self: object) -> None:
        closed.append(self)

    monkeypatch.setattr(CheckedTransport, "aclose", close)
    run(Webhook("https://shop.example/", SECRET).aclose())
    given = CheckedTransport()
    run(Webhook("https://shop.example/", SECRET, transport=given).aclose())
    assert len(closed) == 1
    assert given not in closed


# The same as a tool.


@pytest.mark.fault("X93")
def test_a_tool_over_the_same_transports_is_signed_under_its_key() -> None:
    async def main() -> tuple[object, Receiver]:
        reply = saying(b'HTTP/1.1 201 Created\r\nContent-Length: 12\r\n\r\n{"id": "R1"}')
        async with receiving(reply) as receiver:
            transport = SignedTransport(
                CheckedTransport(loopback=True), SECRET, now=lambda: STARTED_AT
            )
            tell = HttpTool(
                name="tell",
                effect="irreversible",
                url=receiver.url,
                arguments={"type": str},
                keyed="webhook-id",
                retention_s=86_400.0,
                transport=transport,
            )
            outcome = await tell.send(call_of({"type": "case.opened"}, key="op-1"))
            await transport.aclose()
            return outcome, receiver

    outcome, receiver = run(main())
    assert outcome == Acknowledged(result={"id": "R1"})
    ((headers, body),) = receiver.requests
    assert json.loads(body) == {"type": "case.opened"}
    believed = Verifier(SECRET).verify(headers.items(), body, now=STARTED_AT)
    assert believed == Verified(webhook_id="op-1", sent_at=int(STARTED_AT))


def test_a_question_of_such_a_tool_is_not_signed() -> None:
    async def main() -> Receiver:
        async with receiving(YES) as receiver:
            transport = SignedTransport(CheckedTransport(loopback=True), SECRET)
            request = httpx2.Request("POST", receiver.url, content=b"{}")
            reply = await transport.handle_async_request(request)
            await reply.aclose()
            return receiver

    ((headers, _),) = run(main()).requests
    assert not [name for name in headers if name.startswith("webhook-")]
