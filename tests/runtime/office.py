"""An office for the tests of the yes: drafts, invoices, letters, a price that moves, rights."""

import asyncio
import json
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from landed.core.canonical import Json
from landed.core.changes import Kind, Record
from landed.core.contract import Risk
from landed.core.errors import ApprovalError, RefusedError
from landed.core.plan import OPEN, Wanted
from landed.core.preview import Preview, Previewing, Similar
from landed.core.tool import Tool
from landed.core.value import PlanValue
from landed.runtime.parts import assemble, register
from landed.runtime.permissions import Permit
from landed.runtime.runtime import Runtime
from landed.testing.faults import FaultyStore, Points
from landed.testing.sim import current_process
from landed.tools.function import tool
from tests.runtime.rig import Rig, Script, T

DRAFT = Wanted(tool="draft", arguments={"amount": 500})
ISSUE = Wanted(tool="issue", arguments={"draft": "$1"})
MAIL = Wanted(tool="mail", arguments={"invoice": "$2", "to": "ada@example.org"})
REMIND = Wanted(tool="remind", arguments={"invoice": "$2", "days": 5})
INVOICE = (DRAFT, ISSUE, MAIL, REMIND)
PAY = Wanted(tool="pay", arguments={"to": "ada", "cents": 100})

SAYS = {
    "en": {
        "draft": "Draft for {what}: {total} EUR with VAT",
        "issue": "Issue the draft of {total} EUR under the next number",
    },
    "es": {
        "draft": "Borrador para {what}: {total} EUR con IVA",
        "issue": "Emitir el borrador de {total} EUR con el siguiente número",
    },
}


@dataclass
class Office:
    """What is outside: it outlives processes, counts effects, and says who may do what."""

    effects: list[tuple[str, Json]] = field(default_factory=list[tuple[str, Json]])
    price_cents: int = 100
    similar: tuple[Similar, ...] = ()
    revoked: set[str] = field(default_factory=set[str])
    permits: list[Permit] = field(default_factory=list[Permit])
    missing: tuple[str, ...] = ()
    refuses: set[str] = field(default_factory=set[str])

    async def allows(self, permit: Permit) -> bool:
        self.permits.append(permit)
        return permit.permission not in self.revoked

    async def administers(self, principal: str, *, tenant: str) -> bool:
        return principal == "boss"

    def did(self, what: str, *values: Json) -> dict[str, str]:
        """One effect."""
        if what in self.refuses:
            raise RefusedError("the series is closed")
        self.effects.append((what, list(values)))
        return {"id": f"{what[0].upper()}{len(self.effects)}"}

    @property
    def done(self) -> list[str]:
        """The kinds of effects there are, in order."""
        return [what for what, _ in self.effects]

    def tools(self, **promises: Any) -> tuple[Tool, ...]:
        """The tools of the office; `promises` are more of those of `pay`."""
        return (*self._billing(), *self._writing(), self.pay(**promises), *self._expenses())

    def _billing(self) -> tuple[Tool, ...]:
        def see_draft(asked: Previewing) -> Preview:
            total = int(str(asked.arguments["amount"])) * 121 // 100
            said = SAYS[asked.language]["draft"].format(what="logo", total=total)
            return Preview(summary=said, makes={"total": total}, questions=self.missing)

        def see_issue(asked: Previewing) -> Preview:
            total = (asked.facts("draft") or {}).get("total")
            return Preview(summary=SAYS[asked.language]["issue"].format(total=total))

        @tool(
            effect="reversible",
            makes_type="draft",
            undo="delete",
            undo_arguments={"id": "{result.id}"},
            preview=see_draft,
            look_alike=lambda asked: self.similar,
            permission="draft.create",
        )
        async def draft(amount: int) -> dict[str, str]:
            return self.did("draft", amount)

        @tool(effect="irreversible", permission="draft.delete")
        async def delete(id: str) -> dict[str, str]:
            return self.did("delete", id)

        @tool(
            effect="irreversible",
            risk="confirm",
            accepts={"draft": "draft"},
            makes_type="invoice",
            preview=see_issue,
            permission="invoice.issue",
        )
        async def issue(draft: str) -> dict[str, str]:
            return self.did("issue", draft)

        return draft, delete, issue

    def _writing(self) -> tuple[Tool, ...]:
        @tool(effect="irreversible", risk="confirm", accepts={"invoice": "invoice"})
        async def mail(invoice: str, to: str) -> dict[str, str]:
            return self.did("mail", invoice, to)

        @tool(
            effect="irreversible",
            risk="confirm",
            accepts={"invoice": "invoice"},
            permission="reminder.schedule",
        )
        async def remind(invoice: str, days: int) -> dict[str, str]:
            return self.did("remind", invoice, days)

        return mail, remind

    def pay(self, **promises: Any) -> Tool:
        """A payment that needs a yes, whose price is a fact of its preview."""

        def see_pay(asked: Previewing) -> Preview:
            cents = self.price_cents
            return Preview(
                summary=f"Pay {asked.arguments['to']} {cents} cents",
                cost_cents=cents,
                basis={"price": cents, "seen_at": asked.now},
            )

        kept: dict[str, Any] = {
            "effect": "irreversible",
            "risk": "confirm",
            "preview": see_pay,
            "freshness": "tolerate",
            "tolerates": ("seen_at",),
            **promises,
        }

        @tool(**kept)
        async def pay(to: str, cents: int) -> dict[str, str]:
            return self.did("pay", to, cents)

        return pay

    def _expenses(self) -> tuple[Tool, ...]:
        def several(arguments: Mapping[str, Json], origin: str) -> Risk:
            ids = arguments["ids"]
            assert isinstance(ids, list)
            return Risk.CONFIRM if len(ids) > 1 else Risk.SAFE

        def see_bulk(asked: Previewing) -> Preview:
            ids = asked.arguments["ids"]
            assert isinstance(ids, list)
            typed = (str(len(ids)), "DELETE", "BORRAR") if len(ids) >= 3 else ()
            return Preview(summary=f"Delete {len(ids)} expenses", typed=typed)

        @tool(
            effect="irreversible",
            risk=several,
            preview=see_bulk,
        )
        async def delete_expenses(ids: list[str]) -> dict[str, str]:
            return self.did("expenses", *ids)

        return (delete_expenses,)


@dataclass
class OfficeRig(Rig):
    """A rig in whose world there is an office, which is asked for permissions too."""

    office: Office = field(default_factory=Office)
    secrets: tuple[bytes, ...] = (b"s3cret",)

    async def _agent(self, script: "Script[T]", tools: tuple[Tool, ...], worker: str) -> T:
        process = current_process()
        points = Points(die=process.crash, kill=self.kill_at)
        store = FaultyStore(self.base.open_again(), points=points, alive=process.require_alive)
        rt = assemble(
            self.wrap(store),
            tools=register(tools or self.office.tools()),
            settings=self.settings,
            clock=process.clock,
            ids=self.world.ids,
            worker=worker,
            lease=self.lease,
            permissions=self.office,
            secrets=self.secrets,
        )
        async with rt:
            return await script(rt)

    def records(self, kind: Kind, session: str = "main") -> list[Record]:
        """Return the records of a kind of a session, as the store has them now."""

        async def read() -> list[Record]:
            store = self.base.open_again()
            every = await store.session_records(tenant="default", session=session)
            return [one for one in every if one.kind is kind]

        return self._outside(read)

    def bodies(self) -> str:
        """Return every byte of the journal, as text."""

        async def read() -> str:
            entries = await self.base.open_again().journal(limit=10_000)
            return "\n".join((entry.body or b"").decode() for entry in entries)

        return self._outside(read)

    def problems(self) -> list[str]:
        """Return the problems in the event rows of approvals, in order."""

        async def read() -> list[str]:
            entries = await self.base.open_again().journal(limit=10_000)
            refused = [entry for entry in entries if entry.event == "approval_refused"]
            return [json.loads(entry.body or b"{}")["problem"] for entry in refused]

        return self._outside(read)


async def proposed(
    rt: Runtime,
    calls: Sequence[Wanted] = (PAY,),
    *,
    said: str = "please",
    principal: str = "ana",
    **how: Any,
) -> PlanValue:
    """Say something, and propose calls for it."""
    origin = how.pop("origin", "user")
    session = how.pop("session", "main")
    tenant = how.pop("tenant", "default")
    heard = await rt.receive(
        said, principal=principal, origin=origin, session=session, tenant=tenant
    )
    return await rt.propose(calls, ask=heard.ask("act"), origin=origin, **how)


async def proposed_at_once(rt: Runtime, *plans: Sequence[Wanted]) -> list[PlanValue]:
    """Propose several plans for one input, so that their questions are open beside each other."""
    heard = await rt.receive("please", principal="ana")
    return [await rt.propose(each, ask=heard.ask(f"act{n}")) for n, each in enumerate(plans)]


async def at_rest(rt: Runtime, plan: str) -> PlanValue:
    """Return a plan once it is at rest."""
    for _ in range(1000):
        value = await rt.plan(plan)
        if value.state not in OPEN:
            return value
        await asyncio.sleep(0.1)  # virtual time
    raise AssertionError(f"{plan} did not come to rest")


def token_of(value: PlanValue) -> str:
    """Return the token that was handed out with a plan."""
    assert value.offer is not None
    assert value.offer.token
    return value.offer.token


def paying(to: str, cents: int = 100) -> Wanted:
    """Return a payment to somebody."""
    return replace(PAY, arguments={"to": to, "cents": cents})


async def refused(asked: Awaitable[object]) -> ApprovalError:
    """Wait for a verb that is to be refused, and return its error."""
    with pytest.raises(ApprovalError) as caught:
        await asked
    return caught.value
