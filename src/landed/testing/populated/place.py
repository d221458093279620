"""The services of the demo in one process, each with its tools: office, mail, payments, courier."""

import asyncio
from collections.abc import Coroutine, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from landed.core.tool import Tool
from landed.runtime.clock import MACHINE
from landed.runtime.opened import Settings
from landed.testing.invoices.office import Office, office_tools
from landed.testing.invoices.post import Post, PostedMail
from landed.testing.invoicing import CONTACTS
from landed.testing.populated.courier import Courier, courier_tools
from landed.testing.refunds.tools import refund_tools
from landed.testing.worlds import invoicing, payments
from landed.testing.worlds.mail_faults import MailFault
from landed.testing.worlds.mailbox import Mailbox
from landed.testing.worlds.payments import Payments
from landed.testing.worlds.transport import WorldTransport

INVOICING_URL = "http://invoicing.test"
PAYMENTS_URL = "http://payments.test"
ORDERS = {"4412": 48_000, "4413": 12_950}
ADDRESSES = {"4412": "Elm 1", "4413": "Calle Mayor 8"}
REFUNDED_BEFORE = ("4412", 10_000)
A_DAY_S = 86_400.0

SETTINGS = Settings(answer_within_s=A_DAY_S, send_within_s=A_DAY_S, drain_s=2.0)
"""A person who looks around has a day for each decision; who ends it does not wait for pages."""


@dataclass(slots=True, eq=False, kw_only=True)
class Place:
    """The services, for one `person` who may do everything there; `tools` reach them."""

    person: str
    language: str
    tools: tuple[Tool, ...]
    courier: Courier
    box: Mailbox

    @property
    def settings(self) -> Settings:
        """The bounds of a runtime there, and its language."""
        return replace(SETTINGS, language=self.language)

    @property
    def permissions(self) -> Office:
        """Who may do what there."""
        return Office((self.person,))


@dataclass(slots=True, eq=False)
class World:
    """Keeps what was sent to a service going, whatever becomes of whoever sent it."""

    going: "set[asyncio.Task[Any]]" = field(default_factory=set["asyncio.Task[Any]"])

    def spawn(self, work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        """Start some work of the world."""
        started = asyncio.ensure_future(work)
        self.going.add(started)
        started.add_done_callback(self.going.discard)
        return started


@contextmanager
def place(person: str, *, language: str = "en") -> Generator[Place]:
    """Open the services, with nothing asked of them yet, and close them at the end."""
    world, courier = World(), Courier()
    with ExitStack() as stack:
        office = invoicing.app(":memory:", MACHINE)
        books = office.state.desk.books
        stack.callback(books.ledger.sql.close)
        for contact in CONTACTS:
            books.insert("contact", **contact)
        kept = Payments(orders=ORDERS, addresses=ADDRESSES, plans_last_s=A_DAY_S)
        bank = payments.app(":memory:", MACHINE, settings=kept)
        stack.callback(bank.state.desk.ledger.sql.close)
        _refund_by_hand(bank.state.desk.ledger)
        box = stack.enter_context(Mailbox(":memory:"))
        post = Post(box, world.spawn, (MailFault(kind="lose_reply"),))
        mailed = office_tools(
            INVOICING_URL,
            partial(PostedMail, post),
            box,
            language=language,
            looks=False,
            transport=WorldTransport(office, world.spawn),
            replaced={"send_invoice": {"escalate_after_s": 0.5}},
        )
        paid = refund_tools(PAYMENTS_URL, kept, WorldTransport(bank, world.spawn))
        tools = (*mailed, *paid, *courier_tools(courier))
        yield Place(person=person, language=language, tools=tools, courier=courier, box=box)


def _refund_by_hand(ledger: Any) -> None:
    """Have some of an order refunded before, so that what is left is not what was paid."""
    order, cents = REFUNDED_BEFORE
    with ledger.unit():
        ledger.refund({"order": order, "cents": cents, "reason": None}, None, MACHINE.now())
