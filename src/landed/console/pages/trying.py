"""Try it: a simulated scenario with its switches, drawn beside what a naive agent does.

Nothing of it touches the runtime that is served, or its store.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from starlette.responses import Response

from landed.console.drawn import Drawn, drawn, drawn_beside
from landed.console.trials import CrowdedError, Trial
from landed.console.visit import Page, Visit
from landed.server.problems import ProblemError

if TYPE_CHECKING:
    from landed.testing.playing import AnyScenario
    from landed.testing.switches import Switches

MAIN = "revise-in-flight"

# The switches of the page in the order they stand there, each with its choices; the first is as it
# is when nobody touches it. The naive agent stands beside the one that reconciles in every run.
CHOICES: Mapping[str, tuple[str, ...]] = {
    "request": ("arrives", "delayed"),
    "key": ("close", "lookup"),
    "order": ("secure-first", "release-first"),
    "saturday": ("free", "full"),
    "process": ("lives", "kept", "lost"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One run as the page shows it."""

    name: str
    trial: Trial
    drawn: Drawn


async def trying(visit: Visit) -> Response:
    """Show a scenario, played with the switches of the query."""
    scenario = visit.asked("scenario") or MAIN
    chosen = _chosen(visit) if scenario == MAIN else {}
    lines = _scenarios()
    if lines is None:
        return visit.show("trying_missing.html", status=503, page="try")
    if scenario not in lines:
        raise ProblemError("absent")
    try:
        columns = await _columns(visit, scenario, chosen)
    except CrowdedError:
        columns = []
    return visit.show(
        "trying.html",
        status=200 if columns else 503,
        page="try",
        scenario=scenario,
        scenarios=list(lines),
        line=lines[scenario],
        choices=CHOICES if scenario == MAIN else {},
        chosen=chosen,
        columns=columns,
    )


def _chosen(visit: Visit) -> dict[str, str]:
    """Return the switches that were chosen; raises `ProblemError` for a choice there is not."""
    chosen = {name: visit.asked(name) or choices[0] for name, choices in CHOICES.items()}
    if any(chosen[name] not in choices for name, choices in CHOICES.items()):
        raise ProblemError("invalid")
    return chosen


def _scenarios() -> Mapping[str, str] | None:
    """Return the names of all, each with its line; None without the packages of the demos."""
    try:
        from landed.testing.playing import every
    except ModuleNotFoundError as missing:
        if (missing.name or "").startswith("landed"):
            raise
        return None
    return {each.name: each.line for each in every()}


async def _columns(visit: Visit, scenario: str, chosen: Mapping[str, str]) -> list[Column]:
    runs = _of_main(chosen) if scenario == MAIN else _of_others(scenario)
    trials = [(name, await visit.console.trials.of(key, made)) for name, key, made in runs]
    titled = [(visit.say(f"try.{name}"), trial.lines) for name, trial in trials]
    if len(titled) == 1:
        pictures = [drawn(titled[0][1], title=scenario, say=visit.say)]
    else:
        pictures = drawn_beside(titled, say=visit.say)
    return [
        Column(name=name, trial=trial, drawn=picture)
        for (name, trial), picture in zip(trials, pictures, strict=True)
    ]


Run = tuple[str, object, "Callable[[], AnyScenario]"]


def _of_main(chosen: Mapping[str, str]) -> list[Run]:
    switches = switches_of(chosen)
    naive = replace(switches, reconcile=False)
    return [
        (name, each, _switched(each)) for name, each in (("naive", naive), ("landed", switches))
    ]


def _of_others(scenario: str) -> list[Run]:
    """Return a scenario, and beside it the naive agent's, where it has one of that name."""
    from landed.testing.playing import known

    names = known()
    beside = f"{scenario}-naive"
    if beside not in names:
        return [("alone", scenario, lambda: names[scenario])]
    return [
        ("naive", beside, lambda: names[beside]),
        ("landed", scenario, lambda: names[scenario]),
    ]


def switches_of(chosen: Mapping[str, str]) -> "Switches":
    """Return the choices of the page as the switches of a scenario."""
    from landed.testing.switches import SATURDAY_COMMITTED, Switches

    return Switches(
        delayed=chosen["request"] == "delayed",
        fencing=chosen["key"] == "close",
        order=chosen["order"],
        full=("Sat",) if chosen["saturday"] == "full" else (),
        kill=() if chosen["process"] == "lives" else SATURDAY_COMMITTED,
        lose_ops=chosen["process"] == "lost",
    )


def _switched(switches: "Switches") -> "Callable[[], AnyScenario]":
    from landed.testing.playing import known
    from landed.testing.switches import switched

    touched = {name: getattr(switches, name) for name in switches.touched}
    return lambda: switched(known()[MAIN], **touched)  # type: ignore[arg-type]


PAGES = (Page(path="/try", answer=trying, nav="nav.try"),)
