"""The tools by which an agent reaches restaurant and group; their contracts are those promises."""

from collections.abc import Mapping
from functools import partial

import httpx2

from landed.core.canonical import Json
from landed.core.plan import Wanted
from landed.testing.worlds.restaurant import Restaurant
from landed.tools.http import HttpTool
from landed.tools.promises import Promises
from landed.tools.reading import Reading

DEADLINE_S = 5.0
RECEIPT_S = 0.05
TABLE = {"day": str, "time": str, "party": int}

BOOKED = {
    "en": {
        "confirmed": "booked {id} ({day} {time} for {party})",
        "held": "{id} ({day} {time} for {party})",
        "unknown": "I may have booked {day} {time} for {party}: {why}",
        "undecided": (
            "I may have booked {day} {time} for {party}: the restaurant never confirmed, and I"
            " can't check"
        ),
        "failed": "no table was booked for {day} {time}: {why}",
        "withdrawn": "{day} {time} for {party} was not asked for: {why}",
        "blocked": "{day} {time} for {party} was not asked for a second time: {by} was not settled",
    },
    "es": {
        "confirmed": "reservada {id} ({day} {time} para {party})",
        "held": "{id} ({day} {time} para {party})",
        "unknown": "puede que haya reservado {day} {time} para {party}: {why}",
        "undecided": (
            "puede que haya reservado {day} {time} para {party}: el restaurante no lo confirmó y"
            " no puedo comprobarlo"
        ),
        "failed": "no se reservó mesa para {day} {time}: {why}",
        "withdrawn": "{day} {time} para {party} no se pidió: {why}",
        "blocked": "{day} {time} para {party} no se pidió una segunda vez: {by} no estaba resuelto",
    },
}

CANCELLED = {
    "en": {
        "confirmed": "cancelled {id} ({day} {time})",
        "unknown": "I may have cancelled {id}: {why}",
        "undecided": (
            "I may have cancelled {id}: the restaurant never confirmed, and I can't check"
        ),
        "failed": "{id} was not cancelled: {why}",
        "withdrawn": "{id} was not cancelled: {why}",
        "blocked": "{id} was not cancelled: {by} was not settled",
    },
    "es": {
        "confirmed": "cancelada {id} ({day} {time})",
        "unknown": "puede que haya cancelado {id}: {why}",
        "undecided": (
            "puede que haya cancelado {id}: el restaurante no lo confirmó y no puedo comprobarlo"
        ),
        "failed": "{id} no se canceló: {why}",
        "withdrawn": "{id} no se canceló: {why}",
        "blocked": "{id} no se canceló: {by} no estaba resuelto",
    },
}
TEXTED = {
    "en": {
        "confirmed": "texted {to} '{text}'",
        "held": "the text to {to} ('{text}')",
        "corrected": "the earlier text had already gone out",
        "assumed": (
            "texted {to} '{text}', though I couldn't confirm it, so I've treated it as sent"
        ),
        "unknown": "I may have texted {to} '{text}': {why}",
        "undecided": "I may have texted {to} '{text}': no receipt came, and I can't check",
        "failed": "{to} was not texted '{text}': {why}",
        "withdrawn": "{to} was not texted '{text}': {why}",
        "blocked": "{to} was not texted '{text}': {by} was not settled",
    },
    "es": {
        "confirmed": "enviado a {to} '{text}'",
        "held": "el mensaje a {to} ('{text}')",
        "corrected": "el mensaje anterior ya había salido",
        "assumed": "enviado a {to} '{text}', aunque no pude confirmarlo: lo doy por enviado",
        "unknown": "puede que haya enviado a {to} '{text}': {why}",
        "undecided": (
            "puede que haya enviado a {to} '{text}': no llegó acuse y no puedo comprobarlo"
        ),
        "failed": "no se envió a {to} '{text}': {why}",
        "withdrawn": "no se envió a {to} '{text}': {why}",
        "blocked": "no se envió a {to} '{text}': {by} no estaba resuelto",
    },
}


def booking_tools(
    url: str,
    restaurant: Restaurant,
    *,
    transport: httpx2.AsyncBaseTransport | None = None,
    **promises: object,
) -> tuple[HttpTool, ...]:
    """Return the tools of the restaurant at `url`: look, reserve, cancel, the price of that.

    The contracts of the last two say what `restaurant` offers; `promises` replace single fields of
    that of `reserve_table`.
    """
    keyed = partial(
        HttpTool,
        lookup=f"{url}/keys/{{key}}" if restaurant.can_look_up else "",
        close=f"{url}/keys/{{key}}/close" if restaurant.can_close else "",
        reading=Reading(requires=("id",), result="reservation", position_header="X-Position"),
        sent_at_header="X-Sent-At",
        transport=transport,
    )
    reserve = keyed(
        name="reserve_table",
        effect="reversible",
        url=f"{url}/reservations",
        arguments=TABLE,
        **_booking(restaurant, promises),
    )
    cancelling: Promises = {**_kept(restaurant), "says": CANCELLED}
    cancel = keyed(
        name="cancel_reservation",
        effect="irreversible",
        url=f"{url}/reservations/{{id}}/cancel",
        arguments={"id": str, "fee_cents": (int, 0)},
        **cancelling,
    )
    return _availability(url, transport), reserve, cancel, _fee(url, transport)


def _booking(restaurant: Restaurant, promises: Mapping[str, object]) -> Promises:
    """What `reserve_table` promises: that a table is given back, at a price that can be asked."""
    booking: Promises = {
        **_kept(restaurant),
        "undo": "cancel_reservation",
        "undo_arguments": {"id": "{result.id}"},
        "undo_priced_by": "cancellation_fee",
        "undo_price": "fee_cents",
        "says": BOOKED,
    }
    booking.update(promises)  # type: ignore[typeddict-item]
    return booking


def _fee(url: str, transport: httpx2.AsyncBaseTransport | None) -> HttpTool:
    return HttpTool(
        name="cancellation_fee",
        effect="none",
        url=f"GET {url}/reservations/{{id}}/fee",
        arguments={"id": str},
        transport=transport,
        deadline_s=DEADLINE_S,
        says={"en": {"answered": "cancelling {id} costs {fee_cents} cents"}},
    )


def _availability(url: str, transport: httpx2.AsyncBaseTransport | None) -> HttpTool:
    return HttpTool(
        name="check_availability",
        effect="none",
        url=f"GET {url}/availability",
        arguments=TABLE,
        transport=transport,
        deadline_s=DEADLINE_S,
        says={"en": {"answered": "{day} {time} for {party}: available {available}"}},
    )


def _kept(restaurant: Restaurant) -> Promises:
    """What the restaurant promises about every request that carries a key."""
    return {
        "service": "restaurant",
        "keyed": "Idempotency-Key",
        "key_form": "{session}:{operation}",
        "compares_payload": restaurant.strict,
        "retention_s": restaurant.retention_s,
        "refuses_after_s": restaurant.refuses_after_s,
        "deadline_s": DEADLINE_S,
    }


def text_tools(
    url: str, *, transport: httpx2.AsyncBaseTransport | None = None, **promises: object
) -> tuple[HttpTool, ...]:
    """Return `text_group` for a text service at `url`; `promises` replace single fields.

    Nobody can ask what became of a text: a change of mind waits `RECEIPT_S` for the receipt, and
    without one the text is treated as sent.
    """
    kept: Promises = {
        "service": "texts",
        "on_interrupt": "wait",
        "wait_s": RECEIPT_S,
        "assume_after_s": RECEIPT_S,
        "correct": "text_group",
        "correct_arguments": {"text": "Change of plan: {text}"},
        "deadline_s": DEADLINE_S,
        "says": TEXTED,
    }
    kept.update(promises)  # type: ignore[typeddict-item]
    text = HttpTool(
        name="text_group",
        effect="irreversible",
        url=f"{url}/texts",
        arguments={"to": str, "text": str},
        reading=Reading(requires=("id",), position_header="X-Position"),
        transport=transport,
        **kept,
    )
    return (text,)


def plan_for(intent: Mapping[str, Json]) -> tuple[Wanted, ...]:
    """Make the calls of an intent: look, reserve, and tell whoever is to be told.

    A pure function, as `landed.open(plan_for=…)` wants it: the runtime compares what it returns
    before and after a change of mind. `also` is a second table, wished for beside the first.
    """
    also = intent.get("also")
    tables = [intent, {**intent, **also}] if isinstance(also, Mapping) else [intent]
    calls = [call for table in tables for call in _table_calls(table)]
    to = intent.get("tell")
    if to:
        text = f"table for {intent['party']}, {intent['day']} {intent['time']}"
        calls.append(Wanted(tool="text_group", arguments={"to": to, "text": text}))
    return tuple(calls)


def _table_calls(intent: Mapping[str, Json]) -> tuple[Wanted, ...]:
    table = {name: intent[name] for name in ("day", "time", "party")}
    return (
        Wanted(tool="check_availability", arguments=table),
        Wanted(tool="reserve_table", arguments=table),
    )
