"""A yes as a record: its table, its seal, and what is wrong with one that is not taken."""

import hmac
from dataclasses import fields, replace
from hashlib import sha256
from json import dumps, loads
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landed.core.approval import (
    APPROVAL_MOVES,
    TOKEN_BYTES,
    Approval,
    ApprovalEvent,
    ApprovalState,
    Presented,
    Problem,
    Purpose,
    approval_from,
    approval_id,
    approval_moved,
    approval_record,
    is_sealed,
    outdated,
    problem,
    sealed,
    sealing_key,
    token_digest,
    token_name,
    token_of,
)
from landed.core.canonical import Json, canonical
from landed.core.errors import IllegalEventError
from landed.core.plan import At, Place, Plan, PlanState, placed
from tests.core.build import SENT_AT
from tests.core.conversation import wanting
from tests.core.plans import ANSWER_S, OFFICE, WHOLE, approval, draft, issue, shown

KEYS = (sealing_key(b"today's secret"),)
OLD = sealing_key(b"last year's secret")

PLAN = wanting(
    WHOLE,
    OFFICE,
    state=PlanState.PROPOSED,
    answer_by=SENT_AT + ANSWER_S,
    previews=shown(*WHOLE, rate=21),
)
YES = Presented(
    purpose=Purpose.CONFIRM,
    principal="ann",
    tenant="default",
    session="s1",
    token=token_digest("tok"),
)


def offered(plan: Plan = PLAN, **fields: Any) -> Approval:
    return sealed(approval(plan, token="tok", **fields), KEYS)


def wrong(
    held: Approval, plan: Plan = PLAN, presented: Presented = YES, *, after_s: float = 1.0
) -> Problem:
    return problem(held, plan, presented, keys=KEYS, now=SENT_AT + after_s)


def stood(state: ApprovalState, **fields: Any) -> Approval:
    """The approval as it is sealed in a state."""
    return sealed(replace(offered(), state=state, **fields), KEYS)


# The table.

LIFE = """
open      approval_renewed   > open
open      approval_taken     > taken
open      approval_refused   > open
open      approval_declined  > declined
open      approval_lapsed    > lapsed
taken     approval_refused   > taken
declined  approval_refused   > declined
lapsed    approval_refused   > lapsed
lapsed    approval_renewed   > open
"""
TOLD = {
    (before, event): after
    for before, event, after in (
        line.replace(">", "").split() for line in LIFE.strip().splitlines()
    )
}


def test_the_table_tells_the_story():
    moves = {(s, e): after for s, ways in APPROVAL_MOVES.items() for e, after in ways.items()}
    assert moves == TOLD
    assert set(APPROVAL_MOVES) == set(ApprovalState)


@pytest.mark.parametrize("state", ApprovalState)
@pytest.mark.parametrize("event", ApprovalEvent)
def test_every_event_either_moves_an_approval_or_is_illegal(state, event):
    held = stood(state, version=4)
    if (state, event) in TOLD:
        after = approval_moved(held, event, by="ann", at=SENT_AT)
        assert after == replace(
            held, state=ApprovalState(TOLD[state, event]), version=5, by="ann", at=SENT_AT
        )
    else:
        said = f"approval/plan-T1/confirm/1 is {state}: it cannot be {event}"
        with pytest.raises(IllegalEventError, match=said):
            approval_moved(held, event)


def test_only_an_open_one_can_be_taken_and_what_is_taken_stays_so():
    can = {state for state, ways in APPROVAL_MOVES.items() if ApprovalEvent.TAKEN in ways}
    assert can == {ApprovalState.OPEN}
    for state in (ApprovalState.TAKEN, ApprovalState.DECLINED):
        assert set(APPROVAL_MOVES[state].values()) == {state}


# Its record.

words = st.text(max_size=5)
times = st.floats(0, 1e9)
approvals = st.builds(
    Approval,
    plan=words,
    purpose=st.sampled_from(Purpose),
    attempt=st.integers(1, 9),
    tenant=words,
    session=words,
    principal=words,
    hash=words,
    made_at=times,
    answer_by=times,
    send_within_s=times,
    typed=st.lists(words, max_size=3).map(tuple),
    state=st.sampled_from(ApprovalState),
    version=st.integers(0, 9),
    epoch=st.integers(0, 9),
    token=words,
    seal=words,
    question=words,
    problem=st.sampled_from(Problem),
    by=words,
    at=times,
)


@given(approvals)
def test_an_approval_is_read_back_from_its_record_as_it_was(held):
    record = approval_record(held)
    assert approval_from(record) == held
    # A store keeps text: what is a tuple here is a list there.
    written = loads(dumps({"frozen": record.frozen, "changing": record.changing}))
    assert approval_from(replace(record, **written)) == held


@pytest.mark.req("S1-15")
def test_the_record_holds_who_may_say_yes_where_to_what_and_until_when():
    record = approval_record(offered())
    assert record.id == "approval/plan-T1/confirm/1"
    assert (record.tenant, record.session, record.open) == ("default", "s1", False)
    assert dict(record.frozen) == {
        "plan": "plan-T1",
        "purpose": "confirm",
        "attempt": 1,
        "principal": "ann",
        "hash": PLAN.hash,
        "made_at": SENT_AT,
        "send_within_s": 900.0,
        "typed": [],
    }
    assert record.changing["answer_by"] == SENT_AT + ANSWER_S
    named = {"id", "tenant", "session", "state", "version", "epoch"}
    every = {*record.frozen, *record.changing, *named}
    assert every == {each.name for each in fields(Approval)} | {"id"}


def test_what_is_handed_out_is_long_and_is_nowhere_in_the_record():
    token = token_of(bytes(range(TOKEN_BYTES)))
    assert (TOKEN_BYTES, len(token)) == (24, 32)
    held = sealed(approval(PLAN, token=token), KEYS)
    assert held.token == token_digest(token) != token
    assert len(held.token) == 64
    assert token not in repr(held)
    assert token_name(held.token) == f"approval/{held.token}"


def test_a_plan_has_one_approval_of_a_kind_for_each_attempt():
    ids = {approval_id("plan-1", purpose, n) for purpose in Purpose for n in (1, 2)}
    assert len(ids) == 2 * len(Purpose) == 8
    assert approval_id("a/b", Purpose.UNDO, 1) == "approval/a%2Fb/undo/1"


# The seal.


def rfc_5869(secret: bytes, salt: bytes, use: bytes, length: int) -> bytes:
    """HKDF with SHA-256, straight from the text of RFC 5869."""
    extracted = hmac.new(salt, secret, sha256).digest()
    block, made, count = b"", b"", 0
    while len(made) < length:
        count += 1
        block = hmac.new(extracted, block + use + bytes([count]), sha256).digest()
        made += block
    return made[:length]


def test_the_sealing_key_is_the_one_that_the_rfc_makes_of_the_secret():
    # Test case 1 of the RFC's appendix, for the text of it above.
    made = rfc_5869(
        bytes.fromhex("0b" * 22),
        bytes.fromhex("000102030405060708090a0b0c"),
        bytes.fromhex("f0f1f2f3f4f5f6f7f8f9"),
        42,
    )
    assert made.hex() == (
        "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"
    )
    assert sealing_key(b"s3cret") == rfc_5869(b"s3cret", b"landed", b"landed/approval/1", 32)


@pytest.mark.req("S1-15")
def test_a_key_derived_for_another_purpose_does_not_make_the_seal():
    other = rfc_5869(b"today's secret", b"landed", b"landed/journal/1", 32)
    assert is_sealed(offered(), KEYS)
    assert not is_sealed(offered(), (other,))
    assert not is_sealed(offered(), (b"today's secret",))
    forged = sealed(offered(), (other,))
    assert problem(forged, PLAN, YES, keys=KEYS, now=SENT_AT) is Problem.TAMPERED


def test_an_older_key_stays_good_while_it_is_configured_and_the_first_one_seals():
    before = sealed(offered(), (OLD,))
    assert is_sealed(before, (*KEYS, OLD))
    assert not is_sealed(before, KEYS)
    assert sealed(before, (*KEYS, OLD)).seal == offered().seal


OTHERS: dict[str, Any] = {
    "plan": "plan-T9",
    "purpose": Purpose.UNDO,
    "attempt": 2,
    "tenant": "acme",
    "session": "s2",
    "principal": "bob",
    "hash": "sha256:0",
    "made_at": 0.0,
    "answer_by": 9e9,
    "send_within_s": 9e9,
    "typed": ("yes",),
    "token": token_digest("mine"),
    "state": ApprovalState.TAKEN,
}


@pytest.mark.req("S1-15")
@pytest.mark.fault("X40")
@pytest.mark.parametrize("name", OTHERS)
def test_whatever_binds_a_yes_is_sealed_and_an_edit_of_it_is_seen(name):
    edited = replace(offered(), **{name: OTHERS[name]})
    assert not is_sealed(edited, KEYS)
    assert wrong(edited) is Problem.TAMPERED


def test_what_is_not_sealed_is_only_where_it_is_and_what_was_said_of_it():
    loose = {"version", "epoch", "seal", "question", "problem", "by", "at"}
    assert {each.name for each in fields(Approval)} == set(OTHERS) | loose
    moved = approval_moved(offered(), ApprovalEvent.REFUSED, by="eve", at=9.0)
    assert is_sealed(replace(moved, epoch=7, question="q-1"), KEYS)


# The plan's hash.

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | words,
    lambda inside: st.lists(inside, max_size=2) | st.dictionaries(words, inside, max_size=3),
    max_leaves=6,
)


def shuffled(value: Json) -> Json:
    """The same value, with each object's keys the other way round."""
    match value:
        case dict():
            return {name: shuffled(value[name]) for name in reversed(value)}
        case list():
            return [shuffled(each) for each in value]
        case _:
            return value


def with_arguments(plan: Plan, arguments: dict[str, Json]) -> Plan:
    return replace(plan, steps=(replace(plan.steps[0], arguments=arguments), *plan.steps[1:]))


@pytest.mark.req("S1-15")
@given(st.dictionaries(words, _JSON, max_size=4))
def test_the_order_of_the_keys_of_an_argument_changes_no_hash(arguments):
    turned: dict[str, Json] = {name: shuffled(arguments[name]) for name in reversed(arguments)}
    assert with_arguments(PLAN, arguments).hash == with_arguments(PLAN, turned).hash


@pytest.mark.req("S1-15")
def test_the_hash_is_of_canonical_json_of_what_was_shown():
    bare = replace(PLAN, previews=())
    said: list[Json] = [
        {
            "tool": step.tool,
            "arguments": dict(step.arguments),
            "contract": step.contract,
            "preview": None,
        }
        for step in bare.steps
    ]
    digest = sha256(b"landed/plan/v1\n" + canonical(said)).hexdigest()
    assert bare.hash.removeprefix("sha256:") == digest
    assert PLAN.hash != bare.hash


EDITS = {
    "the amount": lambda p: with_arguments(p, {**p.steps[0].arguments, "text": "two logos"}),
    "another tool": lambda p: replace(p, steps=(replace(p.steps[0], tool="note"), *p.steps[1:])),
    "another promise": lambda p: replace(
        p, steps=(replace(p.steps[0], contract="sha256:x"), *p.steps[1:])
    ),
    "the order": lambda p: replace(p, steps=(p.steps[1], p.steps[0], p.steps[2])),
    "one step less": lambda p: replace(p, steps=p.steps[:2], previews=p.previews[:2]),
    "a step more": lambda p: replace(
        p, steps=(*p.steps, p.steps[0]), previews=(*p.previews, p.previews[0])
    ),
    "what was said of it": lambda p: replace(
        p, previews=(replace(p.previews[0], summary="for nothing"), *p.previews[1:])
    ),
    "what it costs": lambda p: replace(
        p, previews=(replace(p.previews[0], cost_cents=1), *p.previews[1:])
    ),
    "what it stands on": lambda p: replace(p, previews=shown(*WHOLE, rate=10)),
}


@pytest.mark.req("S1-16", "S1-17")
@pytest.mark.fault("X83", "X40")
@pytest.mark.parametrize("name", EDITS)
def test_an_edit_of_the_stored_plan_is_seen_although_the_seal_is_right(name):
    held, edited = offered(), EDITS[name](PLAN)
    assert is_sealed(held, KEYS)
    assert edited.hash != PLAN.hash
    assert wrong(held, edited) is Problem.TAMPERED
    # Even by somebody who can make the seal: the hash in it is still that of what was shown.
    assert wrong(sealed(held, KEYS), edited) is Problem.TAMPERED


def test_where_the_plan_stands_is_no_part_of_what_was_shown():
    done = Place(at=At.DONE, record="op-1", made="D1", attempt=2)
    later = replace(PLAN, places=placed(PLAN, 0, done), state=PlanState.PARTIAL, attempt=2, why="x")
    assert later.hash == PLAN.hash


def test_the_basis_of_a_plan_is_that_of_all_its_previews():
    assert replace(PLAN, previews=shown(*WHOLE, rate=21)).basis == PLAN.basis
    assert replace(PLAN, previews=shown(*WHOLE, rate=10)).basis != PLAN.basis


# What is wrong with it, in the order in which it is looked for.


def test_there_is_nothing_wrong_with_a_yes_that_fits_in_all():
    assert wrong(offered()) is Problem.NONE
    in_words = replace(YES, token="")
    assert wrong(offered(), presented=in_words) is Problem.NONE


TAMPERED = replace(offered(), seal="0" * 64)
STRANGER = replace(YES, principal="bob")


CLOSED = {
    ApprovalState.TAKEN: Problem.USED,
    ApprovalState.DECLINED: Problem.DECLINED,
    ApprovalState.LAPSED: Problem.EXPIRED,
}


@pytest.mark.req("S1-16")
@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("principal", "bob"),
        ("tenant", "acme"),
        ("session", "s2"),
        ("purpose", Purpose.RETRY),
        ("token", token_digest("another")),
    ],
)
def test_another_person_tenant_conversation_kind_or_token_does_not_fit(name, other):
    another: dict[str, Any] = {name: other}
    assert wrong(offered(), presented=replace(YES, **another)) is Problem.MISMATCH


@pytest.mark.req("S1-22")
@pytest.mark.parametrize("purpose", Purpose)
@pytest.mark.parametrize("asked", Purpose)
def test_one_kind_of_yes_cannot_stand_for_another(purpose, asked):
    held = sealed(approval(PLAN, purpose, token="tok"), KEYS)
    expected = Problem.NONE if purpose is asked else Problem.MISMATCH
    assert wrong(held, presented=replace(YES, purpose=asked)) is expected


def test_one_that_is_anybodys_may_be_given_by_anybody_of_the_conversation():
    held = offered(principal="")
    assert wrong(held, presented=STRANGER) is Problem.NONE
    assert wrong(held, presented=replace(STRANGER, session="s2")) is Problem.MISMATCH


@pytest.mark.req("S1-16")
@pytest.mark.parametrize(("after_s", "expected"), [(ANSWER_S - 0.001, ""), (ANSWER_S, "expired")])
def test_it_may_be_given_until_its_time_and_not_at_it(after_s, expected):
    assert wrong(offered(), after_s=after_s) == expected


@pytest.mark.req("S1-16")
@pytest.mark.parametrize("state", CLOSED)
def test_one_that_was_answered_already_says_how(state):
    assert wrong(stood(state)) is CLOSED[state]


@pytest.mark.parametrize("state", [PlanState.ABANDONED, PlanState.SUPERSEDED])
def test_one_that_lapsed_because_the_plan_went_on_is_over_and_not_too_late(state):
    lapsed = stood(ApprovalState.LAPSED)
    assert wrong(lapsed, replace(PLAN, state=state)) is Problem.OVER
    used = stood(ApprovalState.TAKEN)
    assert wrong(used, replace(PLAN, state=state)) is Problem.USED


@pytest.mark.req("S1-16")
def test_tampering_goes_before_all_then_a_stranger_then_use_then_the_clock():
    late = ANSWER_S + 1.0
    every_state = [replace(TAMPERED, state=state) for state in ApprovalState]
    for held in every_state:
        assert wrong(held, presented=STRANGER, after_s=late) is Problem.TAMPERED
    for state in ApprovalState:
        held = stood(state)
        assert wrong(held, presented=STRANGER, after_s=late) is Problem.MISMATCH
    for state, said in CLOSED.items():
        assert wrong(stood(state), after_s=late) is said
    assert wrong(offered(), after_s=late) is Problem.EXPIRED


@given(st.sampled_from(ApprovalState), st.booleans(), st.booleans(), st.booleans(), st.booleans())
def test_a_yes_is_taken_only_where_nothing_at_all_is_wrong(state, sealed_so, as_shown, mine, early):
    held = stood(state)
    held = held if sealed_so else replace(held, seal=TAMPERED.seal)
    plan = PLAN if as_shown else EDITS["the amount"](PLAN)
    came = wrong(held, plan, YES if mine else STRANGER, after_s=1.0 if early else ANSWER_S)
    fits = state is ApprovalState.OPEN and sealed_so and as_shown and mine and early
    assert (came is Problem.NONE) is fits


# What the tools promise by now.


def test_a_tool_that_promises_something_else_before_the_plan_began_is_named():
    now = {step.tool: step.contract for step in PLAN.steps}
    assert outdated(PLAN, now) == ()
    (moved,) = outdated(PLAN, {**now, "issue": "sha256:another"})
    assert (moved.step, moved.field) == (2, "what issue promises")
    assert (moved.was, moved.now) == ("sha256:issue", "sha256:another")
    # One that is not registered here is another worker's; that is found out elsewhere.
    assert outdated(PLAN, {}) == ()


def test_what_has_begun_or_needed_no_yes_goes_on_under_the_contracts_it_began_with():
    changed = {"issue": "sha256:another", "draft": "sha256:another"}
    begun = replace(PLAN, places=placed(PLAN, 0, Place(at=At.OUT, record="op-1")))
    assert outdated(begun, changed) == ()
    assert outdated(wanting([draft(), issue()], OFFICE), changed) == ()
