"""What a service's dry run says, kept verbatim until its commit, and what its answers mean.

The table `MEANS` says what each status of a commit means, `NEXT` what follows. A plan's token is a
capability: it is in no repr, no sentence and no evidence, and nothing here looks into it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import cast

from landed.core.canonical import Json
from landed.tools.classify import bounded
from landed.tools.routes import Missing, at

CHANGED_MAX = 20
"""Facts that are kept of what a service says has changed; those beyond are left out."""
SHOWN_MAX = 5  # Of them in the sentence of a conflict, and actions in a preview's.
HIDDEN = "***"


class Meaning(StrEnum):
    """What became of a commit; `NEXT` says what follows."""

    OK = "ok"
    EXPIRED = "expired"
    STALE = "stale"
    CONFLICT = "conflict"
    REFUSED = "refused"
    NOT_NOW = "not_now"
    UNKNOWN = "unknown"


NEXT: Mapping[Meaning, str] = {
    Meaning.OK: "it took effect, once",
    Meaning.EXPIRED: "nothing was done; it has to be planned again, and the new plan shown",
    Meaning.STALE: "nothing was sent; it has to be planned again, and the new plan shown",
    Meaning.CONFLICT: "nothing was done; what is left to do has to be planned and shown anew",
    Meaning.REFUSED: "nothing was done; the same call would be refused again",
    Meaning.NOT_NOW: "nothing was taken up; the same commit goes again, under the same key",
    Meaning.UNKNOWN: "it is found out: the plan is read, and the same key sent again",
}

MEANS: Mapping[int, Meaning] = {
    **dict.fromkeys((200, 201, 202, 203, 204, 205), Meaning.OK),
    **dict.fromkeys((400, 401, 403, 404, 405, 406, 412, 413, 414, 415, 422), Meaning.REFUSED),
    409: Meaning.CONFLICT,
    410: Meaning.EXPIRED,
    429: Meaning.NOT_NOW,
}
"""What a status means, where the service says nothing else; all others are `unknown`.

A 409 that names nothing that changed is `unknown` too: it may speak of a commit that is running.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where a service's plans say what, as dotted names, and what it calls their states.

    plan_id, token, fingerprint, expires_at, actions
                  in the dry run's answer; `expires_at` is RFC 3339 with an offset, or UTC seconds
    inputs        where that repeats the inputs, "" for nowhere; other inputs are a bug, and said
    sends         what a commit's body has, by name: `plan_id`, `token`, `fingerprint`
    changed       in a conflict: the list of what moved, each `{field, was, now}`
    planned_at    in a conflict: when the plan was made
    state, result in a plan that is read: what became of it, and what its commit answered
    open, applied, ended
                  the states in which a commit may still come, has landed, can land no more
    means         what a status of a commit means
    """

    plan_id: str = "plan_id"
    token: str = "plan_token"
    fingerprint: str = "input_fingerprint"
    expires_at: str = "expires_at"
    actions: str = "actions"
    inputs: str = ""
    sends: Mapping[str, str] = field(
        default_factory=lambda: {
            "plan_id": "plan_id",
            "plan_token": "token",
            "input_fingerprint": "fingerprint",
        }
    )
    changed: str = "changed"
    planned_at: str = "plan_created_at"
    state: str = "state"
    result: str = "result"
    open: tuple[str, ...] = ("open",)
    applied: tuple[str, ...] = ("applied",)
    ended: tuple[str, ...] = ("expired", "abandoned")
    means: Mapping[int, Meaning] = field(default_factory=lambda: MEANS)


def commit_schema(layout: Layout) -> dict[str, Json]:
    """Return the JSON Schema (2020-12) of what a commit's body is, in the service's own words.

    All of it is needed, and nothing else may be in it: what runs is what was planned. A token says
    nothing without the fingerprint of what was seen, and that nothing without its plan.
    """
    names = {what: name for name, what in layout.sends.items()}
    needs = {"token": ("fingerprint", "plan_id"), "fingerprint": ("plan_id",)}
    depends: dict[str, Json] = {
        names[what]: [names[each] for each in needed if each in names]
        for what, needed in needs.items()
        if what in names
    }
    text: dict[str, Json] = {"type": "string", "minLength": 1}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": dict.fromkeys(layout.sends, text),
        "required": list(layout.sends),
        "dependentRequired": {name: needed for name, needed in depends.items() if needed},
        "additionalProperties": False,
    }


class NoPlanError(ValueError):
    """A dry run's answer is no plan; what it lacks is the text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun:
    """One plan of a service. `said` is its answer, verbatim; `inputs` the canonical inputs.

    `expires_at` is UTC, seconds since the epoch, converted once. `actions` are what it will do.
    """

    id: str
    fingerprint: str
    expires_at: float
    inputs: str
    actions: tuple[Mapping[str, Json], ...] = field(repr=False)
    token: str = field(repr=False)
    said: Json = field(repr=False)

    @property
    def held(self) -> dict[str, Json]:
        """What is stored of it, for the send."""
        return {"said": self.said, "expires_at": self.expires_at, "inputs": self.inputs}

    def expired(self, now: float) -> bool:
        """Whether no commit of it is tried any more."""
        return now >= self.expires_at

    def told(self, value: Json) -> Json:
        """Return what a service said, without the token, should it repeat that."""
        match value:
            case str():
                return value.replace(self.token, HIDDEN)
            case Mapping():
                return {str(self.told(name)): self.told(each) for name, each in value.items()}
            case list():
                return [self.told(each) for each in value]
            case _:
                return value


def planned(said: Json, layout: Layout, *, inputs: str) -> DryRun:
    """Read a dry run's answer; raises `NoPlanError` where it lacks what a commit needs."""
    return _plan(said, layout, inputs=inputs, expires_at=_instant(at(said, layout.expires_at)))


def held_plan(held: Json, layout: Layout) -> DryRun | None:
    """Read a plan that was stored; None where there is none, or not all of it."""
    if not isinstance(held, Mapping) or not held.keys() >= {"said", "expires_at", "inputs"}:
        return None
    until = held["expires_at"]
    if not isinstance(until, int | float):
        return None
    try:
        inputs = str(held["inputs"])
        return _plan(held["said"], layout, inputs=inputs, expires_at=float(until))
    except NoPlanError:
        return None


def _plan(said: Json, layout: Layout, *, inputs: str, expires_at: float) -> DryRun:
    actions = at(said, layout.actions)
    if not isinstance(actions, list) or not all(isinstance(each, Mapping) for each in actions):
        raise NoPlanError(f"its {layout.actions} are no list of actions")
    return DryRun(
        id=_text(said, layout.plan_id),
        token=_text(said, layout.token),
        fingerprint=_text(said, layout.fingerprint),
        expires_at=expires_at,
        inputs=inputs,
        actions=tuple(cast("list[Mapping[str, Json]]", actions)),
        said=said,
    )


def _text(said: Json, path: str) -> str:
    value = at(said, path)
    if not isinstance(value, str) or not value:
        raise NoPlanError(f"it has no {path}")
    return value


def _instant(value: "Json | Missing") -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    try:
        when = datetime.fromisoformat(value if isinstance(value, str) else "")
    except ValueError:
        raise NoPlanError("it does not say when it expires") from None
    if when.tzinfo is None:
        raise NoPlanError("the time at which it expires has no offset from UTC")
    return when.timestamp()


def instant(at_s: float) -> str:
    """Return a time as people read it, in UTC."""
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def changed_in(body: Json, layout: Layout) -> tuple[Mapping[str, Json], ...]:
    """Return what a conflict names as changed, each `{field, was, now}`; () where it is bare."""
    named = at(body, layout.changed)
    if not isinstance(named, list):
        return ()
    facts = [each for each in named if isinstance(each, Mapping)]
    whole = [each for each in facts if isinstance(each.get("field"), str)]
    return tuple(
        {"field": each["field"], "was": each.get("was"), "now": each.get("now")}
        for each in whole[:CHANGED_MAX]
    )


def meant(meaning: Meaning, says: str) -> str:
    """Return why nothing was done: it begins with what that means and ends with what follows."""
    room = 280 - len(meaning) - len(NEXT[meaning])
    short = says if len(says) <= room else says[: room - 1] + "…"
    return bounded(f"{meaning}: {short}; {NEXT[meaning]}")


def moved_text(facts: tuple[Mapping[str, Json], ...], planned_at: "Json | Missing") -> str:
    """Return what has moved since a plan was made, as a sentence names it."""
    each = [f"{c['field']} was {c['was']} and is {c['now']}" for c in facts[:SHOWN_MAX]]
    more = f", and {len(facts) - SHOWN_MAX} more" if len(facts) > SHOWN_MAX else ""
    since = f" since the plan of {planned_at}" if isinstance(planned_at, str) else ""
    return "; ".join(each) + more + since


def actions_text(plan: DryRun) -> str:
    """Return what a plan will do, in the words of its actions."""
    each = [_action(action) for action in plan.actions[:SHOWN_MAX]]
    more = len(plan.actions) - SHOWN_MAX
    return "; ".join(each) + (f"; and {more} more" if more > 0 else "")


def _action(action: Mapping[str, Json]) -> str:
    words = [str(action[name]) for name in ("op", "target") if name in action]
    if "field" in action:
        was = f"{action['from']} ▸ " if "from" in action else ""
        words.append(f"({action['field']}: {was}{action.get('to')})")
    return " ".join(words)
