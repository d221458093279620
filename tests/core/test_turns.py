"""What a lap does when the pace of a service says: not yet."""

import pytest

from landed.core.draft import Draft
from landed.core.next import what_next
from landed.core.operating import operate
from landed.core.operation import State
from landed.core.pacing import Leaving
from landed.core.rules import RULES
from landed.core.scope import Scope, Send
from tests.core.build import DIGEST, FULL, LOOKUP_ONLY, RESENDABLE, SENT_AT, commands, operation

NOW = SENT_AT + 5.0


def scope_of(one, contract, turn):
    return Scope(operations={one.id: one}, contracts={DIGEST: contract}, turn=turn)


@pytest.mark.fault("X66", "X76")
@pytest.mark.parametrize(
    ("one", "contract", "kind", "command"),
    [
        (operation(), FULL, Leaving.FIRST, "send op-a1 1"),
        (operation(State.UNKNOWN), RESENDABLE, Leaving.AGAIN, "send op-a1 2"),
        (operation(State.UNKNOWN), LOOKUP_ONLY, Leaving.QUESTION, "lookup op-a1"),
    ],
    ids=["first send", "send again", "question"],
)
def test_what_may_not_leave_yet_comes_back_in_its_turn(one, contract, kind, command):
    asked = []

    def in_three_seconds(service, one, what):
        asked.append((service, one.id, what))
        return NOW + 3.0

    waiting = what_next(scope_of(one, contract, in_three_seconds), RULES, NOW)
    assert commands(waiting) == []
    assert not waiting.changes.moves  # Nothing is written for what did not leave.
    assert waiting.wakes == {one.id: NOW + 3.0}
    assert set(asked) == {(contract.service, one.id, kind)}

    leaving = what_next(scope_of(one, contract, lambda *_: NOW), RULES, NOW)
    assert command in commands(leaving)


def test_what_was_sent_in_this_lap_is_not_looked_at_again_in_it():
    one = operation()
    draft = Draft(scope_of(one, FULL, lambda *_: NOW), RULES, NOW)
    operate(draft, one.id)
    written = list(draft.moves)
    operate(draft, one.id)
    assert draft.moves == written
    assert [type(command) for command in draft.commands] == [Send]
