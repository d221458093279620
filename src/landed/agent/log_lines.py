"""What one line of a session log is, and what a conversation is that is read from such lines.

Each line is one JSON object, `{"id": "eN", "type": …}`, and N is the number of the line. A line is
readable as a whole or not at all: no beginning of a JSON object is one itself, so that a line which
was cut anywhere is noticed. What cannot be read is refused by name, and never left out.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, cast

from landed.agent.messages import Message, UserMessage, user_message
from landed.core.errors import LandedError

Entry = Mapping[str, Any]
"""One line, read: its id, its type, and what the type carries."""

TORN = "it is not one whole JSON object; if it is a torn end, repair_tail cuts it"

STOPPED = "stopped"
"""The type of an entry that says that nobody is to go on with the last words: a person left it."""

SUMMARY = "Previous conversation summary:\n"
"""What a summary opens with where a model is shown it."""


class LogError(LandedError, ValueError):
    """A session log that cannot be read or written as it is.

    `path` and `line` say where, `problem` what it is. `line` is 0 where no single line is at fault.
    Nothing was changed.
    """

    def __init__(self, path: Path, line: int, problem: str) -> None:
        place = f"{path}, line {line}" if line else f"{path}"
        super().__init__(f"{place}: {problem}")
        self.path = path
        self.line = line
        self.problem = problem


def line_of(entry: Entry) -> bytes:
    """Return the line of an entry, with its end; raises `ValueError` for what is not JSON."""
    try:
        text = json.dumps(entry, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return f"{text}\n".encode()
    except UnicodeEncodeError:
        # Half of a character, as a model may be cut off: UTF-8 has no place for it, JSON has.
        return f"{json.dumps(entry, allow_nan=False, separators=(',', ':'))}\n".encode()
    except TypeError as error:
        raise ValueError(f"it is not JSON: {error}") from error
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def is_whole(line: bytes) -> bool:
    """Say whether a line is one JSON object, whatever stands in it."""
    try:
        return isinstance(json.loads(line.decode()), dict)
    except RecursionError:
        return True  # It is more than this process can read, and no less than was written.
    except ValueError:
        return False


def entry_of(line: bytes, *, number: int) -> Entry:
    """Return what a line says; raises `ValueError` saying what is wrong with it."""
    try:
        found = json.loads(line.decode())
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except ValueError:
        raise ValueError(TORN) from None
    if not isinstance(found, dict):
        raise ValueError(TORN)
    entry = cast("Entry", found)
    if entry.get("id") != f"e{number}":
        raise ValueError(f"its id is {entry.get('id')!r}, not 'e{number}'")
    holds_all = _TYPES.get(str(entry.get("type")))
    if holds_all is None:
        raise ValueError(f"this version knows no entry of the type {entry.get('type')!r}")
    if not holds_all(entry):
        raise ValueError(f"it is not all that an entry of the type {entry['type']!r} holds")
    return entry


def kept(path: Path, entries: Iterable[Entry]) -> list[tuple[str, Message]]:
    """Return the conversation that entries tell: each message, with the id of its entry.

    A compaction takes the place of what came before the first entry that it kept: a summary, which
    opens the conversation as a user's message. Raises `LogError` where a compaction keeps from an
    entry on that is not in the conversation.
    """
    told: list[tuple[str, Message]] = []
    for entry in entries:
        if entry["type"] == "message":
            told.append((entry["id"], entry["message"]))
        elif entry["type"] == "compaction":
            first = entry["first_kept_id"]
            at = next((n for n, (name, _) in enumerate(told) if name == first), None)
            if at is None:
                line = int(entry["id"][1:])
                raise LogError(path, line, f"it keeps from {first!r} on, which is not there")
            told = [(entry["id"], _summary(entry)), *told[at:]]
    return told


def pinned(entries: Iterable[Entry]) -> str:
    """Return what the last compaction pinned beside its summary, "" where there is nothing."""
    last = [entry.get("pinned", "") for entry in entries if entry["type"] == "compaction"]
    return str(last[-1]) if last else ""


def _summary(entry: Entry) -> UserMessage:
    parts = [entry["summary"], entry.get("pinned", "")]
    message = user_message(SUMMARY + "\n\n".join(part for part in parts if part))
    if "tells" in entry:
        message["tells"] = entry["tells"]
    return message


def _is_message(entry: Entry) -> bool:
    message = entry.get("message")
    return isinstance(message, dict) and isinstance(cast("Entry", message).get("role"), str)


def _is_compaction(entry: Entry) -> bool:
    told = (entry.get("summary"), entry.get("first_kept_id"), entry.get("pinned", ""))
    return all(isinstance(each, str) for each in told) and isinstance(entry.get("tells", {}), dict)


def _is_stop(entry: Entry) -> bool:
    return isinstance(entry.get("by"), str) and isinstance(entry.get("reason"), str)


def _is_repair(entry: Entry) -> bool:
    return isinstance(entry.get("cut_bytes"), int) and isinstance(entry.get("kept_in"), str)


_TYPES: dict[str, Callable[[Entry], bool]] = {
    "message": _is_message,
    "compaction": _is_compaction,
    "repaired": _is_repair,
    STOPPED: _is_stop,
}
