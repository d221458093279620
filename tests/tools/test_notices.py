"""A case that opens goes to somebody's server: signed, facts only, under one id for ever."""

import asyncio
import json
from dataclasses import replace

import pytest

import landed
from landed.core.case import Ruling, Standing, Why
from landed.core.errors import LandedError
from landed.core.operation import Evidence, Source
from landed.tools.notices import WebhookNotify, event_id, facts
from landed.tools.signing import Verified, Verifier, is_id
from landed.tools.webhook import PAYLOAD_MAX_BYTES
from tests.tools.test_webhook import SECRET, YES, Clock, hook, receiving, status

SHOWN = Standing(
    id="op-1",
    why=Why.UNDECIDED,
    state="undecided",
    says="nobody answered",
    since=1_700_000_000.0,
    tenant="default",
    session="s1",
    tool="refund",
    operation="op-1",
    key="key-1",
    arguments={"cents": 5_000},
    principal="cleo",
    words="Refund her.",
    evidence=(Evidence(source=Source.LOOKUP, at=1.0, says="down"),),
    may=(Ruling.LANDED, Ruling.ABSENT),
)


@landed.tool(effect="irreversible", when_unknown="escalate", deadline_s=0.05)
async def refund(cents: int) -> dict[str, str]:
    raise TimeoutError


@pytest.mark.req("S4-53")
def test_a_real_server_gets_a_case_signed_and_gets_it_again_under_the_same_id() -> None:
    """Two refusals, then a yes; the whole way from `landed.open` to a socket."""

    async def act():
        async with receiving(status(503), status(500), YES) as receiver:
            notify = WebhookNotify(hook(receiver.url, Clock()))
            async with landed.open("sqlite://:memory:", tools=[refund], notify=notify) as rt:
                value = await rt.perform(refund, {"cents": 5_000})
            return value, receiver.requests

    value, requests = asyncio.run(act())
    assert len(requests) == 3
    assert {headers["webhook-id"] for headers, _ in requests} == {value.operation}
    headers, body = requests[-1]
    verifier = Verifier(SECRET)
    now = float(headers["webhook-timestamp"])
    assert isinstance(verifier.verify([*headers.items()], body, now=now), Verified)
    told = json.loads(body)
    assert told["type"] == "case.opened"
    assert (told["data"]["operation"], told["data"]["arguments"]) == (
        value.operation,
        {"cents": 5_000},
    )
    assert told["data"]["may"] == ["landed", "absent", "hold", "lift"]


def test_only_facts_are_told_and_no_words_of_the_user() -> None:
    data = facts(SHOWN)["data"]
    assert isinstance(data, dict)
    assert sorted(data) == sorted(
        {
            *("case", "why", "state", "says", "since", "tenant", "session", "tool", "operation"),
            *("key", "known_until", "principal", "turn", "plan", "retries", "undoes", "may"),
            *("evidence", "arguments"),
        }
    )
    assert "Refund her." not in json.dumps(facts(SHOWN))
    for less in (facts(SHOWN, arguments=False), facts(replace(SHOWN, arguments=None))):
        assert isinstance(less["data"], dict)
        assert "arguments" not in less["data"]


def test_a_case_that_is_too_large_goes_without_its_arguments() -> None:
    large = replace(SHOWN, arguments={"text": "x" * PAYLOAD_MAX_BYTES})
    data = facts(large)["data"]
    assert isinstance(data, dict)
    assert data["case"] == "op-1"
    assert not {"arguments", "evidence"} & data.keys()


@pytest.mark.parametrize(
    "id", ["op-1", "case/unrecorded/mail/<1@mail.example>", "case/ü", "x" * 999, "case/a b"]
)
def test_any_case_has_one_id_that_a_header_can_carry(id: str) -> None:
    shown = replace(SHOWN, id=id)
    assert is_id(event_id(shown))
    assert event_id(shown) == event_id(replace(shown, says="later"))
    assert (event_id(shown) == id) is is_id(id)


@pytest.mark.parametrize("answer", [410, 302, 500])
def test_what_did_not_surely_arrive_was_not_told(answer: int) -> None:
    async def act() -> None:
        async with receiving(status(answer)) as receiver:
            with pytest.raises(LandedError, match=f"has no op-1: .*{answer}"):
                await WebhookNotify(hook(receiver.url, Clock())).opened(SHOWN)

    asyncio.run(act())
