"""A transcript at a glance: its shape on one line, or each message on its own; and a power cut."""

from collections.abc import Iterable

from landed.agent.messages import FAILED, Message, calls_of, render


class PowerCut(BaseException):
    """The program is ending: no tool failure, and nobody may take it for one."""


def shape(messages: Iterable[Message], *, errors: bool = False) -> str:
    """Return who spoke, in order: `U A[c1,c2] R(c1) R(c2) A`.

    A failed reply is `A(error)` or `A(aborted)`. With `errors`, a result that is one says so.
    """
    return " ".join(_shape(message, errors=errors) for message in messages)


def _shape(message: Message, *, errors: bool) -> str:
    if message["role"] == "user":
        return "U"
    if message["role"] == "toolResult":
        return f"R({message['tool_call_id']}{' error' * (errors and message['is_error'])})"
    ids = ",".join(call["id"] for call in calls_of(message))
    reason = message["stop_reason"]
    return "A" + (f"[{ids}]" if ids else "") + (f"({reason})" if reason in FAILED else "")


def show(messages: Iterable[Message]) -> str:
    """Return the transcript for a person: a numbered line for each message."""
    lines = render(messages).splitlines()
    return "\n".join(f"{number:>3}  {line}" for number, line in enumerate(lines, 1))
