"""The claim check: does what a model says at the end agree with what the records say?

    effects = effects_of(operations, contracts)
    for claim in unsupported(text, effects, tools=tools):
        …

It is a heuristic, and proves nothing. It reads forms and words, English and Spanish, and knows no
meaning: it catches the common misreport ("I refunded 480" with no such operation, "it is booked"
while nobody knows), and misses what is put in another way. What counts is the report, which is
composed from the records; a sentence that stands there is never flagged. Where a reading is in
doubt it says nothing, for a false alarm teaches everybody to look away.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain, islice

from landed.agent.claims.facts import Named, facts_of
from landed.agent.claims.reading import Told, sentences_of, told_by, told_in
from landed.agent.claims.vocabulary import Vocabulary, vocabulary_of
from landed.agent.claims.words import BACK, WORK
from landed.core.contract import LANGUAGES, Contract
from landed.core.erased import erased_on
from landed.core.operation import Operation, State
from landed.core.sentences import (
    NOTHING_DONE,
    corrected,
    fact,
    held,
    sayable,
    sentence,
    to_model,
    to_person,
)

READ_CHARS = 100_000
"""How much of a text is read; what comes after is not judged."""

CLAIMS = 20
"""How many claims are returned at most."""

TOLD = 1_000
"""How many tellings of a text are compared with the records."""

SHOWN_CHARS = 500
"""How much of a sentence a claim shows."""


class Wrong(StrEnum):
    """What is wrong with a claim."""

    ABSENT = "absent"
    FIGURES = "figures"
    UNKNOWN = "unknown"
    ACCEPTED = "accepted"
    ASSUMED = "assumed"
    PARTLY = "partly"
    UNSENT = "unsent"
    FAILED = "failed"
    WITHDRAWN = "withdrawn"
    UNDONE = "undone"
    LANDED = "landed"
    DOUBTFUL = "doubtful"


# What is said of it. Fields: verb, operation, named (the figures that are not in the records).
TO_PERSON: Mapping[str, Mapping[Wrong, str]] = {
    "en": {
        Wrong.ABSENT: "Nothing of the kind (“{verb}”) is in the records.",
        Wrong.FIGURES: "The records of it do not have {named}.",
        Wrong.UNKNOWN: "It is not known whether that happened ({operation}).",
        Wrong.ACCEPTED: "The service took it; that it happened is still to be seen ({operation}).",
        Wrong.ASSUMED: "Nobody could confirm that; it is only treated as done ({operation}).",
        Wrong.PARTLY: "It ended early and may have been done in part ({operation}).",
        Wrong.UNSENT: "It is recorded, and nothing was sent ({operation}).",
        Wrong.FAILED: "It had no effect ({operation}).",
        Wrong.WITHDRAWN: "It was taken back before anything was sent ({operation}).",
        Wrong.UNDONE: "It was undone since ({operation}).",
        Wrong.LANDED: "It did happen ({operation}).",
        Wrong.DOUBTFUL: "It may have happened; that is not known ({operation}).",
    },
    "es": {
        Wrong.ABSENT: "Nada parecido («{verb}») consta en los registros.",
        Wrong.FIGURES: "En sus registros no consta {named}.",
        Wrong.UNKNOWN: "No se sabe si eso se hizo ({operation}).",
        Wrong.ACCEPTED: "El servicio lo aceptó; falta ver si se hizo ({operation}).",
        Wrong.ASSUMED: "Nadie pudo confirmarlo; solo se da por hecho ({operation}).",
        Wrong.PARTLY: "Se cortó antes de terminar y puede haberse hecho en parte ({operation}).",
        Wrong.UNSENT: "Está anotado y no se ha enviado nada ({operation}).",
        Wrong.FAILED: "No tuvo efecto ({operation}).",
        Wrong.WITHDRAWN: "Se retiró antes de enviar nada ({operation}).",
        Wrong.UNDONE: "Se deshizo después ({operation}).",
        Wrong.LANDED: "Sí se hizo ({operation}).",
        Wrong.DOUBTFUL: "Puede haberse hecho; no se sabe ({operation}).",
    },
}

TO_MODEL = "You said: “{sentence}” {wrong} {records}"
NOT_SAID = "Say only what the records say."
RECORDED = "The records say: {says}"

# Which states of an operation contradict that it is told as done; `confirmed` does not.
_NOT_DONE: Mapping[str, Wrong] = {
    "recorded": Wrong.UNSENT,
    "blocked": Wrong.UNSENT,
    "sent": Wrong.UNKNOWN,
    "unknown": Wrong.UNKNOWN,
    "undecided": Wrong.UNKNOWN,
    "accepted": Wrong.ACCEPTED,
    "assumed": Wrong.ASSUMED,
    "partly": Wrong.PARTLY,
    "failed": Wrong.FAILED,
    "withdrawn": Wrong.WITHDRAWN,
    "undone": Wrong.UNDONE,
}
# Which contradict that it is told as not done.
_DONE: Mapping[str, Wrong] = {
    "confirmed": Wrong.LANDED,
    "accepted": Wrong.LANDED,
    "partly": Wrong.LANDED,
    "sent": Wrong.DOUBTFUL,
    "unknown": Wrong.DOUBTFUL,
    "undecided": Wrong.DOUBTFUL,
}
# What a doubt that is said beside it makes good.
_SAID_TO_BE_OPEN = frozenset({Wrong.UNKNOWN, Wrong.ACCEPTED, Wrong.ASSUMED, Wrong.PARTLY})


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What the records hold of one operation, as far as a text can be compared with it.

    `state` is one of those a contract has words for, or `undone`. `facts` are what its arguments
    and result name, None where they were erased. `says` is the sentence for a model, `phrases` all
    that is said of it in any language. `undoes` is the operation that it takes back, "" for none.
    """

    operation: str
    tool: str
    state: str
    facts: frozenset[str] | None
    contract: Contract
    says: str
    phrases: tuple[str, ...]
    undoes: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A sentence that the records do not support, and the operations it was compared with."""

    sentence: str
    wrong: Wrong
    to_person: str
    to_model: str
    operations: tuple[str, ...]


def effects_of(
    operations: Iterable[Operation], contracts: Mapping[str, Contract]
) -> tuple[Effect, ...]:
    """Return the effects of operations, in order; `contracts` are those they were made under."""
    every = tuple(operations)
    undone = frozenset(o.undoes for o in every if o.undoes and o.state in _TAKEN_BACK)
    facts = {o.id: _facts(o) for o in every}
    return tuple(
        Effect(
            operation=operation.id,
            tool=operation.tool,
            state=_state(operation, undone),
            facts=_both(facts[operation.id], facts.get(operation.undoes, frozenset())),
            contract=contracts[operation.contract],
            says=to_model(operation, contracts[operation.contract]),
            phrases=_phrases(operation, contracts[operation.contract]),
            undoes=operation.undoes,
        )
        for operation in every
    )


def unsupported(
    text: str,
    effects: Sequence[Effect],
    *,
    tools: Mapping[str, Contract] | None = None,
    beside: Collection[str] = (),
    seen: Sequence[str] = (),
    language: str = "en",
) -> tuple[Claim, ...]:
    """Return the claims of a text that the effects do not support, in order, at most `CLAIMS`.

    `tools` are those that could have been called, for their words. `beside` names tools that were
    called and leave no record (files, a shell): with any, the verbs of such work are not judged.
    `seen` is what other tools returned: "the invoice is paid" is no claim where that was read.
    `language` is that of `Claim.to_person`. Reads `READ_CHARS` of the text, and of what was seen
    the same, in linear time.
    """
    named = {**(tools or {}), **{effect.tool: effect.contract for effect in effects}}
    check = _Check(
        effects,
        vocabulary_of(named),
        ignores=WORK if beside else frozenset(),
        seen=facts_of("\n".join(seen)[:READ_CHARS]),
        language=language,
    )
    return check.claims(text[:READ_CHARS])


_Found = tuple[Wrong, Sequence[Effect], Sequence[str]]
"""What is wrong, with which effects, and the figures that they do not have."""

_TAKEN_BACK = (State.CONFIRMED, State.ASSUMED, State.ACCEPTED)


class _Check:
    """One comparison of a text with a ledger."""

    def __init__(
        self,
        effects: Sequence[Effect],
        vocabulary: Vocabulary,
        *,
        ignores: frozenset[str],
        seen: frozenset[str],
        language: str,
    ) -> None:
        self.effects = effects
        self.vocabulary = vocabulary
        self.ignores = ignores
        self.seen = seen
        self.language = language
        self.kinds = {each.operation: self._kinds(each) for each in effects}
        said = chain(*(each.phrases for each in effects), NOTHING_DONE.values())
        phrases = dict.fromkeys(" ".join(phrase.split()) for phrase in said)
        self.known = {piece for phrase in phrases for piece in sentences_of(phrase)}
        # Taken out of a sentence that has more in it; a short one would take out too much.
        self.phrases = [phrase.casefold() for phrase in phrases if phrase.count(" ") > 1]
        self.tells_of_undoing = False

    def claims(self, text: str) -> tuple[Claim, ...]:
        """Return what the effects do not support."""
        telling = told_in(sentences_of(text), self.vocabulary, but=self.known)
        every = [*islice(telling, TOLD)]
        self.tells_of_undoing = any(told.is_done and told.effects & BACK for told in every)
        claims: dict[Claim, None] = {}
        for told in every:
            claim = self._claim(told)
            if claim is not None and not self._is_quoted(told):
                claims[claim] = None
            if len(claims) == CLAIMS:
                break
        return tuple(claims)

    def _kinds(self, effect: Effect) -> frozenset[str]:
        kinds = self.vocabulary.of_tool(effect.tool, effect.contract)
        return kinds | BACK if effect.undoes else kinds

    def _is_quoted(self, told: Told) -> bool:
        """Whether nothing wrong is left of a sentence without what the records say word for word.

        So a report is read that says several things in one sentence: "Done: …; …."
        """
        folded = told.sentence.casefold()
        left = folded
        for phrase in self.phrases:
            left = left.replace(phrase, " ; ")
        if left == folded:
            return False
        return all(self._claim(each) is None for each in told_by(left, self.vocabulary))

    def _claim(self, told: Told) -> Claim | None:
        if told.effects and told.effects <= self.ignores:
            return None
        alike = [each for each in self.effects if self._is_alike(each, told)]
        found = self._as_done(told, alike) if told.is_done else self._as_not_done(told, alike)
        return None if found is None else self._said(told, found)

    def _is_alike(self, effect: Effect, told: Told) -> bool:
        return not told.effects or bool(told.effects & self.kinds[effect.operation])

    def _as_done(self, told: Told, alike: Sequence[Effect]) -> _Found | None:
        if not alike:
            return None if self._was_seen(told) else (Wrong.ABSENT, (), ())
        counts = {f"n:{count}" for count in range(1, len(alike) + 1)}
        named = [each for each in told.named if not each.readings & counts]
        missing = [each.shown for each in named if not any(_has(one, each) for one in alike)]
        if missing:
            return None if self._was_seen(told) else (Wrong.FIGURES, alike[-CLAIMS:], missing)
        wrong = [(effect, self._wrong_if_done(effect, told)) for effect in alike]
        good = [effect for effect, each in wrong if each is None]
        # What it names may be of several operations, if all of these are as it says.
        left = [each for each in named if not any(_has(one, each) for one in good)]
        if good and not left:
            return None
        bad = [(effect, each) for effect, each in wrong if each is not None]
        fit = [pair for pair in bad if all(_has(pair[0], each) for each in left)] or bad
        effect, worst = fit[-1]
        return worst, (effect,), ()

    def _was_seen(self, told: Told) -> bool:
        """Whether it tells how things are, and another tool returned that word or all it names."""
        if not told.is_of_state:
            return False
        named = [each for each in told.named if not each.is_a_day]
        if named:
            return all(each.is_in(self.seen) for each in named)
        return f"id:{told.verb.casefold()}" in self.seen

    def _wrong_if_done(self, effect: Effect, told: Told) -> Wrong | None:
        wrong = _NOT_DONE.get(effect.state)
        if wrong is Wrong.UNDONE and self.tells_of_undoing:
            return None  # It goes on to say that it was undone.
        if wrong is Wrong.ACCEPTED and "send" in self.kinds[effect.operation]:
            return None  # It was sent; whether it arrived is another matter.
        if told.is_hedged and wrong in _SAID_TO_BE_OPEN:
            return None
        return wrong

    def _as_not_done(self, told: Told, alike: Sequence[Effect]) -> _Found | None:
        fit = [each for each in alike if all(_has(each, one) for one in told.named)]
        wrong = [(effect, _DONE.get(effect.state)) for effect in fit]
        if not told.of_all and any(each is None for _, each in wrong):
            return None  # It may be about that one.
        for effect, each in reversed(wrong):
            if each is not None and not (told.is_hedged and each is Wrong.DOUBTFUL):
                return each, (effect,), ()
        return None

    def _said(self, told: Told, found: _Found) -> Claim:
        wrong, effects, missing = found
        operations = tuple(each.operation for each in effects)
        fields = {
            "verb": told.verb,
            "operation": ", ".join(operations),
            "named": ", ".join(missing),
        }
        shown = told.sentence[:SHOWN_CHARS]
        says = " ".join(each.says for each in effects)
        return Claim(
            sentence=shown,
            wrong=wrong,
            to_person=TO_PERSON[self.language][wrong].format_map(fields),
            to_model=TO_MODEL.format(
                sentence=shown,
                wrong=TO_PERSON["en"][wrong].format_map(fields),
                records=RECORDED.format(says=says) if says else NOT_SAID,
            ),
            operations=operations,
        )


def _has(effect: Effect, named: Named) -> bool:
    """Whether the records of an effect have a figure; where they were erased, nobody can say."""
    return effect.facts is None or named.is_in(effect.facts)


def _facts(operation: Operation) -> frozenset[str] | None:
    if erased_on(operation.arguments):
        return None
    named = {f"id:{name.casefold()}" for name in (operation.id, operation.key)}
    return facts_of(operation.arguments) | facts_of(operation.result) | named


def _both(one: frozenset[str] | None, other: frozenset[str] | None) -> frozenset[str] | None:
    return None if one is None or other is None else one | other


def _state(operation: Operation, undone: Collection[str]) -> str:
    if operation.contradicted:
        return State.UNKNOWN  # Settled one way, and a later answer says the other.
    if operation.id in undone and operation.state in _TAKEN_BACK:
        return Wrong.UNDONE
    return sayable(operation)


def _phrases(operation: Operation, contract: Contract) -> tuple[str, ...]:
    """Return all that is said of an operation as it stands, and what those said who know of it."""
    said = [to_model(operation, contract), *(each.says for each in operation.evidence)]
    for language in LANGUAGES:
        plain = fact(operation, contract, language=language)
        what = held(operation, contract, language=language)
        said += [plain, sentence(plain), what, sentence(what)]
        said += [
            to_person(operation, contract, language=language),
            corrected(operation, contract, language=language),
        ]
    return tuple(said)
