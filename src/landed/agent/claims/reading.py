"""Reads from a text what it tells as done, and as not done: no model, only forms and words.

It looks for a past form of a known verb and then at what stands before it: "I have", "was", "se
ha", nothing. Futures, offers, conditions, questions, quotes, hedges and what others did are no
telling. A clause is looked at some words far, and each sentence once.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from landed.agent.claims.facts import Named, Word, named_in, words_of
from landed.agent.claims.vocabulary import Past, Vocabulary
from landed.agent.claims.words import (
    ASIDE,
    BREAKS,
    CONDITIONS,
    DEFINITE,
    FINITE,
    FIRST,
    HEDGES,
    HEDGING,
    JOINS,
    LABELS,
    MODAL,
    MORE,
    NEWS,
    NONE,
    NONE_ES,
    NOT,
    OPENERS,
    ORS,
    PAUSES,
    PROSE,
    REQUESTS,
    SAID,
    SEEN,
    SKIPPED,
    WORK,
    YOURS,
)

REACH = 30
"""How many words to either side of a verb are looked at."""

LABEL_CHARS = 40
"""How long a label before a colon may be: "Not done because of that: …"."""

_CALLS = re.compile(r"\b[^\W\d]\w{0,80}(?=\()")
_ENDS = re.compile(r"(?<=[.!?…])[\"'”»)\]*_]*\s+")
_QUOTES = re.compile(r'"[^"]{0,400}"|“[^“”]{0,400}”|«[^«»]{0,400}»')

_ADVERBS = rf"(?:(?:{'|'.join(sorted(SKIPPED))}|\w+ly|\w+mente) )*"
_TO_WHOM = r"(?:(?:le|les|te|os|me|lo|la|los|las|se) )*"
_BEEN = rf"(?:is|are|was|were|am|got|(?:have|has|had) {_ADVERBS}been) {_ADVERBS}$"
_SIDO = (
    r"(?:está|están|estaba|estaban|queda|quedan|quedó|quedaron|fue|fueron"
    r"|(?:ha|han) (?:sido|quedado))"
)
# What stands before a verb form, by the form ▸ as whose doing it is told.
_PASSIVE = {
    "past": re.compile(rf"\b{_BEEN}"),
    "part": re.compile(rf"\b(?:{_SIDO}|se {_TO_WHOM}(?:ha|han)) {_ADVERBS}$"),
    "third": re.compile(rf"\bse {_TO_WHOM}$"),
}
_OWN = {
    "past": re.compile(rf"(?:^|\b(?:i|we) ){_ADVERBS}(?:(?:have|had) )?{_ADVERBS}$"),
    "part": re.compile(rf"(?:\b(?:he|hemos) |^){_ADVERBS}$"),
    "first": re.compile(r"$"),
    "base": re.compile(
        r"\b(?:(?:managed|able) to|conseguí|logré|(?:he|hemos) (?:podido|conseguido|logrado)) $"
    ),
}
_COULD_NOT = {
    "past": re.compile(rf"\bcould not be {_ADVERBS}$"),
    "base": re.compile(
        rf"\b(?:(?:did|could) not|unable to|failed to|not (?:able|manage|managed) to) {_ADVERBS}$"
        r"|\b(?:no (?:pude|pudo|pudimos|conseguí|logré|se pudo|se ha podido"
        r"|(?:he|hemos|ha) (?:podido|conseguido|logrado))|sin) (?:\w+ )?$"
    ),
}
_OTHERS = re.compile(r"^(?:\w+ ){0,3}(?:by (?!me\b|us\b|our\b)|por (?:el|la|los|las|su|tu) )")
_GOING_ON = frozenset(",()[]")
_STOPS = MODAL | CONDITIONS | SAID


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a sentence tells of an effect.

    `effects` are what it may be (`reserve`, `send`), none for all there is; `verb` is the word for
    it. `is_done` says whether it is told as done; `of_all`, with a no, that it is about every one.
    `named` are the figures, ids and days beside the verb. `is_of_state` says that it is told as how
    things are ("is booked"), which may have been read somewhere. `is_hedged` says that something
    near it says that it is not known.
    """

    sentence: str
    effects: frozenset[str]
    verb: str
    is_done: bool
    of_all: bool
    named: tuple[Named, ...]
    is_of_state: bool
    is_hedged: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Verb:
    """A verb form in a part of a sentence, and how it is told; None where it is no telling."""

    at: int
    past: Past
    is_done: bool | None = None
    is_of_state: bool = False


def sentences_of(text: str) -> list[str]:
    """Return the sentences of a text that say something of their own, each on one line."""
    found: list[str] = []
    in_code = False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            in_code = not in_code
        elif not in_code and not line.lstrip().startswith(">"):
            found += (" ".join(piece.split()) for piece in _ENDS.split(line))
    return [piece for piece in found if piece]


def told_in(
    sentences: Sequence[str], vocabulary: Vocabulary, *, but: Collection[str]
) -> Iterator[Told]:
    """Yield what sentences tell as done or not done, without those in `but`."""
    for sentence, after in zip(sentences, (*sentences[1:], ""), strict=False):
        if sentence not in but and not sentence.rstrip("\"'”»)*_ ").endswith("?"):
            yield from told_by(sentence, vocabulary, hedged_by=f"{sentence} {after}")


def told_by(sentence: str, vocabulary: Vocabulary, *, hedged_by: str = "") -> Iterator[Told]:
    """Yield what one sentence tells; `hedged_by` is where doubt about it may be said."""
    is_hedged: bool | None = None
    for part in _parts(words_of(_said_by_it(sentence))):
        verbs = _verbs(part, vocabulary)
        for place, verb in enumerate(verbs):
            if verb.is_done is None:
                continue
            if is_hedged is None:
                is_hedged = _is_hedged(hedged_by or sentence)
            before = verbs[place - 1].at if place else -1
            after = verbs[place + 1].at if place + 1 < len(verbs) else len(part)
            told = _told(part, verb, vocabulary, between=(before, after))
            if told is not None:
                effects, named, of_all = told
                yield Told(
                    sentence=sentence,
                    effects=effects,
                    verb=part[verb.at].shown,
                    is_done=verb.is_done,
                    of_all=of_all,
                    named=named,
                    is_of_state=verb.is_of_state,
                    is_hedged=is_hedged,
                )


def _said_by_it(sentence: str) -> str:
    """Return a sentence without quotes, names of calls, and what stands after "Couldn't:"."""
    label, colon, _ = sentence.partition(":")
    texts = [word.text for word in words_of(label[:LABEL_CHARS])] if colon else []
    if texts and len(label) <= LABEL_CHARS and not LABELS.isdisjoint(texts):
        sentence = label
    return _CALLS.sub("", _QUOTES.sub(_of_a_word, sentence))


def _of_a_word(quoted: re.Match[str]) -> str:
    inner = quoted.group()[1:-1]
    return " " if " " in inner else f" {inner} "


def _is_hedged(sentences: str) -> bool:
    texts = [word.text for word in words_of(sentences)]
    line = " ".join(texts)
    return any(text in HEDGES for text in texts) or any(phrase in line for phrase in HEDGING)


def _parts(words: Iterable[Word]) -> list[list[Word]]:
    parts: list[list[Word]] = [[]]
    for word in words:
        if word.text in BREAKS or word.text == ".":
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


def _verbs(part: Sequence[Word], vocabulary: Vocabulary) -> list[_Verb]:
    verbs: list[_Verb] = []
    texts = [word.text for word in part]
    for at, text in enumerate(texts):
        past = vocabulary.past(text)
        if past is None or (past.form == "base" and not _may_be_base(texts, at)):
            continue
        last = verbs[-1] if verbs and at - verbs[-1].at <= REACH else None
        verb = _judged(texts, at, past, last)
        if verb.is_done is not None or past.form != "base":
            verbs.append(verb)  # Else it is a noun: "no refund was issued".
    return verbs


def _may_be_base(texts: Sequence[str], at: int) -> bool:
    """Whether a base form may tell something: "did not send", "unable to send", "pude enviar"."""
    near = texts[max(0, at - 4) : at]
    return any(text in NOT or text in ("to", "podido", "conseguí", "logré") for text in near)


def _judged(texts: Sequence[str], at: int, past: Past, last: _Verb | None) -> _Verb:
    lead, pause = _lead(texts, at)
    rest = _rest(texts, at)
    own, joined = _own(lead)
    joined = joined or pause
    tail = "".join(f"{text} " for text in lead[-8:])
    form = past.form
    if form in _COULD_NOT and _COULD_NOT[form].search(tail):
        return _Verb(at=at, past=past, is_done=None if "you" in lead else False)
    if not _STOPS.isdisjoint(lead) or _is_a_trait(texts, at):
        return _Verb(at=at, past=past)
    if past.is_failing:
        return _Verb(at=at, past=past, is_done=None if rest[:1] == ["to"] else False)
    is_no = _is_no(own) or (joined in ORS and last is not None and last.is_done is False)
    is_no = is_no or not NONE.isdisjoint(rest[:1])  # "I booked nothing."
    if texts[at] in ("gone", "went"):
        is_told, is_of_state = rest[:1] == ["through"], True
    elif form in _PASSIVE and _PASSIVE[form].search(tail):
        is_told, is_of_state = _is_of_now(lead, rest), True
    elif joined and not [text for text in own if text not in SKIPPED]:
        is_told = joined not in ("(", "[") and _goes_on(texts[:at], last)
        is_of_state = last is not None and last.is_of_state
    else:
        is_told, is_of_state = _is_active(own, rest, last, form=form, joined=joined)
    return _Verb(at=at, past=past, is_done=not is_no if is_told else None, is_of_state=is_of_state)


def _is_active(
    own: Sequence[str], rest: Sequence[str], last: _Verb | None, *, form: str, joined: str
) -> tuple[bool, bool]:
    """Return whether it is told by whoever did it, or as a headline; and whether as the latter."""
    if form in _OWN and _OWN[form].search("".join(f"{text} " for text in own[-8:])):
        return bool(FIRST.intersection(own)) or form != "past" or _stands_alone(rest), False
    return form in ("past", "part") and _is_headline(own, rest, last, joined=joined), True


def _is_of_now(lead: Sequence[str], rest: Sequence[str]) -> bool:
    """Whether a passive tells what was done here: not by others, read somewhere, or as a rule."""
    if _OTHERS.search("".join(f"{text} " for text in rest[:8])):
        return False
    is_rule = "are" in lead[1:] and DEFINITE.isdisjoint(lead)
    return not is_rule and SEEN.isdisjoint((*lead, *rest))


def _lead(texts: Sequence[str], at: int) -> tuple[list[str], str]:
    """Return the words before a verb, back to a pause, or to where the sentence begins anew.

    And the pause, if the verb then has the subject of what stands before it, as after "and".
    """
    lead: list[str] = []
    pause = ""
    for place in range(at - 1, max(-1, at - 1 - REACH), -1):
        text = texts[place]
        if text in PAUSES or (text in NEWS and NOT.isdisjoint(texts[max(0, place - 3) : place])):
            # "Yes, booked" begins anew; "I found one, booked it" goes on.
            pause = text if text in _GOING_ON and place > 2 else ""
            break
        lead.append(text)
    lead.reverse()
    return (lead[1:] if lead[:1] == ["that"] or lead[:1] == ["que"] else lead), pause


def _rest(texts: Sequence[str], at: int) -> list[str]:
    """Return the words after a verb, up to a pause or a join."""
    rest: list[str] = []
    for text in texts[at + 1 : at + 1 + REACH]:
        if text in PAUSES or text in JOINS:
            break
        rest.append(text)
    return rest


def _own(lead: Sequence[str]) -> tuple[list[str], str]:
    """Return what stands before a verb after the last "and" or "or", and that word."""
    own: list[str] = []
    for text in reversed(lead):
        if text in JOINS or text in ORS:
            return own[::-1], text
        own.append(text)
    return own[::-1], ""


def _is_no(own: Sequence[str]) -> bool:
    for place, text in enumerate(own):
        if text in NOT or text in NONE:
            after = own[place + 1] if place + 1 < len(own) else ""
            if after not in ("only", "just", "solo", "sólo"):
                return True
    return False


def _is_a_trait(texts: Sequence[str], at: int) -> bool:
    """Whether it says how a thing is, and not what was done: "fully booked", "booked out"."""
    before = texts[at - 1] if at else ""
    after = texts[at + 1] if at + 1 < len(texts) else ""
    return before in ("fully", "completely", "be", "being") or after in ("out", "up", "solid")


def _goes_on(before: Sequence[str], last: _Verb | None) -> bool:
    """Whether a verb after "and" has the subject of what stands before: "I found and booked"."""
    if last is not None:
        return last.is_done is not None
    first = next((text for text in before[:REACH] if text not in SKIPPED), "")
    return first in FIRST or first in ("he", "hemos")


def _stands_alone(rest: Sequence[str]) -> bool:
    """Whether a verb without a subject is a telling: "Refunded 480", not "Booked tables are"."""
    return FINITE.isdisjoint(rest[:6])


def _is_headline(
    own: Sequence[str], rest: Sequence[str], last: _Verb | None, *, joined: str
) -> bool:
    """Whether it is told like "Refund issued", or "the table was booked and the message sent"."""
    is_named = any(text.isalpha() for text in own)  # "0.00 refunded before" is a figure.
    if not is_named or len(own) > 4 or not FINITE.isdisjoint((*own, *rest[:6])):
        return False
    if any(text in ("he", "hemos", "ha", "han", "have", "to", *FIRST) for text in own):
        return False
    if joined and last is not None and last.is_of_state and last.is_done is not None:
        return True
    is_bare = own[0] not in OPENERS and (not rest or rest[0] not in OPENERS)
    return is_bare and SEEN.isdisjoint((*own, *rest))


def _told(
    part: Sequence[Word], verb: _Verb, vocabulary: Vocabulary, *, between: tuple[int, int]
) -> tuple[frozenset[str], tuple[Named, ...], bool] | None:
    """Return which effects a verb tells of, what it names, and whether it denies them all."""
    before, after = between
    words = [*_up_to(part, verb.at, before), *_from(part, verb.at, after)]
    texts = [word.text for word in words]
    lead = [word.text for word in part[max(0, verb.at - 8) : verb.at]]
    following = [word.text for word in part[verb.at + 1 : verb.at + 5]]
    of_all = not verb.is_done and not (
        NONE.isdisjoint((*lead, *following[:1])) and NONE_ES.isdisjoint((*lead, *following))
    )
    effects = _effects(verb.past, texts, vocabulary)
    if of_all and verb.past.is_anything and not {"nothing", "nada"}.isdisjoint((*lead, *following)):
        effects = frozenset[str]()
    elif not effects:
        return None
    if not verb.is_done and not MORE.isdisjoint(texts):
        return None
    if not verb.is_done and verb.past.is_confirming:
        return None  # To say that nothing confirmed it is to say that it is not known.
    if not REQUESTS.isdisjoint(following) or not _is_of_account(effects, following, vocabulary):
        return None
    return effects, named_in(words), of_all


def _is_of_account(
    effects: frozenset[str], following: Sequence[str], vocabulary: Vocabulary
) -> bool:
    """Whether a work-a-day verb ("created", "changed") is about more than words and files.

    It is where a tool does that, or where something of the user's is said to be changed.
    """
    if not effects or not effects <= WORK:
        return True
    if effects & vocabulary.kinds:
        return PROSE.isdisjoint(following) or not vocabulary.own.isdisjoint(following)
    return not YOURS.isdisjoint(following[:2]) and PROSE.isdisjoint(following)


def _effects(past: Past, texts: Sequence[str], vocabulary: Vocabulary) -> frozenset[str]:
    """Return what a verb tells of; to have sent a reservation is to have asked for one."""
    own = frozenset({past.effect} if past.effect else ())
    return own | vocabulary.named(texts) if past.is_light or "send" in own else own


def _up_to(part: Sequence[Word], at: int, before: int) -> list[Word]:
    """Return the words before a verb that are its own: not those of the verb before it."""
    own: list[Word] = []
    for word in reversed(part[max(before + 1, at - REACH) : at]):
        if word.text in ASIDE:
            return []
        if word.text in PAUSES or (before >= 0 and word.text in JOINS):
            break
        own.append(word)
    else:
        if before >= 0:
            return []
    return own[::-1]


def _from(part: Sequence[Word], at: int, after: int) -> list[Word]:
    """Return the words after a verb that are its own: not those of the verb after it."""
    own = list(part[at + 1 : min(after, at + 1 + REACH)])
    if after < len(part):
        ends = [n for n, word in enumerate(own) if word.text in JOINS or word.text in PAUSES]
        own = own[: ends[-1]] if ends else own
    for place, word in enumerate(own):
        if word.text in ASIDE or word.text in NOT:
            return own[:place]
    return own
