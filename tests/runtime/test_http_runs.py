"""HTTP services through the runtime, in virtual time: waits, versions, lists and laggards."""

from collections.abc import Mapping
from typing import Any

import httpx2
import pytest

from landed.core.canonical import Json
from landed.core.key import Ask
from landed.core.operation import Source, State
from landed.core.value import Confirmed, Failed, Unanswered, Undecided, Unknown, Withdrawn
from landed.runtime.runtime import Runtime
from landed.tools.http import HttpTool
from landed.tools.listing import Listing
from landed.tools.reading import Reading
from landed.tools.shaping import Shape
from tests.runtime.rig import Rig
from tests.tools.far_services import Asked, Calendar, Service, Striped

FAR = "http://far.test"
HOUR_S = 3_600.0
REFUND: Mapping[str, Json] = {"payment_intent": "pi_1", "amount": 500}
MOVE: Mapping[str, Json] = {"event": "e1", "day": "Sat"}


def refunding(far: Service, **more: Any) -> HttpTool:
    given: dict[str, Any] = {
        "name": "refund",
        "effect": "irreversible",
        "url": f"{FAR}/v1/refunds",
        "arguments": {"payment_intent": str, "amount": int},
        "keyed": "Idempotency-Key",
        "shape": Shape(fills={"metadata.operation": "{key}"}),
        "lookup": Listing(
            url=f"{FAR}/v1/refunds?payment_intent={{payment_intent}}",
            items="data",
            key="metadata.operation",
            next="has_more",
            next_as="starting_after",
        ),
        "transport": far.transport,
    }
    return HttpTool(**(given | more))


def moving(far: Service) -> HttpTool:
    return HttpTool(
        name="move",
        effect="reversible",
        url=f"PATCH {FAR}/events/{{event}}",
        arguments={"event": str, "day": str},
        prepare=f"{FAR}/events/{{event}}",
        shape=Shape(if_match="{prepared.etag}"),
        target=("event/{event}",),
        transport=far.transport,
    )


def asking(tool: str, arguments: Mapping[str, Json], **ask: Any) -> Any:
    async def script(rt: Runtime) -> Any:
        given = Ask(**{"call_id": "1", **ask})
        return await rt.perform(tool, arguments, ask=given, patience_s=2 * HOUR_S)

    return script


# Not now.


@pytest.mark.fault("X66")
def test_a_service_that_asks_to_wait_is_sent_the_same_once_it_may_be(rig: Rig) -> None:
    far = Striped(busy=2, retry_after="40")
    started = rig.world.clock.now()
    value = rig.run(asking("refund", REFUND), refunding(far))
    assert isinstance(value, Confirmed)
    assert len(far.made) == 1
    assert len({each.headers["idempotency-key"] for each in far.asked}) == 1
    assert rig.events("op-a1") == [
        *("made", "sent", "not_sent", "sent", "not_sent", "sent", "acknowledged")
    ]
    # Two waits of 40 s, and nothing in between.
    assert 80.0 <= rig.world.clock.now() - started < 90.0
    assert len(far.asked) == 3


@pytest.mark.fault("X66")
def test_a_storm_of_429s_ends_with_the_last_try(rig: Rig) -> None:
    far = Striped(busy=99, retry_after="10")
    value = rig.run(asking("refund", REFUND), refunding(far, max_tries=4))
    assert isinstance(value, Failed)
    assert "did not take it up" in value.reason
    assert (len(far.asked), far.made) == (4, [])


@pytest.mark.fault("X66")
def test_a_wait_beyond_the_time_to_send_ends_with_that_time(rig: Rig) -> None:
    far = Striped(busy=1, retry_after="7200")
    send_by = rig.world.clock.now() + 60.0
    value = rig.run(asking("refund", REFUND, send_by=send_by), refunding(far))
    assert isinstance(value, Withdrawn)
    assert send_by <= rig.world.clock.now() < send_by + 5.0
    assert (len(far.asked), far.made) == (1, [])


@pytest.mark.fault("X66", "X51")
def test_a_resend_that_is_asked_to_wait_says_nothing_of_the_first_send(rig: Rig) -> None:
    """The first reply is lost, the resend gets a 429: the doubt stays, and the same key ends it."""

    class LosesTheFirst(Striped):
        def answer(self, asked: Asked) -> Any:
            if asked.method == "POST" and not self.made:
                super().serve(asked)
                self.busy = 1
                self.asked.append(asked)
                return 500, {}, {"message": "lost"}
            return super().answer(asked)

    far = LosesTheFirst(retry_after="20")
    tool = refunding(far, lookup="", compares_payload=True)
    value = rig.run(asking("refund", REFUND), tool)
    assert isinstance(value, Confirmed)
    assert len(far.made) == 1
    assert rig.events("op-a1") == [
        *("made", "sent", "answer_lost", "resent", "not_sent", "resent", "acknowledged")
    ]


@pytest.mark.fault("X66")
def test_a_read_that_is_asked_to_wait_is_unanswered_at_once_and_not_tried_again(rig: Rig) -> None:
    asked: list[str] = []

    def busy(request: httpx2.Request) -> httpx2.Response:
        asked.append(request.url.path)
        return httpx2.Response(429, json={"message": "slow"}, headers={"Retry-After": "30"})

    search = HttpTool(
        name="search", effect="none", url=f"GET {FAR}/s", transport=httpx2.MockTransport(busy)
    )
    value = rig.run(asking("search", {}), search)
    assert isinstance(value, Unanswered)
    assert "asked to wait 30 s" in value.reason
    assert asked == ["/s"]


# Versions.


@pytest.mark.req("S4-28")
def test_what_moved_between_the_read_and_the_send_is_not_overwritten_and_is_planned_anew(
    rig: Rig,
) -> None:
    far = Calendar(made=[{"id": "e1", "version": 1, "day": "Fri", "room": "small"}])

    def somebody_else(event: dict[str, Any]) -> None:
        event |= {"room": "large", "version": event["version"] + 1}
        far.meanwhile = None

    far.meanwhile = somebody_else

    async def twice(rt: Runtime) -> Any:
        first = await rt.perform("move", MOVE, ask=Ask(call_id="1"))
        second = await rt.perform("move", MOVE, ask=Ask(call_id="2"))
        return first, second

    first, second = rig.run(twice, moving(far))
    assert isinstance(first, Failed)
    assert 'it has changed since it was "1", and is "2" now' in first.reason
    assert isinstance(second, Confirmed)
    assert far.made == [{"id": "e1", "version": 3, "day": "Sat", "room": "large"}]


@pytest.mark.req("S4-28")
def test_a_version_is_stored_before_the_send_and_never_read_again(rig: Rig) -> None:
    far = Calendar(made=[{"id": "e1", "version": 1, "day": "Fri"}])
    assert isinstance(rig.run(asking("move", MOVE), moving(far)), Confirmed)
    assert rig.operation().prepared == {"etag": '"1"'}
    assert rig.events("op-a1")[:3] == ["made", "prepared", "sent"]
    assert [each.method for each in far.asked] == ["GET", "PATCH"]


def test_a_call_whose_version_cannot_be_read_is_taken_back_unsent(rig: Rig) -> None:
    far = Calendar()
    value = rig.run(asking("move", MOVE), moving(far))
    assert isinstance(value, Withdrawn)
    assert [each.method for each in far.asked] == ["GET"]


# Lists.


@pytest.mark.req("S4-02", "S4-08")
@pytest.mark.fault("X51")
def test_a_lost_reply_is_found_in_the_list_by_its_key(rig: Rig) -> None:
    class Loses(Striped):
        def serve(self, asked: Asked) -> Any:
            said = super().serve(asked)
            return said if asked.method == "GET" else (500, {}, {"message": "lost"})

    far = Loses(made=[])
    for number in range(5):
        far.made.append(
            {"id": f"re_x{number}", "created": 1, "payment_intent": "pi_1", "metadata": {}}
            | {"amount": 500, "_key": f"x{number}", "_body": {}}
        )
    value = rig.run(asking("refund", REFUND), refunding(far))
    assert isinstance(value, Confirmed)
    assert isinstance(value.result, Mapping)
    assert value.result["id"] == "re_6"
    assert len(far.made) == 6


@pytest.mark.fault("X63")
def test_two_effects_under_one_key_go_to_a_person_with_both_named(rig: Rig) -> None:
    class Doubles(Striped):
        def serve(self, asked: Asked) -> Any:
            if asked.method == "GET":
                return super().serve(asked)
            super().serve(asked)
            self.made.append({**self.made[-1], "id": "re_2", "_key": "again"})
            return 500, {}, {"message": "lost"}

    far = Doubles()
    value = rig.run(asking("refund", REFUND), refunding(far, escalate_after_s=60.0))
    assert isinstance(value, Undecided)
    said = [each.says for each in rig.operation().evidence if each.source is Source.LOOKUP]
    assert all('2 effects under one key: "re_2", "re_1"' in each for each in said)
    assert said


# Laggards.


def lagging(answers: list[tuple[int, bool]], **more: Any) -> HttpTool:
    """A refund that was acknowledged at position 7, and a replica that is read back."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        if request.method == "POST":
            return httpx2.Response(201, json={"id": "R1"}, headers={"X-Position": "7"})
        position, there = answers.pop(0) if len(answers) > 1 else answers[0]
        body: dict[str, Json] = {"found": there, "result": {"id": "R1"}}
        return httpx2.Response(200, json=body, headers={"X-Position": str(position)})

    return HttpTool(
        name="refund",
        effect="irreversible",
        url=f"{FAR}/refunds",
        arguments={"order": str},
        read_back=f"{FAR}/replica/refunds/{{result.id}}",
        reading=Reading(position_header="X-Position"),
        settlement_lag_s=30.0,
        transport=httpx2.MockTransport(answer),
        **more,
    )


@pytest.mark.req("S4-32", "S4-35")
@pytest.mark.fault("X55")
@pytest.mark.parametrize(
    ("answers", "kind"),
    [
        ([(6, False), (7, True)], Confirmed),
        ([(6, False), (7, False)], Failed),
        ([(6, False)], Undecided),
    ],
    ids=["yes", "no", "maybe"],
)
def test_not_visible_yet_and_did_not_happen_are_told_apart_by_the_position(
    rig: Rig, answers: list[tuple[int, bool]], kind: type
) -> None:
    tool = lagging(answers, escalate_after_s=120.0)
    assert isinstance(rig.run(asking("refund", {"order": "A17"}), tool), kind)


@pytest.mark.fault("X61")
@pytest.mark.parametrize("appears", [True, False])
def test_a_202_is_confirmed_only_once_it_can_be_read(rig: Rig, appears: bool) -> None:
    looks: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        if request.method == "POST":
            return httpx2.Response(202, json={"id": "R1"})
        looks.append(request.url.path)
        body: dict[str, Json] = {"found": None}
        if appears and len(looks) > 2:
            body = {"found": True, "result": {"id": "R1", "state": "done"}}
        return httpx2.Response(200, json=body)

    tool = HttpTool(
        name="refund",
        effect="irreversible",
        url=f"{FAR}/refunds",
        arguments={"order": str},
        read_back=f"{FAR}/refunds/{{result.id}}",
        settlement_lag_s=60.0,
        escalate_after_s=120.0,
        transport=httpx2.MockTransport(answer),
    )
    value = rig.run(asking("refund", {"order": "A17"}), tool)
    if appears:
        assert isinstance(value, Confirmed)
        assert value.result == {"id": "R1", "state": "done"}
        assert rig.events("op-a1")[:3] == ["made", "sent", "accepted"]
    else:
        assert isinstance(value, Undecided | Unknown)
        assert rig.operation().state is not State.CONFIRMED
