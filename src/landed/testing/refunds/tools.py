"""The tools by which an agent refunds in two phases, and what a person is shown of a plan."""

from collections.abc import Mapping

import httpx2

from landed.core.canonical import Json
from landed.core.preview import Preview, Previewing
from landed.core.tool import Tool
from landed.testing.paying import DEADLINE_S
from landed.testing.worlds.payments import Payments
from landed.tools.dry_run import DryRun, Layout, instant
from landed.tools.http import HttpTool
from landed.tools.two_phase import TwoPhaseTool

WORDS = {
    "en": {
        "confirmed": "refunded {cents} cents of {order} ({id})",
        "unknown": "I may have refunded {cents} cents of {order}: {why}",
        "failed": "those {cents} cents of {order} were not sent: {why}",
    }
}
LOOKED = {"en": {"answered": "{order} was shipped to {address}"}}


def refund_tools(
    url: str,
    settings: Payments | None = None,
    transport: httpx2.AsyncBaseTransport | None = None,
    layout: Layout | None = None,
) -> tuple[Tool, ...]:
    """Return the tools at `url`: where an order went, the customer's address, and a refund."""
    kept = settings or Payments()
    shipping = HttpTool(
        name="look_up_shipping",
        description="Say whether an order was shipped, and where to.",
        effect="none",
        url=f"GET {url}/orders/{{order}}/shipping",
        arguments={"order": str},
        transport=transport,
        deadline_s=DEADLINE_S,
        says=LOOKED,
    )
    address = HttpTool(
        name="set_address",
        description="Note where the customer of an order lives now.",
        effect="irreversible",
        url=f"{url}/orders/{{order}}/address",
        arguments={"order": str, "address": str},
        service="payments",
        target=("order/{order}",),
        transport=transport,
        deadline_s=DEADLINE_S,
    )
    return shipping, address, refund_tool(url, kept, transport, layout)


def refund_tool(
    url: str,
    settings: Payments,
    transport: httpx2.AsyncBaseTransport | None = None,
    layout: Layout | None = None,
) -> TwoPhaseTool:
    """Return the refund, planned at the payments service at `url` and committed there."""
    plan = f"{url}/refund-plans/{{plan_id}}"
    return TwoPhaseTool(
        name="refund_order",
        description="Refund part or all of what was paid for an order.",
        effect="irreversible",
        risk="confirm",
        dry_run=f"{url}/refund-plans",
        commit=f"{plan}/commit",
        plan=plan,
        abandon=f"{plan}/abandon" if settings.can_abandon else "",
        arguments={"order": str, "cents": int},
        shows=shown,
        layout=layout,
        service="payments",
        target=("order/{order}",),
        retention_s=settings.retention_s,
        transport=transport,
        says=WORDS,
    )


def shown(plan: DryRun, asked: Previewing) -> Preview:
    """Return what a person is shown of a plan: its figures, its id and its time; no token."""
    (action,) = plan.actions
    order = str(action["target"]).removeprefix("order/")
    was, then = _cents(action, "from"), _cents(action, "to")
    return Preview(
        summary=(
            f"refund {money(then - was)} of {order}: {money(was)} refunded before,"
            f" {money(then)} after (plan {plan.id}, good until {instant(plan.expires_at)})"
        )
    )


def money(cents: int) -> str:
    """Return an amount as people write it."""
    return f"{cents / 100:.2f}"


def _cents(action: Mapping[str, Json], name: str) -> int:
    value = action[name]
    assert isinstance(value, int)
    return value
