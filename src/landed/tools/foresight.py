"""What a tool says before anything is sent: how risky a call is, what it will do, what is alike.

A tool's author gives functions; here their exceptions become values. What a preview function
refuses (`ProposalError`, `RefusedError`) is a question to the person; anything else it raises means
that nobody knows the figures, and a plan without figures is not carried out.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypedDict, cast

from landed.core.canonical import Json, checked
from landed.core.contract import LookAlike, Risk
from landed.core.errors import ContractError, ProposalError, RefusedError
from landed.core.outcome import NoAnswer
from landed.core.preview import SIMILAR_MAX, Preview, Previewing, Similar
from landed.tools.classify import bounded, described

RiskOf = Callable[[Mapping[str, Json], str], Risk | Literal["safe", "confirm"]]
PreviewOf = Callable[[Previewing], object]
AlikeOf = Callable[[Previewing], object]


class Forethought(TypedDict, total=False):
    """What a tool's author may give besides the promises.

    risk        `safe` (default), `confirm`, or a function of the arguments and of who started the
                turn (`user`, `timer`, …)
    preview     a function of a `Previewing` that returns a `Preview`; it changes nothing
    look_alike  a function of a `Previewing` that returns the `Similar` effects there are
    if_alike    what is done where there are some: `warn` (default: the person is asked) or `block`
    """

    risk: Literal["safe", "confirm"] | Risk | RiskOf
    preview: PreviewOf
    look_alike: AlikeOf
    if_alike: Literal["warn", "block"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Foresight:
    """The functions of one tool, as a `landed.core.tool.Foresight`."""

    tool: str
    declared: Risk = Risk.SAFE
    risk_of: RiskOf | None = None
    preview_of: PreviewOf | None = None
    alike_of: AlikeOf | None = None

    def risk(self, arguments: Mapping[str, Json], origin: str) -> Risk:
        """Return the risk of this call; one that cannot be told needs a yes."""
        if self.risk_of is None:
            return self.declared
        try:
            return Risk(self.risk_of(arguments, origin))
        except Exception:
            return Risk.CONFIRM  # Fail closed: who cannot say that it is safe, asks.

    async def preview(self, asked: Previewing) -> Preview | NoAnswer:
        """Ask the preview function."""
        if self.preview_of is None:
            return NoAnswer(reason=f"{self.tool} has no preview")
        try:
            said = self.preview_of(asked)
            said = await said if inspect.isawaitable(said) else said
            return _whole(said)
        except (ProposalError, RefusedError) as error:
            return Preview(summary="", questions=(bounded(str(error)) or described(error),))
        except Exception as error:
            return NoAnswer(reason=described(error))

    async def look_alike(self, asked: Previewing) -> tuple[Similar, ...] | NoAnswer:
        """Ask the look-alike function."""
        if self.alike_of is None:
            return ()
        try:
            said = self.alike_of(asked)
            said = await said if inspect.isawaitable(said) else said
            return tuple(cast("Iterable[Similar]", said))[:SIMILAR_MAX]
        except Exception as error:
            return NoAnswer(reason=described(error))


def _whole(said: object) -> Preview:
    """Return a preview whose facts are JSON, or raise `TypeError`."""
    if not isinstance(said, Preview):
        raise TypeError(f"a preview function returned {type(said).__name__}, not a Preview")
    try:
        for facts in (said.basis, said.makes):
            checked(dict(facts))
    except ProposalError as error:
        raise TypeError(f"the facts of a preview are no JSON: {error}") from None
    return said


def foresight(tool: str, promises: Mapping[str, object]) -> tuple[Foresight, dict[str, object]]:
    """Split what a tool's author gave: its foresight, and the plain values of its contract."""
    given = cast("Forethought", {name: promises[name] for name in _GIVEN if name in promises})
    risk, alike = given.get("risk", Risk.SAFE), given.get("look_alike")
    if alike is None and "if_alike" in given:
        raise ContractError(f"contract of {tool}: if_alike needs look_alike, which finds them")
    declared = Risk.CONFIRM if callable(risk) else risk
    plain: dict[str, object] = {
        **{name: value for name, value in promises.items() if name not in _GIVEN},
        "risk": declared,
        "risk_varies": callable(risk),
        "preview": "preview" in given,
        "look_alike": LookAlike.NONE if alike is None else given.get("if_alike", "warn"),
    }
    seen = Foresight(
        tool=tool,
        declared=Risk.CONFIRM if declared == Risk.CONFIRM else Risk.SAFE,
        risk_of=risk if callable(risk) else None,
        preview_of=given.get("preview"),
        alike_of=alike,
    )
    return seen, plain


_GIVEN = frozenset(Forethought.__annotations__)
