"""What was asked of the runtime before the console opens: one scene for each thing that it lists.

Each scene speaks through the verbs, as an agent and a person do. What takes long is not waited for.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from landed.core.canonical import Json
from landed.core.errors import LandedError
from landed.core.outcome import Found
from landed.core.plan import Wanted
from landed.core.session import Input
from landed.core.value import PlanValue, Receipt
from landed.runtime.runtime import Runtime
from landed.testing.populated.courier import ABROAD, THICK

TENANT = "default"
FIRST = "marta-logo"
MONTHS = ("July", "August", "September", "October", "November", "December")
QUESTIONS = (
    ("parcels", "Send the parcel to Marta's place", "Do you mean Marta's studio, Elm 1?"),
    ("folder", "Send her the folder too", "Do you mean the blue folder?"),
    ("call", "Call her when it is there", "Shall I call Marta, or Carla?"),
)
A_WHILE_S = 30
SOON_S = 0.2
AT_REST_S = 20.0
LOOKS_MAX = 200
LOOK_S = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Where a scene is played: by whom, and how many `seconds` each page takes to print."""

    rt: Runtime
    person: str
    seconds: int = A_WHILE_S

    async def hear(self, text: str, session: str) -> Input:
        """Receive the person's words."""
        return await self.rt.receive(text, session=session, principal=self.person)

    async def act(
        self, heard: Input, *calls: tuple[str, dict[str, Json]], patience_s: float = AT_REST_S
    ) -> PlanValue:
        """Propose what the model made of it."""
        wanted = [Wanted(tool=tool, arguments=arguments) for tool, arguments in calls]
        return await self.rt.propose(wanted, ask=heard.ask("plan"), patience_s=patience_s)

    async def order(
        self, text: str, session: str, *calls: tuple[str, dict[str, Json]]
    ) -> PlanValue:
        """Hear some words, and propose what they want."""
        return await self.act(await self.hear(text, session), *calls)

    async def agree(self, plan: PlanValue, *, patience_s: float = AT_REST_S) -> PlanValue:
        """Say yes to a plan as the person, and wait for what it comes to."""
        done = await self.rt.approve(plan.plan, principal=self.person, patience_s=patience_s)
        assert done is not None
        return done


Scene = Callable[[Stage], Awaitable[object]]


async def drafted(stage: Stage) -> None:
    """A draft, done at once; it can be taken back."""
    await stage.order(
        "Draft an invoice for Marta: the logo, 500",
        FIRST,
        ("create_draft", {"contact": "C1", "lines": _lines("logo", "500.00")}),
    )


async def drafted_again(stage: Stage) -> None:
    """The same draft in another conversation: it looks like the first, so it is asked about."""
    await stage.order(
        "Draft Marta's invoice for the logo (500)",
        "marta-again",
        ("create_draft", {"contact": "C1", "lines": _lines("logo", "500.00")}),
    )


async def invoiced(stage: Stage) -> None:
    """A whole invoice waits for its yes: draft it, issue it, email it, remind of it."""
    await stage.order(
        "Invoice Marta for the web site, 1800, email it, and remind her five days before it's due",
        "marta-site",
        ("create_draft", {"contact": "C1", "lines": _lines("web site", "1800.00")}),
        ("issue_invoice", {"draft": "$1"}),
        ("send_invoice", {"invoice": "$2", "to": "marta@example.com"}),
        ("schedule_reminder", {"invoice": "$2", "days_before": 5}),
    )


async def expenses(stage: Stage) -> None:
    """Three expenses are entered; then all three are to be deleted, which has to be typed."""
    entered = await stage.order(
        "Enter the train 42.10, the hotel 180, and lunch 23.50",
        "trip",
        ("create_expense", {"what": "train", "cents": 4210}),
        ("create_expense", {"what": "hotel", "cents": 18_000}),
        ("create_expense", {"what": "lunch", "cents": 2350}),
    )
    ids: list[Json] = [_id(step.made) for step in entered.steps]
    await stage.order(
        "The trip was cancelled: delete what we entered, and draft Marta's logo once more",
        "trip",
        ("delete_expenses", {"expenses": ids}),
        ("create_draft", {"contact": "C1", "lines": _lines("logo", "500.00")}),
    )


async def refunded(stage: Stage) -> None:
    """A refund waits for its yes, with the figures of the service."""
    await stage.order(
        "Refund 200 of order 4412",
        "order-4412",
        ("refund_order", {"order": "4412", "cents": 20_000}),
    )


async def asked(stage: Stage) -> None:
    """The agent cannot tell what was meant, and asks."""
    for session, words, question in QUESTIONS:
        heard = await stage.hear(words, session)
        await stage.rt.ask(heard, question)


async def mailed(stage: Stage) -> None:
    """An invoice is issued and emailed; the mail server's reply is lost, and nobody can look."""
    plan = await stage.order(
        "Invoice Marta for the hosting, 90, and email it",
        "marta-hosting",
        ("create_draft", {"contact": "C1", "lines": _lines("hosting", "90.00")}),
        ("issue_invoice", {"draft": "$1"}),
        ("send_invoice", {"invoice": "$2", "to": "marta@example.com"}),
    )
    await stage.agree(plan, patience_s=SOON_S)


async def unrecorded(stage: Stage) -> None:
    """The payments service tells of a refund that no record here speaks of: a case."""
    await stage.rt.receive(
        "payments: refund RF1 of order 4412, 100.00, succeeded",
        session="payments-webhook",
        principal="payments",
        origin="webhook",
        evidence=Receipt(outcome=Found(result={"id": "RF1"}), key="RF1"),
    )


async def jammed(stage: Stage) -> None:
    """A plan of two steps broke off at its second, and can be run again from there."""
    await stage.order(
        "Print the statements of May and June",
        "statements-spring",
        ("print_statement", {"month": "May"}),
        ("print_statement", {"month": f"June, {THICK}"}),
    )


async def declined(stage: Stage) -> None:
    """The person said no to a refund."""
    plan = await stage.order(
        "Refund all of order 4413",
        "order-4413",
        ("refund_order", {"order": "4413", "cents": 12_950}),
    )
    await stage.rt.decline(plan.plan, principal=stage.person)


async def abandoned(stage: Stage) -> None:
    """The agent's side dropped a plan before anybody answered."""
    plan = await stage.order(
        "Switch automatic sending on",
        "sending",
        ("switch_auto_send", {"on": True}),
    )
    await stage.rt.abandon(plan.plan, why="the person went on to something else")


async def undone(stage: Stage) -> None:
    """A draft that was taken back."""
    plan = await stage.order(
        "Draft an invoice for Carla: photos, 75",
        "carla-photos",
        ("create_draft", {"contact": "C3", "lines": _lines("photos", "75.00")}),
    )
    await stage.rt.undo(plan.plan, principal=stage.person)


async def revised(stage: Stage) -> None:
    """In Spanish: the draft is to be another one, and issued. Until the yes, the old one stays."""
    heard = await stage.hear(
        "Haz un borrador para Marta, las tarjetas, 120, y manda una muestra a Lima",
        "marta-tarjetas",
    )
    sample: dict[str, Json] = {"what": "muestra", "to": f"Lima, {ABROAD}"}
    await stage.act(
        heard,
        ("create_draft", {"contact": "C1", "lines": _lines("tarjetas", "120.00")}),
        ("send_parcel", sample),
        patience_s=SOON_S,
    )
    await stage.rt.report(heard.turn, language="es")
    other = await stage.hear("Mejor 150, y emítela", "marta-tarjetas")
    wanted = [
        Wanted(
            tool="create_draft",
            arguments={"contact": "C1", "lines": _lines("tarjetas", "150.00")},
        ),
        Wanted(tool="issue_invoice", arguments={"draft": "$1"}),
        Wanted(tool="send_parcel", arguments=sample),
    ]
    await stage.rt.revise(heard.turn, other, wanted=wanted, patience_s=SOON_S)
    await stage.rt.report(other.turn, language="es")


async def abroad(stage: Stage) -> None:
    """In Spanish: a parcel went abroad, no answer came, and it is being found out."""
    heard = await stage.hear("Manda el contrato a la tía de Bruno, en Lima", "contrato")
    await stage.act(
        heard,
        ("send_parcel", {"what": "contrato", "to": f"Lima, {ABROAD}"}),
        patience_s=SOON_S,
    )
    await stage.rt.report(heard.turn, language="es")


async def printing(stage: Stage) -> None:
    """Six statements are being printed, one after the other."""
    heard = await stage.hear("Print the statements of the second half-year", "statements")
    asked: list[dict[str, Json]] = [{"month": m, "seconds": stage.seconds} for m in MONTHS]
    pages = [("print_statement", arguments) for arguments in asked]
    await stage.act(heard, *pages, patience_s=SOON_S)


SCENES: Sequence[Scene] = (
    drafted,
    drafted_again,
    undone,
    expenses,
    mailed,
    unrecorded,
    refunded,
    declined,
    abandoned,
    jammed,
    revised,
    abroad,
    asked,
    invoiced,
    printing,
)


async def populate(rt: Runtime, *, person: str, seconds: int = A_WHILE_S) -> None:
    """Play every scene, and wait until what nobody can tell is in front of a person.

    `person` is whom the agent speaks for, and who will look at the pages; `seconds` is how long
    each page of what is being printed takes. Raises `LandedError` where it was played before, for
    the services of then are gone.
    """
    if await rt.driver.store.session_records(tenant=TENANT, session=FIRST, limit=1):
        raise LandedError("this store had a demo before, whose services are gone: name a new one")
    stage = Stage(rt=rt, person=person, seconds=seconds)
    for scene in SCENES:
        await scene(stage)
    for _ in range(LOOKS_MAX):
        if len(await rt.inbox()) > 1:
            return
        await asyncio.sleep(LOOK_S)


def _lines(what: str, price: str) -> Json:
    return [{"what": what, "quantity": "1", "unit_price": price}]


def _id(made: Json) -> str:
    """Return the id of what a step made."""
    return str(made["id"]) if isinstance(made, dict) else str(made)
