"""Every sentence about a plan: its preview, its question, its progress and how it ended.

They are made of plain values, such as the summaries of its steps: no id and no token is in any of
them unless a summary holds one. An ending says what was done, what was not and why, and what can
be done next; there is one for every state in which a plan comes to rest, in each language. What is
in doubt is never said to have failed, and nobody is invited to try it again.

A summary comes from a tool, so a customer's name may be in it. It is put on one line, bounded, and
without the characters that turn the direction of what follows or that a terminal obeys: none can
pass for another step.
"""

from collections.abc import Mapping, Sequence

from landed.core.preview import SUMMARY_MAX
from landed.core.sentences import NOTHING_DONE, sentence

# What stands in a preview beside its steps, and before a step that is being done.
PREVIEW: Mapping[str, Mapping[str, str]] = {
    "en": {
        "similar": "Possible duplicate: {what}",
        "progress": "Step {step} of {of}: {what}",
        "undoing": "It is being undone.",
    },
    "es": {
        "similar": "Posible duplicado: {what}",
        "progress": "Paso {step} de {of}: {what}",
        "undoing": "Se está deshaciendo.",
    },
}

# The three things that can be asked about a plan.
ASKED: Mapping[str, Mapping[str, str]] = {
    "en": {
        "confirm": "Shall I do it?",
        "retry": "Shall I retry?",
        "undo": "Shall I undo it?",
    },
    "es": {
        "confirm": "¿Lo hago?",
        "retry": "¿Lo reintento?",
        "undo": "¿Lo deshago?",
    },
}

# The same where a plain yes is not enough.
TYPED: Mapping[str, Mapping[str, str]] = {
    "en": {
        "confirm": "Type {words} to go ahead.",
        "retry": "Type {words} to retry.",
        "undo": "Type {words} to undo it.",
    },
    "es": {
        "confirm": "Escribe {words} para seguir adelante.",
        "retry": "Escribe {words} para reintentarlo.",
        "undo": "Escribe {words} para deshacerlo.",
    },
}

NUMBERED: Mapping[str, str] = {
    "en": "Answer “yes {number}” or “no {number}”.",
    "es": "Responde «sí {number}» o «no {number}».",
}
OR: Mapping[str, str] = {"en": " or ", "es": " o "}

# Words to type that are shown in the other language only; they count in both.
_ELSEWHERE: Mapping[str, frozenset[str]] = {
    "en": frozenset({"BORRAR"}),
    "es": frozenset({"DELETE"}),
}

# How an ending begins. Fields: count and of (steps), why.
BEGINS: Mapping[str, Mapping[str, str]] = {
    "en": {
        "done": "",
        "partial": "",
        "in_doubt": "",
        "stopped": "Stopped: {count} of {of} done.",
        "declined": "You said no.",
        "expired": "Nobody answered in time.",
        "expired/answer": "That was neither a yes nor a no, so the question is closed.",
        "expired/why": "The question is closed: {why}.",
        "abandoned": "I have dropped it before it began.",
        "superseded": "Something else was wanted meanwhile.",
        "invalid": "Something is missing.",
        "undone": "",
        "undo_partial": "Not all of it could be undone.",
    },
    "es": {
        "done": "",
        "partial": "",
        "in_doubt": "",
        "stopped": "Parado: {count} de {of} hechos.",
        "declined": "Has dicho que no.",
        "expired": "Nadie respondió a tiempo.",
        "expired/answer": "Eso no era ni un sí ni un no, así que la pregunta queda cerrada.",
        "expired/why": "La pregunta queda cerrada: {why}.",
        "abandoned": "Lo he dejado antes de empezar.",
        "superseded": "Entretanto se quiso otra cosa.",
        "invalid": "Falta algo.",
        "undone": "",
        "undo_partial": "No se pudo deshacer por completo.",
    },
}

# Its parts, in the order in which they are told; a part without steps is left out. Fields: what.
PARTS: Mapping[str, Mapping[str, str]] = {
    "en": {
        "done": "Done: {what}.",
        "failed": "Couldn't: {what}.",
        "unknown": "Not known yet: {what}.",
        "not_done": "Not done: {what}.",
        "not_done/partial": "Not done because of that: {what}.",
        "not_done/in_doubt": "Not done before that is known: {what}.",
        "done/undo": "Undone: {what}.",
        "failed/undo": "Couldn't undo: {what}.",
        "not_done/undo": "Not undone: {what}.",
    },
    "es": {
        "done": "Hecho: {what}.",
        "failed": "No se pudo: {what}.",
        "unknown": "Aún no se sabe: {what}.",
        "not_done": "Sin hacer: {what}.",
        "not_done/partial": "Sin hacer por eso: {what}.",
        "not_done/in_doubt": "Sin hacer hasta que se sepa: {what}.",
        "done/undo": "Deshecho: {what}.",
        "failed/undo": "No se pudo deshacer: {what}.",
        "not_done/undo": "Sin deshacer: {what}.",
    },
}

# What can be done next where something can, in this order; a question stands last.
CAN: Mapping[str, Mapping[str, str]] = {
    "en": {
        "correct": "What was done is final; it can be corrected, so tell me if it is wrong.",
        "undo": "It can be undone: tell me if you want that.",
        "retry": ASKED["en"]["retry"],
    },
    "es": {
        "correct": "Lo hecho es definitivo; se puede corregir, así que dime si está mal.",
        "undo": "Se puede deshacer: dime si lo quieres.",
        "retry": ASKED["es"]["retry"],
    },
}

# The same where nothing was offered.
NEXT: Mapping[str, Mapping[str, str]] = {
    "en": {
        "done": "There is nothing left to do.",
        "partial": "It stays like that: I do nothing more about it by myself.",
        "in_doubt": "I am finding out and will tell you; until then there is nothing to do.",
        "stopped": "I do nothing more of it unless you ask me to.",
        "declined": "Tell me if you want it after all.",
        "expired": "Ask me for it if you still want it, and I will show it as it is by then.",
        "expired/answer": "Ask me for it if you still want it.",
        "expired/why": "Ask me for it if you still want it, and I will show it as it is now.",
        "abandoned": "Tell me if you want it after all.",
        "superseded": "What is wanted now is told by itself.",
        "invalid": "Tell me, and I will show you all of it again.",
        "undone": "There is nothing left to do.",
        "undo_partial": "What is not undone stays: somebody has to look at it.",
    },
    "es": {
        "done": "No queda nada por hacer.",
        "partial": "Queda así: no hago nada más por mi cuenta.",
        "in_doubt": "Lo estoy averiguando y te lo diré; hasta entonces no hay nada que hacer.",
        "stopped": "No hago nada más de ello si no me lo pides.",
        "declined": "Dime si al final lo quieres.",
        "expired": "Pídemelo si aún lo quieres, y te lo muestro como esté entonces.",
        "expired/answer": "Pídemelo si aún lo quieres.",
        "expired/why": "Pídemelo si aún lo quieres, y te lo muestro como está ahora.",
        "abandoned": "Dime si al final lo quieres.",
        "superseded": "Lo que se quiere ahora se cuenta aparte.",
        "invalid": "Dímelo, y te lo muestro entero otra vez.",
        "undone": "No queda nada por hacer.",
        "undo_partial": "Lo que no se ha deshecho se queda: alguien tiene que mirarlo.",
    },
}

# How an ending begins for a model, and what follows from it. Fields as in `BEGINS`.
TO_MODEL: Mapping[str, tuple[str, str]] = {
    "done": ("The plan is done.", "Do not propose it again."),
    "partial": (
        "The plan ended at the first step that had no effect.",
        "Whether to retry is the person's to say; do not propose any of it on your own.",
    ),
    "in_doubt": (
        "One step may have happened.",
        "It is being found out; do not call or propose any of it until that is known.",
    ),
    "stopped": (
        "The person stopped the plan: {count} of {of} done.",
        "Do not do it on your own: only if the person asks for it.",
    ),
    "declined": ("The person said no.", "Do not propose it again unless the person asks for it."),
    "expired": (
        "The time to answer is over; nobody said no.",
        "Its figures may have moved: if it is still wanted, propose it anew, for a new preview.",
    ),
    "expired/answer": (
        "The person answered with something else, so the question is closed; it was no yes.",
        "Read what they said; if it is still wanted, propose it anew, as they want it now.",
    ),
    "expired/why": (
        "The question is closed, and nobody said no: {why}.",
        "Its figures may have moved: if it is still wanted, propose it anew, for a new preview.",
    ),
    "abandoned": ("The plan was dropped before it began.", "It may be proposed anew, if wanted."),
    "superseded": (
        "Something else was wanted meanwhile; another plan took over.",
        "Do not propose what was not done of it.",
    ),
    "invalid": (
        "The plan is not valid.",
        "Assume nothing: ask the person for what is missing, then propose the whole plan.",
    ),
    "undone": (
        "The person had the plan undone.",
        "Do not do it on your own: only if the person asks for it.",
    ),
    "undo_partial": (
        "The person had the plan undone, and not all of it could be.",
        "Neither undo nor redo anything on your own; say what is and what is not undone.",
    ),
}

# A plan that has not come to rest. Fields: count and of (steps).
GOING_ON: Mapping[str, str] = {
    "en": "I am on it: {count} of {of} done so far.",
    "es": "Estoy en ello: {count} de {of} hechos por ahora.",
}

# A yes that was not taken, by what was wrong with it, and what can be done where nothing is asked.
NOT_TAKEN: Mapping[str, Mapping[str, str]] = {
    "en": {
        "expired": "Your answer came too late, so nothing was done because of it.",
        "tampered": "What is stored is not what you were shown, so nothing was done.",
        "": "The plan had gone on without your answer, so nothing was done because of it.",
        "next": "Ask me for it if you still want it.",
    },
    "es": {
        "expired": "Tu respuesta ha llegado tarde, así que no he hecho nada por ella.",
        "tampered": "Lo guardado no es lo que se te mostró, así que no he hecho nada.",
        "": "El plan había seguido sin tu respuesta, así que no he hecho nada por ella.",
        "next": "Pídemelo si aún lo quieres.",
    },
}

# Instead of `partial`, where facts moved since the preview: a retry of it is of no use.
CHANGED_TO_MODEL = (
    "The plan ended before a step whose figures have changed; that step had no effect.",
    "What is wanted now may be proposed, with the new figures: it is shown before it runs.",
)

# States in which a plan comes to rest: each has an ending.
ENDINGS = tuple(state for state in TO_MODEL if "/" not in state)
OFFERS = tuple(CAN["en"])

# Why a question closed without a yes or a no: the two reasons that have sentences of their own.
BY_THE_CLOCK = "nobody answered in time"
BY_OTHER_WORDS = "something else was answered"
NOT_COMMITTED = "nobody committed it in time"

_EXPIRIES = {"": "expired", BY_THE_CLOCK: "expired", BY_OTHER_WORDS: "expired/answer"}
_BEFORE_A_RUN = ("declined", "expired", "abandoned", "invalid")
_UNDOING = ("undone", "undo_partial")
# Directions, and what a terminal obeys; blanks of every kind are left for `split`.
_DIRECTIONS = (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x061C, 0x200E, 0x200F)
_CONTROLS = (*range(0x09), *range(0x0E, 0x1C), *range(0x7F, 0x85), *range(0x86, 0xA0))
_UNSEEN = dict.fromkeys((*_DIRECTIONS, *_CONTROLS))


def preview_text(
    summaries: Sequence[str], *, similar: Sequence[str] = (), language: str = "en"
) -> str:
    """Return the one summary of a whole plan: its steps by number, then what looks the same.

    One line each, in the words of the tools' own previews; nothing is left out.
    """
    steps = [f"{number}. {_line(each)}" for number, each in enumerate(summaries, 1)]
    alike = [PREVIEW[language]["similar"].format(what=_line(each)) for each in similar]
    return "\n".join((*steps, *alike))


def plan_question(
    kind: str, *, typed: Sequence[str] = (), number: int | None = None, language: str = "en"
) -> str:
    """Return the question about a plan: `kind` is confirm, retry or undo.

    With `typed` it says which words to type. With `number` it says how to answer this question and
    no other; words that have to be typed name it already.
    """
    if typed:
        shown = [word for word in typed if word not in _ELSEWHERE[language]] or list(typed)
        words = OR[language].join(filter(None, (", ".join(shown[:-1]), shown[-1])))
        return TYPED[language][kind].format(words=words)
    asked = ASKED[language][kind]
    return asked if number is None else f"{asked} {NUMBERED[language].format(number=number)}"


def going_on(*, done: int, of: int, language: str = "en") -> str:
    """Return how far a plan that is being carried out has come."""
    return GOING_ON[language].format(count=done, of=of)


def not_taken(problem: str, *, asked: bool, language: str = "en") -> str:
    """Return why an answer was not taken; `asked` says that it is shown and asked about anew."""
    words = NOT_TAKEN[language]
    said = words.get(problem) or words[""]
    return said if asked else f"{said} {words['next']}"


def progress_line(*, step: int, of: int, what: str, language: str = "en") -> str:
    """Return the line for the step that is being done: "Step 2 of 4: issue the invoice"."""
    return PREVIEW[language]["progress"].format(step=step, of=of, what=_line(what))


def ended(
    state: str,
    *,
    done: Sequence[str] = (),
    failed: str = "",
    why: str = "",
    unknown: Sequence[str] = (),
    not_done: Sequence[str] = (),
    questions: Sequence[str] = (),
    can: Sequence[str] = (),
    language: str = "en",
) -> str:
    """Return how a plan ended, for the person: what was done, what was not, what can be done next.

    `state` is one of `ENDINGS`. `done`, `unknown` and `not_done` are summaries of steps (of undone
    ones after an undo), `failed` the one that definitely had no effect and `why` the reason; a
    `partial` plan may have a reason alone. `expired` is by the clock where `why` is `BY_THE_CLOCK`
    or "", by other words where it is `BY_OTHER_WORDS`; else the reason is told. `questions` are
    what an invalid plan lacks, `can` which of `OFFERS` are open: the one to retry is left out while
    anything is unknown.
    """
    named, count = _ending(state, why), len(done)
    of = count + bool(failed) + len(unknown) + len(not_done)
    begins = BEGINS[language][named].format(count=count, of=of, why=_bare(why))
    told = _parts(state, done, (failed, why), unknown, not_done, language)
    in_doubt = state == "in_doubt" or unknown
    offered = [each for each in OFFERS if each in can and not (in_doubt and each == "retry")]
    follows = [CAN[language][each] for each in offered] or [NEXT[language][named]]
    return " ".join(filter(None, (begins, *told, *map(_ask, questions), *follows)))


def ended_to_model(
    state: str,
    *,
    done: Sequence[str] = (),
    failed: str = "",
    why: str = "",
    unknown: Sequence[str] = (),
    not_done: Sequence[str] = (),
    questions: Sequence[str] = (),
    changed: bool = False,
) -> str:
    """Return how a plan ended, for the model, and what it must not do about it.

    The fields are those of `ended`; `changed` says that facts moved since its preview. What the
    person may do next is no concern of a model's.
    """
    begins, follows = TO_MODEL[_ending(state, why)]
    if changed and state == "partial":
        begins, follows = CHANGED_TO_MODEL
    count = len(done)
    of = count + bool(failed) + len(unknown) + len(not_done)
    begins = begins.format(count=count, of=of, why=_bare(why))
    told = _parts(state, done, (failed, why), unknown, not_done, "en")
    return " ".join(filter(None, (begins, *told, *map(_ask, questions), follows)))


def _ending(state: str, why: str) -> str:
    """Return the name of an ending: an expiry has three."""
    return _EXPIRIES.get(why, "expired/why") if state == "expired" else state


def _parts(
    state: str,
    done: Sequence[str],
    failed: tuple[str, str],
    unknown: Sequence[str],
    not_done: Sequence[str],
    language: str,
) -> list[str]:
    """Return what was done, what could not be, what is not known and what was not begun."""
    if state in _BEFORE_A_RUN:
        return [NOTHING_DONE[language]]
    broke = _with_reason(*failed) if failed[0] or state == "partial" else ""
    if state == "in_doubt":
        # Whatever a caller calls it, and whatever a service said about it: nobody knows.
        broke, unknown = "", (failed[0], *unknown)
    steps = {"done": done, "failed": (broke,), "unknown": unknown, "not_done": not_done}
    told = [(part, _list(these)) for part, these in steps.items()]
    lines = [_part(part, state, language).format(what=what) for part, what in told if what]
    return lines or [NOTHING_DONE[language]]


def _part(part: str, state: str, language: str) -> str:
    kind = "undo" if state in _UNDOING else state
    return PARTS[language].get(f"{part}/{kind}") or PARTS[language][part]


def _with_reason(what: str, why: str) -> str:
    return f"{_bare(what)} ({_bare(why)})" if what and why else what or why


def _list(steps: Sequence[str]) -> str:
    return "; ".join(filter(None, map(_bare, steps)))


def _ask(question: str) -> str:
    return sentence(_line(question))


def _bare(text: str) -> str:
    return _line(text).rstrip(".")


def _line(text: str) -> str:
    line = " ".join(text.translate(_UNSEEN).split())
    return line if len(line) <= SUMMARY_MAX else line[: SUMMARY_MAX - 1] + "…"
