"""Where a record has its page: its own, or its place in its session."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from landed.console.visit import ROOT
from landed.core.changes import Kind, Record

_OWN: Mapping[str, str] = {
    Kind.OPERATION: "operations",
    Kind.PLAN: "plans",
    Kind.QUESTION: "questions",
    Kind.CASE: "cases",
}
_NOWHERE = frozenset({Kind.CONTRACT, Kind.INCARNATION})


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


HELPERS: Mapping[str, Any] = {
    "page_of": page_of,
    "place_of": place_of,
    "session_path": session_path,
}
