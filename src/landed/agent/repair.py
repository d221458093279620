"""What a model is shown of a record: computed for each request, and the record stays as it is.

A run may be cut off at any await, so a record may have holes: a call without a result. Every later
request would be refused for it, by every provider. So the view closes them, in words that claim
nothing: the call may not have run, or may have run partly. Nothing has to be tidied up at the time
of the stop, and whatever is added to the record later is seen by the next request.
"""

from collections import defaultdict
from collections.abc import Sequence

from landed.agent.messages import (
    Message,
    ToolCall,
    ToolResultMessage,
    calls_of,
    is_empty,
    tool_result,
)

INTERRUPTED = (
    "Tool call interrupted: no result was recorded. It may not have run, or may have run partly; "
    "check before repeating it."
)
"""The result of a call that has none."""


def messages_for_model(messages: Sequence[Message]) -> list[Message]:
    """Return a valid request: no empty reply, and each call answered at once.

    An empty reply is mostly that of a stop or a failure, and says nothing to a model. One with some
    words in it stays, also when it was stopped.
    """
    return repair_tool_history([message for message in messages if not is_empty(message)])


def repair_tool_history(messages: Sequence[Message]) -> list[Message]:
    """Return the same messages, with one result for each call right behind it, in call order.

    Results are moved to their call, the first of two is taken, and one without a call is left out;
    a call without one gets `INTERRUPTED`. Pure, and done twice it is done once.
    """
    results = _results_by_place(messages)
    repaired: list[Message] = []
    for place, message in enumerate(messages):
        if message["role"] == "toolResult":
            continue
        repaired.append(message)
        for nth, call in enumerate(calls_of(message)):
            repaired.append(results.get((place, nth)) or interrupted(call))
    return repaired


def holes(messages: Sequence[Message]) -> list[ToolCall]:
    """Return the calls without a result, oldest first."""
    results = _results_by_place(messages)
    return [
        call
        for place, message in enumerate(messages)
        for nth, call in enumerate(calls_of(message))
        if (place, nth) not in results
    ]


def interrupted(call: ToolCall) -> ToolResultMessage:
    """Return a result for a call that has none, marked as one that nobody saw."""
    return {**tool_result(call, INTERRUPTED, is_error=True), "synthetic": True}


def _results_by_place(messages: Sequence[Message]) -> dict[tuple[int, int], ToolResultMessage]:
    """Return each recorded result by the place of its call: which message, and which call in it.

    Some models count their call ids anew in each reply. So a result belongs to the latest call of
    that id which has none yet, not to every call of that id.
    """
    unanswered: dict[str, list[tuple[int, int]]] = defaultdict(list)
    results: dict[tuple[int, int], ToolResultMessage] = {}
    for place, message in enumerate(messages):
        for nth, call in enumerate(calls_of(message)):
            unanswered[call["id"]].append((place, nth))
        if message["role"] == "toolResult" and unanswered[message["tool_call_id"]]:
            results[unanswered[message["tool_call_id"]].pop()] = message
    return results
