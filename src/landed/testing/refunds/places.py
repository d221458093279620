"""The payments service of these scenarios: what it holds, and what others do there by hand."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx2

from landed.core.operation import Operation
from landed.core.tool import Tool
from landed.testing.doubts.places import PAYMENTS_URL, Bank, Held
from landed.testing.refunds.tools import money, refund_tools
from landed.testing.sim import World
from landed.testing.worlds.faults import Fault
from landed.testing.worlds.payments import Payments
from landed.testing.worlds.payments.settings import Slip
from landed.testing.worlds.transport import WorldTransport
from landed.tools.dry_run import Layout
from landed.tools.http import HttpTool

ORDER = "4412"
ADDRESS = "Elm 1"
PAID = {ORDER: 48_000}
COMMIT = "/refund-plans/*/commit"
TOKEN = "plan_token"


@dataclass(slots=True, eq=False, kw_only=True)
class PlanBank(Bank):
    """The payments service with plans. `amends` are inputs that somebody sends beside a plan."""

    amends: dict[str, int] = field(default_factory=dict[str, int])
    bare: bool = False
    layout: Layout = field(default_factory=Layout)

    def tools(self) -> list[Tool]:
        """Return the tools; `bare` ones leave the plan and its token to the model."""
        transport: httpx2.AsyncBaseTransport = self._transport()
        if self.amends:
            transport = _Amending(transport, self.amends)
        if self.bare:
            return _bare_tools(transport)
        return list(refund_tools(PAYMENTS_URL, self.settings, transport, self.layout))

    def holds(self) -> Held:
        """Return the refunds, each with the plan it was made by, if any."""
        by = {made: f" by {plan}" for plan, made in self.applied()}
        return [
            {
                "id": one["id"],
                "text": f"{one['id']} {one['order']} {money(one['cents'])}{by.get(one['id'], '')}",
                "order": one["order"],
                "cents": one["cents"],
            }
            for one in self._refunds()
        ]

    def made(self) -> list[str]:
        """Return the refunds that were asked for here; another process makes some without a key."""
        refunds = [f"{one['id']} {one['cents']}" for one in self._refunds() if one["key"]]
        address = self._ledger.address(ORDER)
        return refunds + ([address] if address != ADDRESS else [])

    def made_by(self, operation: Operation) -> str:
        """Return the refund as it was agreed to, or the new address."""
        if "address" in operation.arguments:
            return str(operation.arguments["address"])
        result: Any = operation.result
        cents = operation.arguments.get("cents", result.get("cents"))
        return f"{result.get('id', '')} {cents}"

    def applied(self) -> list[tuple[str, str]]:
        """Return which plan made which refund."""
        rows = self._ledger.sql.execute(
            "SELECT 'PL' || number, result FROM plan WHERE result IS NOT NULL ORDER BY number"
        )
        return [(plan, json.loads(result)["id"]) for plan, result in rows]

    def refund_by_hand(self, cents: int) -> None:
        """Have another process refund some of it, without any key."""
        wanted = {"order": ORDER, "cents": cents, "reason": None}
        with self._ledger.unit():
            made = self._ledger.refund(wanted, None, self.world.clock.now())
        self._ledger.note("refunded", f"another process refunded {cents} cents: {made['id']}")

    def _transport(self) -> WorldTransport:
        return WorldTransport(self._app, self.world.spawn, witness=self._see)


class _Amending(httpx2.AsyncBaseTransport):
    """Puts fresh inputs beside a plan's token, as a client does that thinks it may."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, more: dict[str, int]) -> None:
        self._inner = inner
        self._more = more

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Add to a commit, and pass it on."""
        if not request.url.path.endswith("/commit"):
            return await self._inner.handle_async_request(request)
        body = json.dumps(json.loads(request.content) | self._more).encode()
        headers = {k: v for k, v in request.headers.items() if k != "content-length"}
        amended = httpx2.Request(
            request.method,
            request.url,
            headers=headers,
            content=body,
            extensions=request.extensions,
        )
        return await self._inner.handle_async_request(amended)


def _bare_tools(transport: httpx2.AsyncBaseTransport) -> list[Tool]:
    """Return a dry run and a commit as two tools, as most would make them."""
    plan = HttpTool(
        name="plan_refund",
        effect="none",
        url=f"POST {PAYMENTS_URL}/refund-plans",
        arguments={"order": str, "cents": int},
        transport=transport,
    )
    commit = HttpTool(
        name="commit_refund",
        effect="irreversible",
        url=f"{PAYMENTS_URL}/refund-plans/{{plan_id}}/commit",
        arguments={"plan_id": str, TOKEN: str, "input_fingerprint": str},
        url_in_body=True,
        keyed="Idempotency-Key",
        compares_payload=True,
        transport=transport,
        says={"en": {"confirmed": "refunded {cents} cents of {order} ({id})"}},
    )
    return [plan, commit]


def bank(
    *faults: Fault,
    slips: Sequence[Slip] = (),
    bare: bool = False,
    layout: Layout | None = None,
    **amends: int,
) -> Callable[[World], PlanBank]:
    """Return what makes a payments service with these faults and slips."""

    def made(world: World) -> PlanBank:
        settings = Payments(orders=PAID, addresses={ORDER: ADDRESS}, plan_slips=tuple(slips))
        return PlanBank(
            world=world,
            settings=settings,
            faults=faults,
            bare=bare,
            layout=layout or Layout(),
            amends=amends,
        )

    return made
