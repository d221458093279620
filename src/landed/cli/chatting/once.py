"""One shot: finish what was left, say something, print the answer, and tell by the exit status."""

import signal
import uuid
from collections.abc import Callable

from landed.agent.loop import Account, Event
from landed.agent.messages import text_of
from landed.agent.render import FinalTextRenderer, JsonRenderer, failure_of
from landed.cli.chatting.asked import Asked
from landed.cli.chatting.driving import ENDS, Driving, heeding
from landed.cli.chatting.opening import talking
from landed.cli.chatting.showing import note
from landed.cli.shown import show

ANSWERED, FAILED, WAITS = 0, 1, 3
"""The exit statuses; 2 is click's, for a command that makes no sense."""


async def once(asked: Asked, text: str, *, delivery: str, as_json: bool) -> int:
    """Lead the conversation by these words, "" for none, and return the exit status.

    Words that are the last of what was left unanswered are not said a second time, unless they
    come with a delivery of their own.
    """
    events = JsonRenderer() if as_json else None

    def draw(event: Event) -> None:
        if events is not None:
            events.render(event)

    async with talking(asked) as talk:
        driving = Driving(talk, draw, grace_s=asked.grace_s, by=asked.principal)

        def press(reason: str) -> None:
            driving.press(reason)
            note("stopping… (again: now)")

        with heeding(press, signal.SIGINT, *ENDS):
            if left := await talk.left():
                note(f"finishing what was left: {left[-1]}")
                await driving.take(talk.finish())
            is_said = not delivery and left[-1:] == [text]
            if text and not is_said and not driving.is_pressed:
                await driving.take(talk.hear(text, delivery=delivery or f"chat-{uuid.uuid4()}"))
            return await _ended(driving, as_json=as_json)


async def _ended(driving: Driving, *, as_json: bool) -> int:
    """Print how it ended, and return the status that says so."""
    account = driving.accounts[-1] if driving.accounts else None
    answer = driving.talk.answer(account)
    if not as_json and answer is not None:
        final = FinalTextRenderer()
        final.render({"type": "message_end", "message": answer})
        final.finish()
        if account is not None and _says_more(account, text_of(answer)):
            show(account["report"])
    for each in driving.accounts:
        for sentence, wrong in each["unsupported"]:
            note(f"the records do not bear this out: “{sentence}”: {wrong}")
    return await status_of(driving, note)


async def status_of(driving: Driving, say: Callable[[str], None]) -> int:
    """Return the exit status of all that was driven, and say what of it is open."""
    account = driving.accounts[-1] if driving.accounts else None
    answer = driving.talk.answer(account)
    waits = [one for each in driving.accounts for one in await driving.talk.still_open(each)]
    for one in dict.fromkeys(waits):
        say(one)
    if driving.is_pressed or (answer is not None and failure_of(answer)):
        return FAILED
    return WAITS if waits else ANSWERED


def _says_more(account: Account, answer: str) -> bool:
    """Whether the report has something that was not just said, word for word."""
    has_effects = account["operations"] or account["questions"]
    return bool(has_effects) and account["report"] != answer
