"""Every scenario ends as its description says, on any schedule and after a crash at any point.

The printed form of each is kept in `tests/golden`; `python -m tests.test_scenarios` refreshes it.
"""

import asyncio
import json
import logging
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest
from click.testing import CliRunner

from landed.cli.main import landed
from landed.core.lease import Lease
from landed.core.value import Blocked, Confirmed, Failed, Unknown, Value
from landed.stores.sqlite import SqliteStore
from landed.testing.designs import RIGHT
from landed.testing.faults import parse_point
from landed.testing.scenario import Agent, Ran, Scenario, Stage, run
from landed.testing.scenarios import BOOK, BY_NAME, FRIDAY, RESERVE, SCENARIOS
from landed.testing.worlds.faults import Fault
from landed.testing.worlds.restaurant import Restaurant
from tests.sampling import sampled

GOLDEN = Path(__file__).parent / "golden"
RIGHT_ONES = [scenario for scenario in SCENARIOS if scenario.design is RIGHT]
# One table is asked for and nobody changes their mind: what may be there after any crash is known.
BOOKINGS = [scenario for scenario in RIGHT_ONES if scenario.phrases]
PAIRS = {
    "reply-lost-naive": "reply-lost",
    "key-per-attempt": "reply-lost",
    "request-delayed-lookup-only": "request-delayed",
    "cancelled-wait-naive": "cancelled-wait",
}
LOST = BY_NAME["reply-lost"]
DELAYED = BY_NAME["request-delayed"]
NOTHING_OFFERED = Restaurant(strict=True, can_look_up=False, can_close=False)
ALWAYS_LOST = (Fault(path=RESERVE, kind="lose_reply", nth=None),)


def _named(scenario: Scenario) -> str:
    return scenario.name


@pytest.fixture(autouse=True)
def nothing_went_wrong_unseen(caplog: pytest.LogCaptureFixture):
    """A loop that ends by a bug of ours is logged; a scenario may end well all the same."""
    yield
    errors = [r.getMessage() for r in caplog.get_records("call") if r.levelno >= logging.ERROR]
    assert not errors


# As described.


@pytest.mark.req("S4-02", "S4-08", "S0-07")
@pytest.mark.fault("X51")
@pytest.mark.parametrize("scenario", SCENARIOS, ids=_named)
def test_it_ends_as_described_and_says_so_last(scenario: Scenario) -> None:
    ran = run(scenario)
    printed = CliRunner().invoke(landed, ["demo", scenario.name])

    assert ran.as_described is True
    assert _texts(ran, "crash") == list(scenario.kill)
    assert printed.exit_code == 0
    assert printed.output.splitlines()[-4:] == [
        f"-- restaurant holds: {', '.join(scenario.holds) or 'nothing'}",
        f"-- texts holds: {', '.join(scenario.texts) or 'nothing'}",
        f"-- reconciled: {'yes' if scenario.reconciled else 'no'}",
        f"-- agent's last message: {ran.message}",
    ]


def test_there_are_wrong_designs_that_end_differently_from_ours() -> None:
    assert all(BY_NAME[wrong].design is not RIGHT for wrong in PAIRS)
    for wrong, right in PAIRS.items():
        assert not run(BY_NAME[wrong]).reconciled
        assert run(BY_NAME[right]).reconciled


@pytest.mark.parametrize("seed", sampled(range(1, 5), every=4))
@pytest.mark.parametrize("scenario", SCENARIOS, ids=_named)
def test_it_ends_as_described_on_every_schedule(scenario: Scenario, seed: int) -> None:
    assert run(scenario, seed=seed).as_described is True


@pytest.mark.req("S0-04")
@pytest.mark.parametrize("scenario", SCENARIOS, ids=_named)
def test_its_timeline_is_the_one_that_was_kept(scenario: Scenario) -> None:
    kept = (GOLDEN / f"{scenario.name}.txt").read_text("utf-8")

    assert _printed(scenario.name) == kept, "python -m tests.test_scenarios refreshes it"


def test_nothing_is_kept_of_a_scenario_that_is_gone() -> None:
    assert {path.stem for path in GOLDEN.glob("*.txt")} == set(BY_NAME)


@pytest.mark.req("S0-05")
@pytest.mark.parametrize("scenario", SCENARIOS, ids=_named)
def test_two_runs_are_the_same_in_every_line(scenario: Scenario) -> None:
    assert run(scenario, seed=7).plain() == run(scenario, seed=7).plain()


@pytest.mark.req("S0-05")
def test_two_processes_tell_the_same_whatever_their_hash_seed() -> None:
    asked = ["demo", "double-dispatch", "--json", "--seed=3"]
    said = [
        subprocess.run(
            [sys.executable, "-c", "from landed.cli.main import main; main()", *asked],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            timeout=50,
        ).stdout
        for seed in ("1", "2")
    ]

    assert said[0] == said[1]
    assert json.loads(said[0])["scenario"] == "double-dispatch"


@pytest.mark.req("S0-06")
@pytest.mark.parametrize(("wrong", "right"), PAIRS.items())
def test_a_wrong_design_reads_the_words_as_ours_does(wrong: str, right: str) -> None:
    read = _texts(run(BY_NAME[right]), "model.read")

    assert read
    assert _texts(run(BY_NAME[wrong]), "model.read") == read


# What the lines say, and in which order.


@pytest.mark.req("S0-20", "K5")
@pytest.mark.parametrize("scenario", RIGHT_ONES, ids=_named)
def test_every_send_names_its_operation_as_its_key(scenario: Scenario) -> None:
    sent = [line for line in run(scenario).timeline.lines if line.type == "tool.sent"]
    # The service that texts knows no keys.
    keyed = [line for line in sent if "text_group(" not in line.text]

    assert keyed
    for line in keyed:
        assert line.text.endswith(f" key=s1:{line.operation}")


@pytest.mark.req("S0-15", "S0-22", "S0-24", "S4-08")
@pytest.mark.fault("X53")
def test_a_call_nobody_waits_for_is_closed_and_its_late_request_refused() -> None:
    ran = run(DELAYED)

    assert not _texts(ran, "tool.cancelled")
    assert _order(ran, "tool.sent", "interrupt", "tool.unknown", "restaurant", "resolve")
    assert _texts(ran, "tool.unknown")[0].startswith("T1 reserve_table: stopped waiting")
    assert _texts(ran, "resolve") == ["s1:op-a2: nothing has landed; key closed"]
    assert _texts(ran, "restaurant") == [
        "closed s1:op-a2: nothing has landed",
        "refused a late request: key s1:op-a2 is closed",
    ]


@pytest.mark.req("S0-22")
def test_a_close_that_finds_something_says_what() -> None:
    assert _texts(run(BY_NAME["cancelled-wait"]), "resolve") == ["s1:op-a2: R1; key closed"]


@pytest.mark.req("S0-23", "S4-01")
@pytest.mark.fault("X03", "X60")
@pytest.mark.parametrize("kind", ["lose_reply", "error_after"])
def test_a_reply_that_tells_nothing_is_looked_up(kind: str) -> None:
    ran = run(replace(LOST, faults=(Fault(path=RESERVE, kind=kind),)))  # type: ignore[arg-type]

    assert ran.as_described
    assert _order(ran, "tool.sent", "tool.unknown", "resolve")
    assert _texts(ran, "resolve") == ["s1:op-a2: R1"]


@pytest.mark.req("S0-23", "S0-27", "S0-32", "K9")
@pytest.mark.fault("X50")
def test_a_lost_request_is_looked_up_and_sent_again_with_its_key() -> None:
    ran = run(replace(LOST, faults=(Fault(path=RESERVE, kind="drop"),)))

    assert ran.as_described
    assert _texts(ran, "resolve") == [
        "s1:op-a2: nothing has landed",
        "s1:op-a2: sent again with the same key",
    ]
    assert len(_texts(ran, "tool.sent")) == 1


@pytest.mark.req("S0-27")
@pytest.mark.field("A16")
@pytest.mark.fault("X54")
def test_field_a16_a_reply_later_than_the_client_waits_is_one_effect() -> None:
    slow = (Fault(path=RESERVE, kind="delay_request", seconds=45.0),)
    scenario = replace(LOST, faults=slow, promises={"deadline_s": 30.0})

    ran = run(scenario)
    lenient = run(replace(scenario, restaurant=Restaurant(strict=False)))

    assert ran.as_described
    assert _texts(ran, "restaurant")[-2:] == ["committed R1 Fri 19:00 x4", "replayed R1"]
    # A service that does not compare payloads gets nothing twice: it is asked until it knows.
    assert lenient.as_described
    assert "committed R1 Fri 19:00 x4" in _texts(lenient, "restaurant")
    assert "replayed R1" not in _texts(lenient, "restaurant")


def test_a_refused_resend_is_no_no_and_is_never_followed_by_another() -> None:
    ran = run(replace(BY_NAME["refused-resend"], restaurant=NOTHING_OFFERED))

    assert _texts(ran, "resolve") == ["s1:op-a2: sent again with the same key"]
    assert len(_texts(ran, "tool.unknown")) == 2
    assert ran.message.startswith("I may have booked Fri 19:00 for 4")
    assert [one["text"] for one in ran.world["restaurant"]] == [FRIDAY]


@pytest.mark.fault("X52")
def test_a_duplicated_request_is_one_table() -> None:
    ran = run(replace(LOST, faults=(Fault(path=RESERVE, kind="duplicate", seconds=1.0),)))

    assert ran.as_described
    assert _texts(ran, "restaurant") == ["committed R1 Fri 19:00 x4", "replayed R1"]


@pytest.mark.req("S0-26", "K11")
@pytest.mark.parametrize(("late_s", "holds"), [(40.0, (FRIDAY,)), (80.0, ())])
def test_without_a_close_only_the_deadline_of_the_service_makes_a_no(
    late_s: float, holds: tuple[str, ...]
) -> None:
    scenario = replace(
        DELAYED,
        restaurant=Restaurant(strict=True, can_close=False, refuses_after_s=60.0),
        faults=(Fault(path=RESERVE, kind="delay_request", seconds=late_s),),
        holds=holds,
        says=("Booked R1",) if holds else ("No table was booked",),
    )

    ran = run(scenario)

    looked = [line for line in ran.timeline.lines if line.type == "resolve"]
    assert ran.as_described
    assert len(_texts(ran, "tool.sent")) == 1
    assert {line.text for line in looked[:-1]} == {"s1:op-a2: nothing has landed"}
    assert holds or looked[-1].at_s > 60.0


@pytest.mark.req("S4-22", "S4-23", "K11")
def test_where_nobody_can_tell_a_person_is_asked_and_nothing_is_claimed() -> None:
    ran = run(replace(DELAYED, faults=ALWAYS_LOST, restaurant=NOTHING_OFFERED))

    assert _texts(ran, "resolve")[-1].endswith("a person has to find out")
    assert ran.message.startswith("I may have booked Fri 19:00 for 4")
    assert "op-a2" in ran.message
    assert not ran.reconciled


# Stopping the wait.


@pytest.mark.req("S0-16")
def test_a_read_nobody_waits_for_is_dropped_without_a_question() -> None:
    async def look_and_leave(agent: Agent) -> None:
        heard, (look, _) = await agent.hear(BOOK, delivery="d1")
        await _stop_waiting(asyncio.ensure_future(agent.do(heard, look)), after_s=0.005)
        await agent.answer(heard)

    ran = run(replace(LOST, script=look_and_leave, faults=(), holds=(), says=()))

    assert ran.as_described
    assert len(_texts(ran, "tool.cancelled")) == 1
    assert not _texts(ran, "resolve")
    assert ran.message == "Nothing was done."


@pytest.mark.req("S0-17", "S0-69")
def test_the_cancel_goes_on_once_the_doubt_is_durable() -> None:
    seen: list[object] = []

    async def leave(agent: Agent) -> None:
        heard, (_, reserve) = await agent.hear(BOOK, delivery="d1")
        call = asyncio.ensure_future(agent.do(heard, reserve))
        await _stop_waiting(call, after_s=2.0)
        report = await agent.rt.report(heard.turn)
        seen.extend([call.cancelled(), await agent.rt.status(report.operations[0])])
        await agent.answer(heard)

    ran = run(replace(BY_NAME["cancelled-wait"], script=leave))

    was_cancelled, value = seen
    assert was_cancelled is True
    assert isinstance(value, Unknown)
    assert "cancelled" not in " ".join(item.text for item in ran.history)


# The same call again.


@pytest.mark.req("S1-29", "K8")
@pytest.mark.field("A3")
def test_field_a3_what_is_the_same_ask_is_one_effect_and_what_is_not_is_two() -> None:
    values: list[Value] = []

    async def ten_then_one_more(agent: Agent) -> None:
        heard, (_, reserve) = await agent.hear(BOOK, delivery="d1")
        values.extend(await asyncio.gather(*(agent.do(heard, reserve) for _ in range(10))))
        again, _ = await agent.hear(BOOK, delivery="d1")
        values.append(await agent.do(again, reserve))
        other, _ = await agent.hear(BOOK, delivery="d2")
        values.append(await agent.do(other, reserve))
        await agent.answer(other)

    ran = run(replace(LOST, script=ten_then_one_more))

    assert all(isinstance(value, Confirmed) for value in values)
    assert [value.replayed for value in values] == [False, *[True] * 10, False]
    assert len({value.operation for value in values}) == 2
    assert [one["text"] for one in ran.world["restaurant"]] == [FRIDAY, "R2 Fri 19:00 x4"]
    assert ran.reconciled


@pytest.mark.req("S4-07", "S4-51", "S4-15")
@pytest.mark.field("A6")
def test_field_a6_asked_again_in_words_while_it_is_unknown_is_blocked_by_it() -> None:
    values: list[Value] = []

    async def ask_twice(agent: Agent) -> None:
        heard, (_, reserve) = await agent.hear(BOOK, delivery="d1")
        values.append(await agent.do(heard, reserve))
        again, _ = await agent.hear(BOOK, delivery="d2")
        values.append(await agent.do(again, reserve))
        await agent.answer(again)

    ran = run(replace(LOST, script=ask_twice, faults=ALWAYS_LOST, restaurant=NOTHING_OFFERED))

    first, second = values
    assert isinstance(first, Unknown)
    assert isinstance(second, Blocked)
    assert second.by == first.operation
    assert len(_texts(ran, "tool.sent")) == 1
    assert [one["text"] for one in ran.world["restaurant"]] == [FRIDAY]


@pytest.mark.req("S4-07")
def test_a_second_dispatch_of_one_call_waits_for_the_first() -> None:
    ran = run(BY_NAME["double-dispatch"])

    assert _texts(ran, "skip")[0] == "T1 reserve_table: op-a3 waits for op-a2"
    assert len(_texts(ran, "tool.sent")) == 1


# What the model and the person hear.


@pytest.mark.req("S4-42", "S4-51", "S4-43")
@pytest.mark.field("A1")
def test_field_a1_a_reply_that_never_comes_is_neither_a_failure_nor_an_invitation() -> None:
    scenario = replace(LOST, faults=ALWAYS_LOST, restaurant=NOTHING_OFFERED)

    ran = run(scenario)

    (_, told) = [item.text for item in ran.history if item.role == "tool"]
    assert told.startswith("I may have booked")
    assert "do not call it again" in told
    for words in (told, ran.message):
        assert "fail" not in words.lower()
        assert "try again" not in words.lower()
        assert "retry" not in words.lower()
    # What left us is what the timeline says left us: the transport repeats nothing by itself.
    served = [text for text in _texts(ran, "restaurant") if text.startswith(("commit", "replay"))]
    resent = [text for text in _texts(ran, "resolve") if text.endswith("with the same key")]
    assert len(served) == 1 + len(resent)
    assert served[0] == "committed R1 Fri 19:00 x4"
    assert set(served[1:]) == {"replayed R1"}


@pytest.mark.field("A7")
def test_field_a7_no_answer_yet_is_said_once_and_the_late_one_settles_it() -> None:
    values: list[Value] = []

    async def impatient(agent: Agent) -> None:
        heard, (_, reserve) = await agent.hear(BOOK, delivery="d1")
        ask = heard.ask(reserve.call_id)
        asked = agent.rt.perform(reserve.tool, reserve.arguments, ask=ask, patience_s=1.0)
        values.append(await asked)
        await agent.rest(heard)
        await agent.answer(heard)

    slow = (Fault(path=RESERVE, kind="delay_reply", seconds=3.0),)
    ran = run(replace(LOST, script=impatient, faults=slow))

    (value,) = values
    assert isinstance(value, Unknown)
    assert value.text.startswith("Sent, no answer yet")
    assert ran.as_described
    assert [item.text for item in ran.history if item.role == "tool"] == [
        value.text,
        "Booked R1 (Fri 19:00 for 4).",
    ]
    assert not _texts(ran, "tool.unknown")


# A crash at every point.


@pytest.mark.parametrize("scenario", SCENARIOS, ids=_named)
def test_every_point_that_is_passed_can_be_written_down_and_read_back(scenario: Scenario) -> None:
    for point in chain.from_iterable(run(scenario).points):
        assert parse_point(str(point)) == point


@pytest.mark.req("S0-53", "S0-56", "S4-03", "S4-40", "S0-43")
@pytest.mark.fault("X01", "X02", "X04", "X07")
@pytest.mark.parametrize("seed", sampled([None, 1, 2], every=3))
@pytest.mark.parametrize("scenario", sampled(BOOKINGS, every=5), ids=_named)
def test_a_crash_at_every_point_ends_in_a_world_that_is_told_truthfully(
    scenario: Scenario, seed: int | None
) -> None:
    points = run(scenario, kill=(), seed=seed).points[0]

    assert len(points) >= 8
    for point in points:
        _check(run(scenario, kill=(str(point),), seed=seed), killed=1)


@pytest.mark.req("S0-56")
@pytest.mark.fault("X07")
@pytest.mark.parametrize("first", sampled(run(LOST).points[0], every=12), ids=str)
def test_a_second_crash_at_every_point_of_recovery_changes_nothing(first: object) -> None:
    points = run(LOST, kill=(str(first),)).points[1]

    assert points
    for second in points:
        _check(run(LOST, kill=(str(first), str(second))), killed=2)


@pytest.mark.services
@pytest.mark.fault("X07")
def test_a_third_crash_changes_nothing_either() -> None:
    first = "after:send:reserve_table"
    for second in run(LOST, kill=(first,)).points[1]:
        points = run(LOST, kill=(first, str(second))).points[2]
        _check(run(LOST, kill=(first, str(second), str(points[-1]))), killed=3)


@pytest.mark.req("S0-53", "S0-32")
def test_recovery_finds_out_before_the_turn_goes_on() -> None:
    found = run(BY_NAME["crash-after-commit"])
    resent = run(BY_NAME["crash-before-send"])

    assert _order(found, "crash", "restart", "tool.unknown", "resolve")
    assert _texts(found, "restart") == ["1 operation(s) in the log"]
    assert _texts(found, "restaurant") == ["committed R1 Fri 19:00 x4", "looked up s1:op-a2: R1"]
    assert _texts(resent, "resolve")[-1] == "s1:op-a2: sent again with the same key"
    assert len(_texts(resent, "tool.sent")) == 1


@pytest.mark.field("B9")
@pytest.mark.fault("X01")
@pytest.mark.parametrize(("point", "heard"), [("before:received", 0), ("after:received", 1)])
def test_field_b9_an_input_is_acknowledged_only_once_it_is_durable(point: str, heard: int) -> None:
    ran = run(LOST, kill=(point,))

    crash = next(line.n for line in ran.timeline.lines if line.type == "crash")
    acknowledged = [line for line in ran.timeline.lines if line.type == "model.read"]
    inputs = [line for line in ran.timeline.lines if line.type == "input"]
    assert all(line.n > crash for line in acknowledged)
    assert [line.n < crash for line in inputs] == [heard == 1]


@pytest.mark.field("B12")
def test_field_b12_a_crash_after_it_landed_is_never_a_failure() -> None:
    values: list[Value] = []

    async def book_and_keep(agent: Agent) -> None:
        heard, (_, reserve) = await agent.hear(BOOK, delivery="d1")
        values.append(await agent.do(heard, reserve))
        await agent.answer(heard)

    ran = run(replace(LOST, script=book_and_keep, kill=("after:send:reserve_table",)))

    assert ran.as_described
    assert _order(ran, "crash", "tool.unknown", "resolve")
    assert isinstance(values[-1], Confirmed)
    assert not any(isinstance(value, Failed) for value in values)


@pytest.mark.field("A14")
def test_field_a14_the_end_of_a_lease_resolves_and_never_runs_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The process does not come back, and nothing says that it is dead but its lease."""

    def play(stage: Stage, kill: Sequence[str]) -> None:
        monkeypatch.setattr(
            SqliteStore, "worker_died", lambda store, worker: stage.world.pass_time(LEASE_OVER_S)
        )
        played(stage, kill)

    played = Stage.play
    monkeypatch.setattr(Stage, "play", play)
    ran = run(BY_NAME["crash-after-commit"])

    restarted = next(line for line in ran.timeline.lines if line.type == "restart")
    assert ran.as_described
    assert restarted.at_s > LEASE_OVER_S
    assert _texts(ran, "restaurant") == ["committed R1 Fri 19:00 x4", "looked up s1:op-a2: R1"]


LEASE_OVER_S = Lease().until(0.0) + 1.0


# What a crash may leave beside the described world, because what was not durable is not known to
# the next process: that the caller had let go, that a resend was refused, or that the call had been
# dispatched a second time while the first was out. All that is asked then is that it is said.
ALSO: Mapping[str, tuple[str, ...]] = {
    "request-delayed": (FRIDAY,),
    "refused-resend": (FRIDAY,),
    "double-dispatch": (FRIDAY, "R2 Fri 19:00 x4"),
}


def _check(ran: Ran, *, killed: int) -> None:
    """Whatever was killed where: the described world, records that agree, and a true message."""
    assert isinstance(ran.scenario, Scenario)
    held = tuple(str(one["text"]) for one in ran.world["restaurant"])
    assert len(_texts(ran, "crash")) == killed, ran.kill
    assert not ran.unwitnessed, ran.kill
    assert ran.reconciled, ran.kill
    assert held in (ran.scenario.holds, ALSO.get(ran.scenario.name)), ran.kill
    told = re.findall("Booked (R[0-9]+)", ran.message)
    assert sorted(told) == [one.split()[0] for one in held], (ran.kill, ran.message)
    assert ("No table was booked" in ran.message) == (not held), (ran.kill, ran.message)


async def _stop_waiting(call: asyncio.Future[Value], *, after_s: float) -> None:
    await asyncio.wait({call}, timeout=after_s)
    call.cancel()
    await asyncio.wait({call})


def _texts(ran: Ran, type: str) -> list[str]:
    return [line.text for line in ran.timeline.lines if line.type == type]


def _order(ran: Ran, *types: str) -> bool:
    """Whether the first lines of these types come in this order."""
    firsts = [next(line.n for line in ran.timeline.lines if line.type == type) for type in types]
    return firsts == sorted(firsts)


def _printed(name: str) -> str:
    return CliRunner().invoke(landed, ["demo", name], catch_exceptions=False).output


if __name__ == "__main__":
    for one in SCENARIOS:
        (GOLDEN / f"{one.name}.txt").write_text(_printed(one.name), "utf-8")
