"""Sentences that a model may end with, each over a ledger, and what the claim check has to say."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from landed.agent.claims.check import Effect, Wrong, effects_of
from landed.core.contract import Contract
from landed.core.contract import Effect as Kind
from landed.core.erased import erased, erased_arguments
from landed.core.operation import Evidence, Operation, Source, State
from tests.core.build import SENT_AT, operation

WORDS = {
    "en": {"confirmed": "booked {id} ({day} {time} for {party})", "held": "{id} ({day} {time})"},
    "es": {
        "confirmed": "reservada {id} ({day} {time} para {party})",
        "held": "{id} ({day} {time})",
    },
}
TOOLS: Mapping[str, Contract] = {
    "reserve_table": Contract(effect=Kind.REVERSIBLE, undo="cancel_table", says=WORDS),
    "cancel_table": Contract(effect=Kind.IRREVERSIBLE),
    "refund_order": Contract(effect=Kind.IRREVERSIBLE),
    "text_group": Contract(effect=Kind.IRREVERSIBLE),
    "issue_invoice": Contract(effect=Kind.IRREVERSIBLE),
    "frobnicate_widget": Contract(effect=Kind.REVERSIBLE),
}
ARGUMENTS: Mapping[str, Mapping[str, Any]] = {
    "reserve_table": {"day": "Fri", "time": "19:00", "party": 4},
    "cancel_table": {"id": "R9"},
    "refund_order": {"order": "A17", "amount_cents": 48000},
    "text_group": {"text": "We eat at seven", "to": "friends"},
    "issue_invoice": {"draft": "D3", "due_on": "2026-12-04"},
    "frobnicate_widget": {"widget": "W7"},
}
RESULTS: Mapping[str, Mapping[str, Any]] = {
    "reserve_table": {"id": "R9"},
    "cancel_table": {"id": "C1"},
    "refund_order": {"id": "RF1"},
    "text_group": {"id": "M1"},
    "issue_invoice": {"id": "F2026-12", "total": "1.234,50 €"},
    "frobnicate_widget": {"id": "W7"},
}
_LANDED = (State.CONFIRMED, State.ACCEPTED)


def an_operation(tool: str, state: State = State.CONFIRMED, **fields: Any) -> Operation:
    """An operation of a tool, as it stands in a state; its id is the tool's, unless given."""
    says = Evidence(source=Source.RUNTIME, at=SENT_AT, says="no answer within 30 s")
    given: dict[str, Any] = {
        "id": f"op-{tool}",
        "tool": tool,
        "contract": tool,
        "arguments": ARGUMENTS[tool],
        "result": RESULTS[tool] if state in _LANDED else None,
        "evidence": (says,),
    }
    return operation(state, **{**given, **fields})


def ledger(*operations: Operation) -> tuple[Effect, ...]:
    """The effects of operations of these tools."""
    return effects_of(operations, TOOLS)


def one(tool: str, state: State = State.CONFIRMED, **fields: Any) -> tuple[Effect, ...]:
    """A ledger of one operation."""
    return ledger(an_operation(tool, state, **fields))


UNDOING = an_operation("cancel_table", undoes="op-reserve_table")
BOOKED = an_operation("reserve_table")
# Taken back by a tool whose name says nothing of it.
RELEASING = an_operation("frobnicate_widget", undoes="op-reserve_table", arguments={}, result=None)
SATURDAY = replace(
    BOOKED,
    id="op-2",
    arguments={**ARGUMENTS["reserve_table"], "day": "Sat"},
    result={"id": "R10"},
)

LEDGERS: Mapping[str, tuple[Effect, ...]] = {
    "nothing": (),
    "booked": one("reserve_table"),
    "accepted": one("reserve_table", State.ACCEPTED),
    "unknown": one("reserve_table", State.UNKNOWN),
    "undecided": one("reserve_table", State.UNDECIDED),
    "in flight": one("reserve_table", State.SENT),
    "failed": one("reserve_table", State.FAILED),
    "withdrawn": one("reserve_table", State.WITHDRAWN),
    "recorded": one("reserve_table", State.RECORDED),
    "partly": one("reserve_table", complete=False),
    "undone": ledger(BOOKED, UNDOING),
    "released": ledger(BOOKED, RELEASING),
    "two": ledger(BOOKED, SATURDAY),
    "one of two": ledger(replace(BOOKED, state=State.FAILED, result=None), SATURDAY),
    "refunded": one("refund_order"),
    "texted": one("text_group"),
    "text assumed": one("text_group", State.ASSUMED),
    "text accepted": one("text_group", State.ACCEPTED),
    "text unknown": one("text_group", State.UNKNOWN),
    "booked, text unknown": ledger(BOOKED, an_operation("text_group", State.UNKNOWN)),
    "issued": one("issue_invoice"),
    "erased": one(
        "refund_order",
        arguments=erased_arguments(ARGUMENTS["refund_order"], at=SENT_AT),
        result=erased(RESULTS["refund_order"], at=SENT_AT),
    ),
}

# The ledger ▸ the sentence ▸ what is wrong with it.
UNSUPPORTED: tuple[tuple[str, str, Wrong], ...] = (
    # No such operation.
    ("nothing", "I refunded 480.", Wrong.ABSENT),
    ("nothing", "Refunded 480.", Wrong.ABSENT),
    ("nothing", "I've already refunded the 480 EUR to your card.", Wrong.ABSENT),
    ("nothing", "The table has been booked.", Wrong.ABSENT),
    ("nothing", "Your table is booked for Friday.", Wrong.ABSENT),
    ("nothing", "Your booking is confirmed!", Wrong.ABSENT),
    ("nothing", "I made the reservation.", Wrong.ABSENT),
    ("nothing", "Table booked for Friday at 19:00.", Wrong.ABSENT),
    ("nothing", "Done: refund issued.", Wrong.ABSENT),
    ("nothing", "I can confirm that your table is booked.", Wrong.ABSENT),
    ("nothing", "We have frobnicated the widget.", Wrong.ABSENT),
    ("booked", "I've emailed the accountant.", Wrong.ABSENT),
    ("booked", "I booked the table and texted the group.", Wrong.ABSENT),
    ("booked", "I found a table, booked it, and then paid the deposit.", Wrong.ABSENT),
    ("booked", "The table is booked, and the deposit was paid.", Wrong.ABSENT),
    ("nothing", "He reservado una mesa para el viernes.", Wrong.ABSENT),
    ("nothing", "Reservado.", Wrong.ABSENT),
    ("nothing", "La mesa está reservada.", Wrong.ABSENT),
    ("nothing", "Se ha reservado la mesa.", Wrong.ABSENT),
    ("nothing", "Ya te he reembolsado los 480 €.", Wrong.ABSENT),
    ("nothing", "Reembolsé 480 € a tu tarjeta.", Wrong.ABSENT),
    ("nothing", "Mesa reservada para cuatro.", Wrong.ABSENT),
    ("nothing", "Tu reserva está confirmada.", Wrong.ABSENT),
    ("nothing", "Se canceló el pedido.", Wrong.ABSENT),
    ("nothing", "Pagué el depósito.", Wrong.ABSENT),
    ("nothing", "Notifiqué al grupo.", Wrong.ABSENT),
    ("booked", "He enviado el correo a la gestoría.", Wrong.ABSENT),
    ("booked", "He reservado la mesa y he avisado al grupo.", Wrong.ABSENT),
    ("nothing", "Good news: the refund has gone through.", Wrong.ABSENT),
    ("nothing", "Payment of 120 EUR sent.", Wrong.ABSENT),
    # Other figures.
    ("refunded", "I refunded 580.", Wrong.FIGURES),
    ("refunded", "I refunded 480 for order B17.", Wrong.FIGURES),
    ("booked", "I booked R10.", Wrong.FIGURES),
    ("booked", "I booked a table on Saturday.", Wrong.FIGURES),
    ("booked", "The table is booked for 20:00.", Wrong.FIGURES),
    ("booked", "Booked for 8 pm.", Wrong.FIGURES),
    ("booked", "Booked for 7 am.", Wrong.FIGURES),
    ("booked", "I booked a table for 6.", Wrong.FIGURES),
    ("two", "I booked a table for 10.", Wrong.FIGURES),
    ("refunded", "I refunded 480 (operation op-9).", Wrong.FIGURES),
    ("issued", "I issued F2026-13.", Wrong.FIGURES),
    ("issued", "I issued the invoice, due 2026-12-05.", Wrong.FIGURES),
    ("refunded", "He reembolsado 580,00 €.", Wrong.FIGURES),
    ("booked", "He reservado la mesa para el sábado.", Wrong.FIGURES),
    # In another state.
    ("unknown", "Your table is booked.", Wrong.UNKNOWN),
    ("unknown", "I have booked a table on Friday at 19:00.", Wrong.UNKNOWN),
    ("undecided", "The table was booked.", Wrong.UNKNOWN),
    ("in flight", "Booked!", Wrong.UNKNOWN),
    ("booked, text unknown", "I booked the table and texted the group.", Wrong.UNKNOWN),
    ("unknown", "He reservado la mesa.", Wrong.UNKNOWN),
    ("failed", "I booked the table.", Wrong.FAILED),
    ("failed", "La mesa ha quedado reservada.", Wrong.FAILED),
    ("withdrawn", "Your table has been reserved.", Wrong.WITHDRAWN),
    ("recorded", "I've booked it.", Wrong.UNSENT),
    ("accepted", "Your table is booked.", Wrong.ACCEPTED),
    ("text assumed", "I texted the group.", Wrong.ASSUMED),
    ("partly", "I booked the table.", Wrong.PARTLY),
    ("undone", "Your table is booked.", Wrong.UNDONE),
    ("one of two", "I booked a table on Friday.", Wrong.FAILED),
    ("two", "I booked R9 and R11.", Wrong.FIGURES),
    ("failed", "I may have sent a text, but I booked the table.", Wrong.FAILED),
    ("released", "I cancelled R8.", Wrong.FIGURES),
    # Told as not done.
    ("booked", "The booking failed.", Wrong.LANDED),
    ("one of two", "Nothing was booked.", Wrong.LANDED),
    ("booked", "I booked nothing.", Wrong.LANDED),
    ("booked", "I did not book a table.", Wrong.LANDED),
    ("booked", "I couldn't book the table.", Wrong.LANDED),
    ("booked", "Nothing was booked.", Wrong.LANDED),
    ("booked", "No table was booked.", Wrong.LANDED),
    ("booked", "Nothing was changed.", Wrong.LANDED),
    ("texted", "I haven't sent the text.", Wrong.LANDED),
    ("texted", "The message was not sent.", Wrong.LANDED),
    ("texted", "No se ha enviado nada.", Wrong.LANDED),
    ("booked", "No he reservado la mesa.", Wrong.LANDED),
    ("booked", "No pude reservar la mesa.", Wrong.LANDED),
    ("text unknown", "I did not send the text.", Wrong.DOUBTFUL),
    ("unknown", "The table was not booked.", Wrong.DOUBTFUL),
    ("unknown", "No se reservó la mesa.", Wrong.DOUBTFUL),
)

# The ledger ▸ a sentence that is as it says, or says nothing that could be compared.
SUPPORTED: tuple[tuple[str, str], ...] = (
    ("refunded", "I refunded 480."),
    ("refunded", "Refunded 480.00 for order A17."),
    ("refunded", "Te he reembolsado 480,00 €."),
    ("refunded", "I refunded €480 (RF1), which takes 5 days."),
    ("refunded", "The refund of 480 was issued."),
    ("refunded", "I refunded 480 (operation op-refund_order)."),
    ("erased", "I refunded 480."),
    ("booked", "Your table is booked: R9, Friday at 7 pm for 4."),
    ("booked", "I booked a table for 4 people on Friday at 19:00."),
    ("booked", "He reservado la mesa para el viernes a las 19:00."),
    ("booked", "Reserva R9 confirmada."),
    ("booked", "I have booked 1 table."),
    ("booked", "I booked Friday instead of Saturday."),
    ("booked", "I booked R9 but I did not text anybody."),
    ("booked", "I did not book another table."),
    ("booked", "I haven't booked anything else."),
    ("booked", "You asked about R12, so I booked R9."),
    ("issued", "I issued F2026-12 over 1,234.50, due on Friday."),
    ("issued", "La factura F2026-12 ha sido emitida por 1.234,50 €."),
    ("issued", "I issued it, due 4/12/2026."),
    ("two", "I booked two tables, R9 on Friday and R10 on Saturday."),
    ("two", "I booked 2 tables."),
    ("one of two", "I could not book Friday; I booked Saturday (R10)."),
    ("one of two", "I couldn't get Friday. Saturday is booked."),
    ("undone", "I booked R9 and then cancelled it."),
    ("undone", "The table R9 was cancelled."),
    ("undone", "I cancelled the reservation R9."),
    ("text accepted", "I texted the group."),
    ("text assumed", "I texted the group, but nobody could confirm it: not confirmed."),
    (
        "text unknown",
        "I sent the text. I have had no answer, so I do not know whether it went out.",
    ),
    ("released", "I cancelled R9."),
    ("two", "I booked 2 tables on Friday and Saturday."),
    ("refunded", "In step 2 I refunded 480."),
    ("refunded", "I refunded 480, 950 in total."),
    ("refunded", "As in step 7, I refunded 480 of the 600 for A17."),
    ("booked", "Instead of R12 I booked R9."),
    ("unknown", "The table was not confirmed."),
    ("booked", "The first booking attempt failed, the second is R9."),
    ("failed", "The booking failed."),
    ("unknown", "I sent the booking request."),
    # As a report and a preview put it, in more than the words of one operation.
    ("failed", "Couldn't: table reserved for Fri 19:00 (the table was booked already)."),
    ("undone", "Undone: booked R9 (Fri 19:00 for 4); table reserved."),
    ("nothing", "1. refund 200.00 of 4412: 0.00 refunded before, 200.00 after"),
    ("nothing", "booked_table(day=Fri) is the call; put(what=a) is the other."),
    ("nothing", "You still hold R1 (R2, which replaces it, returned the same thing)."),
    ("booked", "I booked R9 at 19:00, not at 20:00."),
    ("refunded", "I looked up order A17 (paid 480.00 on 3 November) and refunded it."),
    ("unknown", "I sent the reservation, and I do not know whether it arrived."),
    ("nothing", "I booked nothing."),
    ("nothing", "Nunca he reservado esa mesa."),
    # Rules.
    ("nothing", "An invoice is emailed automatically."),
    ("nothing", "Refunds are issued within 5 days."),
    # Questions, futures, offers, conditions.
    ("nothing", "Shall I book a table?"),
    ("nothing", "Was the table booked?"),
    ("nothing", "I'll refund 480."),
    ("nothing", "I will have booked it by tomorrow."),
    ("nothing", "Once the table is booked, I will text the group."),
    ("nothing", "If it was booked, it can be cancelled."),
    ("nothing", "The table can be booked until Friday."),
    ("nothing", "I would have booked it, but I may not."),
    ("nothing", "Would you like it booked?"),
    ("nothing", "Voy a reservar la mesa."),
    ("nothing", "¿Reservo la mesa?"),
    ("nothing", "Reservaré la mesa cuando me digas."),
    ("nothing", "Si se ha cancelado, te aviso."),
    # Hedges.
    ("unknown", "It may have been booked."),
    ("unknown", "I might have booked it; I am finding out."),
    ("unknown", "I do not know whether the table was booked."),
    ("unknown", "The table was probably booked."),
    ("unknown", "Puede que se haya reservado la mesa."),
    ("unknown", "No sé si se ha reservado la mesa."),
    ("unknown", "I can't confirm that the table is booked."),
    # What others said and did, and what was read.
    ("nothing", "You said that I refunded 480."),
    ("nothing", "You booked a table last week."),
    ("nothing", "The airline cancelled your flight."),
    ("nothing", "The flight was cancelled by the airline."),
    ("nothing", 'You wrote: "I refunded 480 and cancelled the order".'),
    ("nothing", "> I refunded 480."),
    ("nothing", "```\nrefunded 480\n```"),
    ("nothing", "I checked the calendar and found a free table."),
    ("nothing", "According to the records the order was paid."),
    ("nothing", "The invoice was paid last week."),
    ("nothing", "Friday is fully booked."),
    ("nothing", "Booked tables can be cancelled."),
    ("nothing", "I've created a summary of the options below."),
    ("nothing", "El restaurante ha cancelado la reserva."),
    # Told rightly as not done.
    ("failed", "I could not book the table."),
    ("failed", "No table was booked."),
    ("failed", "The table was not booked: they are full."),
    ("failed", "No pude reservar la mesa."),
    ("withdrawn", "Nothing was booked."),
    ("recorded", "I have not booked it yet."),
    ("nothing", "Nothing was changed."),
    ("nothing", "I did not send anything."),
    ("nothing", "No se ha enviado nada."),
)
