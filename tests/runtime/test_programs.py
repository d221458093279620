"""Random programs of calls, cancels, looks, kills and faults: what is true at the end of each."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from landed.core.key import Ask
from landed.core.operation import Operation, State
from landed.core.value import Confirmed, Failed, Withdrawn
from landed.runtime.opened import Settings
from landed.runtime.runtime import Runtime
from landed.testing.sim import World
from tests.runtime.rig import (
    DROPPED,
    FINE,
    REFUSED,
    REPLY_LOST,
    RESET,
    SELDOM,
    UNSENT,
    Rig,
    Wire,
    booking,
)
from tests.runtime.stores import SlowStore

SETTLED = (State.CONFIRMED, State.FAILED, State.WITHDRAWN)
QUIET_S = 3_000.0
EXAMPLES = 200  # Fewer do not see all of what follows; `deep` runs more.

# What must have been seen in the sweep, or it proves less than it says.
SEEN_SOMETIMES = {
    *("acknowledged", "refused", "not_sent", "answer_lost", "found", "looked", "resent"),
    *("unwanted", "closing", "closed_empty", "withdrawn", "blocked", "told", "refused_again"),
}


@dataclass(frozen=True)
class Perform:
    """Ask for call `call` of a session; the same numbers again are the same ask."""

    call: int
    session: int
    patience_s: float


@dataclass(frozen=True)
class Cancel:
    """Cancel one of the calls that were started."""

    nth: int


@dataclass(frozen=True)
class Look:
    """Resolve one of the operations that were sent."""

    nth: int


@dataclass(frozen=True)
class Pass:
    """Let time go by."""

    seconds: float


@dataclass(frozen=True)
class Life:
    """One process: what it does, and when it is killed (None: it drains).

    `seen_to_die` says whether the store can tell at once; else its lease has to be over.
    """

    actions: Sequence[Perform | Cancel | Look | Pass]
    killed_after_steps: int | None
    seen_to_die: bool
    slow_store: bool


performs = st.builds(
    Perform,
    call=st.integers(0, 2),
    session=st.integers(0, 1),
    patience_s=st.sampled_from([0.5, 8.0, 60.0]),
)
actions = st.one_of(
    performs,
    performs,
    st.builds(Cancel, st.integers(0, 5)),
    st.builds(Look, st.integers(0, 5)),
    st.builds(Pass, st.sampled_from([0.0, 0.3, 2.0, 6.0, 30.0])),
)
lives = st.builds(
    Life,
    actions=st.lists(actions, max_size=8),
    killed_after_steps=st.one_of(st.none(), st.integers(1, 150)),
    seen_to_die=st.booleans(),
    slow_store=st.booleans(),
)
wires = st.sampled_from(
    [
        *(FINE, REPLY_LOST, RESET, DROPPED, REFUSED, UNSENT),
        *(Wire(arrives_s=2.0), Wire(arrives_s=5.5), Wire(arrives_s=40.0)),
        *(Wire(replies_s=3.0), Wire(arrives_s=1.0, refused="full")),
    ]
)


class Program:
    """Plays lives one after the other, then a quiet time, and looks at records and world."""

    def __init__(self, world: World, wire: Sequence[Wire], silent_questions: int) -> None:
        self.rig = Rig(world, settings=Settings(drain_s=2.0))
        self.rig.far.wire.extend(wire)
        self.rig.far.silent_questions = silent_questions
        self.book = booking(self.rig.far)
        self.values: list[Any] = []

    def play(self, life: Life) -> None:
        self.rig.wrap = SlowStore if life.slow_store else lambda store: store
        process = self.rig.start(lambda rt: self.live(rt, life), self.book)
        if life.killed_after_steps is None:
            self.rig.world.wait(process)
            return
        timeline = self.rig.world.timeline
        until = timeline.steps + life.killed_after_steps
        timeline.drive(lambda: timeline.steps >= until or not process.alive)
        process.kill()
        if life.seen_to_die:
            self.rig.base.worker_died(process.name)

    async def live(self, rt: Runtime, life: Life) -> None:
        calls: list[asyncio.Task[Any]] = []
        for action in life.actions:
            match action:
                case Perform(call=call, session=session, patience_s=patience_s):
                    ask = Ask(session=f"s{session}", call_id=f"c{call}")
                    # The first two calls want one and the same thing, so that they collide.
                    perform = rt.perform(
                        "book", {"day": f"day {call // 2}"}, ask=ask, patience_s=patience_s
                    )
                    calls.append(asyncio.ensure_future(perform))
                case Cancel(nth=nth) if calls:
                    calls[nth % len(calls)].cancel()
                case Look(nth=nth) if self.rig.far.sends:
                    id = self.rig.far.sends[nth % len(self.rig.far.sends)]
                    calls.append(asyncio.ensure_future(rt.resolve(id)))
                case Pass(seconds=seconds):
                    await asyncio.sleep(seconds)  # virtual time
                case _:
                    continue
        ended = await asyncio.gather(*calls, return_exceptions=True)
        self.values += ended

    def settle(self) -> list[Operation]:
        self.rig.far.wire.clear()
        self.rig.far.silent_questions = 0
        self.rig.wrap = lambda store: store
        self.rig.lease = SELDOM
        self.rig.run(lambda rt: asyncio.sleep(QUIET_S), self.book)  # virtual time
        self.rig.world.settle()
        self.rig.check()
        return [*self.rig.operations("s0"), *self.rig.operations("s1")]

    def check(self, operations: Sequence[Operation]) -> None:
        for operation in operations:
            effects = self.rig.far.effects[operation.id]
            assert operation.state in SETTLED
            assert effects == (operation.state is State.CONFIRMED)
            assert not operation.contradicted
        assert self.rig.far.total == sum(o.state is State.CONFIRMED for o in operations)
        asks = [(o.session, o.ask.call_id) for o in operations]
        assert len(set(asks)) == len(asks)

    def check_values(self) -> None:
        """Nobody was ever told anything final that is not so."""
        for value in self.values:
            if isinstance(value, BaseException):
                assert isinstance(value, asyncio.CancelledError), repr(value)
            elif isinstance(value, Confirmed):
                assert self.rig.far.effects[value.operation] == 1
            elif isinstance(value, Failed | Withdrawn):
                assert self.rig.far.effects[value.operation] == 0


@pytest.mark.req("S4-37", "S4-02", "S4-52", "S0-27")
@pytest.mark.fault("X02", "X03", "X04", "X12", "X50", "X51", "X53", "X54")
def test_every_program_ends_settled_and_true() -> None:
    seen: set[str] = set()

    @example([Life([Perform(0, 0, 60.0)], None, True, False)], [DROPPED, REFUSED], 0)
    @settings(max_examples=max(EXAMPLES, settings().max_examples))
    @given(
        lives=st.lists(lives, min_size=1, max_size=3),
        wire=st.lists(wires, max_size=8),
        silent_questions=st.integers(0, 3),
    )
    def sweep(lives: list[Life], wire: list[Wire], silent_questions: int) -> None:
        with World() as world:
            program = Program(world, wire, silent_questions)
            for life in lives:
                program.play(life)
            operations = program.settle()
            program.check(operations)
            program.check_values()
            seen.update(program.rig.events())
            for operation in operations:
                assert operation.evidence

    sweep()
    assert seen >= SEEN_SOMETIMES
