"""`landed demo`: plays a scenario and says whether it ended as its description says."""

import difflib
import json
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from landed.cli import stops, switches

if TYPE_CHECKING:
    from landed.testing.playing import AnyScenario
    from landed.testing.scenario import Ran
    from landed.testing.stops.scenario import StopScenario

STORY = "story"
STORY_IS_REAL = "the story is real: it takes no --kill, --points, --seed and no switches"
NAME_IS_MISSING = "--history, --kill, --points and the switches go with the NAME of one scenario"
YES = {True: "yes", False: "no", None: "-"}


@click.command()
@click.argument("name", default="")
@click.option("--all", "every", is_flag=True, help="Run all of them and print a table.")
@click.option(
    "--history",
    type=click.Choice(("cache", "story")),
    is_flag=False,
    flag_value="cache",
    help="Add what a model would be shown; --history=story is the other view.",
)
@click.option("--json", "as_json", is_flag=True, help="Print an object instead.")
@click.option("--kill", "kills", multiple=True, metavar="POINT", help="Kill a process there.")
@click.option("--points", is_flag=True, help="List the points where it can be killed.")
@click.option("--seed", type=int, help="Choose the schedule among what is ready at one time.")
@click.option("--simulated", is_flag=True, help="Simulate what would be played for real.")
@click.option("--store", default="", metavar="URL", help="Play on, or beside, that store.")
@switches.options
def command(
    name: str,
    every: bool,
    history: str | None,
    as_json: bool,
    kills: tuple[str, ...],
    points: bool,
    seed: int | None,
    simulated: bool,
    store: str,
    **switched: Any,
) -> None:
    """List the scenarios, or run the one called NAME.

    A POINT is before|after:<event or command>[:tool][#n]. --kill may be repeated: for the first
    process, the second, and so on. Exit status 0: it ended as its description says (a wrong design:
    it went wrong in the way described); 1: it did not.

    `invoice` and `invoice-redeploy` are played with processes, HTTP, SMTP and SIGKILL, but with
    --simulated, --kill, --points, --seed or a wrong design; so are `refund-planned`,
    `refund-conflict`, `refund-commit-timeout` and `refund-commit-dropped`, over HTTP.

    With --store, `story` is told on that store, all else beside it. LANDED_STORE names none.

    The scenarios of a stop (`stop-…`, and those listed with them) have neither world nor store:
    of the options they take --json alone.
    """
    given = switches.touched(switched)
    if (every or not name) and (history or kills or points or given or (every and name)):
        raise click.UsageError(NAME_IS_MISSING)
    wants = _Wants(points=points, history=history, as_json=as_json, seed=seed, store=store)
    with _extra():
        if every:
            status = _run_all(wants)
        elif not name:
            status = _list(wants)
        else:
            status = _run_one(name, kills, given, wants, simulated=simulated)
    raise SystemExit(status)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wants:
    """What is to be printed of a run, on which schedule it goes, and beside which store."""

    points: bool
    history: str | None
    as_json: bool
    seed: int | None
    store: str


def _run_one(
    name: str,
    kills: tuple[str, ...],
    given: dict[str, object],
    wants: _Wants,
    *,
    simulated: bool,
) -> int:
    """Run the one of that name; raises a usage error for options that make no sense with it."""
    others = kills or wants.points or given or simulated or wants.seed is not None
    if name == STORY:
        if others:
            raise click.UsageError(STORY_IS_REAL)
        return _tell(wants)
    if stops.is_one(name):
        is_plain = not (others or wants.history or wants.store)
        return stops.play(name, as_json=wants.as_json, is_plain=is_plain)
    return _play(name, kills, given, wants, simulated=simulated)


def _play(
    name: str,
    kills: tuple[str, ...],
    given: dict[str, object],
    wants: _Wants,
    *,
    simulated: bool,
) -> int:
    """Play one scenario: for real where it is meant to be, and nothing that simulates is given."""
    if given and kills:
        given["kill"], kills = _parsed(kills), ()  # A combination may have its own end.
    scenario = _switched(_scenario(name), given)
    simulates = kills or wants.points or wants.seed is not None or set(given) - {"language"}
    if _is_real(name) and not (simulated or simulates):
        return _tell_for_real(scenario, wants)
    return _points(scenario, kills, wants) if wants.points else _run(scenario, kills, wants)


def _list(wants: _Wants) -> int:
    if wants.store:
        raise click.UsageError("--store goes with the NAME of a scenario, or with --all")
    from landed.testing import story
    from landed.testing.playing import every
    from landed.testing.stops.scenarios import STOPS

    listed: list[AnyScenario | StopScenario] = [story.STORY, *every(), *STOPS]
    if wants.as_json:
        _print_json([{"scenario": one.name, "line": one.line} for one in listed])
        return 0
    width = max(len(one.name) for one in listed) + 2
    for one in listed:
        click.echo(f"{one.name:<{width}}{one.line}")
    return 0


def _run_all(wants: _Wants) -> int:
    from landed.testing.playing import every

    ran = [_played(scenario, None, wants) for scenario in every()]
    stopped = stops.every_played()
    if wants.as_json:
        _print_json([*(one.plain() for one in ran), *(one.plain() for one in stopped)])
    else:
        rows = [("scenario", "what the far side holds", "reconciled", "as described")]
        rows += [
            (
                one.scenario.name,
                _holds(one, next(iter(one.world))),
                YES[one.reconciled],
                YES[one.as_described],
            )
            for one in ran
        ]
        for table in (rows, stops.rows(stopped)):
            for line in _table(table):
                click.echo(line)
    described = [one.as_described for one in ran] + [one.as_described for one in stopped]
    return 0 if all(described) else 1


def _table(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(map(len, column)) + 2 for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
        yield "".join(cells).rstrip()


def _run(scenario: "AnyScenario", kills: Sequence[str], wants: _Wants) -> int:
    ran = _ran(scenario, _parsed(kills) if kills else None, wants)
    if wants.as_json:
        _print_json(ran.plain())
    else:
        lines = (*map(str, ran.timeline.lines), *_history(ran, wants.history))
        for line in (*lines, *_holdings(ran), _reconciled(ran), _message(ran)):
            click.echo(line)
    return _status(ran)


def _points(scenario: "AnyScenario", kills: Sequence[str], wants: _Wants) -> int:
    """Print the points that the process after the killed ones passes."""
    ran = _ran(scenario, _parsed(kills), wants)
    points = [str(point) for point in ran.points[len(kills)]]
    if wants.as_json:
        _print_json({"scenario": scenario.name, "points": points})
    else:
        for point in points:
            click.echo(point)
    return 0


def _tell(wants: _Wants) -> int:
    from landed.testing import story
    from landed.testing.worlds.serve import WorldStartError

    def say(line: object) -> None:
        if not wants.as_json:
            click.echo(str(line))

    try:
        told = story.tell(say, store=wants.store)
    except WorldStartError as error:
        raise click.ClickException(str(error)) from error
    ran, naive = told.ran, ", ".join(str(one["text"]) for one in told.naive)
    if wants.as_json:
        _print_json({**ran.plain(), "naive": {"restaurant": told.naive}})
    else:
        # The restaurants' own ledgers have the last word.
        said = (
            *_history(ran, wants.history),
            _message(ran),
            _reconciled(ran),
        )
        for line in (*said, f"-- the naive agent's restaurant holds: {naive}", *_holdings(ran)):
            click.echo(line)
    # Other than in a simulation, a kill that did not happen must not pass unnoticed.
    return 0 if told.as_described else 1


def _tell_for_real(scenario: "AnyScenario", wants: _Wants) -> int:
    """Play a scenario for real, with processes and HTTP."""
    from landed.testing.invoices import real as invoices
    from landed.testing.invoices.scenario import InvoiceScenario
    from landed.testing.refunds import real as refunds
    from landed.testing.refunds.stage import RefundScenario
    from landed.testing.worlds.serve import WorldStartError

    def say(line: object) -> None:
        if not wants.as_json:
            click.echo(str(line))

    try:
        if isinstance(scenario, RefundScenario):
            ran = refunds.tell(scenario, say, store=wants.store)
        else:
            assert isinstance(scenario, InvoiceScenario)
            ran = invoices.tell(scenario, say, store=wants.store)
    except WorldStartError as error:
        raise click.ClickException(str(error)) from error
    if wants.as_json:
        _print_json(ran.plain())
    else:
        said = (*_history(ran, wants.history), *_holdings(ran), _reconciled(ran))
        for line in (*said, _message(ran)):
            click.echo(line)
    if ran.kill != scenario.kill:
        click.echo("landed demo: no process was killed with its call in doubt", err=True)
        return 1
    return _status(ran)


def _is_real(name: str) -> bool:
    from landed.testing.invoices.real import REAL
    from landed.testing.refunds.real import REAL as REFUNDED

    return name in REAL or name in REFUNDED


def _scenario(name: str) -> "AnyScenario":
    from landed.testing.playing import known

    scenarios = known()
    if name in scenarios:
        return scenarios[name]
    near = difflib.get_close_matches(name, [*scenarios, *stops.names(), STORY], cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else "`landed demo` lists them"
    raise click.UsageError(f"there is no scenario {name!r}; {hint}")


def _switched(scenario: "AnyScenario", given: dict[str, object]) -> "AnyScenario":
    """Touch the switches; in the scenarios of doubt each wrong design has a name of its own."""
    from landed.testing.doubts.scenario import DoubtScenario

    if not isinstance(scenario, DoubtScenario):
        return switches.switched(scenario, given)
    if given:
        raise click.UsageError(
            f"{scenario.name} takes no switches: its wrong designs are scenarios of their own"
        )
    return scenario


def _parsed(kills: Sequence[str]) -> tuple[str, ...]:
    from landed.testing.faults import parse_point
    from landed.testing.scenario import PROCESSES_MAX

    if len(kills) >= PROCESSES_MAX:
        raise click.UsageError(f"at most {PROCESSES_MAX - 1} processes can be killed")
    try:
        return tuple(str(parse_point(point)) for point in kills)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--kill") from error


def _ran(scenario: "AnyScenario", kills: tuple[str, ...] | None, wants: _Wants) -> "Ran":
    """Run it; a kill that never happened is a usage error, for the run says nothing of it."""
    ran = _played(scenario, kills, wants)
    died = sum(line.type == "crash" for line in ran.timeline.lines)
    if died < len(ran.kill):
        raise click.UsageError(
            f"process {died + 1} never comes to {ran.kill[died]};"
            f" `landed demo {scenario.name} --points` lists where it can be killed"
        )
    return ran


def _played(scenario: "AnyScenario", kills: tuple[str, ...] | None, wants: _Wants) -> "Ran":
    """Simulate it on the stage that it was written for, in memory or beside a store."""
    from landed.testing.beside import base_beside
    from landed.testing.playing import played

    with base_beside(wants.store) if wants.store else nullcontext() as base:
        return played(scenario, kill=kills, seed=wants.seed, base=base)


def _status(ran: "Ran") -> int:
    if ran.as_described is not False:
        return 0
    wanted = ran.scenario
    held = (f"{name}: {', '.join(what) or 'nothing'}" for name, what in wanted.wanted.items())
    asked = "" if wanted.asked is None else f" a person should be asked {wanted.asked} time(s),"
    click.echo(
        f"landed demo: {wanted.name} did not end as described:"
        f" there should be {'; '.join(held)};{asked}"
        f" reconciled should be {YES[wanted.reconciled]}"
        f" and the last message should say {' and '.join(map(repr, wanted.says)) or 'anything'}"
        + "".join(f"; {one}" for one in ran.unwitnessed),
        err=True,
    )
    return 1


def _history(ran: "Ran", view: str | None) -> Iterator[str]:
    from landed.core.history import View

    if view is None:
        return
    order = "as a model is shown it" if view == "cache" else "in the order it happened"
    yield f"-- history, {order}:"
    for item in ran.history_as(View(view)):
        yield f"   {item.role:<10} {item.text}"


def _holdings(ran: "Ran") -> Iterator[str]:
    for service in ran.world:
        yield f"-- {service} holds: {_holds(ran, service)}"


def _holds(ran: "Ran", service: str) -> str:
    return ", ".join(str(one["text"]) for one in ran.world[service]) or "nothing"


def _reconciled(ran: "Ran") -> str:
    return f"-- reconciled: {YES[ran.reconciled]}"


def _message(ran: "Ran") -> str:
    return f"-- agent's last message: {ran.message}"


def _print_json(plain: object) -> None:
    click.echo(json.dumps(plain, indent=2, ensure_ascii=False))


@contextmanager
def _extra() -> Generator[None]:
    """Turn a package that is not installed into what to install."""
    try:
        yield
    except ModuleNotFoundError as missing:
        name = (missing.name or "").split(".")[0]
        if name == "landed":
            raise
        raise click.ClickException(
            f"the demos need {name}; install the extra: pip install 'landed[demo]'"
        ) from missing
