"""The tools by which an agent reaches the payments service; their contracts are its promises."""

from collections.abc import Mapping

import httpx2

from landed.core.canonical import Json
from landed.core.outcome import Listed, ListedEffect, NoAnswer
from landed.testing.worlds.payments import Payments
from landed.tools.classify import described
from landed.tools.http import HttpTool
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


class RefundTool(HttpTool):
    """Refunds, which can be listed at the address `listed_at`; else a plain `HttpTool`."""

    listed_at = ""
    listed_over: httpx2.AsyncBaseTransport | None = None

    async def list_effects(self, since: float) -> Listed | NoAnswer:
        """Ask the service which refunds it made since then."""
        client = httpx2.AsyncClient(transport=self.listed_over, base_url=self.listed_at)
        try:
            answer = await client.get("/refunds", params={"since": repr(since)})
            refunds: list[Mapping[str, Json]] = answer.raise_for_status().json()["refunds"]
        except (httpx2.HTTPError, ValueError, KeyError) as error:
            return NoAnswer(reason=described(error))
        finally:
            if self.listed_over is None:  # One that was given is closed by whoever made it.
                await client.aclose()
        return Listed(effects=tuple(_listed(one) for one in refunds))


def _listed(refund: Mapping[str, Json]) -> ListedEffect:
    text = f"{refund['cents']} cents of {refund['order']} were refunded ({refund['id']})"
    return ListedEffect(
        id=str(refund["id"]), key=str(refund["key"] or ""), result=dict(refund), says=text
    )


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
    given.update({"list_effects": True, **promises})  # type: ignore[typeddict-item]
    refund = RefundTool(
        name="refund_order",
        description="Refund part or all of what was paid for an order.",
        effect="irreversible",
        url=f"{url}/refunds",
        arguments={"order": str, "cents": int, "reason": (str, "")},
        lookup=f"{url}{reads}/keys/{{key}}" if kept.keyed and kept.can_look_up else "",
        close=f"{url}/keys/{{key}}/close" if kept.keyed and kept.can_close else "",
        read_back=f"{url}{reads}/refunds/{{result.id}}" if can_read_back else "",
        reading=Reading(requires=("id",), result="refund", position_header="X-Position"),
        sent_at_header="X-Sent-At",
        transport=transport,
        **given,
    )
    refund.listed_at, refund.listed_over = url, transport
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
