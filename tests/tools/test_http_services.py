"""Services as providers run them, reached over real sockets: what each promises is tried."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from landed import catalogue
from landed.core.canonical import Json
from landed.core.outcome import Absent, Acknowledged, Found, Listed, NoAnswer, NotSent, Refused
from landed.testing.check_tool import Findings, Verdict, check_tool
from landed.tools.http import HttpTool
from landed.tools.listing import Listing
from landed.tools.reading import Reading
from landed.tools.shaping import Shape
from tests.tools.calls import call_of, run
from tests.tools.far_services import Calendar, Service, Squared, Striped, served


def refunding(url: str, **more: Any) -> HttpTool:
    """Refunds at a service like Stripe: found by a mark in their metadata."""
    promises = catalogue.contract("stripe.refund").promises
    given: dict[str, Any] = {
        "name": "refund",
        "url": f"{url}/v1/refunds",
        "arguments": {"payment_intent": str, "amount": int},
        "shape": Shape(fills={"metadata.operation": "{key}"}),
        "lookup": Listing(
            url=f"{url}/v1/refunds?payment_intent={{payment_intent}}",
            items="data",
            key="metadata.operation",
            next="has_more",
            next_as="starting_after",
        ),
        "list_effects": Listing(
            url=f"{url}/v1/refunds?created[gte]={{since}}",
            items="data",
            key="metadata.operation",
            says="{amount} of {payment_intent} ({id})",
            next="has_more",
            next_as="starting_after",
        ),
        **promises,
    }
    return HttpTool(**(given | more))


def paying(url: str, **more: Any) -> HttpTool:
    """Payments at a service like Square: the key in the body, and in a second place for lookups."""
    entry = catalogue.contract("square.payment")
    given: dict[str, Any] = {
        "name": "pay",
        "url": f"{url}/v2/payments",
        "arguments": {"source_id": str, "cents": int},
        "shape": Shape(
            key_in="body",
            fills={
                "amount_money.amount": "{cents}",
                "amount_money.currency": "USD",
                "reference_id": "{key}",
            },
        ),
        "lookup": Listing(
            url=f"{url}/v2/payments",
            items="payments",
            key="reference_id",
            next="cursor",
            next_as="cursor",
        ),
        "reading": Reading(requires=("payment.id",), yes_result="payment"),
        **entry.promises,
    }
    return HttpTool(**(given | more))


def inviting(url: str, **more: Any) -> HttpTool:
    """Events at a service like Google Calendar: the key is their id, written so that it fits."""
    given: dict[str, Any] = {
        "name": "invite",
        "url": f"{url}/events",
        "arguments": {"summary": str},
        "shape": Shape(key_in="body", key_as="hex"),
        "lookup": f"{url}/events/{{key}}",
        "reading": Reading(found="", result="", absent_on=(404,), position=""),
        **catalogue.contract("google_calendar.insert").promises,
    }
    return HttpTool(**(given | more))


REFUND: Mapping[str, Json] = {"payment_intent": "pi_1", "amount": 500}
PAY: Mapping[str, Json] = {"source_id": "card", "cents": 500}
INVITE: Mapping[str, Json] = {"summary": "Dinner"}

Make = Callable[..., HttpTool]


def tried(service: Service, make: Make, arguments: Mapping[str, Json], **more: Any) -> Findings:
    async def main() -> Findings:
        async with served(service) as url:
            tool = make(url)
            try:
                return await check_tool(tool, arguments, holds=service.holds, **more)
            finally:
                await tool.aclose()

    return run(main())


@pytest.mark.req("S4-08")
@pytest.mark.parametrize(
    ("service", "make", "arguments", "changed", "refused"),
    [
        (Striped, refunding, REFUND, {**REFUND, "amount": 700}, {**REFUND, "amount": 0}),
        (Squared, paying, PAY, {**PAY, "cents": 700}, {**PAY, "cents": 0}),
        (Calendar, inviting, INVITE, {"summary": "Lunch"}, {"summary": ""}),
    ],
    ids=["Stripe", "Square", "Calendar"],
)
def test_what_the_catalogue_says_of_a_service_is_kept_through_the_tool(
    service: Callable[[], Service],
    make: Make,
    arguments: Mapping[str, Json],
    changed: Mapping[str, Json],
    refused: Mapping[str, Json],
) -> None:
    far = service()
    findings = tried(far, make, arguments, changed=changed, refused=refused)
    assert findings.ok, findings
    assert findings.of(Verdict.SKIPPED) <= {"a key is remembered"}
    assert {"one key, one effect", "a lookup finds what landed"} <= findings.of(Verdict.KEPT)
    # The first send and its repetitions; what was refused and what was looked for made none.
    assert len(far.made) == 1


def test_a_key_in_the_wrong_place_is_found_out() -> None:
    """The planted bug: a service that looks for its key in the body, and is sent it in a header."""
    far = Squared()

    def in_a_header(url: str) -> HttpTool:
        return paying(url, shape=Shape(fills={"amount_money.amount": "{cents}"}))

    assert not tried(far, in_a_header, PAY).ok
    assert far.made == []


@pytest.mark.req("S4-11")
def test_the_key_stands_where_each_service_wants_it_and_in_no_schema() -> None:
    stripe, square, calendar = Striped(), Squared(), Calendar()
    for far, make, arguments in (
        (stripe, refunding, REFUND),
        (square, paying, PAY),
        (calendar, inviting, INVITE),
    ):
        tool = make("http://far.test", transport=far.transport)
        assert isinstance(run(tool.send(call_of(arguments, key="op-1"))), Acknowledged)
        properties = tool.schema["properties"]
        assert isinstance(properties, Mapping)
        assert properties.keys() == arguments.keys()
    assert stripe.asked[0].headers["idempotency-key"] == "op-1"
    assert stripe.asked[0].body == {**REFUND, "metadata": {"operation": "op-1"}}
    assert "idempotency_key" not in square.asked[0].headers
    assert square.asked[0].body == {
        "source_id": "card",
        "amount_money": {"amount": 500, "currency": "USD"},
        "idempotency_key": "op-1",
        "reference_id": "op-1",
    }
    assert calendar.asked[0].body == {"summary": "Dinner", "id": b"op-1".hex()}


@pytest.mark.req("S4-08")
def test_one_of_many_pages_is_found_by_its_key() -> None:
    async def main() -> None:
        far = Striped()
        async with served(far) as url:
            refund = refunding(url)
            for number in range(7):
                await refund.send(call_of(REFUND, key=f"op-{number}"))
            looked = [await refund.lookup(call_of(REFUND, key=f"op-{n}")) for n in range(8)]
            await refund.aclose()
        found = [each.result for each in looked if isinstance(each, Found)]
        ids = [each["id"] for each in found if isinstance(each, Mapping)]
        assert ids == [f"re_{n + 1}" for n in range(7)]
        assert looked[7] == Absent()

    run(main())


def test_what_the_service_holds_since_then_is_listed_with_the_keys() -> None:
    async def main() -> None:
        far = Striped()
        async with served(far) as url:
            refund = refunding(url)
            for number in range(3):
                await refund.send(call_of(REFUND, key=f"op-{number}"))
            far.made.append(
                {
                    "id": "re_hand",
                    "created": 2_000,
                    "amount": 5,
                    "_key": "",
                    "payment_intent": "pi_9",
                    "metadata": {},
                }
            )
            listed = await refund.list_effects(1_001.9)
            await refund.aclose()
        assert isinstance(listed, Listed)
        said = [(each.id, each.key, each.says) for each in listed.effects]
        assert said == [
            ("re_hand", "", "5 of pi_9 (re_hand)"),
            ("re_3", "op-2", "500 of pi_1 (re_3)"),
            ("re_2", "op-1", "500 of pi_1 (re_2)"),
        ]

    run(main())


# Versions.


def moving(url: str, **more: Any) -> HttpTool:
    """Changes of an event that rest on the version that was read."""
    given: dict[str, Any] = {
        "name": "move",
        "effect": "reversible",
        "url": f"PATCH {url}/events/{{event}}",
        "arguments": {"event": str, "day": str},
        "prepare": f"{url}/events/{{event}}",
        "shape": Shape(if_match="{prepared.etag}"),
        "reading": Reading(position_header="ETag"),
    }
    return HttpTool(**(given | more))


MOVE: Mapping[str, Json] = {"event": "e1", "day": "Sat"}


def with_event() -> Calendar:
    return Calendar(made=[{"id": "e1", "version": 4, "day": "Fri"}])


@pytest.mark.req("S4-28")
def test_a_change_rests_on_the_version_that_was_read_before_it() -> None:
    far = with_event()
    findings = tried(far, moving, MOVE)
    assert findings.ok, findings
    assert far.made == [{"id": "e1", "version": 5, "day": "Sat"}]
    read, changed = far.asked
    assert (read.method, changed.method) == ("GET", "PATCH")
    assert changed.headers["if-match"] == '"4"'
    assert changed.body == {"day": "Sat"}


@pytest.mark.req("S4-28")
def test_what_somebody_else_changed_meanwhile_is_refused_with_what_moved() -> None:
    async def main() -> None:
        far = with_event()
        async with served(far) as url:
            move = moving(url)
            prepared = await move.prepare(call_of(MOVE))
            assert not isinstance(prepared, NoAnswer)
            assert prepared.value == {"etag": '"4"'}
            call = call_of(MOVE, prepared=prepared.value)
            assert await move.send(call) == Acknowledged(result=far.made[0], position=5)
            late = await move.send(call)
            await move.aclose()
        assert late == Refused(
            reason='412 it has changed since it was "4", and is "5" now: Precondition Failed'
        )
        assert far.made == [{"id": "e1", "version": 5, "day": "Sat"}]

    run(main())


# Not now.


@pytest.mark.req("S4-01")
@pytest.mark.fault("X66")
def test_a_429_says_for_how_long_and_nothing_about_the_call() -> None:
    async def main() -> None:
        far = Striped(busy=1, retry_after="7")
        async with served(far) as url:
            refund = refunding(url)
            asked = await refund.send(call_of(REFUND))
            again = await refund.send(call_of(REFUND, attempt=2))
            await refund.aclose()
        assert asked == NotSent(reason="429, asked to wait 7 s: too many requests", wait_s=7.0)
        assert isinstance(again, Acknowledged)
        first, second = far.asked
        assert first.body == second.body
        assert first.headers["idempotency-key"] == second.headers["idempotency-key"]

    run(main())
