"""Reads contracts for what will go wrong: an error must be mended, a warning says what will happen.

`lint_file` and `lint_tools` look at a contract file and at tools as they are registered. Nothing
is asked of any service: whether it keeps its promises is for `landed.testing.check_tool`.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import cast

from landed.catalogue.entry import Entry, Fact
from landed.catalogue.schema import read
from landed.core.absorb import RETENTION_TRUSTED
from landed.core.contract import UNDECLARED, Contract, Effect, check
from landed.core.errors import ContractError


class Severity(StrEnum):
    """Whether it must be mended."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What is wrong with one contract; `where` is `file: name` or the tool's name."""

    where: str
    severity: Severity
    text: str

    def __str__(self) -> str:
        return f"{self.severity:<8} {self.where}: {self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One contract on trial, with what is known beside it.

    `arguments` are those that the model fills, each with what the model is told about it;
    `undeclared` says that nobody wrote the contract: it is what a foreign tool gets by default.
    """

    where: str
    contract: Contract
    arguments: Mapping[str, str] = field(default_factory=dict[str, str])
    hints: Mapping[str, bool] = field(default_factory=dict[str, bool])
    facts: Mapping[str, Fact] = field(default_factory=dict[str, Fact])
    unverified: tuple[str, ...] = ()
    replays_failures: bool = False
    key_max: int | None = None
    undeclared: bool = False

    @property
    def writes(self) -> bool:
        """Whether it can change the world."""
        return self.contract.effect is not Effect.NONE

    @property
    def settles(self) -> bool:
        """Whether a lost answer can end in knowledge, or in what the contract declares harmless."""
        told = self.contract
        by_asking = told.lookup or told.close
        return by_asking or told.resendable or told.assume_after_s is not None


Rule = Callable[[Subject], str]

# The id of an operation, as `landed.runtime.clock` makes it: what a key is made from.
KEY_LENGTH = len("op-") + 26
DOUBTFUL = (408, 409, 425)

_KEY_LIKE = re.compile(
    r"idempot|dedup|client_?(token|request_?id|msg_?id|transaction_?id)|request_?(id|key)$"
    r"|retry_?(key|token)",
    re.IGNORECASE,
)
_EACH_CALL = re.compile(
    r"(unique|new|fresh|different)\b.{0,60}"
    r"\b(every|each|per)\b.{0,40}\b(call|request|time|attempt)",
    re.IGNORECASE | re.DOTALL,
)


# Each rule returns what is wrong, "" where nothing is. First those that must be mended.


def _has_none(it: Subject) -> str:
    if it.undeclared:
        return (
            "a write without a contract: nobody can say what it does or ask what became of it;"
            " declare its effect, and what the service offers"
        )
    return ""


def _contradicts(it: Subject) -> str:
    try:
        check(it.contract, tool=it.where)
    except ContractError as error:
        return str(error).removeprefix(f"contract of {it.where}: ")
    return ""


def _replayed_as_refused(it: Subject) -> str:
    codes = [code for code in it.contract.refusals if code >= 500]
    if it.replays_failures and codes:
        return (
            f"the service replays a {codes[0]} for a key, also where the effect took place: it is"
            " no refusal; take it out of refusals"
        )
    return ""


def _key_too_long(it: Subject) -> str:
    if it.contract.keyed and it.key_max is not None:
        shortest = len(it.contract.key_form.format(operation="x" * KEY_LENGTH, session=""))
        if shortest > it.key_max:
            return (
                f"key_form makes keys of {shortest} characters or more, the service takes"
                f" {it.key_max}; shorten key_form"
            )
    return ""


def _said_to_destroy(it: Subject) -> str:
    if not it.writes and it.hints.get("destructive"):
        return (
            "effect='none', but the tool says of itself that it is destructive; declare an effect"
        )
    return ""


# Then those that say what will happen.


def _unsettled(it: Subject) -> str:
    if not it.writes or it.settles:
        return ""
    after = span(it.contract.escalate_after_s)
    lacking = "its key is not compared with a payload" if it.contract.keyed else "it has no key"
    return (
        f"{lacking}, and there is no lookup, close or assume_after_s: a lost answer can be settled"
        f" by nobody, and goes to a person after {after}; it is not sent again"
    )


def _only_read_back(it: Subject) -> str:
    if it.contract.read_back and not (it.contract.lookup or it.contract.close):
        return (
            "read_back needs a result, so it confirms what was acknowledged; where the answer was"
            " lost it can ask nothing: give a lookup as well if the service has one"
        )
    return ""


def _deadline_unused(it: Subject) -> str:
    if it.contract.refuses_after_s is not None and not it.contract.lookup:
        return (
            "refuses_after_s settles nothing without a lookup: after the service's deadline"
            " somebody has to look once more"
        )
    return ""


def _for_ever(it: Subject) -> str:
    told = it.facts.get("retention_s")
    if it.contract.keyed and it.contract.retention_s is None and not (told and told.verified):
        return (
            "without retention_s its keys count as remembered for ever: the same key may be sent"
            " again, and is looked for, at any age; say how long the service keeps them"
        )
    return ""


def _forgets_too_soon(it: Subject) -> str:
    kept = it.contract.retention_s
    if not it.contract.resendable or kept is None:
        return ""
    if kept * RETENTION_TRUSTED > it.contract.deadline_s:
        return ""
    return (
        f"the service remembers a key for {span(kept)}, and one send may take"
        f" {span(it.contract.deadline_s)}: the same key is never sent again"
    )


def _refuses_in_doubt(it: Subject) -> str:
    codes = [code for code in it.contract.refusals if code in DOUBTFUL or code >= 500]
    if it.writes and codes:
        return (
            f"{codes[0]} in refusals is taken for 'no effect'; a {codes[0]} usually leaves doubt"
            " (the service may have acted, or still be acting)"
        )
    return ""


def _replays_failures(it: Subject) -> str:
    if it.replays_failures and not (it.contract.lookup or it.contract.close):
        return (
            "the service replays the first failure of a key, so sending the same key again may"
            " never tell what happened; give a lookup"
        )
    return ""


def _model_makes_key(it: Subject) -> str:
    """A retry by a model is another call, and mints another key (square/square-mcp-server#31)."""
    names = [name for name in it.arguments if _KEY_LIKE.search(name)]
    own = [name for name in names if name != it.contract.keyed]
    if not it.writes or not own:
        return ""
    told = (
        " and is told to make a new one for each call"
        if _EACH_CALL.search(it.arguments[own[0]])
        else ""
    )
    return (
        f"the model fills {own[0]!r}{told}, so that a retry carries another key and takes effect"
        f" again; name it in keyed=, and the operation's key goes there"
    )


def _told_to_make_keys(it: Subject) -> str:
    keyed = it.contract.keyed
    if keyed and _EACH_CALL.search(it.arguments.get(keyed, "")):
        return (
            f"the model is told to make {keyed!r} new for each call; the operation's key goes there"
            " instead, the same in every send of that operation"
        )
    return ""


def _hint_outlives_key(it: Subject) -> str:
    """A hint knows no time; the contract does (vm0-ai/vm0#35539)."""
    if not it.writes or not it.hints.get("idempotent"):
        return ""
    if not it.contract.keyed:
        return (
            "it says of itself that it is idempotent, and has no key: the contract holds, and"
            " nothing is sent again on the strength of a hint"
        )
    if it.contract.retention_s is not None:
        return (
            "it says of itself that it is idempotent, but its keys are forgotten after"
            f" {span(it.contract.retention_s)}: the contract holds, and past that it is not sent"
            " again"
        )
    return ""


def _said_to_read(it: Subject) -> str:
    if it.writes and it.hints.get("read_only"):
        return "it says of itself that it only reads; the contract holds, and treats it as a write"
    return ""


# Promises on the strength of which a key is sent again, or silence is taken for a no.
BELIEVED = ("compares_payload", "close", "refuses_after_s")


def _believed_unseen(it: Subject) -> str:
    names = [name for name in BELIEVED if name in it.unverified and getattr(it.contract, name)]
    if not names:
        return ""
    return (
        f"nobody verified {' and '.join(names)}, and a wrong one makes a second effect: name a"
        " source, or try it with `landed contract probe`"
    )


RULES: tuple[tuple[Severity, tuple[Rule, ...]], ...] = (
    (
        Severity.ERROR,
        (_has_none, _contradicts, _replayed_as_refused, _key_too_long, _said_to_destroy),
    ),
    (
        Severity.WARNING,
        (
            *(_unsettled, _only_read_back, _deadline_unused, _for_ever, _forgets_too_soon),
            *(_refuses_in_doubt, _replays_failures, _model_makes_key, _told_to_make_keys),
            *(_hint_outlives_key, _said_to_read, _believed_unseen),
        ),
    ),
)


def lint_file(text: str, *, origin: str) -> tuple[Problem, ...]:
    """Return what is wrong with a contract file; a break of the schema is the only error then."""
    try:
        entries = read(text, origin=origin)
    except ContractError as error:
        told = str(error).removeprefix(f"contract file {origin}: ")
        return (Problem(where=origin, severity=Severity.ERROR, text=told),)
    return lint(_of_entry(entry, origin) for entry in entries.values())


def lint_tools(tools: Iterable[object]) -> tuple[Problem, ...]:
    """Return what is wrong with tools as they would be registered."""
    subjects: list[Subject] = []
    strangers: list[Problem] = []
    for each in tools:
        told = _of_tool(each)
        if isinstance(told, Subject):
            subjects.append(told)
        else:
            strangers.append(told)
    return (*strangers, *lint(subjects))


def lint(subjects: Iterable[Subject]) -> tuple[Problem, ...]:
    """Return what is wrong with each, errors of one before its warnings."""
    every = tuple(subjects)
    found = [problem for one in every for problem in _lint(one)]
    return (*found, *_forgotten_keys(every))


def _lint(it: Subject) -> Iterator[Problem]:
    for severity, rules in RULES:
        told = [text for rule in rules if (text := rule(it))]
        yield from (Problem(where=it.where, severity=severity, text=text) for text in told)
        if told and severity is Severity.ERROR:
            return  # What follows from a contract that must be mended anyway is noise.


def _forgotten_keys(every: tuple[Subject, ...]) -> Iterator[Problem]:
    """A write whose siblings carry a key was most likely forgotten (KeeperHub/keeperhub#2207)."""
    for one in every:
        keyed = [
            other.where
            for other in every
            if other.contract.keyed and other.contract.service == one.contract.service != ""
        ]
        if one.writes and not one.contract.keyed and keyed:
            yield Problem(
                where=one.where,
                severity=Severity.WARNING,
                text=f"it carries no key, and others of the same service do ({', '.join(keyed)})",
            )


def _of_entry(entry: Entry, origin: str) -> Subject:
    return Subject(
        where=f"{origin}: {entry.name}",
        contract=entry.contract,
        arguments=entry.arguments,
        hints=entry.hints,
        facts=entry.facts,
        unverified=entry.unverified,
        replays_failures=bool(entry.replays_failures),
        key_max=entry.key_max,
    )


def _of_tool(told: object) -> Subject | Problem:
    name = str(getattr(told, "name", getattr(told, "__name__", repr(told))))
    contract = getattr(told, "contract", None)
    if not isinstance(contract, Contract):
        return Problem(
            where=name,
            severity=Severity.ERROR,
            text="it has no contract: wrap it with @landed.tool(effect=…), or make it with"
            " landed.tools",
        )
    return Subject(
        where=name,
        contract=contract,
        arguments=_told(getattr(told, "schema", None)),
        # Ours cannot be made without an effect, and may have been told no more than the default.
        undeclared=replace(contract, service="") == UNDECLARED
        and not type(told).__module__.startswith("landed.tools."),
    )


def _told(schema: object) -> dict[str, str]:
    """Return the arguments of a JSON Schema, each with its description."""
    properties = _mapping(_mapping(schema).get("properties"))
    return {name: str(_mapping(each).get("description", "")) for name, each in properties.items()}


def _mapping(told: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", told) if isinstance(told, Mapping) else {}


def span(seconds: float) -> str:
    """Return a time as a person says it: 90 s, 15 min, 24 h, 45 days."""
    for size, unit, least in ((86_400, "days", 2), (3_600, "h", 1), (60, "min", 1)):
        if seconds >= least * size and seconds % size == 0:
            return f"{seconds / size:g} {unit}"
    return f"{seconds:g} s"
