"""The agent of the invoice demo as an operating-system process: HTTP, SMTP and a store.

    python -m landed.testing.invoices.process --store sqlite:///agent.db --smtp 2525 \
        --invoicing http://127.0.0.1:8000 --mailbox mailbox.db [--scenario invoice] [--lang en] \
        [--again] [--lease SECONDS] [--kill POINT]

prints each line of its timeline as an object, then its report; as in `landed.testing.agent`.
"""

import argparse
import asyncio
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from landed.core.canonical import Json
from landed.core.lease import Lease
from landed.core.tool import Tool
from landed.runtime.opened import Settings
from landed.runtime.parts import assemble, register
from landed.stores.urls import open_store
from landed.testing.agent import die, print_line, print_plain, remember
from landed.testing.faults import FaultyStore, FaultyTool, Points, parse_point
from landed.testing.invoices.clerk import Clerk
from landed.testing.invoices.office import Office, office_tools
from landed.testing.invoices.scenario import InvoiceScenario
from landed.testing.invoices.scenarios import INVOICES_BY_NAME
from landed.testing.invoices.words import LANGUAGES, READ, WORDS
from landed.testing.models import ScriptedModel
from landed.testing.scenario import SESSION
from landed.testing.timeline import Timeline
from landed.testing.worlds.mailbox import HOST, Mailbox
from landed.tools.delivery import MailServer
from landed.tools.smtp import SmtpTool

REPLY_WAIT_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the process is to do; `again` when its store was there before."""

    scenario: InvoiceScenario
    store: str
    invoicing: str
    smtp: int
    mailbox: str
    kill: str = ""
    lease: Lease = field(default_factory=Lease)
    again: bool = False


async def act(asked: Asked) -> dict[str, Json]:
    """Run the script of the scenario, first or again, and return the report of this process."""
    kept = asked.scenario
    points = Points(die=die, kill=parse_point(asked.kill) if asked.kill else None)
    timeline = Timeline(now=time.time, listener=print_line)
    messages: list[str] = []
    opened = await open_store(asked.store)
    store = FaultyStore(opened, points=points, committed=timeline.committed)
    with Mailbox(asked.mailbox) as box:
        rt = assemble(
            store,
            tools=register(FaultyTool(tool, points) for tool in _tools(asked, box)),
            settings=Settings(language=kept.language),
            permissions=Office(),
            lease=asked.lease,
        )
        async with rt:
            if asked.again:
                await remember(timeline, store, SESSION)
                timeline.add("restart", f"{rt.recovered} operation(s) in the log")
            clerk = Clerk(
                rt=rt,
                model=ScriptedModel(script=READ),
                timeline=timeline,
                messages=messages,
                yes=WORDS[kept.language].yes,
            )
            await kept.script(clerk)
    return {"pid": os.getpid(), "message": messages[-1] if messages else ""}


def _tools(asked: Asked, box: Mailbox) -> list[Tool]:
    server = MailServer(host=HOST, port=asked.smtp, security="none")
    mailing = partial(SmtpTool, server=server, reply_wait_s=REPLY_WAIT_S)
    return office_tools(asked.invoicing, mailing, box, language=asked.scenario.language)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m landed.testing.invoices.process")
    parser.add_argument("--store", required=True, help="its URL")
    parser.add_argument("--invoicing", required=True, help="the invoicing service's URL")
    parser.add_argument("--smtp", required=True, type=int, help="the mail server's port")
    parser.add_argument("--mailbox", required=True, help="the mailbox's SQLite file, to look into")
    parser.add_argument("--scenario", default="invoice", choices=sorted(INVOICES_BY_NAME))
    parser.add_argument("--lang", default="en", choices=LANGUAGES, help="what the user speaks")
    parser.add_argument("--again", action="store_true", help="the store at that URL knows it")
    parser.add_argument("--lease", type=float, default=30.0, help="seconds that its claims stand")
    parser.add_argument("--kill", default="", help="the point at which it kills itself")
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    """Be the agent that the command line describes; exits with 2 when it makes no sense."""
    parser = _parser()
    given = parser.parse_args(arguments)
    try:
        kill = str(parse_point(given.kill)) if given.kill else ""
    except ValueError as error:
        parser.error(str(error))
    asked = Asked(
        scenario=INVOICES_BY_NAME[given.scenario].spoken(given.lang),
        store=given.store,
        invoicing=given.invoicing,
        smtp=given.smtp,
        mailbox=given.mailbox,
        kill=kill,
        lease=Lease(lease_s=given.lease, beat_s=given.lease / 3),
        again=given.again,
    )
    print_plain(asyncio.run(act(asked)))


if __name__ == "__main__":
    main()
