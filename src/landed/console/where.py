"""Where a record has its page, its own or its place in its session, and how links are worded."""

import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

from landed.console.visit import ROOT
from landed.core.changes import Kind, Record
from landed.runtime.tracing import Link

Say = Callable[..., str]

_OWN: Mapping[str, str] = {
    Kind.OPERATION: "operations",
    Kind.PLAN: "plans",
    Kind.QUESTION: "questions",
    Kind.CASE: "cases",
}
# Whose words say how a record of that kind stands; of all others the state itself is shown.
_STATES: Mapping[str, str] = {
    Kind.OPERATION: "is",
    Kind.PLAN: "state",
    Kind.QUESTION: "session.question",
}
_STEP = re.compile(r"step ([0-9]+) of")
_NOWHERE = frozenset({Kind.CONTRACT, Kind.INCARNATION, Kind.LINE})


def page_of(kind: str, id: str) -> str:
    """Return the path of the page that a record has of its own, "" for one that has none."""
    return f"{ROOT}/{_OWN[kind]}/{quote(id)}" if kind in _OWN else ""


def place_of(record: Record) -> str:
    """Return the path of a record's page, or of its place in its session; "" for neither."""
    if record.kind in _NOWHERE or not record.session:
        return page_of(record.kind, record.id)
    session = session_path(record.session, after=record.made - 1)
    return page_of(record.kind, record.id) or f"{session}#{quote(record.id)}"


def session_path(session: str, *, after: int = 0) -> str:
    """Return the path of a session's page, from a journal position on."""
    return f"{ROOT}/sessions/{quote(session)}" + (f"?after={after}" if after > 0 else "")


def relation_of(say: Say, link: Link) -> str:
    """Return how one record leads to another, as a page says it."""
    kind = say(f"kind.{link.kind}")
    if step := _STEP.fullmatch(link.relation):
        return say("rel.step of", number=step[1], kind=kind)
    return say("rel.its" if link.relation.startswith("its ") else f"rel.{link.relation}", kind=kind)


def stands(say: Say, kind: str, state: str) -> str:
    """Return the word for how a record of a kind stands."""
    return say(f"{_STATES[kind]}.{state}") if kind in _STATES else state


HELPERS: Mapping[str, Any] = {
    "page_of": page_of,
    "place_of": place_of,
    "session_path": session_path,
    "relation_of": relation_of,
    "stands": stands,
}
