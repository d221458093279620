"""Every sentence `landed` says, in one place: for the model and for the person, from one record.

A contract's own words (`says`) replace the fact; what follows from a state (do not call it again,
this id can be looked up) is said here for every tool alike. No sentence for something unknown says
that it failed, or invites a retry.
"""

from collections.abc import Mapping

from landed.core.canonical import Json
from landed.core.contract import Contract
from landed.core.erased import erased_on
from landed.core.incarnation import INCARNATION
from landed.core.operation import Operation, State

TEXT_MAX = 2000

# What is so. Fields: the arguments, the result's own fields, and
# tool, call, why, by, operation, key, result.
FACTS: Mapping[str, Mapping[str, str]] = {
    "en": {
        "recorded": "recorded, not sent yet: {call}",
        "blocked": "not sent: {call}; {by} touches the same thing and was not settled",
        "sent": "sent, no answer yet: {call}",
        "confirmed": "done: {call}: {result}",
        "partly": "ended early, it may have run in part: {call}",
        "accepted": "taken by the service, its effect is still to be seen: {call}",
        "assumed": "treated as done, though nobody could confirm it: {call}",
        "unknown": "outcome unknown: {call}: {why}",
        "undecided": "its outcome could not be found out: {call}",
        "failed": "it had no effect: {call}: {why}",
        "withdrawn": "taken back before anything was sent: {call}: {why}",
        "answered": "the answer to {call}: {result}",
        "unanswered": "no answer to {call}: {why}",
        "dropped": "not waited for, and it changes nothing: {call}",
        "held": "{call}",
        "corrected": "it had already happened: {call}",
    },
    "es": {
        "recorded": "anotado, aún sin enviar: {call}",
        "blocked": "no se ha enviado: {call}; {by} toca lo mismo y no estaba resuelto",
        "sent": "enviado, aún sin respuesta: {call}",
        "confirmed": "hecho: {call}: {result}",
        "partly": "cortado antes de terminar, puede haberse hecho en parte: {call}",
        "accepted": "aceptado por el servicio, falta ver su efecto: {call}",
        "assumed": "se da por hecho, aunque nadie pudo confirmarlo: {call}",
        "unknown": "resultado desconocido: {call}: {why}",
        "undecided": "no se pudo averiguar el resultado: {call}",
        "failed": "no tuvo efecto: {call}: {why}",
        "withdrawn": "retirado antes de enviar nada: {call}: {why}",
        "answered": "la respuesta a {call}: {result}",
        "unanswered": "sin respuesta a {call}: {why}",
        "dropped": "no se esperó, y no cambia nada: {call}",
        "held": "{call}",
        "corrected": "ya había ocurrido: {call}",
    },
}

# What follows from it for a model.
TO_MODEL: Mapping[str, str] = {
    "recorded": "Do not call it again; ask for the status of {operation}.",
    "blocked": "Ask for the status of {by}; once that is settled, the same call may be proposed.",
    "sent": "Do not call it again; ask for the status of {operation}.",
    "confirmed": "",
    "partly": "Check what is there before anything is done about it ({operation}).",
    "accepted": "Do not call it again; ask for the status of {operation}.",
    "assumed": "Say that it was not confirmed ({operation}).",
    "unknown": (
        "It may have happened. It is being found out; do not call it again,"
        " ask for the status of {operation}."
    ),
    "undecided": (
        "It may have happened. A person has been asked to find out; do not call it again"
        " ({operation})."
    ),
    "failed": "",
    "withdrawn": "",
    "answered": "",
    "unanswered": "",
    "dropped": "",
}

# What follows from it for the person.
TO_PERSON: Mapping[str, Mapping[str, str]] = {
    "en": {
        "unknown": "I am finding out; its number is {operation}.",
        "undecided": "Somebody has to look; its number is {operation}.",
        "accepted": "I will see whether it arrives.",
        "blocked": "I have done nothing about it.",
    },
    "es": {
        "unknown": "Lo estoy averiguando; su número es {operation}.",
        "undecided": "Alguien tiene que mirarlo; su número es {operation}.",
        "accepted": "Veré si llega.",
        "blocked": "No he hecho nada con ello.",
    },
}

# What is so, and what follows for a model, where no operation stands in the way but a restore.
HELD_UP: Mapping[str, str] = {
    "en": "not sent: {call}; the store was restored, and what was open then is being found out",
    "es": "no se ha enviado: {call}; el almacén se restauró, y se averigua lo que había pendiente",
}
ONCE_RECONCILED = "Once that is over, the same call may be proposed."

CONTRADICTED: Mapping[str, str] = {
    "en": "It was settled as without effect, but a later answer says it happened ({operation}).",
    "es": "Constaba como sin efecto, pero una respuesta posterior dice que se hizo ({operation}).",
}

QUESTIONS: Mapping[str, Mapping[str, str]] = {
    "en": {
        "price": "Taking back {held} costs {price}. Shall I?",
        "free": "Taking back {held} is final. Shall I?",
        "kept": "You still hold {held} ({why}). Shall I take it back?",
    },
    "es": {
        "price": "Deshacer {held} cuesta {price}. ¿Lo hago?",
        "free": "Deshacer {held} es definitivo. ¿Lo hago?",
        "kept": "Sigues teniendo {held} ({why}). ¿Lo deshago?",
    },
}

# How one question is answered while others are open.
NUMBERED: Mapping[str, str] = {
    "en": "Answer “yes {number}” or “no {number}”.",
    "es": "Responde «sí {number}» o «no {number}».",
}

# What a turn's report says beside its operations.
TURN: Mapping[str, Mapping[str, str]] = {
    "en": {
        "kept": "{held} stays as it is",
        "stays": "{held} stays",
        "stays_beside": "{held} stays, beside {beside}",
        "owed": "if it turns out that it happened, tell me and I will take it back",
        "first": "I give up {held} before what replaces it is certain: {why}",
        "not_done": "not done: {calls}",
        "not_yet": "not done before that is known: {calls}",
        "stopping": "it is being stopped; not done: {calls}",
        "superseded": "not done, because something else was wanted meanwhile: {calls}",
    },
    "es": {
        "kept": "{held} queda como está",
        "stays": "{held} se queda",
        "stays_beside": "{held} se queda, junto a {beside}",
        "owed": "si resulta que se hizo, dímelo y lo deshago",
        "first": "suelto {held} antes de tener seguro lo que lo sustituye: {why}",
        "not_done": "sin hacer: {calls}",
        "not_yet": "sin hacer hasta que se sepa: {calls}",
        "stopping": "se está parando; sin hacer: {calls}",
        "superseded": "sin hacer, porque entretanto se quiso otra cosa: {calls}",
    },
}

# A call whose details are gone; nothing that was in them is said any more.
ERASED_CALL: Mapping[str, str] = {
    "en": "{tool} (its details were erased on {day})",
    "es": "{tool} (sus detalles se borraron el {day})",
}

NO_ANSWER_YET: Mapping[str, str] = {
    "en": "nobody answered yet",
    "es": "nadie ha respondido todavía",
}

NOTHING_DONE: Mapping[str, str] = {"en": "Nothing was done.", "es": "No se hizo nada."}


class _Fields(dict[str, object]):
    """The fields of a template; what a service did not say reads as a question mark.

    `erased` is the day on which the details went, "" where they are there.
    """

    erased: str = ""

    def __missing__(self, key: str) -> str:
        return "?"


def qualified(operation: Operation) -> str:
    """Return what is to be added to a step that is done, "" where it is that and no less."""
    said = sayable(operation)
    return said if said in ("partly", "assumed") else ""


def sayable(operation: Operation) -> str:
    """Return which of the states with words of their own an operation is in."""
    if operation.state is State.RECORDED and operation.blocked_by:
        return "blocked"
    if operation.state is State.RESENT:
        return State.UNKNOWN
    if operation.state is State.CONFIRMED and not operation.complete:
        return "partly"
    return operation.state


def fact(operation: Operation, contract: Contract, *, language: str = "en") -> str:
    """Return what is so about an operation, without a full stop and in one line."""
    fields = _fields_of(operation, language)
    if _is_held_up(operation):
        return HELD_UP.get(language, HELD_UP["en"]).format_map(fields)
    return _filled(contract, sayable(operation), fields=fields, language=language)


def _is_held_up(operation: Operation) -> bool:
    """Whether it is not sent because the store was restored and is not reconciled yet."""
    return operation.state is State.RECORDED and operation.blocked_by == INCARNATION


def observed(
    contract: Contract,
    *,
    tool: str,
    arguments: Mapping[str, Json],
    state: str,
    result: Json,
    why: str,
    language: str = "en",
) -> str:
    """Return what is so about a call without an effect."""
    fields = _fields(tool=tool, arguments=arguments, result=result)
    fields["why"] = why
    return _filled(contract, state, fields=fields, language=language)


def to_model(operation: Operation, contract: Contract) -> str:
    """Return the sentence a model is shown for an operation as it stands."""
    state, fields = sayable(operation), _fields_of(operation)
    said = sentence(fact(operation, contract))
    follows = ONCE_RECONCILED if _is_held_up(operation) else TO_MODEL[state]
    if operation.contradicted:
        follows = CONTRADICTED["en"]
    return f"{said} {follows.format_map(fields)}" if follows else said


def to_person(operation: Operation, contract: Contract, *, language: str = "en") -> str:
    """Return the sentence a person is told about an operation as it stands."""
    said = sentence(fact(operation, contract, language=language))
    follows = TO_PERSON[language].get(sayable(operation), "")
    if operation.contradicted:
        follows = CONTRADICTED[language]
    return f"{said} {follows.format_map(_fields_of(operation))}".rstrip()


def corrected(operation: Operation, contract: Contract, *, language: str = "en") -> str:
    """Return the sentence for what had happened already and was put right by another call."""
    if operation.state is State.ASSUMED:
        return to_person(operation, contract, language=language)
    return sentence(
        _filled(contract, "corrected", fields=_fields_of(operation, language), language=language)
    )


def of_turn(name: str, *, language: str = "en", **words: str) -> str:
    """Return one of the sentences of a turn's report."""
    return sentence(TURN[language][name].format(**words))


def call_text(tool: str, arguments: Mapping[str, Json]) -> str:
    """Return a call in one line, as `tool(name=value, …)`, or that its details were erased."""
    if day := erased_on(arguments):
        return ERASED_CALL["en"].format(tool=tool, day=day)
    return f"{tool}({', '.join(f'{name}={_shown(value)}' for name, value in arguments.items())})"


def held(operation: Operation, contract: Contract, *, language: str = "en") -> str:
    """Return what an operation made, as a few words that fit into a sentence."""
    return _filled(contract, "held", fields=_fields_of(operation, language), language=language)


def price_question(
    operation: Operation, contract: Contract, *, price_cents: int, language: str
) -> str:
    """Return the question whether something may be taken back at that price."""
    template = QUESTIONS[language]["price" if price_cents else "free"]
    what = held(operation, contract, language=language)
    return template.format(held=what, price=money(price_cents))


def keep_question(operation: Operation, contract: Contract, *, why: str, language: str) -> str:
    """Return the question whether what is still held is to be taken back."""
    what = held(operation, contract, language=language)
    return QUESTIONS[language]["kept"].format(held=what, why=why)


def with_number(question: str, number: int, *, language: str) -> str:
    """Return a question with how to answer it and no other; as it is where it has no number."""
    return f"{question} {NUMBERED[language].format(number=number)}" if number else question


def money(cents: int) -> str:
    """Return an amount with its two decimals; exact, for it never was a float."""
    return f"{cents // 100}.{cents % 100:02d}"


def sentence(said: str) -> str:
    """Return a fact as a sentence: a capital letter, a full stop, one line, bounded."""
    line = " ".join(said.split())[:TEXT_MAX]
    if not line:
        return ""
    return line[0].upper() + line[1:] + ("" if line[-1] in ".!?" else ".")


def _filled(contract: Contract, state: str, *, fields: _Fields, language: str) -> str:
    words = contract.says.get(language, {})
    default = FACTS[language][state]
    if fields.erased:
        # Its own words speak of what is gone; so does all that stands after the call.
        call = ERASED_CALL[language].format(tool=fields["tool"], day=fields.erased)
        return f"{default.partition('{call}')[0]}{call}".format_map(fields)
    try:
        return (words.get(state) or default).format_map(fields)
    except (ValueError, LookupError, AttributeError, TypeError):
        return default.format_map(fields)  # Words that don't fit the result must hide nothing.


def _fields_of(operation: Operation, language: str = "en") -> _Fields:
    fields = _fields(tool=operation.tool, arguments=operation.arguments, result=operation.result)
    fields["why"] = _why(operation, language)
    fields["by"] = operation.blocked_by
    fields["operation"] = operation.id
    fields["key"] = operation.key
    return fields


def _why(operation: Operation, language: str) -> str:
    """Return why an operation is where it is.

    While nobody knows, the words of a service or an error are left to the evidence: "request
    failed, please try again" is exactly what a model must not read about an unknown outcome.
    """
    if not operation.evidence:
        return NO_ANSWER_YET[language]
    says = operation.evidence[-1].says
    in_doubt = operation.state in (State.SENT, State.RESENT, State.UNKNOWN, State.UNDECIDED)
    return says.split(":", 1)[0] if in_doubt else says


def _fields(*, tool: str, arguments: Mapping[str, Json], result: Json) -> _Fields:
    fields = _Fields(arguments)
    fields.erased = erased_on(arguments)
    if isinstance(result, Mapping):
        fields.update(result)
    fields["tool"] = tool
    fields["call"] = call_text(tool, arguments)
    fields["result"] = _shown(result)
    return fields


def _shown(value: Json) -> str:
    match value:
        case None:
            return "nothing more"
        case bool():
            return "yes" if value else "no"
        case str():
            return value
        case Mapping():
            return ", ".join(f"{name} {_shown(each)}" for name, each in value.items())
        case int() | float():
            return str(value)
        case _:
            return ", ".join(_shown(each) for each in value)
