"""A preview: what a step will do, in real figures, and the facts that it was computed from.

The figures come from the tool's own preview function, never from a model. What is missing is a
question, and a plan with a question is invalid: nothing is assumed. The *basis* is what the figures
stand on; its fingerprint must still match when the step is started, so that a yes to 100 is never a
yes to 120. A step's basis leaves out what earlier steps of its own plan make.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from landed.core.canonical import Json, fingerprint
from landed.core.contract import Contract, Effect, Freshness, LookAlike, Risk
from landed.core.key import Ask

SUMMARY_MAX = 500  # characters
QUESTIONS_MAX = 20
SIMILAR_MAX = 5


class Begins(StrEnum):
    """What starts a plan once it was previewed; nothing but that does."""

    ITSELF = ""  # at once, or by the yes where a person has to agree
    TOKEN = "token"
    YES_THEN_TOKEN = "yes_then_token"


@dataclass(frozen=True, slots=True, kw_only=True)
class Previewing:
    """What a preview function is handed.

    `arguments` are the step's, in which `$n` still stands for what step n will make; `made` are the
    facts of that, by `$n`, as the earlier step's preview gave them. `held` is what the preview that
    a person agreed to kept for the send; empty where it is previewed for the first time. `now` is
    UTC, seconds since the epoch; `language` the person's.
    """

    tool: str
    arguments: Mapping[str, Json]
    ask: Ask
    now: float
    language: str = "en"
    origin: str = "user"
    made: Mapping[str, Mapping[str, Json]] = field(default_factory=dict[str, Mapping[str, Json]])
    held: Mapping[str, Json] = field(default_factory=dict[str, Json], repr=False)

    def facts(self, argument: str) -> Mapping[str, Json] | None:
        """Return the facts of what an argument refers to, None where it is a real id."""
        value = self.arguments.get(argument)
        return self.made.get(value) if isinstance(value, str) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Similar:
    """An effect that is there already and looks like the one that is wanted."""

    id: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What a step will do.

    summary     one line in the person's language, with the figures in it
    cost_cents  what it costs, where it costs something
    basis       the facts it was computed from; they must still hold when it is started
    questions   what is missing; any of them makes the plan invalid
    makes       the facts of what it will make, for the previews of later steps
    typed       the words of which one has to be typed; a plain yes is not enough then
    similar     what is there already and looks the same
    held        what the send will need of it (a service's plan and its token): stored with the plan
                and handed to the call as `prepared`; nobody is shown it, and no digest covers it
    """

    summary: str
    cost_cents: int | None = None
    basis: Mapping[str, Json] = field(default_factory=dict[str, Json])
    questions: tuple[str, ...] = ()
    makes: Mapping[str, Json] = field(default_factory=dict[str, Json])
    typed: tuple[str, ...] = ()
    similar: tuple[Similar, ...] = ()
    held: Mapping[str, Json] = field(default_factory=dict[str, Json], repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """One fact that moved since the preview."""

    step: int
    field: str
    was: Json
    now: Json


def typed_count(count: int) -> tuple[str, ...]:
    """Return what has to be typed before `count` things are deleted: their number, or the word."""
    return (str(count), "DELETE", "BORRAR")


def changed(
    step: int, was: Mapping[str, Json], now: Mapping[str, Json], contract: Contract
) -> tuple[Changed, ...]:
    """Return which facts of a basis moved, but for those that the contract tolerates."""
    if contract.freshness is Freshness.NONE:
        return ()
    tolerated = contract.tolerates if contract.freshness is Freshness.TOLERATE else ()
    names = [name for name in sorted({*was, *now}) if name not in tolerated]
    return tuple(
        Changed(step=step, field=name, was=was.get(name), now=now.get(name))
        for name in names
        if was.get(name) != now.get(name)
    )


def basis_fingerprint(bases: Sequence[Mapping[str, Json]]) -> str:
    """Return the fingerprint of what a plan's previews were computed from."""
    return fingerprint([dict(basis) for basis in bases], domain="basis")


def risk_of(contract: Contract, declared: Risk, *, origin: str, similar: bool) -> Risk:
    """Return whether a step needs a person's yes.

    Whatever it declares, it does where something is there that looks the same (if that is looked
    for), and where it is final and nobody asked for it: in a turn that the user did not start.
    """
    unasked = origin != "user" and contract.effect is Effect.IRREVERSIBLE
    alike = similar and contract.look_alike is not LookAlike.NONE
    return Risk.CONFIRM if unasked or alike else declared


def preview_plain(preview: Preview, *, held: bool = False) -> dict[str, Json]:
    """Return what was shown, as plain values: what the plan's hash covers.

    With `held` it is what is stored: also what the send will need, which nobody is shown.
    """
    kept: dict[str, Json] = {"held": dict(preview.held)} if held and preview.held else {}
    return kept | {
        "summary": preview.summary,
        "cost_cents": preview.cost_cents,
        "basis": dict(preview.basis),
        "questions": list(preview.questions),
        "makes": dict(preview.makes),
        "typed": list(preview.typed),
        "similar": [[each.id, each.text] for each in preview.similar],
    }


def preview_from(plain: Mapping[str, Json]) -> Preview:
    """Read a preview back; the reverse of `preview_plain`, `held`."""
    kept: dict[str, object] = dict(plain)
    similar: list[tuple[str, str]] = kept.pop("similar")  # type: ignore[assignment]
    kept["questions"] = tuple(kept["questions"])  # type: ignore[arg-type]
    kept["typed"] = tuple(kept["typed"])  # type: ignore[arg-type]
    return Preview(
        similar=tuple(Similar(id=id, text=text) for id, text in similar),
        **kept,  # type: ignore[arg-type]
    )
