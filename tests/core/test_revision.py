"""A change of mind, compared: what is kept, released, corrected, added, left out or given up."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landed.core.contract import Contract, Effect
from landed.core.errors import ProposalError
from landed.core.key import Ask, identity_of
from landed.core.operation import Operation, State
from landed.core.plan import At, Place, Step, Wanted, step_of
from landed.core.revision import (
    NOTHING_OWED,
    Revision,
    already_revised,
    corrected,
    pair,
    revised_name,
)
from tests.core.build import operation
from tests.core.conversation import READS, RESERVE, TEXT, TOOLS, book, check, digest, text

FRI, SAT = book("Fri"), book("Sat")
OWED = [state for state in State if state not in NOTHING_OWED]


def did(
    call: Wanted,
    id: str,
    state: State = State.CONFIRMED,
    *,
    contract: Contract | None = None,
    **fields: Any,
) -> Operation:
    """An operation of that call, as it may stand now."""
    made = contract or TOOLS[call.tool]
    return operation(
        state,
        id=id,
        tool=call.tool,
        arguments=call.arguments,
        contract=digest(call.tool),
        identity=identity_of(made, tool=call.tool, arguments=call.arguments),
        **fields,
    )


def wanted(*calls: Wanted, tools: dict[str, Contract] | None = None) -> list[Step]:
    """The steps of a plan of these calls."""
    known = tools or dict(TOOLS)
    return [
        step_of(
            tool=each.tool,
            contract=known[each.tool],
            digest=digest(each.tool),
            arguments=each.arguments,
            ask=Ask(session="s1"),
            call_id="",
            reads=known[each.tool].effect is Effect.NONE,
        )
        for each in calls
    ]


def compared(
    old: Sequence[Operation],
    *calls: Wanted,
    drop: Sequence[str] = (),
    tools: dict[str, Contract] | None = None,
) -> Revision:
    known = tools or dict(TOOLS)
    return pair(
        old,
        wanted(*calls, tools=tools),
        contract_of=lambda made_under: known[made_under.removeprefix("sha256:")],
        drop=frozenset(drop),
    )


def said(revision: Revision) -> dict[str, list]:
    """A revision in a few words: ids, and for what is released the step that replaces it."""
    return {
        "kept": [each.id for each in revision.kept],
        "released": [(each.operation.id, each.step) for each in revision.released],
        "left out": [each.id for each in revision.left_out],
        "given up": [each.id for each in revision.given_up],
    }


NOTHING: dict[str, list] = {"kept": [], "released": [], "left out": [], "given up": []}


# Kept, released, added.


@pytest.mark.req("S0-10")
@pytest.mark.parametrize("state", OWED)
def test_what_is_wanted_as_it_is_is_kept_and_its_step_waits_for_it(state):
    came = compared([did(FRI, "op-1", state)], FRI)
    assert said(came) == {**NOTHING, "kept": ["op-1"]}
    assert came.steps[0].keeps == "op-1"
    assert came.places == (Place(at=At.OUT, record="op-1"),)


@pytest.mark.req("S0-10")
@pytest.mark.parametrize("state", OWED)
def test_what_is_wanted_otherwise_is_released_once_its_replacement_holds(state):
    came = compared([did(FRI, "op-1", state)], SAT)
    assert said(came) == {**NOTHING, "released": [("op-1", 0)], "given up": ["op-1"]}
    assert (came.steps[0].replaces, came.steps[0].keeps) == ("op-1", "")
    assert came.places == (Place(),)


@pytest.mark.parametrize("state", sorted(NOTHING_OWED))
def test_what_had_no_effect_owes_nothing_and_is_done_anew(state):
    came = compared([did(FRI, "op-1", state)], FRI, SAT)
    assert said(came) == NOTHING
    assert {step.keeps + step.replaces for step in came.steps} == {""}


def test_what_was_not_there_before_is_added():
    came = compared([did(FRI, "op-1")], FRI, text())
    assert said(came) == {**NOTHING, "kept": ["op-1"]}
    assert came.steps[1] == wanted(text())[0]


def test_to_revise_nothing_adds_everything():
    came = compared([], check(), FRI)
    assert said(came) == NOTHING
    assert list(came.steps) == wanted(check(), FRI)


@pytest.mark.req("S0-11")
@pytest.mark.parametrize(("identity", "kept"), [(None, []), (("day",), ["op-1"])])
def test_what_counts_as_the_same_is_a_field_of_the_contract(identity, kept):
    same = replace(RESERVE, identity=identity)
    inside = Wanted(tool="reserve", arguments={"day": "Fri", "area": "inside"})
    outside = Wanted(tool="reserve", arguments={"day": "Fri", "area": "outside"})
    tools = {**TOOLS, "reserve": same}
    came = compared([did(inside, "op-1", contract=same)], outside, tools=tools)
    assert said(came)["kept"] == kept
    assert [op for op, _ in said(came)["released"]] == ([] if kept else ["op-1"])


def test_the_same_arguments_of_another_tool_are_another_thing():
    other = Wanted(tool="cancel", arguments=FRI.arguments)
    assert said(compared([did(FRI, "op-1")], other))["left out"] == ["op-1"]


# Left out, or given up in so many words.


def test_what_is_left_out_is_not_thereby_given_up():
    came = compared([did(FRI, "op-1"), did(text(), "op-2")], text())
    assert said(came) == {**NOTHING, "kept": ["op-2"], "left out": ["op-1"]}


def test_what_is_named_to_be_dropped_is_released_at_once():
    came = compared([did(FRI, "op-1"), did(text(), "op-2")], text(), drop=["op-1"])
    assert said(came) == {
        **NOTHING,
        "kept": ["op-2"],
        "released": [("op-1", None)],
        "given up": ["op-1"],
    }


def test_what_is_dropped_is_replaced_by_nothing_even_where_the_tool_is_called_again():
    came = compared([did(FRI, "op-1")], SAT, drop=["op-1"])
    assert said(came)["released"] == [("op-1", None)]
    assert came.steps[0].replaces == ""


def test_what_is_wanted_is_kept_also_when_it_was_named_to_be_dropped():
    assert said(compared([did(FRI, "op-1")], FRI, drop=["op-1"])) == {**NOTHING, "kept": ["op-1"]}


def test_what_cannot_be_undone_is_given_up_without_a_release():
    came = compared([did(text(), "op-1")], FRI, drop=["op-1"])
    assert said(came) == {**NOTHING, "given up": ["op-1"]}


# Several calls of one tool.


def test_two_calls_of_one_tool_are_paired_in_order_once_the_equal_ones_are_kept():
    old = [did(FRI, "op-1"), did(SAT, "op-2")]
    came = compared(old, book("Sun"), SAT)
    assert said(came)["kept"] == ["op-2"]
    assert said(came)["released"] == [("op-1", 0)]


def test_of_two_calls_that_became_one_the_second_is_left_out():
    came = compared([did(FRI, "op-1"), did(SAT, "op-2")], book("Sun"))
    assert said(came)["released"] == [("op-1", 0)]
    assert said(came)["left out"] == ["op-2"]


def test_of_one_call_that_became_two_the_second_is_added():
    came = compared([did(FRI, "op-1")], SAT, book("Sun"))
    assert [step.replaces for step in came.steps] == ["op-1", ""]


def test_of_two_equal_calls_one_that_is_wanted_keeps_the_first():
    came = compared([did(FRI, "op-1"), did(FRI, "op-2")], FRI)
    assert said(came) == {**NOTHING, "kept": ["op-1"], "left out": ["op-2"]}


@pytest.mark.req("S0-14")
@pytest.mark.parametrize(
    ("again", "released", "left_out"),
    [
        (FRI, [("op-2", 0)], []),
        (SAT, [("op-1", 0)], []),
        (book("Sun"), [("op-1", 0), ("op-2", 0)], []),
        (text(), [], ["op-1", "op-2"]),
    ],
)
def test_what_was_given_up_before_goes_with_what_stands_in_for_it(again, released, left_out):
    old = [did(FRI, "op-1"), did(SAT, "op-2")]
    came = pair(old, wanted(again), contract_of=lambda _: RESERVE, replaced_by={"op-1": "op-2"})
    assert said(came)["released"] == released
    assert said(came)["left out"] == left_out


def test_two_equal_calls_that_are_wanted_twice_are_both_kept():
    came = compared([did(FRI, "op-1"), did(FRI, "op-2")], FRI, FRI)
    assert said(came) == {**NOTHING, "kept": ["op-1", "op-2"]}


# A turn is revised once; the next change of mind revises what that led to.


def test_a_turn_has_one_revision_and_a_second_is_told_which_turn_to_revise():
    assert revised_name(tenant="default", turn="T1") == "revised/default/T1"
    assert str(already_revised("T1", "T2")) == ("T1 was revised already, by T2: revise that turn")


# Reads.


def test_a_read_that_was_made_is_not_made_again():
    (step,) = wanted(check())
    seen = {("check", step.identity): Place(at=At.DONE, record="ob-1")}
    came = pair([], [step], contract_of=lambda _: READS, seen=seen)
    assert came.places == (Place(at=At.DONE, record="ob-1"),)


def test_a_read_of_something_else_is_made():
    (step,) = wanted(check())
    seen = {("check", step.identity): Place()}
    came = pair([], wanted(check("Sat")), contract_of=lambda _: READS, seen=seen)
    assert came.places == (Place(),)


# Corrected.


def test_what_landed_and_cannot_be_undone_is_corrected_by_the_step_that_wants_it_otherwise():
    came = compared([did(text(), "op-1")], text("Sat"))
    assert said(came) == {**NOTHING, "given up": ["op-1"]}
    assert (came.steps[0].corrects, came.steps[0].replaces) == ("op-1", "")


CORRECTS = replace(TEXT, correct="text_again", correct_arguments={"text": "Change of plan: {text}"})


@pytest.mark.req("S0-34", "S0-39")
@pytest.mark.parametrize("state", [State.CONFIRMED, State.ASSUMED, State.ACCEPTED])
def test_the_correction_of_what_landed_is_the_call_that_the_contract_names(state):
    (step,) = wanted(text("Sat"))
    after = corrected(step, did(text(), "op-1", state), CORRECTS)
    assert after.tool == "text_again"
    assert after.arguments == {"text": "Change of plan: table on Sat"}


@pytest.mark.parametrize("state", [State.FAILED, State.WITHDRAWN, State.UNKNOWN])
def test_what_did_not_land_needs_no_correction(state):
    (step,) = wanted(text("Sat"))
    assert corrected(step, did(text(), "op-1", state), CORRECTS) == step


def test_a_correction_keeps_the_tool_where_the_contract_names_none():
    (step,) = wanted(text("Sat"))
    after = corrected(step, did(text(), "op-1"), replace(CORRECTS, correct=""))
    assert (after.tool, after.arguments["text"]) == ("text", "Change of plan: table on Sat")
    assert corrected(step, did(text(), "op-1"), TEXT) == step


def test_what_could_be_undone_is_not_corrected():
    (step,) = wanted(SAT)
    assert corrected(step, did(FRI, "op-1"), replace(RESERVE, undo="")) == step


def test_a_correction_can_name_what_the_old_call_made():
    links = replace(CORRECTS, correct_arguments={"reply_to": "{result.id}"})
    (step,) = wanted(text("Sat"))
    old = did(text(), "op-1", result={"id": "M7"})
    assert corrected(step, old, links).arguments == {"text": "table on Sat", "reply_to": "M7"}
    with pytest.raises(ProposalError, match="result"):
        corrected(step, did(text(), "op-1", State.ASSUMED), links)


# Whatever was done and whatever is wanted.

days = st.sampled_from(["Fri", "Sat", "Sun"])
calls = st.one_of(st.builds(book, days), st.builds(text, days), st.builds(check, days))
done = st.one_of(st.builds(book, days), st.builds(text, days))
pasts = st.lists(st.tuples(done, st.sampled_from(State)), max_size=4, unique_by=lambda e: str(e[0]))


def _past(drawn: list[tuple[Wanted, State]]) -> list[Operation]:
    return [did(call, f"op-{n}", state) for n, (call, state) in enumerate(drawn, 1)]


@pytest.mark.req("S0-10")
@given(pasts, st.lists(calls, max_size=4), st.sets(st.integers(1, 4)))
def test_everything_that_may_hold_something_is_accounted_for_once(drawn, news, drops):
    old = _past(drawn)
    came = compared(old, *news, drop=[f"op-{n}" for n in drops])
    owing = [each.id for each in old if each.state not in NOTHING_OWED]
    parted = [each.id for each in (*came.kept, *came.left_out, *came.given_up)]
    assert sorted(parted) == sorted(owing)
    undone = [each.operation.id for each in came.released]
    assert set(undone) <= {each.id for each in came.given_up}
    assert len(undone) == len(set(undone))


@given(pasts, st.lists(calls, max_size=4))
def test_each_step_takes_over_from_at_most_one_and_from_nobody_else(drawn, news):
    came = compared(_past(drawn), *news)
    assert [step.tool for step in came.steps] == [each.tool for each in news]
    taken = [s.keeps + s.replaces + s.corrects for s in came.steps if not s.reads]
    taken = [each for each in taken if each]
    assert len(taken) == len(set(taken))
    for index, step in enumerate(came.steps):
        assert (step.keeps != "") is (came.places[index].at is At.OUT)
        assert [bool(step.keeps), bool(step.replaces), bool(step.corrects)].count(True) <= 1


@given(pasts, st.lists(calls, max_size=4))
def test_without_a_word_nothing_is_released_but_for_what_replaces_it(drawn, news):
    came = compared(_past(drawn), *news)
    for owed in came.released:
        assert owed.step is not None
        assert came.steps[owed.step].replaces == owed.operation.id
