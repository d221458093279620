"""What the records say to a model beside its calls: late truth, calls cut off, the pinned block.

A transcript is what a model was told at the time, and is never rewritten. What became known later
is added to it: a call that was cut off gets the result that the records have, a plan that has moved
on since it was told of gets a note, and a summary has every effect beside it, word for word.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence

from landed.agent.claims.check import Claim
from landed.agent.effects import VERBS, Effects
from landed.agent.messages import (
    FAILED,
    Message,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    calls_of,
    tool_result,
    user_message,
)
from landed.agent.repair import INTERRUPTED, holes
from landed.agent.tool import Telling
from landed.core.changes import Kind
from landed.core.history import when_it_happened
from landed.core.operation import State
from landed.core.plan import At, PlanState, plan_from
from landed.core.session import Input
from landed.core.telling import as_of_now
from landed.runtime.runtime import Runtime
from landed.runtime.tracing import instant

NOTE = "[A note from the records, not from the user]"
DECIDED = "The user's answer was carried out already; this is how it stands: "
CUT_OFF = "The wait for this was cut off; this is what the records have: "
NEVER_BEGAN = "It was cut off before anything of it was recorded, so nothing was sent."
PINNED = (
    "What was done to the world in this conversation, from the records. It is complete, and holds"
    " whatever a summary says:"
)
UNSUPPORTED = (
    "Your last answer said what the records do not support. The user was shown this too; put it"
    " right where it matters:"
)
_LANDED = frozenset({State.CONFIRMED, State.ACCEPTED, State.ASSUMED})
_NO_ERROR = frozenset({PlanState.DONE, PlanState.PROPOSED, PlanState.RUNNING})


def told_states(messages: Sequence[Message]) -> dict[str, str]:
    """Return the plans that a transcript tells of, each with the state that it told last."""
    told: dict[str, str] = {}
    for message in messages:
        told.update(message.get("tells", {}))
    return told


def inputs_in(messages: Sequence[Message]) -> set[str]:
    """Return the ids of the durable inputs whose words stand in a transcript."""
    users = (message for message in messages if message["role"] == "user")
    return {message["input"] for message in users if "input" in message}


def is_unanswered(messages: Sequence[Message]) -> bool:
    """Whether a record ends before its last words were answered; a note asks for no answer."""
    said = [*messages]
    while said and said[-1]["role"] == "user" and "input" not in said[-1]:
        said.pop()
    if not said:
        return False
    last = said[-1]
    if last["role"] != "assistant":
        return True
    return last["stop_reason"] not in FAILED and bool(calls_of(last))


def with_telling(words: UserMessage, telling: Telling) -> UserMessage:
    """Return the user's words with what the records say of a plan that they decided about."""
    tells = {**words.get("tells", {}), **telling.plans}
    content = f"{words['content']}\n\n{NOTE}\n{DECIDED}{telling.text}"
    return {**words, "content": content, "tells": tells}


def cut_off(messages: Sequence[Message]) -> Iterator[tuple[ToolCall, str]]:
    """Yield each call without a result, and the input that it was made for, "" for none."""
    open_still = [id(call) for call in holes(messages)]
    heard = ""
    for message in messages:
        if message["role"] == "user":
            heard = message.get("input", heard)
        for call in calls_of(message):
            if id(call) in open_still:
                yield call, heard


def nth_of(messages: Sequence[Message], call: ToolCall) -> int:
    """Return which of the equal calls for the same words a call of a transcript is, from 1."""
    nth = 0
    for message in messages:
        if message["role"] == "user" and "input" in message:
            nth = 0
        for one in calls_of(message):
            nth += (one["name"], one["arguments"]) == (call["name"], call["arguments"])
            if one is call:
                return nth
    return 1


async def closed(effects: Effects, call: ToolCall, heard: Input | None) -> ToolResultMessage:
    """Return the result of a call that was cut off, as the records have it now.

    An effect that was recorded is told as it stands. One that was not never began, for nothing is
    sent before it is recorded. Of any other tool nobody knows.
    """
    plan = await effects.plan_of(call, heard) if heard is not None else ""
    if plan and heard is not None:
        told = await effects.told_of(plan, heard, whole=call["name"] not in VERBS)
        good = all(state in _NO_ERROR for state in told.plans.values())
        result = tool_result(call, CUT_OFF + told.text, is_error=not good)
        return {**result, "synthetic": True, "tells": dict(told.plans)}
    text = NEVER_BEGAN if effects.acts(call["name"]) else INTERRUPTED
    return {**tool_result(call, text, is_error=True), "synthetic": True}


async def notes(
    effects: Effects, messages: Sequence[Message], heard: Input, *, but: Collection[str] = ()
) -> Sequence[UserMessage]:
    """Return a note for each plan that has moved on since the transcript told of it last.

    None for those that are told of in another way just now (`but`).
    """
    told = {plan: state for plan, state in told_states(messages).items() if plan not in but}
    found: list[UserMessage] = []
    for plan, state in (await plan_states(effects.rt, told)).items():
        if state == told[plan]:
            continue
        telling = await effects.told_of(plan, heard)
        times = await _times(effects.rt, plan, heard)
        text = "\n".join([NOTE, telling.text, *times])
        found.append({**user_message(text), "tells": dict(telling.plans)})
    return found


def unsupported_note(claims: Sequence[Claim]) -> UserMessage:
    """Return the note about what the model's last answer said and the records don't support."""
    return user_message("\n".join([NOTE, UNSUPPORTED, *(f"- {each.to_model}" for each in claims)]))


async def plan_states(rt: Runtime, plans: Iterable[str]) -> dict[str, str]:
    """Return the state of each of these plans as it is told now: what the clock ended is over."""
    records, now = await rt.driver.reader.load(*plans), rt.driver.clock.now()
    held = [plan_from(record) for record in records if record.kind is Kind.PLAN]
    return {plan.id: str(as_of_now(plan, now).state) for plan in held}


async def pinned(rt: Runtime, session: str, *, tenant: str) -> str:
    """Return every effect of a session as a model is told it now, "" where there is none."""
    items = await rt.history(session, tenant=tenant)
    latest = {item.record: item.text for item in items if item.effect}
    lines = [f"- {text} ({record})" for record, text in latest.items()]
    return "\n".join([PINNED, *lines]) if lines else ""


async def _times(rt: Runtime, plan: str, heard: Input) -> Sequence[str]:
    """Say when each step of a plan that landed happened: later truth is told with its time."""
    held = await rt.driver.reader.plan(plan, tenant=heard.tenant)
    done = {p.record: n for n, p in enumerate(held.places, 1) if p.at is At.DONE and p.record}
    operations = await rt.driver.reader.operations(*done)
    return [
        f"Step {done[id]} happened at {instant(when_it_happened(operation))}."
        for id, operation in operations.items()
        if operation.state in _LANDED
    ]
