"""The tools of a chaos run: tables and refunds, each call with a mark that the ledgers keep.

Two ways of finding out are under test: the restaurant shuts a key when it is asked to, the payments
service cannot, and refuses what is older than `REFUSES_AFTER_S` instead.
"""

from typing import TypedDict

from landed.testing.worlds.payments import Payments
from landed.testing.worlds.restaurant import Restaurant
from landed.tools.http import HttpTool
from landed.tools.reading import Reading

DEADLINE_S = 1.5
REFUSES_AFTER_S = 6.0
RESTAURANT = Restaurant(strict=True)
REFUSALS = (400, 401, 403, 404, 405, 406, 412, 413, 414, 415, 422)  # A 429 is a wait here.


class _Kept(TypedDict):
    keyed: str
    compares_payload: bool
    deadline_s: float
    refusals: tuple[int, ...]


_KEPT: _Kept = {
    "keyed": "Idempotency-Key",
    "compares_payload": True,
    "deadline_s": DEADLINE_S,
    "refusals": REFUSALS,
}


def payments(orders: tuple[str, ...], cents: int) -> Payments:
    """Return the settings of the payments service: for each order this was paid."""
    return Payments(
        orders=dict.fromkeys(orders, cents), can_close=False, refuses_after_s=REFUSES_AFTER_S
    )


def chaos_tools(*, restaurant: str, payments: str) -> tuple[HttpTool, ...]:
    """Return the tools for the two services at these URLs."""
    return (
        *_tables(restaurant),
        HttpTool(
            name="refund_order",
            effect="irreversible",
            url=f"{payments}/refunds",
            arguments={"order": str, "cents": int, "reason": str},
            lookup=f"{payments}/keys/{{key}}",
            reading=Reading(requires=("id",), result="refund", position_header="X-Position"),
            sent_at_header="X-Sent-At",
            service="payments",
            target=("order/{order}",),
            refuses_after_s=REFUSES_AFTER_S,
            **_KEPT,
        ),
    )


def _tables(url: str) -> tuple[HttpTool, ...]:
    reading = Reading(requires=("id",), result="reservation", position_header="X-Position")
    lookup, close = f"{url}/keys/{{key}}", f"{url}/keys/{{key}}/close"
    return (
        HttpTool(
            name="reserve_table",
            effect="reversible",
            url=f"{url}/reservations",
            arguments={"day": str, "time": str, "party": int, "name": str},
            lookup=lookup,
            close=close,
            reading=reading,
            service="restaurant",
            undo="cancel_reservation",
            undo_arguments={"id": "{result.id}"},
            undo_priced_by="cancellation_fee",
            undo_price="fee_cents",
            **_KEPT,
        ),
        HttpTool(
            name="cancel_reservation",
            effect="irreversible",
            url=f"{url}/reservations/{{id}}/cancel",
            arguments={"id": str, "fee_cents": (int, 0)},
            lookup=lookup,
            close=close,
            reading=reading,
            service="restaurant",
            **_KEPT,
        ),
        HttpTool(
            name="cancellation_fee",
            effect="none",
            url=f"GET {url}/reservations/{{id}}/fee",
            arguments={"id": str},
            deadline_s=DEADLINE_S,
        ),
    )
