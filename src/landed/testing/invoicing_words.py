"""What is said about invoices, in English and Spanish: beforehand, and of what became of a call."""

from collections.abc import Mapping

from landed.testing.worlds.invoicing.figures import written, written_day

Words = Mapping[str, Mapping[str, str]]

# Around the four phrases of a tool: what was done, what is held by it, what may have been done, and
# what was not done.
_AROUND: Words = {
    "en": {
        "confirmed": "{done}",
        "held": "{held}",
        "unknown": "I may have {may}: {{why}}",
        "undecided": "I may have {may}: it was never confirmed, and I can't check",
        "failed": "{not_done}: {{why}}",
        "withdrawn": "{not_done}: {{why}}",
        "blocked": "{not_done}: {{by}} was not settled",
        "corrected": "{held} was there already",
    },
    "es": {
        "confirmed": "{done}",
        "held": "{held}",
        "unknown": "puede que haya {may}: {{why}}",
        "undecided": "puede que haya {may}: nadie lo confirmó y no puedo comprobarlo",
        "failed": "{not_done}: {{why}}",
        "withdrawn": "{not_done}: {{why}}",
        "blocked": "{not_done}: {{by}} no estaba resuelto",
        "corrected": "{held}: ya estaba",
    },
}

# Per tool and language: done, held, may, not done.
_PHRASES: Mapping[str, Mapping[str, tuple[str, str, str, str]]] = {
    "create_draft": {
        "en": (
            "drafted {id} for {customer}, {total}",
            "draft {id} for {customer}, {total}",
            "drafted the invoice",
            "nothing was drafted",
        ),
        "es": (
            "borrador {id} para {customer}, {total_es}",
            "el borrador {id} para {customer}, {total_es}",
            "hecho el borrador",
            "no se hizo el borrador",
        ),
    },
    "delete_draft": {
        "en": (
            "deleted draft {id} for {customer}, {total}",
            "the deletion of draft {draft}",
            "deleted draft {draft}",
            "draft {draft} was not deleted",
        ),
        "es": (
            "borrado el borrador {id} para {customer}, {total_es}",
            "el borrado del borrador {draft}",
            "borrado el borrador {draft}",
            "no se borró el borrador {draft}",
        ),
    },
    "issue_invoice": {
        "en": (
            "issued {id} to {customer}, {total}, due {due}",
            "invoice {id} to {customer}, {total}",
            "issued the invoice of draft {draft}",
            "draft {draft} was not issued",
        ),
        "es": (
            "emitida {id} a {customer}, {total_es}, vence el {due}",
            "la factura {id} a {customer}, {total_es}",
            "emitido la factura del borrador {draft}",
            "no se emitió el borrador {draft}",
        ),
    },
    "void_invoice": {
        "en": (
            "voided {rectifies} by the rectifying invoice {id}, {total}",
            "the rectifying invoice {id}, {total}",
            "voided {invoice}",
            "{invoice} was not voided",
        ),
        "es": (
            "anulada {rectifies} con la rectificativa {id}, {total_es}",
            "la rectificativa {id}, {total_es}",
            "anulado {invoice}",
            "no se anuló {invoice}",
        ),
    },
    "record_payment": {
        "en": (
            "recorded {total} of {invoice} as paid ({id})",
            "payment {id}, {total} of {invoice}",
            "recorded a payment of {invoice}",
            "no payment of {invoice} was recorded",
        ),
        "es": (
            "cobro {id} anotado: {total_es} de {invoice}",
            "el cobro {id}, {total_es} de {invoice}",
            "anotado un cobro de {invoice}",
            "no se anotó ningún cobro de {invoice}",
        ),
    },
    "delete_payment": {
        "en": (
            "deleted payment {id}, {total} of {invoice}",
            "the deletion of payment {payment}",
            "deleted payment {payment}",
            "payment {payment} was not deleted",
        ),
        "es": (
            "borrado el cobro {id}, {total_es} de {invoice}",
            "el borrado del cobro {payment}",
            "borrado el cobro {payment}",
            "no se borró el cobro {payment}",
        ),
    },
    "schedule_reminder": {
        "en": (
            "{customer} will be reminded of {invoice} on {day}",
            "the reminder of {invoice} on {day}",
            "scheduled a reminder of {invoice}",
            "no reminder of {invoice} was scheduled",
        ),
        "es": (
            "recordatorio de {invoice} a {customer} el {day}",
            "el recordatorio de {invoice} del {day}",
            "programado un recordatorio de {invoice}",
            "no se programó ningún recordatorio de {invoice}",
        ),
    },
    "cancel_reminder": {
        "en": (
            "cancelled the reminder of {invoice} on {day}",
            "the cancellation of reminder {reminder}",
            "cancelled reminder {reminder}",
            "reminder {reminder} was not cancelled",
        ),
        "es": (
            "cancelado el recordatorio de {invoice} del {day}",
            "la cancelación del recordatorio {reminder}",
            "cancelado el recordatorio {reminder}",
            "no se canceló el recordatorio {reminder}",
        ),
    },
    "create_expense": {
        "en": (
            "recorded the expense {id}: {what}, {total}",
            "expense {id} ({what}, {total})",
            "recorded the expense {what}",
            "the expense {what} was not recorded",
        ),
        "es": (
            "anotado el gasto {id}: {what}, {total_es}",
            "el gasto {id} ({what}, {total_es})",
            "anotado el gasto {what}",
            "no se anotó el gasto {what}",
        ),
    },
    "delete_expenses": {
        "en": (
            "deleted {count} of the expenses, {total}: {what}",
            "the deletion of {what}, {total}",
            "deleted the expenses",
            "no expense was deleted",
        ),
        "es": (
            "gastos borrados: {count}, {total_es}: {what}",
            "el borrado de {what}, {total_es}",
            "borrado los gastos",
            "no se borró ningún gasto",
        ),
    },
    "collect_bulk": {
        "en": (
            "collected {total} by {id}, invoices: {count}",
            "collection {id}, {total}",
            "collected the invoices",
            "nothing was collected",
        ),
        "es": (
            "remesa {id} cobrada: {total_es}, facturas: {count}",
            "la remesa {id}, {total_es}",
            "cobrado las facturas",
            "no se cobró nada",
        ),
    },
    "return_collection": {
        "en": (
            "returned collection {id}, {total}",
            "the return of collection {collection}",
            "returned collection {collection}",
            "collection {collection} was not returned",
        ),
        "es": (
            "devuelta la remesa {id}, {total_es}",
            "la devolución de la remesa {collection}",
            "devuelto la remesa {collection}",
            "no se devolvió la remesa {collection}",
        ),
    },
    "switch_auto_send": {
        "en": (
            "automatic sending is {now}",
            "automatic sending {now}",
            "switched automatic sending",
            "automatic sending stays as it was",
        ),
        "es": (
            "envío automático: {now}",
            "el envío automático ({now})",
            "cambiado el envío automático",
            "el envío automático queda como estaba",
        ),
    },
}


def says(tool: str) -> Words:
    """Return the words of a tool's contract."""
    return {language: _said(language, *phrases) for language, phrases in _PHRASES[tool].items()}


def _said(language: str, done: str, held: str, may: str, not_done: str) -> Mapping[str, str]:
    phrases = {"done": done, "held": held, "may": may, "not_done": not_done}
    return {state: around.format_map(phrases) for state, around in _AROUND[language].items()}


# What a step will do.
_SUMMARIES: Words = {
    "en": {
        "find_contact": "Find {customer}",
        "create_draft": "Draft an invoice for {customer}: {net} + VAT {vat} = {total}",
        "delete_draft": "Delete draft {id} for {customer}, {total}",
        "issue_invoice": (
            "Issue the draft for {customer}, {total}, with the next number of the series, due {due}"
        ),
        "send_invoice": "Email the invoice of {total}, due {due}, to {customer} at {email}",
        "void_invoice": (
            "Void {id} for {customer}, {total}, by a rectifying invoice of {back} with the next"
            " number of its series; nothing is deleted"
        ),
        "record_payment": "Record {paid} as paid by {customer}",
        "record_payment_and_tell": (
            "Record {paid} as paid by {customer}, and tell them at {email}; that is final"
        ),
        "delete_payment": "Delete payment {id}, {total} of {invoice}",
        "schedule_reminder": (
            "Remind {customer} at {email} on {day}, {days_before} days before the {total} are due"
            " ({due})"
        ),
        "cancel_reminder": "Cancel the reminder of {invoice} on {day}",
        "create_expense": "Record the expense {what}, {total}",
        "delete_expenses": "Delete expenses for good, {count}, {total} in all: {list}",
        "collect_bulk": "Collect {total} from {count} invoices: {list}",
        "return_collection": "Return collection {id}, {total} from {count} invoices",
        "switch_auto_send_on": "Send every invoice by itself from now on",
        "switch_auto_send_off": "Send no invoice by itself any more",
    },
    "es": {
        "find_contact": "Buscar a {customer}",
        "create_draft": "Borrador de factura para {customer}: {net} + IVA {vat} = {total}",
        "delete_draft": "Borrar el borrador {id} para {customer}, {total}",
        "issue_invoice": (
            "Emitir el borrador para {customer}, {total}, con el siguiente número de la serie,"
            " vence el {due}"
        ),
        "send_invoice": (
            "Enviar la factura de {total}, que vence el {due}, a {customer} a {email}"
        ),
        "void_invoice": (
            "Anular {id} de {customer}, {total}, con una rectificativa de {back} con el siguiente"
            " número de su serie; no se borra nada"
        ),
        "record_payment": "Anotar {paid} como cobrado de {customer}",
        "record_payment_and_tell": (
            "Anotar {paid} como cobrado de {customer} y avisarle a {email}; eso es definitivo"
        ),
        "delete_payment": "Borrar el cobro {id}, {total} de {invoice}",
        "schedule_reminder": (
            "Recordar a {customer} a {email} el {day}, {days_before} días antes de que venzan los"
            " {total} ({due})"
        ),
        "cancel_reminder": "Cancelar el recordatorio de {invoice} del {day}",
        "create_expense": "Anotar el gasto {what}, {total}",
        "delete_expenses": "Borrar gastos para siempre, {count}, en total {total}: {list}",
        "collect_bulk": "Cobrar {total} de {count} facturas: {list}",
        "return_collection": "Devolver la remesa {id}, {total} de {count} facturas",
        "switch_auto_send_on": "Enviar cada factura automáticamente desde ahora",
        "switch_auto_send_off": "No enviar ya ninguna factura automáticamente",
    },
}

# What has to be known first.
_QUESTIONS: Words = {
    "en": {
        "email": "What is the email address of {name}?",
        "tax_id": "What is the tax id of {name}?",
        "terms_days": "How many days has {name} to pay? Without that there is no due date.",
        "other_email": "The email address of {name} is {email}, not {to}. Which one is right?",
        "contact": "Which contact? Look it up first, and name its id.",
        "kind": "{id} is no {wanted} ({is_one}). Which {wanted} is meant?",
    },
    "es": {
        "email": "¿Cuál es el correo electrónico de {name}?",
        "tax_id": "¿Cuál es el NIF de {name}?",
        "terms_days": "¿Cuántos días tiene {name} para pagar? Sin eso no hay vencimiento.",
        "other_email": "El correo electrónico de {name} es {email}, no {to}. ¿Cuál es el bueno?",
        "contact": "¿Qué contacto? Búscalo primero y di su id.",
        "kind": "{id} no es lo que hace falta aquí. ¿Qué id es?",
    },
}

# What the service refuses, by its code, in Spanish; in English its own words are kept.
_REFUSALS: Mapping[str, str] = {
    "draft-issued": "Ese borrador ya está emitido.",
    "draft-deleted": "Ese borrador está borrado.",
    "invoice-voided": "Esa factura está anulada.",
    "invoice-rectifying": "Esa factura es una rectificativa.",
    "invoice-paid": "De esa factura ya se ha cobrado algo.",
    "not-open": "De esa factura no queda tanto por cobrar.",
    "payment-told": "Ese cobro ya se comunicó al cliente o es parte de una remesa.",
    "payment-deleted": "Ese cobro ya está borrado.",
    "reminder-cancelled": "Ese recordatorio ya está cancelado.",
    "expense-deleted": "Ese gasto ya está borrado.",
    "collection-returned": "Esa remesa ya está devuelta.",
    "day-past": "Ese día ya ha pasado.",
}

_ALIKE: Mapping[str, str] = {
    "en": "{id} for {customer}, {total}, made in the last ten minutes",
    "es": "{id} para {customer}, {total}, de los últimos diez minutos",
}

# What an invoice is called that has no number yet.
NEW: Mapping[str, str] = {"en": "the new invoice", "es": "la factura nueva"}

# Fields that hold cents or days, and as what they are shown.
_CENTS = {
    "net_cents": "net",
    "vat_cents": "vat",
    "total_cents": "total",
    "back_cents": "back",
    "paid_now_cents": "paid",
}
_DAYS = {"due_on": "due", "remind_on": "day"}


def summary(name: str, fields: Mapping[str, object], *, language: str) -> str:
    """Return what a step will do; amounts and days in `fields` are written as the language does."""
    return _SUMMARIES[language][name].format_map(_shown(fields, language))


def question(about: str, *, language: str, **words: object) -> str:
    """Return the question for what is missing (`email`, `tax_id`, `terms_days`, …)."""
    return _QUESTIONS[language][about].format_map(words)


def refused(code: str, detail: str, *, language: str) -> str:
    """Return what the service refuses, as a person reads it."""
    return _REFUSALS.get(code, f"No se puede: {detail}") if language == "es" else detail


def alike(fields: Mapping[str, object], *, language: str) -> str:
    """Return what is there already and looks the same."""
    return _ALIKE[language].format_map(_shown(fields, language))


class _Shown(dict[str, object]):
    """The fields of a summary; what is not known yet reads as a question mark."""

    def __missing__(self, key: str) -> str:
        return "?"


def _shown(fields: Mapping[str, object], language: str) -> _Shown:
    shown = _Shown({name: value for name, value in fields.items() if value is not None})
    for name, short in _CENTS.items():
        if isinstance(cents := fields.get(name), int):
            shown[short] = written(cents, language)
    for name, short in _DAYS.items():
        if isinstance(day := fields.get(name), str):
            shown[short] = written_day(day)
    return shown
