"""The tools by which an agent reaches the payments service; their contracts are its promises."""

import httpx2

from landed.testing.worlds.payments import Payments
from landed.tools.http import HttpTool
from landed.tools.listing import Listing
from landed.tools.promises import Promises
from landed.tools.reading import Reading

DEADLINE_S = 5.0

WORDS = {
    "en": {
        "confirmed": "refunded {cents} cents of {order} ({id})",
        "accepted": "the refund of {cents} cents of {order} was taken, and is still to land",
        "unknown": "I may have refunded {cents} cents of {order}: {why}",
        "undecided": "I may have refunded {cents} cents of {order}, and nobody could tell me",
        "failed": "{order} was not refunded: {why}",
    },
    "es": {
        "confirmed": "devueltos {cents} céntimos de {order} ({id})",
        "accepted": "la devolución de {cents} céntimos de {order} está aceptada, y no hecha aún",
        "unknown": "puede que haya devuelto {cents} céntimos de {order}: {why}",
        "undecided": "puede que haya devuelto {cents} céntimos de {order}, y nadie supo decírmelo",
        "failed": "{order} no se devolvió: {why}",
    },
}


def payment_tools(
    url: str,
    settings: Payments | None = None,
    *,
    transport: httpx2.AsyncBaseTransport | None = None,
    reads: str = "",
    **promises: object,
) -> tuple[HttpTool, ...]:
    """Return the tools of the payments service at `url`: what is left of an order, and a refund.

    The contract of `refund_order` says what `settings` offer; `promises` replace single fields of
    it, or add some (`read_back=True` has its result read at `/refunds/ID`). `reads` is where its
    questions go: "" for the service itself, `/replica` for its replica.
    """
    kept = settings or Payments()
    can_read_back = promises.pop("read_back", False)
    given: Promises = {**_promised(kept)}
    given.update(promises)  # type: ignore[typeddict-item]
    refund = HttpTool(
        name="refund_order",
        description="Refund part or all of what was paid for an order.",
        effect="irreversible",
        url=f"{url}/refunds",
        arguments={"order": str, "cents": int, "reason": (str, "")},
        lookup=f"{url}{reads}/keys/{{key}}" if kept.keyed and kept.can_look_up else "",
        close=f"{url}/keys/{{key}}/close" if kept.keyed and kept.can_close else "",
        read_back=f"{url}{reads}/refunds/{{result.id}}" if can_read_back else "",
        list_effects=Listing(
            url=f"{url}/refunds?since={{since}}",
            items="refunds",
            key="key",
            says="{cents} cents of {order} were refunded ({id})",
        ),
        reading=Reading(requires=("id",), result="refund", position_header="X-Position"),
        sent_at_header="X-Sent-At",
        transport=transport,
        **given,
    )
    return _left(url, transport), refund


def _promised(kept: Payments) -> Promises:
    promised: Promises = {
        "service": "payments",
        "target": ("order/{order}",),
        "deadline_s": DEADLINE_S,
        "refuses_after_s": kept.refuses_after_s,
        "says": WORDS,
    }
    if kept.keyed:
        promised["keyed"] = "Idempotency-Key"
        promised["compares_payload"] = kept.strict
        promised["retention_s"] = kept.retention_s
    return promised


def _left(url: str, transport: httpx2.AsyncBaseTransport | None) -> HttpTool:
    return HttpTool(
        name="order_total",
        description="Say what was paid for an order, and how much of it is left to refund.",
        effect="none",
        url=f"GET {url}/orders/{{order}}",
        arguments={"order": str},
        transport=transport,
        deadline_s=DEADLINE_S,
        says={"en": {"answered": "{left_cents} of {cents} cents of {order} are left to refund"}},
    )
