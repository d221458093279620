"""Draws the page `docs/operation.md` from the tables of `landed.core.operation`.

    python -m landed.testing.draw [PAGE]

A test says when the page is no longer what the tables say. The idea is that of h11's
`make-state-diagrams.py`: a picture that is drawn from the code cannot tell another story.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path

from landed.core.operation import MOVES, STATES, Happened, State

PAGE = "docs/operation.md"
COMMAND = "python -m landed.testing.draw"

# What each event means, for the page; a test sees that none is missing.
EVENTS: Mapping[Happened, str] = {
    Happened.MADE: "the record was written; nothing was sent yet",
    Happened.BLOCKED: "another operation holds a name that it needs",
    Happened.SENT: "the record says so first, then the send leaves",
    Happened.WITHDRAWN: "nobody wants it any more, or its time to be sent was over",
    Happened.ACKNOWLEDGED: "the service answered yes",
    Happened.ACCEPTED: "the service took it (a 202, or a yes that is to be read back)",
    Happened.REFUSED: "the service said no to the only send, before any effect",
    Happened.REFUSED_AGAIN: "the service said no to a resend; that says nothing of the first send",
    Happened.NOT_SENT: "nothing left this machine",
    Happened.NEVER_SENT: "nothing left this machine, at the last try or when nobody wants it",
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
    Happened.UNWANTED: "the caller cancelled, a person stopped it, or it was revised",
    Happened.TOLD: "the caller was handed it as it stood, before it was settled",
    Happened.CONTRADICTED: "late evidence says otherwise; kept, and nothing is rewritten",
}


def page() -> str:
    """Return the page as it should stand now."""
    return "\n".join(chain(_opening(), _states(), _picture(), _events()))


def _opening() -> Iterator[str]:
    yield "# The life of an operation"
    yield ""
    yield "Drawn from `STATES` and `MOVES` in `landed.core.operation`; change those, then run"
    yield f"`{COMMAND}`."
    yield ""
    yield "A call that can change the world is a record, written before anything is sent, and"
    yield "moved only by events that are evidence. An event that this page does not show for the"
    yield "state that an operation is in is a bug in `landed`, and raises `IllegalEventError`."
    yield ""


def _states() -> Iterator[str]:
    yield "## States"
    yield ""
    yield "*Open*: the loop has something to do for it. *Holds*: the names that it needs are taken."
    yield ""
    cells = ((f"`{state}`", meaning.says, *_promises(state)) for state, meaning in STATES.items())
    yield from _table(("state", "what it promises", "open", "holds", "final"), cells)


def _promises(state: State) -> tuple[str, ...]:
    meaning = STATES[state]
    return tuple("yes" if each else "" for each in (meaning.open, meaning.holds, meaning.final))


def _picture() -> Iterator[str]:
    yield "## Moves"
    yield ""
    yield "Events that leave the state as it is are in the table below only."
    yield ""
    yield "```mermaid"
    yield "stateDiagram-v2"
    yield f"    [*] --> {State.RECORDED}: {_words(Happened.MADE)}"
    for before, ways in MOVES.items():
        for after, events in _by_target(ways).items():
            if after is not before:
                yield f"    {before} --> {after}: {', '.join(_words(each) for each in events)}"
    yield from (f"    {state} --> [*]" for state, meaning in STATES.items() if meaning.final)
    yield "```"
    yield ""


def _by_target(ways: Mapping[Happened, State]) -> dict[State, list[Happened]]:
    found: dict[State, list[Happened]] = {}
    for event, after in ways.items():
        found.setdefault(after, []).append(event)
    return found


def _events() -> Iterator[str]:
    yield "## Events"
    yield ""
    cells = ((f"`{event}`", says, _moves_of(event)) for event, says in EVENTS.items())
    yield from _table(("event", "what happened", "moves"), cells)


def _moves_of(event: Happened) -> str:
    if event is Happened.MADE:
        return f"▸ {State.RECORDED}"
    ways = {before: ways[event] for before, ways in MOVES.items() if event in ways}
    return " · ".join(
        f"{before} stays" if before is after else f"{before} ▸ {after}"
        for before, after in ways.items()
    )


def _words(event: Happened) -> str:
    return event.replace("_", " ")


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    for row in (head, ("---",) * len(head), *rows):
        yield "|" + "".join(f" {cell} |" if cell else " |" for cell in row)
    yield ""


def main(arguments: list[str]) -> None:
    """Write the page to the path given, or to `docs/operation.md` below the current folder."""
    Path(arguments[0] if arguments else PAGE).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
