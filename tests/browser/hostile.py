"""An application in which every text is a hostile one: arguments, figures, errors, names, words.

    python -m tests.browser.hostile sqlite:///hostile.db

fills a store with what its tools were asked for; `landed serve --app tests.browser.hostile` shows
it. Everything is in the store by the runtime's own verbs, as an agent and a service could do it.
"""

import asyncio
import sys
from collections.abc import Iterator, Sequence

import landed
from landed.core.outcome import Found
from landed.core.plan import Wanted
from landed.core.preview import Preview, Previewing, Similar
from landed.core.value import Receipt
from landed.runtime.runtime import Runtime
from tests.browser.payloads import PAYLOADS

PERSON = "ana"
GROUP = 10
SHORT_MAX = 200
EACH = 4
"""Of how many payloads one becomes a case, a question and a name."""


def shown(asked: Previewing) -> Preview:
    """Preview a step by the text itself."""
    text = str(asked.arguments["text"])[:SHORT_MAX]
    return Preview(summary=text, basis={"said": text})


def alike(asked: Previewing) -> Sequence[Similar]:
    """Say that something of that name is there already."""
    text = str(asked.arguments["text"])[:SHORT_MAX]
    return (Similar(id=text or "-", text=text or "-"),)


@landed.tool(effect="reversible", preview=shown, undo="unwrite", undo_arguments={"text": "{text}"})
async def write(text: str) -> dict[str, str]:
    """Do it, and answer with the text as what was made."""
    return {"id": text[:SHORT_MAX], "text": text}


@landed.tool(effect="irreversible", preview=shown)
async def unwrite(text: str) -> None:
    """Take it back."""


@landed.tool(effect="irreversible", risk="confirm", preview=shown, look_alike=alike)
async def sign(text: str) -> dict[str, str]:
    """Do it once a person has agreed."""
    return {"id": text[:SHORT_MAX]}


@landed.tool(effect="irreversible", preview=shown)
async def refuse(text: str) -> None:
    """Refuse, in the words of the text."""
    raise landed.RefusedError(text)


@landed.tool(effect="irreversible", preview=shown, escalate_after_s=0.0)
async def lose(text: str) -> None:
    """Lose the answer, with the text as the reason."""
    raise ConnectionResetError(text)


tools = (write, unwrite, sign, refuse, lose)


def groups() -> Iterator[Sequence[str]]:
    """All payloads, some at a time."""
    for first in range(0, len(PAYLOADS), GROUP):
        yield PAYLOADS[first : first + GROUP]


def named(text: str) -> str:
    """Return a text as the name of a conversation: on one line, as the path of a page has to be."""
    return " ".join(text.split("\n"))[:SHORT_MAX].strip() or "-"


async def fill(rt: Runtime) -> None:
    """Ask for everything."""
    for texts in groups():
        for tool in (write, refuse, sign):  # Last, for other words would let its question lapse.
            session = named(texts[1 % len(texts)])
            heard = await rt.receive(texts[0], session=session, principal=PERSON)
            steps = [Wanted(tool=tool.name, arguments={"text": text}) for text in texts]
            value = await rt.propose(steps, ask=heard.ask("plan"), independent=tool is refuse)
            await rt.report(heard.turn)
            assert value.state in ("done", "proposed", "partial"), value
    for text in PAYLOADS[::EACH]:
        await ask_about(rt, text)


async def ask_about(rt: Runtime, text: str) -> None:
    """Have a person see a text as a case's, a question's, a service's and a decision's."""
    heard = await rt.receive(text, session=named(f"about {text}"), principal=PERSON)
    await rt.propose(
        [Wanted(tool=lose.name, arguments={"text": text})], ask=heard.ask("lose"), patience_s=1.0
    )
    other = await rt.receive(text, session=named(f"asked {text}"), principal=PERSON)
    await rt.ask(other, text)
    await rt.receive(
        text,
        session="webhook",
        principal=text[:SHORT_MAX],
        origin="webhook",
        evidence=Receipt(outcome=Found(result={"id": text}), key=text[:SHORT_MAX]),
    )
    third = await rt.receive(text, session="dropped", principal=PERSON)
    plan = await rt.propose(
        [Wanted(tool=sign.name, arguments={"text": text})], ask=third.ask("drop")
    )
    await rt.abandon(plan.plan, why=text)


async def main(url: str) -> None:
    """Fill the store at a URL."""
    settings = landed.Settings(answer_within_s=86_400.0, send_within_s=86_400.0)
    async with landed.open(url, tools=tools, settings=settings) as rt:
        await fill(rt)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
