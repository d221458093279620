"""Signatures of webhooks, out and in: the specification's example, and every way to forge one."""

import base64
import hmac
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import landed
from landed.core.errors import ContractError, ProposalError
from landed.tools.signing import (
    HEADER_MAX_CHARS,
    SECRETS_MAX,
    SIGNATURES_MAX,
    TOLERANCE_S,
    Problem,
    Rejected,
    Replayed,
    Secret,
    Verified,
    Verifier,
    new_secret,
    secrets_of,
    sign,
)
from tests.tools.calls import run

# The example that the libraries of Standard Webhooks test themselves against, for one
# https://github.com/standard-webhooks/standard-webhooks, `libraries/python/tests/test_webhooks.py`.
SPEC_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
SPEC_ID = "msg_p5jXN8AQM9LWM0D4loKWxJek"
SPEC_AT = 1_614_265_330
SPEC_BODY = b'{"test": 2432232314}'
SPEC_SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="

OURS = "whsec_" + base64.b64encode(b"o" * 32).decode()
OLD = "whsec_" + base64.b64encode(b"x" * 32).decode()
THEIRS = "whsec_" + base64.b64encode(b"t" * 32).decode()

AT = 1_700_000_000
ID = "evt_1"
BODY = '{"type":"refund.landed","amount":"9 €"}'.encode()


def test_the_specifications_example_is_signed_as_it_says() -> None:
    headers = sign(secrets_of(SPEC_SECRET), webhook_id=SPEC_ID, timestamp=SPEC_AT, body=SPEC_BODY)
    assert headers == {
        "webhook-id": SPEC_ID,
        "webhook-timestamp": str(SPEC_AT),
        "webhook-signature": SPEC_SIGNATURE,
    }


@pytest.mark.fault("X93")
def test_the_specifications_example_is_believed() -> None:
    headers = [
        ("Webhook-Id", SPEC_ID),
        ("Webhook-Timestamp", str(SPEC_AT)),
        ("Webhook-Signature", SPEC_SIGNATURE),
    ]
    judged = Verifier(SPEC_SECRET).verify(headers, SPEC_BODY, now=SPEC_AT + 1.5)
    assert judged == Verified(webhook_id=SPEC_ID, sent_at=SPEC_AT)


@dataclass
class Request:
    """What arrives; `headers` are changed by those who forge."""

    headers: dict[str, str]
    body: bytes = BODY
    more: tuple[tuple[str, str], ...] = ()

    def pairs(self) -> list[tuple[str, str]]:
        return [*self.headers.items(), *self.more]


def request(*secrets: str, at: int = AT, webhook_id: str = ID, body: bytes = BODY) -> Request:
    secrets = secrets or (OURS,)
    return Request(
        sign(secrets_of(secrets), webhook_id=webhook_id, timestamp=at, body=body), body=body
    )


def judged(arrived: Request, *, now: float = AT, secrets: object = OURS) -> object:
    verifier = Verifier(secrets)  # type: ignore[arg-type]
    return verifier.verify(arrived.pairs(), arrived.body, now=now)


def problem(arrived: Request, **how: object) -> Problem | None:
    rejected = judged(arrived, **how)  # type: ignore[arg-type]
    return rejected.problem if isinstance(rejected, Rejected) else None


# What is believed.

TRUE: dict[str, Callable[[], object]] = {
    "now": lambda: judged(request()),
    "almost too old": lambda: judged(request(), now=AT + TOLERANCE_S),
    "a clock ahead": lambda: judged(request(), now=AT - TOLERANCE_S),
    "signed by the old secret too": lambda: judged(request(OURS, OLD)),
    "signed by the new secret too": lambda: judged(request(THEIRS, OURS)),
    "by one of our two secrets": lambda: judged(request(OLD), secrets=[OURS, OLD]),
    "among other versions": lambda: judged(signed_as("v1a,abc= {} v2,x")),
    "an empty body": lambda: judged(request(body=b"")),
    "a body that is no text": lambda: judged(request(body=b"\xff\x00.1.")),
}


def signed_as(form: str, **how: str) -> Request:
    arrived = request()
    signature = arrived.headers["webhook-signature"]
    arrived.headers["webhook-signature"] = form.format(signature, bare=signature[3:])
    return arrived


@pytest.mark.fault("X93")
@pytest.mark.parametrize("case", TRUE)
def test_what_its_sender_signed_is_believed(case: str) -> None:
    assert TRUE[case]() == Verified(webhook_id=ID, sent_at=AT)


# What is not.


def with_header(name: str, value: str | None) -> Request:
    arrived = request()
    if value is None:
        del arrived.headers[name]
    else:
        arrived.headers[name] = value
    return arrived


def with_more(name: str, value: str) -> Request:
    arrived = request()
    arrived.more = ((name, value),)
    return arrived


def with_body(body: bytes) -> Request:
    arrived = request()
    arrived.body = body
    return arrived


def unkeyed() -> str:
    signed = b"%b.%d.%b" % (ID.encode(), AT, BODY)
    return "v1," + base64.b64encode(hmac.digest(b"", signed, "sha256")).decode()


OTHER = request(webhook_id="evt_2").headers["webhook-signature"]

FORGED: dict[str, Callable[[], Problem | None]] = {
    "another's secret": lambda: problem(request(THEIRS)),
    "a secret that was given up": lambda: problem(request(OLD), secrets=[OURS]),
    "no secret": lambda: problem(with_header("webhook-signature", unkeyed())),
    "an altered body": lambda: problem(with_body(BODY.replace(b"9", b"90"))),
    "a body with a space more": lambda: problem(with_body(BODY.replace(b":", b": "))),
    "a body cut short": lambda: problem(with_body(BODY[:-1])),
    "another id": lambda: problem(with_header("webhook-id", "evt_2")),
    "another event's signature": lambda: problem(with_header("webhook-signature", OTHER)),
    "a newer timestamp": lambda: problem(with_header("webhook-timestamp", str(AT + 1))),
    "the same time, written otherwise": lambda: problem(with_header("webhook-timestamp", f"0{AT}")),
    "an old request made new": lambda: problem(
        with_header("webhook-timestamp", str(AT + 3600)), now=AT + 3600
    ),
    "no version": lambda: problem(signed_as("{bare}")),
    "another version": lambda: problem(signed_as("v2,{bare}")),
    "a version in capitals": lambda: problem(signed_as("V1,{bare}")),
    "an asymmetric version": lambda: problem(signed_as("v1a,{bare}")),
    "an empty signature": lambda: problem(with_header("webhook-signature", "")),
    "a version alone": lambda: problem(with_header("webhook-signature", "v1,")),
    "a prefix of it": lambda: problem(with_header("webhook-signature", OTHER[:20])),
    "commas between": lambda: problem(signed_as("v1,x,{}")),
    "a space inside": lambda: problem(signed_as("v1, {bare}")),
    "another alphabet": lambda: problem(with_header("webhook-signature", "v1," + "-_" * 22)),
}

MALFORMED: dict[str, Callable[[], Problem | None]] = {
    "no headers": lambda: problem(Request({})),
    "no id": lambda: problem(with_header("webhook-id", None)),
    "no timestamp": lambda: problem(with_header("webhook-timestamp", None)),
    "no signature": lambda: problem(with_header("webhook-signature", None)),
    "headers of another scheme": lambda: problem(
        Request({name.replace("webhook", "x"): value for name, value in request().headers.items()})
    ),
    "an id twice": lambda: problem(with_more("Webhook-Id", "evt_2")),
    "the same id twice": lambda: problem(with_more("WEBHOOK-ID", ID)),
    "two timestamps": lambda: problem(with_more("Webhook-Timestamp", str(AT))),
    "two headers of signatures": lambda: problem(with_more("Webhook-Signature", OTHER)),
    "an empty id": lambda: problem(with_header("webhook-id", "")),
    "an id with a dot": lambda: problem(with_header("webhook-id", "evt.1")),
    "an id with a line break": lambda: problem(with_header("webhook-id", "evt\n1")),
    "an id with a line break at its end": lambda: problem(with_header("webhook-id", "evt_1\n")),
    "an id outside ASCII": lambda: problem(with_header("webhook-id", "évt")),
    "a very long id": lambda: problem(with_header("webhook-id", "e" * 257)),
    "a timestamp that is no number": lambda: problem(with_header("webhook-timestamp", "now")),
    "a negative one": lambda: problem(with_header("webhook-timestamp", f"-{AT}")),
    "a signed one": lambda: problem(with_header("webhook-timestamp", f"+{AT}")),
    "one in milliseconds": lambda: problem(with_header("webhook-timestamp", f"{AT}000")),
    "one with a fraction": lambda: problem(with_header("webhook-timestamp", f"{AT}.0")),
    "one with a space": lambda: problem(with_header("webhook-timestamp", f" {AT}")),
    "one in other digits": lambda: problem(with_header("webhook-timestamp", "\u0661\u0667" * 5)),
    "one with underscores": lambda: problem(with_header("webhook-timestamp", "1_700_000_000")),
    "a date": lambda: problem(with_header("webhook-timestamp", "2023-11-14T22:13:20Z")),
    "infinity": lambda: problem(with_header("webhook-timestamp", "inf")),
    "a signature outside ASCII": lambda: problem(with_header("webhook-signature", "v1,é")),
    "too many signatures": lambda: problem(signed_as("v1,x " * SIGNATURES_MAX + "{}")),
    "a very long header": lambda: problem(signed_as("{} v1," + "x" * HEADER_MAX_CHARS)),
}

WRONG_TIME: dict[str, tuple[Problem, Callable[[], Problem | None]]] = {
    "too old by a moment": (Problem.OLD, lambda: problem(request(), now=AT + TOLERANCE_S + 0.1)),
    "a day old": (Problem.OLD, lambda: problem(request(), now=AT + 86_400)),
    "from 1970": (Problem.OLD, lambda: problem(request(at=0))),
    "too far ahead": (Problem.FUTURE, lambda: problem(request(), now=AT - TOLERANCE_S - 0.1)),
    "in a thousand years": (Problem.FUTURE, lambda: problem(request(at=AT + 10**11))),
}


@pytest.mark.fault("X93")
@pytest.mark.parametrize("case", FORGED)
def test_what_nobody_signed_is_not_believed(case: str) -> None:
    assert FORGED[case]() is Problem.FORGED


@pytest.mark.fault("X93")
@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_headers_are_not_believed(case: str) -> None:
    assert MALFORMED[case]() is Problem.MALFORMED


@pytest.mark.fault("X93")
@pytest.mark.parametrize("case", WRONG_TIME)
def test_a_request_is_good_for_five_minutes(case: str) -> None:
    expected, found = WRONG_TIME[case]
    assert found() is expected


@pytest.mark.fault("X93")
def test_a_stranger_learns_nothing_about_our_clock() -> None:
    assert problem(request(THEIRS, at=0)) is Problem.FORGED


@pytest.mark.fault("X93")
@given(st.binary(max_size=60), st.integers(0, 10**11), st.data())
def test_one_changed_byte_is_enough(body: bytes, at: int, data: st.DataObject) -> None:
    arrived = request(at=at, body=body)
    assert isinstance(judged(arrived, now=at), Verified)
    changed = bytearray(b".".join((ID.encode(), str(at).encode(), body)))
    place = data.draw(st.integers(0, len(changed) - 1))
    changed[place] ^= data.draw(st.integers(1, 255))
    webhook_id, timestamp, altered = [*bytes(changed).split(b".", 2), b"", b""][:3]
    arrived.body = altered
    arrived.headers["webhook-id"] = webhook_id.decode("latin-1")
    arrived.headers["webhook-timestamp"] = timestamp.decode("latin-1")
    # The same time in other bytes is another request too.
    assert isinstance(judged(arrived, now=at), Rejected)


@pytest.mark.fault("X93")
def test_every_comparison_is_made_and_each_in_constant_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared: list[tuple[bytes, bytes]] = []
    real = hmac.compare_digest

    def comparing(ours: bytes, given: bytes) -> bool:
        compared.append((ours, given))
        return real(ours, given)

    monkeypatch.setattr(hmac, "compare_digest", comparing)
    assert isinstance(judged(request(OURS, THEIRS, THEIRS), secrets=[OURS, OLD]), Verified)
    assert len(compared) == 6


# Replays.


@pytest.mark.fault("X93")
def test_an_event_that_was_taken_is_a_replay_also_with_a_new_timestamp() -> None:
    verifier = Verifier(OURS)
    first, again = request(), request(at=AT + 60)
    assert isinstance(verifier.verify(first.pairs(), first.body, now=AT), Verified)
    verifier.taken(ID, now=AT)
    for arrived, now in ((first, AT + 1), (first, AT + 299), (again, AT + 61)):
        assert verifier.verify(arrived.pairs(), arrived.body, now=now) == Replayed(webhook_id=ID)
    assert isinstance(
        verifier.verify(first.pairs(), first.body, now=AT + TOLERANCE_S + 1), Rejected
    )


@pytest.mark.fault("X93")
def test_an_event_that_could_not_be_taken_is_believed_again() -> None:
    """Its `receive` failed (a full disk), the sender heard a 500 and tries again."""
    verifier, arrived = Verifier(OURS), request()
    for _ in range(2):
        assert isinstance(verifier.verify(arrived.pairs(), arrived.body, now=AT), Verified)


@pytest.mark.fault("X93")
def test_a_forged_request_does_not_use_up_an_id() -> None:
    verifier, forged = Verifier(OURS), request(THEIRS)
    assert isinstance(verifier.verify(forged.pairs(), forged.body, now=AT), Rejected)
    assert isinstance(verifier.verify(request().pairs(), BODY, now=AT), Verified)


@pytest.mark.fault("X93")
def test_what_is_remembered_is_bounded_and_lasts_while_a_request_is_good() -> None:
    verifier = Verifier(OURS, remembers=3)
    ahead = request(at=AT + int(TOLERANCE_S))  # The sender's clock is as far ahead as it may be.
    assert isinstance(verifier.verify(ahead.pairs(), BODY, now=AT), Verified)
    verifier.taken(ID, now=AT)
    last = AT + 2 * TOLERANCE_S
    verifier.taken("evt_2", now=last)
    assert isinstance(verifier.verify(ahead.pairs(), BODY, now=last), Replayed)
    for number in range(3, 6):
        verifier.taken(f"evt_{number}", now=last)
    assert isinstance(verifier.verify(ahead.pairs(), BODY, now=last), Verified)
    assert len(verifier._taken) == 3
    verifier.taken("evt_9", now=last + 3600)
    assert list(verifier._taken) == ["evt_9"]


@pytest.mark.fault("X93")
@pytest.mark.field("F6")
def test_after_a_restart_the_durable_inbox_knows_the_event(tmp_path: Path) -> None:
    """The verifier has forgotten everything, and believes the same request once more."""

    async def arrive() -> str:
        arrived = request()
        believed = Verifier(OURS).verify(arrived.pairs(), arrived.body, now=AT)
        assert isinstance(believed, Verified)
        async with landed.open(f"sqlite:///{tmp_path}/inbox.db") as rt:
            taken = await rt.receive(
                arrived.body.decode(), origin="webhook", delivery=f"shop/{believed.webhook_id}"
            )
            return taken.turn

    assert run(arrive()) == run(arrive())


# Secrets and ids.


@pytest.mark.parametrize(
    "text",
    [
        "",
        "whsec_",
        "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "whsk_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "whsec_short=",
        "whsec_" + base64.b64encode(b"x" * 23).decode(),
        "whsec_" + base64.b64encode(b"x" * 65).decode(),
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n",
        "whsec_MfKQ9r8GKYqrTwjU PD8ILPZIo2LaLaSw",
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLa–w",
    ],
)
def test_what_is_no_secret_is_refused_without_being_repeated(text: str) -> None:
    with pytest.raises(ContractError) as refused:
        secrets_of(text)
    assert len(text) < 20 or text[6:] not in str(refused.value)


@pytest.mark.parametrize("texts", [[], [OURS] * (SECRETS_MAX + 1)])
def test_a_webhook_has_a_few_secrets(texts: list[str]) -> None:
    with pytest.raises(ContractError):
        Verifier(texts)


def test_a_secret_is_in_no_representation() -> None:
    assert "o" * 8 not in f"{Secret.read(OURS)!r} {Secret.read(OURS)}"


def test_a_new_secret_is_one_and_is_made_of_the_chance_that_is_given() -> None:
    assert Secret.read(new_secret()) != Secret.read(new_secret())
    assert new_secret(lambda size: b"o" * size) == OURS


@pytest.mark.parametrize("webhook_id", ["", "evt.1", "evt 1", "evt\r\nx: y", "é", "e" * 257])
def test_an_id_that_could_be_read_as_something_else_is_not_signed(webhook_id: str) -> None:
    with pytest.raises(ProposalError):
        sign(secrets_of(OURS), webhook_id=webhook_id, timestamp=AT, body=b"")
