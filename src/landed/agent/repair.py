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
    repaired, open_calls = _paired(messages)
    for place, call in open_calls.items():
        repaired[place] = interrupted(call)
    return repaired


def holes(messages: Sequence[Message]) -> list[ToolCall]:
    """Return the calls without a result, oldest first."""
    _, open_calls = _paired(messages)
    return [*open_calls.values()]


def interrupted(call: ToolCall) -> ToolResultMessage:
    """Return a result for a call that has none, marked as one that nobody saw."""
    return {**tool_result(call, INTERRUPTED, is_error=True), "synthetic": True}


def _paired(messages: Sequence[Message]) -> tuple[list[Message], dict[int, ToolCall]]:
    """Return the messages with each result behind its call, and the calls without one by place.

    Some models count their call ids anew in each reply. So a result belongs to the latest call of
    that id which has none yet, not to every call of that id. In the place of a call without one
    stands the message that asks for it. One pass, for this is done before every request.
    """
    paired: list[Message] = []
    open_calls: dict[int, ToolCall] = {}
    places: defaultdict[str, list[int]] = defaultdict(list)
    for message in messages:
        if message["role"] == "toolResult":
            if waiting := places[message["tool_call_id"]]:
                place = waiting.pop()
                del open_calls[place]
                paired[place] = message
            continue
        paired.append(message)
        for call in calls_of(message):
            places[call["id"]].append(len(paired))
            open_calls[len(paired)] = call
            paired.append(message)
    return paired, open_calls
