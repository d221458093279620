"""Draws `docs/operation.md` and `docs/plan.md` from the state tables of core.

    python -m landed.testing.draw [FOLDER]

A test says when a page is no longer what the tables say. The idea is that of h11's
`make-state-diagrams.py`: a picture that is drawn from the code cannot tell another story.
"""

import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import TypeVar

from landed.core.approval import APPROVAL_MOVES, ApprovalEvent, ApprovalState
from landed.core.operation import MOVES, STATES, Happened, State
from landed.core.plan import OPEN, PLAN_MOVES, PlanEvent, PlanState
from landed.core.question import QUESTION_MOVES, QuestionEvent, QuestionState
from landed.core.undo import ENDED, RELEASE_MOVES, ReleaseEvent, ReleaseState
from landed.core.undo import OPEN as RELEASE_OPEN

COMMAND = "python -m landed.testing.draw"

# What each event and each state means, for the pages; a test sees that none is missing.
EVENTS: Mapping[Happened, str] = {
    Happened.MADE: "the record was written; nothing was sent yet",
    Happened.PREPARED: "what every send uses was computed, and is stored before the first",
    Happened.BLOCKED: "another operation holds a name that it needs",
    Happened.SENT: "the record says so first, then the send leaves",
    Happened.WITHDRAWN: "nobody wants it any more, or its time to be sent was over",
    Happened.ACKNOWLEDGED: "the service answered yes",
    Happened.ACCEPTED: "the service took it (a 202, or a yes that is to be read back)",
    Happened.REFUSED: "the service said no to the only send that left, before any effect",
    Happened.REFUSED_AGAIN: "the service said no to a resend; that says nothing of the first send",
    Happened.NOT_SENT: "nothing left this machine, or the service asked to wait",
    Happened.NEVER_SENT: "no send of it left or was taken up, and none will be",
    Happened.ANSWER_LOST: "a time-out, a reset, a 5xx, a crash, or the wait was stopped",
    Happened.STOPPED_MIDWAY: "we ended it ourselves; it may have run in part",
    Happened.READ_BACK: "the result is visible where it matters",
    Happened.READ_ABSENT: "not there, read at or after the position that was acknowledged",
    Happened.LAG_OVER: "it did not become visible in time",
    Happened.FOUND: "a question to the service found the effect",
    Happened.CLOSED_EMPTY: "nothing has landed, and the service refuses the key from now on",
    Happened.ABSENT_FOR_GOOD: "not there, asked when nothing can still arrive",
    Happened.LOOKED: "a question was answered, and the answer settles nothing",
    Happened.CLOSING: "the key is spent; written before the service is asked to close it",
    Happened.RESENT: "the same key is sent once more, to find out",
    Happened.ASSUMED: "treated as landed, as its contract allows",
    Happened.GAVE_UP: "nobody answered in time; a person has to find out",
    Happened.RULED_LANDED: "a person ruled that it took effect",
    Happened.RULED_ABSENT: "a person ruled that it did not",
    Happened.NOTED: "a person looked, and leaves it open for now",
    Happened.LIFTED: "a person let go of what it holds, before it was decided",
    Happened.UNWANTED: "the caller cancelled, a person stopped it, or it was revised",
    Happened.TOLD: "the caller was handed it as it stood, before it was settled",
    Happened.CONTRADICTED: "late evidence says otherwise; kept, and nothing is rewritten",
    Happened.RESTORED: "the store was put back to an earlier time: it may have been sent since",
}

PLAN_STATES: Mapping[PlanState, str] = {
    PlanState.DRAFTED: "not stored yet: each step is previewed, nothing was started",
    PlanState.INVALID: "something is missing; nothing was started, and nothing will be",
    PlanState.PROPOSED: "it was previewed, and waits for a person's yes, its plan token, or both",
    PlanState.RUNNING: "a step is under way, or the next one may start",
    PlanState.IN_DOUBT: "nobody can tell whether a step landed; nothing after it starts",
    PlanState.DONE: "every step has landed",
    PlanState.PARTIAL: "a step definitely did not land; nothing after it was started",
    PlanState.STOPPING: "a person stopped it; what is out is settled, nothing more is started",
    PlanState.STOPPED: "it was stopped, and what was out is settled; done stays done",
    PlanState.DECLINED: "a person said no; nothing was started",
    PlanState.EXPIRED: "no yes came, only its time or other words; nothing was started",
    PlanState.ABANDONED: "the agent's side dropped it, or did not begin it in time",
    PlanState.SUPERSEDED: "another plan replaced it; nothing of it is started any more",
    PlanState.UNDOING: "what it did is being taken back, last to first",
    PlanState.UNDONE: "all that it did was taken back",
    PlanState.UNDO_PARTIAL: "not all of it could be taken back; a person has to look at it",
}
PLAN_EVENTS: Mapping[PlanEvent, str] = {
    PlanEvent.PLANNED: "no yes is needed: the record was written, and it runs",
    PlanEvent.PROPOSED: "a yes is needed: the record was written with the approval",
    PlanEvent.FOUND_INVALID: "a preview has a question; the record was written with it",
    PlanEvent.APPROVED: "the person said yes to exactly this",
    PlanEvent.AGREED: "the person said yes to exactly this; its token begins it",
    PlanEvent.COMMITTED: "its plan token came, and nobody has to agree or somebody has",
    PlanEvent.DECLINED: "the person said no",
    PlanEvent.EXPIRED: "nobody answered in time, or something else was answered",
    PlanEvent.ABANDONED: "the agent's side does not want it any more, or kept it too long",
    PlanEvent.STEPPED: "a step started, landed, or is to be done anew",
    PlanEvent.DOUBTED: "nobody can tell about its step, or about what that replaces",
    PlanEvent.FINISHED: "its last step has landed",
    PlanEvent.BROKE_OFF: "a step did not land, may not start any more, or a read had no answer",
    PlanEvent.SUPERSEDED: "the user changed their mind, or it was previewed anew",
    PlanEvent.RETRIED: "somebody said yes to another attempt: what is done stays done",
    PlanEvent.STOP_ASKED: "a person stopped it: written first, then nothing more is started",
    PlanEvent.STOPPED: "what was out is settled",
    PlanEvent.UNDO_ASKED: "a person takes it back: each release is owed, last to first",
    PlanEvent.UNDONE: "the last of its releases has ended",
    PlanEvent.UNDO_BROKE_OFF: "one of its releases could not be carried out, or was waived",
}

APPROVAL_STATES: Mapping[ApprovalState, str] = {
    ApprovalState.OPEN: "may be given until its time is over, by the person it was offered to",
    ApprovalState.TAKEN: "was given, once: what it set going is its outcome",
    ApprovalState.DECLINED: "the person said no to it",
    ApprovalState.LAPSED: "can't be given any more: too late, other words, or the plan went on",
}
APPROVAL_EVENTS: Mapping[ApprovalEvent, str] = {
    ApprovalEvent.OFFERED: "the record was written, sealed; a token or a question leads to it",
    ApprovalEvent.RENEWED: "a new token was handed out; the one before is good no more",
    ApprovalEvent.TAKEN: "a yes that fits in all was given, in one unit with what it starts",
    ApprovalEvent.REFUSED: "a yes or a no was presented in vain; the record says why",
    ApprovalEvent.DECLINED: "a no that fits in all was given",
    ApprovalEvent.LAPSED: "nobody can give it any more",
}

RELEASE_STATES: Mapping[ReleaseState, str] = {
    ReleaseState.OWED_IF_LANDED: "nobody knows yet whether there is anything to take back",
    ReleaseState.OWED: "it landed; what replaces it is not confirmed yet",
    ReleaseState.DUE: "its time has come: its price is asked, then it is undone",
    ReleaseState.ASKED: "a person is asked whether it may be undone, and at what price",
    ReleaseState.UNDOING: "an operation of its own takes it back",
    ReleaseState.QUESTIONED: "a person is asked whether it is to be taken back at all",
    ReleaseState.DONE: "it was taken back",
    ReleaseState.VOID: "there was nothing to take back",
    ReleaseState.WAIVED: "a person said no: it stays",
    ReleaseState.KEPT: "it is wanted after all",
}
RELEASE_EVENTS: Mapping[ReleaseEvent, str] = {
    ReleaseEvent.OWED: "written before the request that makes it due",
    ReleaseEvent.LANDED: "the operation took effect",
    ReleaseEvent.NEVER_LANDED: "the operation had no effect",
    ReleaseEvent.FELL_DUE: "the replacement is confirmed, there is none, or release goes first",
    ReleaseEvent.PRICED: "what undoing costs is known",
    ReleaseEvent.ASKED: "it costs something, or is final in a turn that nobody asked for",
    ReleaseEvent.APPROVED: "a person said yes, to this price",
    ReleaseEvent.DECLINED: "a person said no",
    ReleaseEvent.LAPSED: "a person said something else; it stays owed",
    ReleaseEvent.STARTED: "the undo was recorded as an operation, and sent",
    ReleaseEvent.UNDONE: "the undo took effect",
    ReleaseEvent.UNDO_FAILED: "the undo had no effect",
    ReleaseEvent.QUESTIONED: "it cannot be undone without a person's word",
    ReleaseEvent.KEPT: "a later change of mind wants it",
    ReleaseEvent.HANDED_ON: "a later change of mind gives it up anew",
}

QUESTION_STATES: Mapping[QuestionState, str] = {
    QuestionState.OPEN: "waits for the person it was put to",
    QuestionState.YES: "answered with a strict yes",
    QuestionState.NO: "answered with a strict no",
    QuestionState.LAPSED: "not answered, or no longer of use",
}
QUESTION_EVENTS: Mapping[QuestionEvent, str] = {
    QuestionEvent.ASKED: "the question was written, and is the last of its conversation",
    QuestionEvent.APPROVED: "the person said yes",
    QuestionEvent.DECLINED: "the person said no",
    QuestionEvent.LAPSED: "the person said something else, or changed their mind",
}

S = TypeVar("S", bound=StrEnum)
E = TypeVar("E", bound=StrEnum)


def operation_page() -> str:
    """Return `docs/operation.md` as it should stand now."""
    rows = (
        (f"`{state}`", each.says, *_ticks(each.open, each.holds, each.final))
        for state, each in STATES.items()
    )
    return "\n".join(
        (
            *_OPERATION,
            *_table(("state", "what it promises", "open", "holds", "final"), rows),
            *(
                "## Moves",
                "",
                "Events that leave the state as it is are in the table below only.",
                "",
            ),
            *_picture(MOVES, first=Happened.MADE, final=[s for s in State if STATES[s].final]),
            *("## Events", ""),
            *_events(MOVES, EVENTS, first=Happened.MADE),
        )
    )


_OPERATION = f"""\
# The life of an operation

Drawn from `STATES` and `MOVES` in `landed.core.operation`; change those, then run
`{COMMAND}`.

A call that can change the world is a record, written before anything is sent, and
moved only by events that are evidence. An event that this page does not show for the
state that an operation is in is a bug in `landed`, and raises `IllegalEventError`.

## States

*Open*: the loop has something to do for it. *Holds*: the names that it needs are taken.
""".split("\n")


def plan_page() -> str:
    """Return `docs/plan.md` as it should stand now."""
    ended = {state for state, ways in PLAN_MOVES.items() if not ways}
    answered = set(QuestionState) - {QuestionState.OPEN}
    closed = set(ApprovalState) - {ApprovalState.OPEN}
    machines = (
        _machine(PLAN_STATES, PLAN_EVENTS, PLAN_MOVES, works=OPEN, final=ended),
        _machine(APPROVAL_STATES, APPROVAL_EVENTS, APPROVAL_MOVES, works=(), final=closed),
        _machine(RELEASE_STATES, RELEASE_EVENTS, RELEASE_MOVES, works=RELEASE_OPEN, final=ENDED),
        _machine(QUESTION_STATES, QUESTION_EVENTS, QUESTION_MOVES, works=(), final=answered),
    )
    parts = zip((_PLAN, _APPROVAL, _RELEASE, _QUESTION), machines, strict=True)
    return "\n".join(line for told, machine in parts for line in chain(told, machine))


_PLAN = f"""\
# The life of a plan, of a yes to it, of what it owes, and of a question

Drawn from the tables in `landed.core.plan`, `landed.core.approval`, `landed.core.undo`
and `landed.core.question`; change those, then run
`{COMMAND}`.

*Open*: the loop has something to do for it. Events that leave the state as it is are in
the tables only.

## A plan

Ordered calls, previewed, approved and carried out as one unit, each step once. Its record
is written when it leaves `drafted`. Neither open nor final: a person may still say something.
""".split("\n")

_APPROVAL = (
    "## An approval",
    "",
    *(
        "A person's yes to one plan, to one more attempt at it, or to taking it back; usable once.",
        "What is presented in vain is written down, and uses nothing up.",
    ),
    "",
)

_RELEASE = (
    *("## A release", ""),
    *("An undo that is owed for one operation. Neither open nor final: a person has to say.", ""),
)
_QUESTION = ("## A question", "", "Put to one person, and answered once.", "")

PAGES: Mapping[str, Callable[[], str]] = {
    "docs/operation.md": operation_page,
    "docs/plan.md": plan_page,
}


def _machine(
    states: Mapping[S, str],
    events: Mapping[E, str],
    moves: Mapping[S, Mapping[E, S]],
    *,
    works: Collection[S],
    final: Collection[S],
) -> Iterator[str]:
    """Yield one machine: its states, its picture, its events.

    The first event makes the record, unless it is a move: then it begins without one.
    """
    rows = (
        (f"`{state}`", says, *_ticks(state in works, state in final))
        for state, says in states.items()
    )
    yield from _table(("state", "what it means", "open", "final"), rows)
    made = next(iter(events))
    first = None if made in moves[next(iter(moves))] else made
    yield from _picture(moves, first=first, final=[state for state in states if state in final])
    yield from _events(moves, events, first=first)


def _ticks(*promises: bool) -> tuple[str, ...]:
    return tuple("yes" if each else "" for each in promises)


def _picture(
    moves: Mapping[S, Mapping[E, S]], *, first: E | None, final: Iterable[S]
) -> Iterator[str]:
    yield "```mermaid"
    yield "stateDiagram-v2"
    yield f"    [*] --> {next(iter(moves))}" + (f": {_words(first)}" if first else "")
    for before, ways in moves.items():
        for after, events in _by_target(ways).items():
            if after is not before:
                yield f"    {before} --> {after}: {', '.join(_words(each) for each in events)}"
    yield from (f"    {state} --> [*]" for state in final)
    yield "```"
    yield ""


def _by_target(ways: Mapping[E, S]) -> dict[S, list[E]]:
    found: dict[S, list[E]] = {}
    for event, after in ways.items():
        found.setdefault(after, []).append(event)
    return found


def _events(
    moves: Mapping[S, Mapping[E, S]], events: Mapping[E, str], *, first: E | None
) -> Iterator[str]:
    cells = (
        (f"`{event}`", says, " · ".join(_moves_of(moves, event, first=first)))
        for event, says in events.items()
    )
    yield from _table(("event", "what happened", "moves"), cells)


def _moves_of(moves: Mapping[S, Mapping[E, S]], event: E, *, first: E | None) -> Iterator[str]:
    if event is first:
        yield f"▸ {next(iter(moves))}"
    for before, ways in moves.items():
        if event in ways:
            after = ways[event]
            yield f"{before} stays" if before is after else f"{before} ▸ {after}"


def _words(event: StrEnum) -> str:
    return _WHOSE.sub("", event).replace("_", " ")


# The record that an event is of, where its name says so: the page says it already.
_WHOSE = re.compile(r"^(approval|plan|release)_")


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    for row in (head, ("---",) * len(head), *rows):
        yield "|" + "".join(f" {cell} |" if cell else " |" for cell in row)
    yield ""


def main(arguments: list[str]) -> None:
    """Write every page below the folder given, or below the current one."""
    folder = Path(arguments[0] if arguments else ".")
    for name, page in PAGES.items():
        (folder / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
