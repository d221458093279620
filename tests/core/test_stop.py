"""What becomes of a call in flight that nobody wants any more is a field of its contract."""

from dataclasses import replace
from math import inf

import pytest

from landed.core.contract import Interrupt
from landed.core.operation import State
from landed.core.stop import KeepWaiting, StopNow, interruption
from tests.core.build import BARE, SENT_AT, operation

LEFT = operation(State.SENT, wanted=False, unwanted_at=SENT_AT + 1.0)
UNTIL = SENT_AT + 6.0  # five seconds after it was given up


@pytest.mark.req("K2")
@pytest.mark.parametrize(
    ("interrupt", "now", "becomes"),
    [
        (Interrupt.FINISH, SENT_AT + 1.0, KeepWaiting(inf)),
        (Interrupt.FINISH, SENT_AT + 1e9, KeepWaiting(inf)),
        (Interrupt.WAIT, SENT_AT + 1.0, KeepWaiting(UNTIL)),
        (Interrupt.WAIT, UNTIL - 0.001, KeepWaiting(UNTIL)),
        (Interrupt.WAIT, UNTIL, StopNow()),
        (Interrupt.STOP_AND_RESOLVE, SENT_AT + 1.0, StopNow()),
    ],
)
def test_it_is_finished_waited_for_up_to_a_bound_or_stopped_and_resolved(interrupt, now, becomes):
    contract = replace(BARE, on_interrupt=interrupt, wait_s=5.0)
    assert interruption(LEFT, contract, now) == becomes


@pytest.mark.req("K2")
@pytest.mark.parametrize("state", [State.SENT, State.RESENT])
def test_the_wait_runs_from_the_change_of_mind_and_not_from_the_send(state):
    contract = replace(BARE, on_interrupt=Interrupt.WAIT, wait_s=5.0)
    late = operation(state, wanted=False, unwanted_at=SENT_AT + 100.0)
    assert interruption(late, contract, SENT_AT + 104.0) == KeepWaiting(SENT_AT + 105.0)
