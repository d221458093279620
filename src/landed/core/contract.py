"""The contract: the promises about a tool that the runtime may rely on, as values only.

A contract may come from `@landed.tool(...)` or from a TOML file, so it holds no code. It is checked
once, at registration, and every operation stores the digest of the one it was made under: doubt is
judged by that contract, not by the one of today's deploy.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from string import Formatter

from landed.core.canonical import Json
from landed.core.errors import ContractError, ProposalError


class Effect(StrEnum):
    """What a tool does to the world."""

    NONE = "none"
    REVERSIBLE = "reversible"
    IRREVERSIBLE = "irreversible"


class Risk(StrEnum):
    """Whether a call may run at once or needs a person's yes first."""

    SAFE = "safe"
    CONFIRM = "confirm"


class Interrupt(StrEnum):
    """What a change of mind does to a call in flight."""

    FINISH = "finish"
    WAIT = "wait"
    STOP_AND_RESOLVE = "stop_and_resolve"


class Order(StrEnum):
    """Which goes first when a revision replaces something that is held."""

    SECURE_FIRST = "secure_first"
    RELEASE_FIRST = "release_first"


class WhileUnknown(StrEnum):
    """Whether a replacement may start while what it replaces is in doubt."""

    WAIT = "wait"
    REPLACE = "replace"


class WhenUnknown(StrEnum):
    """What is done about an outcome that nobody knows."""

    RECONCILE = "reconcile"
    ESCALATE = "escalate"
    BLOCK = "block"


class LookAlike(StrEnum):
    """What is done where an effect is there already that looks the same."""

    NONE = "none"
    WARN = "warn"
    BLOCK = "block"


class Freshness(StrEnum):
    """Which facts of a preview must still hold when the step is started."""

    STRICT = "strict"
    TOLERATE = "tolerate"
    NONE = "none"


class OnExpiry(StrEnum):
    """What follows a yes that came too late, or to figures that have moved."""

    REPLAN = "replan"
    STOP = "stop"


# Replies that mean "before any effect". 408, 409, 425 and every 5xx leave doubt: a 409 may be the
# service's own answer to a request of ours that is still running. A 429 is none of them: it says
# "not now" and is no verdict on the call, which goes again under the same key.
REFUSALS = (400, 401, 403, 404, 405, 406, 412, 413, 414, 415, 422)

LANGUAGES = ("en", "es")

# The states a contract may have words for (`says`), and what may stand in braces there.
SAYABLE = frozenset(
    {
        "recorded",
        "blocked",
        "sent",
        "confirmed",
        "partly",
        "accepted",
        "assumed",
        "unknown",
        "undecided",
        "failed",
        "withdrawn",
        "answered",
        "unanswered",
        "dropped",
        "held",
        "corrected",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """The promises about one tool. Times are seconds; codes are HTTP status codes.

    effect            what it does to the world
    risk              whether it may run without a person's yes; with risk_varies a function says it
                      for each call, from its arguments and who started the turn
    permission        what must be allowed to whoever asks; "" for nothing
    preview           it can say beforehand what it will do, in real figures
    look_alike        what is done where something is there that looks the same: none / warn / block
    freshness         which facts of its preview must still hold at its start: strict (all) /
                      tolerate (all but those in tolerates) / none
    on_expiry         what follows when the yes came too late or the figures moved: replan / stop
    service           whom it reaches; targets and keys belong to a service
    keyed             the parameter or header that carries the key; "" where the service has none
    key_form          the key's form, from `{operation}` and `{session}`
    retention_s       how long the service remembers a key; None where it never forgets
    compares_payload  the service refuses a key that comes back with other arguments
    refusals          replies that mean *before any effect*
    prepare           something is computed once and stored before the first send, and used by all
    lookup            it can be asked whether a call landed
    settlement_lag_s  how late an effect may become visible to a lookup
    close             lookup that also shuts the key
    refuses_after_s   the service refuses requests sent longer ago than this
    read_back         the result can be read where it matters; acknowledged is then not landed
    makes             where the result names what was made, as a dotted name
    makes_type        what that is (`invoice`); `$n` may stand only where a parameter takes that
    accepts           the parameters that take a `$n`, each with the type that it takes
    unique            business rules, as templates (`refund/{order}/{reason}`): one effect for each,
                      ever, whoever asks
    undo              the tool that compensates; its arguments, as templates over the arguments and
                      the `result`, are undo_arguments; undo_within_s is its cut-off
    undo_where        a field of the result (a dotted name); there is an undo only where it is true
    undo_priced_by    the tool without effect that says, for those arguments, what undoing costs;
                      undo_price is the field of its answer, in cents, and the undo's parameter by
                      which the service is held to what was agreed
    correct           the tool that corrects what cannot be undone; correct_arguments are templates
                      over the new call's arguments and the old result
    identity          the arguments that make two calls the same thing; None means all of them
    target            the resources touched, as templates over the arguments (`invoice/{id}`)
    on_interrupt      finish / wait (up to wait_s) / stop_and_resolve
    stops_midway      it takes the stop token, and may end early ("may have run in part")
    order             secure the replacement first, or release first, and then why (order_why)
    while_unknown     whether a replacement waits while this is in doubt
    assume_after_s    after which an effect that nobody can confirm is treated as landed
    escalate_after_s  the age at which an unknown goes to a person
    when_unknown      reconcile (find out) / escalate (a person, at once) / block (nothing is asked
                      until somebody wants to know; a person at the age of escalation)
    amount            the argument that holds the amount; with escalate_above, an unknown above that
                      goes to a person at once (both in the argument's own unit)
    list_effects      it can list what the service holds, to find effects that nobody recorded
    deadline_s        the bound on one send
    max_tries         the bound on sends of one operation
    concurrency       how many may run at once; 0 for no bound
    fence             the parameter that carries the epoch
    says              words per language and state, for history and report (defaults exist)
    """

    effect: Effect
    risk: Risk = Risk.SAFE
    risk_varies: bool = False
    permission: str = ""
    preview: bool = False
    look_alike: LookAlike = LookAlike.NONE
    freshness: Freshness = Freshness.STRICT
    tolerates: tuple[str, ...] = ()
    on_expiry: OnExpiry = OnExpiry.REPLAN
    service: str = ""
    keyed: str = ""
    key_form: str = "{operation}"
    retention_s: float | None = None
    compares_payload: bool = False
    refusals: tuple[int, ...] = REFUSALS
    prepare: bool = False
    lookup: bool = False
    settlement_lag_s: float = 0.0
    close: bool = False
    refuses_after_s: float | None = None
    read_back: bool = False
    makes: str = "id"
    makes_type: str = ""
    accepts: Mapping[str, str] = field(default_factory=dict[str, str])
    unique: tuple[str, ...] = ()
    undo: str = ""
    undo_arguments: Mapping[str, str] = field(default_factory=dict[str, str])
    undo_where: str = ""
    undo_priced_by: str = ""
    undo_price: str = ""
    undo_within_s: float | None = None
    correct: str = ""
    correct_arguments: Mapping[str, str] = field(default_factory=dict[str, str])
    identity: tuple[str, ...] | None = None
    target: tuple[str, ...] = ()
    on_interrupt: Interrupt = Interrupt.STOP_AND_RESOLVE
    wait_s: float = 0.0
    stops_midway: bool = False
    order: Order = Order.SECURE_FIRST
    order_why: str = ""
    while_unknown: WhileUnknown = WhileUnknown.WAIT
    assume_after_s: float | None = None
    escalate_after_s: float = 900.0
    when_unknown: WhenUnknown = WhenUnknown.RECONCILE
    amount: str = ""
    escalate_above: float | None = None
    list_effects: bool = False
    deadline_s: float = 30.0
    max_tries: int = 5
    concurrency: int = 0
    fence: str = ""
    says: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])

    @property
    def resendable(self) -> bool:
        """Whether sending the same key again is harmless: keyed, and the payload is compared."""
        return bool(self.keyed) and self.compares_payload


# A foreign tool that nobody wrote a contract for: fail closed.
UNDECLARED = Contract(effect=Effect.IRREVERSIBLE, risk=Risk.CONFIRM)


Check = tuple[Callable[[Contract], bool], str]

# What contradicts itself, and what to do about it.
CONTRADICTIONS: tuple[Check, ...] = (
    (
        lambda c: (
            c.effect is Effect.NONE
            and bool(
                c.keyed
                or c.prepare
                or c.close
                or c.undo
                or c.read_back
                or c.assume_after_s is not None
            )
        ),
        "effect='none' promises no effect, but keyed, prepare, close, undo, read_back or"
        " assume_after_s speaks of one; declare the effect or drop the promise",
    ),
    (
        lambda c: not c.keyed and (c.compares_payload or c.retention_s is not None),
        "compares_payload and retention_s are promises about a key, but the tool is not keyed;"
        " name the parameter that carries the key in keyed=",
    ),
    (
        lambda c: c.close and not c.keyed,
        "close shuts a key, but the tool is not keyed; name the key's parameter in keyed=",
    ),
    (
        lambda c: c.assume_after_s is not None and c.effect is not Effect.IRREVERSIBLE,
        "assume_after_s treats an unconfirmed effect as landed; that is harmless only for what"
        " cannot be taken back anyway, so declare it on an irreversible effect or drop it",
    ),
    (
        lambda c: c.assume_after_s is not None and (c.lookup or c.close or c.read_back),
        "assume_after_s is for effects that nobody can check, but the tool has a lookup, close or"
        " read_back; drop one of them",
    ),
    (
        lambda c: c.effect is Effect.IRREVERSIBLE and bool(c.undo),
        "an irreversible effect cannot be undone; name what corrects it in correct= instead",
    ),
    (
        lambda c: (
            not c.undo
            and bool(
                c.undo_arguments
                or c.undo_where
                or c.undo_price
                or c.undo_priced_by
                or c.undo_within_s
            )
        ),
        "undo_arguments, undo_where, undo_price, undo_priced_by and undo_within_s are promises"
        " about an undo that is not named; name the tool in undo=",
    ),
    (
        lambda c: bool(c.undo_price) != bool(c.undo_priced_by),
        "a price has to be known before anybody can agree to it: give both undo_priced_by (who"
        " says it) and undo_price (where it stands)",
    ),
    (
        lambda c: c.effect is not Effect.IRREVERSIBLE and bool(c.correct or c.correct_arguments),
        "correct is for what cannot be undone; a reversible effect is undone and done again",
    ),
    (
        lambda c: (c.freshness is Freshness.TOLERATE) != bool(c.tolerates),
        "freshness='tolerate' and tolerates= go together: name the facts that may move",
    ),
    (
        lambda c: (
            c.effect is Effect.NONE
            and bool(c.unique or c.look_alike is not LookAlike.NONE or c.risk is Risk.CONFIRM)
        ),
        "effect='none' changes nothing, so nobody has to agree to it, and it can neither look like"
        " another effect nor break a rule; drop risk, look_alike and unique, or declare the effect",
    ),
    (
        lambda c: (c.on_interrupt is Interrupt.WAIT) != (c.wait_s > 0),
        "on_interrupt='wait' needs a bound in wait_s, and wait_s means nothing without it",
    ),
    (
        lambda c: (c.order is Order.RELEASE_FIRST) != bool(c.order_why),
        "order='release_first' leaves the person with nothing for a while: say why in order_why,"
        " which is only read then",
    ),
    (
        lambda c: bool(c.amount) != (c.escalate_above is not None),
        "amount and escalate_above go together: name the argument, and above which amount an"
        " unknown goes to a person",
    ),
    (
        lambda c: c.deadline_s <= 0 or c.max_tries < 1 or c.concurrency < 0,
        "deadline_s must be above 0, max_tries at least 1, concurrency at least 0",
    ),
    (
        lambda c: any(
            bound is not None and bound < 0
            for bound in (
                *(c.retention_s, c.refuses_after_s, c.assume_after_s, c.settlement_lag_s),
                *(c.escalate_after_s, c.undo_within_s),
            )
        ),
        "a time cannot be negative; give retention_s, refuses_after_s, assume_after_s,"
        " settlement_lag_s, escalate_after_s and undo_within_s in seconds",
    ),
    (
        lambda c: c.assume_after_s is not None and c.assume_after_s > c.escalate_after_s,
        "assume_after_s comes after escalate_after_s, so a person would be asked before anything"
        " is assumed; make it the smaller one",
    ),
)


def check(contract: Contract, *, tool: str) -> Contract:
    """Return the contract with its service filled in, or raise `ContractError` saying what to do.

    What needs the function or the other tools (a key's parameter, the undo's name) is checked where
    those are known, in `landed.tools.function` and `landed.assemble`.
    """
    for contradicts, advice in CONTRADICTIONS:
        if contradicts(contract):
            raise ContractError(f"contract of {tool}: {advice}")
    named = _fields_of(contract.key_form, {"operation", "session"}, what="key_form", tool=tool)
    if "operation" not in named:
        raise ContractError(
            f"contract of {tool}: key_form must contain {{operation}}, or two operations would"
            " share one key"
        )
    _check_says(contract, tool=tool)
    return contract if contract.service else replace(contract, service=tool)


def filled(
    templates: Mapping[str, str], *, arguments: Mapping[str, Json], result: Json
) -> dict[str, Json]:
    """Return arguments from templates: `{day}` is an argument, `{result.id}` part of a result.

    A template that is one field alone keeps the value's own type. Raises `ProposalError` for a
    field that is not there.
    """
    return {
        name: _fill(template, {**arguments, "result": result})
        for name, template in templates.items()
    }


def _fill(template: str, fields: Mapping[str, Json]) -> Json:
    parts = list(Formatter().parse(template))
    values = [_at(name, fields) for _, name, _, _ in parts if name is not None]
    if len(parts) == 1 and parts[0][0] == "" and values:
        return values[0]
    texts = iter(values)
    return "".join(
        literal + (str(next(texts)) if name is not None else "") for literal, name, _, _ in parts
    )


def _at(path: str, fields: Mapping[str, Json]) -> Json:
    found: Json = fields
    for part in path.split("."):
        if not isinstance(found, Mapping) or part not in found:
            raise ProposalError(f"there is no {path!r} to fill in; given: {', '.join(fields)}")
        found = found[part]
    return found


def _check_says(contract: Contract, *, tool: str) -> None:
    for language, words in contract.says.items():
        unknown = sorted(set(words) - SAYABLE)
        if unknown:
            raise ContractError(
                f"contract of {tool}: says has words for {unknown[0]!r}, which is not a state;"
                f" use one of {', '.join(sorted(SAYABLE))}"
            )
        for words_for, template in words.items():
            _check_words(template, f"{tool}: says[{language!r}][{words_for!r}]")
        missing = sorted(SAYABLE - set(words))
        if missing and language not in LANGUAGES:
            raise ContractError(
                f"contract of {tool}: says has no words in {language!r} for {missing[0]!r};"
                f" only {' and '.join(LANGUAGES)} have defaults"
            )


def _check_words(template: str, where: str) -> None:
    """Refuse braces that could not be filled in once the effect is there."""
    try:
        fields = [each for each in Formatter().parse(template) if each[1] is not None]
    except ValueError as error:
        raise ContractError(f"contract of {where} is not a template: {error}") from None
    for _, name, form, conversion in fields:
        if not str(name).isidentifier() or form or conversion:
            raise ContractError(
                f"contract of {where}: write {{name}} for a field of the arguments or the result,"
                f" and nothing else in the braces, not {{{name}}}"
            )


def _fields_of(form: str, allowed: set[str], *, what: str, tool: str) -> set[str]:
    try:
        names = {name for _, name, _, _ in Formatter().parse(form) if name is not None}
    except ValueError as error:
        raise ContractError(f"contract of {tool}: {what} is not a template: {error}") from None
    if not names <= allowed:
        wrong = sorted(names - allowed)[0]
        raise ContractError(
            f"contract of {tool}: {what} speaks of {wrong!r}; it may name {sorted(allowed)}"
        )
    return names
