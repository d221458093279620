"""Which verbs tell of which effect: those of the contracts at hand, and some that are common.

A verb is known by its stem, found by plain rules, so that "cancelled" is "cancel" and "reservada"
is "reservar". The name of a tool (`text_group`) and the words of its contract ("voided {id} …")
make the vocabulary of its own; a common verb stands for others of its meaning besides.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from string import Formatter

from landed.agent.claims.facts import words_of
from landed.agent.claims.words import EFFECTS, IRREGULAR, IRREGULAR_ES, LIGHT, NOTHING, READS
from landed.core.contract import Contract

_ENDINGS = ("ados", "adas", "idos", "idas", "ado", "ada", "ido", "ida")
_SOFTENED = {"qu": "c", "gu": "g", "c": "z"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """A form of a verb: of which effect, and its form.

    `form` is `past` (English), `part`, `first` or `third` (Spanish), or `base`. One that `is_light`
    leaves its effect to a noun; one that `is_anything` is about all there is after "nothing";
    `is_confirming` is "confirm", `is_failing` "fail".
    """

    effect: str
    form: str
    is_light: bool = False
    is_anything: bool = False
    is_confirming: bool = False
    is_failing: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """Stems ▸ effects, English and Spanish; nouns ▸ effects.

    `own` are the words of the tools' names, `kinds` the effects that these tools have.
    """

    english: Mapping[str, str]
    spanish: Mapping[str, str]
    nouns: Mapping[str, str]
    own: frozenset[str]
    kinds: frozenset[str]

    def past(self, word: str) -> Past | None:
        """Return what a word tells, None where it is no form of a known verb."""
        stem = _english_past(word)
        if stem and (found := _known(stem, self.english, _LIGHT, "past")):
            return found
        spanish = _spanish_past(word)
        if spanish and (found := _known(spanish[0], self.spanish, _LIGHT_ES, spanish[1])):
            return found
        if (stem := _english_stem(word)) in self.english:
            return Past(effect=self.english[stem], form="base")
        stem = _spanish_stem(word)
        if stem and stem in self.spanish:
            return Past(effect=self.spanish[stem], form="base")
        return None

    def named(self, words: Iterable[str]) -> frozenset[str]:
        """Return the effects that nouns name: "reservation", "pago"."""
        return frozenset(self.nouns[word] for word in words if word in self.nouns)

    def of_tool(self, tool: str, contract: Contract) -> frozenset[str]:
        """Return the effects that a tool has, by its name and its contract's words."""
        words = _words_of(tool, contract)
        found = {self.english.get(_english_stem(word)) for word in words}
        found |= {self.spanish.get(_spanish_stem(word)) for word in words}
        return frozenset(effect for effect in found if effect is not None)


def vocabulary_of(tools: Mapping[str, Contract]) -> Vocabulary:
    """Return the vocabulary of some tools, and what is common to all."""
    english, spanish = dict(_ENGLISH), dict(_SPANISH)
    own = {word for name in tools for word in _split(name)}
    kinds: set[str] = set()
    for name, contract in tools.items():
        for word in _words_of(name, contract):
            kinds.add(english.setdefault(_english_stem(word), word))
            if stem := _spanish_stem(word):
                kinds.add(spanish.setdefault(stem, word))
    return Vocabulary(
        english=english,
        spanish=spanish,
        nouns=_NOUNS,
        own=frozenset(own),
        kinds=frozenset(kinds),
    )


def _known(stem: str, effects: Mapping[str, str], light: frozenset[str], form: str) -> Past | None:
    if stem not in effects and stem not in light and stem not in _NOTHING:
        return None
    return Past(
        effect=effects.get(stem, ""),
        form=form,
        is_light=stem in light,
        is_anything=stem in _NOTHING,
        is_confirming=stem == _CONFIRM,
        is_failing=stem in _FAIL,
    )


def _words_of(tool: str, contract: Contract) -> list[str]:
    """Return the verbs of a tool: the words of its name, and those of what it says is done."""
    verbs = [word for word in _split(tool) if word not in READS]
    for language in contract.says.values():
        said = "".join(text for text, *_ in Formatter().parse(language.get("confirmed", "")))
        for word in (each.text for each in words_of(said)):
            past = _SPANISH_BASE.get(word) or IRREGULAR.get(word) or _base_of(word)
            verbs += [past] if past and past not in READS else []
    return verbs


def _base_of(word: str) -> str:
    """Return a form from which the stem of a past form follows, "" where it is none."""
    if stem := _english_past(word):
        return stem
    spanish = _spanish_past(word)
    return f"{spanish[0]}ar" if spanish and spanish[1] == "part" else ""


def _split(tool: str) -> list[str]:
    return [word for word in tool.casefold().replace("-", "_").replace(".", "_").split("_") if word]


def _english_stem(word: str) -> str:
    root = word.removesuffix("e")
    if root.endswith("y"):
        root = f"{root[:-1]}i"
    return root[:-1] if len(root) > 3 and root[-1] == root[-2] else root


def _english_past(word: str) -> str:
    if word in IRREGULAR:
        return _english_stem(IRREGULAR[word])
    return _english_stem(word[:-2]) if word.endswith("ed") and len(word) > 4 else ""


def _spanish_stem(infinitive: str) -> str:
    return infinitive[:-2] if infinitive[-2:] in ("ar", "er", "ir") and len(infinitive) > 4 else ""


def _spanish_past(word: str) -> tuple[str, str] | None:
    if word in IRREGULAR_ES:
        base, form = IRREGULAR_ES[word]
        return _spanish_stem(base), form
    ending = next((each for each in _ENDINGS if word.endswith(each)), "")
    if ending:
        return word.removesuffix(ending), "part"
    match word[-1:]:
        case "é" | "í":
            return _hardened(word), "first"
        case "ó":
            return word.removesuffix("ó").removesuffix("i"), "third"
        case _:
            return None


def _hardened(first: str) -> str:
    """Return the stem of "publiqué", which is that of "publicar"."""
    root = first[:-1]
    for soft, hard in _SOFTENED.items():
        if first.endswith(f"{soft}é"):
            return f"{root.removesuffix(soft)}{hard}"
    return root


_ENGLISH = {_english_stem(v): effect for effect, (en, _, _) in EFFECTS.items() for v in en.split()}
_SPANISH = {_spanish_stem(v): effect for effect, (_, es, _) in EFFECTS.items() for v in es.split()}
_NOUNS = {noun: effect for effect, (*_, nouns) in EFFECTS.items() for noun in nouns.split()}
_LIGHT = frozenset({*map(_english_stem, LIGHT), "fail"})
_LIGHT_ES = frozenset({*map(_spanish_stem, LIGHT), "fall"} - {""})
_NOTHING = frozenset({*map(_english_stem, NOTHING), *map(_spanish_stem, NOTHING)} - {""})
_CONFIRM = "confirm"
_FAIL = frozenset({"fail", "fall"})
_SPANISH_BASE = {word: base for word, (base, _) in IRREGULAR_ES.items()}
