"""The papers say what the code does: their examples run, and their tables are the code's own."""

import asyncio
import contextlib
import inspect
import io
import json
import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import MISSING, Field, dataclass, field, fields
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

import click
import pytest
from click.testing import CliRunner

import landed as library
from landed.cli.main import COMMANDS, landed
from landed.core import errors
from landed.core.changes import Kind
from landed.core.contract import Contract
from landed.core.outcome import Absent, Acknowledged, Found, NoAnswer, NotYet
from landed.core.plan import PlanState
from landed.core.tool import Call
from landed.core.value import Value
from landed.runtime.opened import Settings
from landed.runtime.runtime import Runtime
from landed.stores.driver import driver
from landed.stores.migrate import migrations
from landed.testing.deploys.scenarios import DEPLOYS_BY_NAME
from landed.testing.doubts.scenarios import DOUBTS_BY_NAME
from landed.testing.invoices.scenarios import INVOICES_BY_NAME
from landed.testing.refunds.scenarios import REFUNDS_BY_NAME
from landed.testing.scenarios import BY_NAME
from landed.testing.stops.scenarios import STOPS_BY_NAME

CHECKOUT = Path(__file__).parents[1]
DOCS = CHECKOUT / "docs"
REFERENCE = DOCS / "reference"
DRAWN = {"operation.md", "plan.md"}
PAGE_LINES_MAX = 150

SCENARIOS = {
    *(*BY_NAME, *INVOICES_BY_NAME, *DOUBTS_BY_NAME),
    *(*DEPLOYS_BY_NAME, *REFUNDS_BY_NAME, *STOPS_BY_NAME),
}

PAGES = sorted([CHECKOUT / "README.md", CHECKOUT / "ARCHITECTURE.md", *DOCS.rglob("*.md")])
WRITTEN = [page for page in PAGES if page.name not in DRAWN]
NAMES = [page.relative_to(CHECKOUT).as_posix() for page in PAGES]

FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^\| `([^`]+)`[^|]*\|(.*)\|$", re.MULTILINE)
STAMP = re.compile(r"^ *\d+ +\d+\.\d\ds  ")


@dataclass
class FarSide:
    """The restaurant that the README speaks of."""

    tables: dict[str, str] = field(default_factory=dict)

    async def book(self, day: str, people: int, key: str) -> str:
        return self.tables.setdefault(key, f"{day}, a table for {people}")

    async def by_key(self, key: str) -> str | None:
        return self.tables.get(key)


# What a page's examples take for given.
GIVEN: dict[str, dict[str, object]] = {"README.md": {"restaurant": FarSide()}}


def text_of(page: Path) -> str:
    return page.read_text("utf-8")


def prose_of(page: Path) -> str:
    return FENCE.sub("", text_of(page))


def fences(page: Path, *languages: str) -> Iterator[tuple[str, str]]:
    for language, body in FENCE.findall(text_of(page)):
        if language in languages:
            yield language, body


def table(page: Path, head: str) -> dict[str, list[str]]:
    """Return the cells after the first of each row of the table with this head, by the first."""
    every = text_of(page).split("\n\n")
    (found,) = (part for part in every if part.startswith(f"| {head} |"))
    return {
        name.strip("`"): [cell.strip() for cell in rest.replace("\\|", "¦").split("|")]
        for name, rest in ROW.findall(found.split("| --- |\n", 1)[1])
    }


# Examples.


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_each_example_runs_and_prints_what_is_printed(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    name = page.relative_to(CHECKOUT).as_posix()
    names: dict[str, object] = {"__name__": "__main__", **GIVEN.get(name, {})}
    said = ""
    for language, body in fences(page, "python", "output"):
        if language == "output":
            assert said == body
            continue
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile(body, f"<{name}>", "exec"), names)
        said = out.getvalue()


def test_the_tutorial_is_the_example() -> None:
    quoted = "\n\n\n".join(
        body.strip("\n") for _, body in fences(DOCS / "tutorial/first-operation.md", "python")
    )
    assert f"{quoted}\n" == text_of(CHECKOUT / "examples/book_a_table.py")


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_each_command_that_is_shown_prints_that(page: Path) -> None:
    """Lines may be left out; the others come in that order. Numbers and times may move."""
    for _, body in fences(page, "console"):
        for shown in body.removeprefix("$ ").split("\n$ "):
            command, *lines = shown.splitlines()
            if not command.startswith("landed "):
                continue
            ran = CliRunner().invoke(landed, command.split()[1:])
            assert ran.exit_code == 0, ran.output
            printed = iter([STAMP.sub("", line) for line in ran.output.splitlines()])
            for line in lines:
                assert STAMP.sub("", line) in printed, f"{command} does not print {line!r} there"


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_each_command_that_is_named_exists(page: Path) -> None:
    for words in re.findall(r"`landed\s([^`]+)`", prose_of(page)):
        _require_command(words.split())


def _require_command(words: list[str]) -> None:
    name, *rest = words
    if name.startswith("--") or name == "COMMAND":
        assert name in ("--version", "--help", "COMMAND")
        return
    assert name in COMMANDS, f"there is no `landed {name}`"
    known = options(COMMANDS[name])
    for number, word in enumerate(rest):
        if word.startswith("--"):
            assert word in known, f"there is no `landed {name} {word}`"
        elif name == "demo" and number == 0:
            assert word in {"story", "NAME", *SCENARIOS}, f"there is no scenario {word!r}"


def options(module: str) -> set[str]:
    command: click.Command = import_module(module).command
    below = command.commands.values() if isinstance(command, click.Group) else ()
    return {
        option
        for one in (command, *below)
        for each in one.params
        if isinstance(each, click.Option)
        for option in each.opts
        if option.startswith("--")
    }


@pytest.mark.req("S0-66")
def test_the_readme_names_each_scenario_once() -> None:
    (rows,) = re.findall(
        r"\| what happens \| scenarios \|\n((?:\|.*\n)+)", text_of(CHECKOUT / "README.md")
    )
    named = re.findall(r"`([a-z-]+)`", rows)
    assert sorted(named) == sorted(SCENARIOS)


def test_the_picture_in_the_readme_is_what_is_drawn_now(tmp_path: Path) -> None:
    played = CliRunner().invoke(landed, ["demo", "revise-in-flight", "--json"])
    (tmp_path / "played.json").write_text(played.output)
    drawn = CliRunner().invoke(landed, ["timeline", f"{tmp_path}/played.json", "--svg"])
    assert drawn.output == text_of(DOCS / "revise-in-flight.svg"), (
        "draw it anew: landed demo revise-in-flight --json > FILE;"
        " landed timeline FILE --svg > docs/revise-in-flight.svg"
    )


# The reference.


def shown(value: object) -> str:
    """Return a default as the reference spells it."""
    match value:
        case Enum():
            return str(value.value)
        case str():
            return value or "''"
        case tuple() if value:
            return " ".join(map(str, value))
        case _:
            return str(value)


def default_of(one: "Field[Any]") -> object:
    if one.default_factory is not MISSING:
        return one.default_factory()
    return one.default


def test_the_contract_page_lists_each_field_with_its_default() -> None:
    rows = table(REFERENCE / "contract.md", "field | default | says")
    assert list(rows) == [one.name for one in fields(Contract)]
    in_words = {"effect": "must be said", "service": "the tool's name"}
    for one in fields(Contract):
        wanted = in_words.get(one.name) or f"`{shown(default_of(one))}`"
        assert rows[one.name][0] == wanted, one.name


def test_the_settings_page_lists_each_setting_with_its_default() -> None:
    rows = table(REFERENCE / "settings.md", "setting | default | says")
    told = {name: cells[0].strip("`") for name, cells in rows.items()}
    assert told == {one.name: shown(default_of(one)) for one in fields(Settings)}


def test_the_verbs_page_lists_each_verb_with_what_it_takes() -> None:
    rows = table(REFERENCE / "verbs.md", "verb | takes | returns | in short")
    verbs = {
        name: takes(verb)
        for name, verb in inspect.getmembers(Runtime, inspect.iscoroutinefunction)
        if not name.startswith("_")
    }
    assert {name: cells[0].strip("`") for name, cells in rows.items()} == verbs


def takes(verb: Callable[..., object]) -> str:
    """Return the parameters of a verb without their types."""
    words: list[str] = []
    _, *parameters = inspect.signature(verb).parameters.items()
    for name, each in parameters:
        if each.kind is inspect.Parameter.KEYWORD_ONLY and "*" not in words:
            words.append("*")
        words.append(name if each.default is each.empty else f"{name}={spelt(each.default)}")
    return ", ".join(words)


def spelt(default: object) -> str:
    if isinstance(default, Enum):
        return str(default.__class__.__name__) + "." + default.name
    return json.dumps(default) if isinstance(default, str) else repr(default)


def test_the_values_page_lists_each_value_and_what_it_carries() -> None:
    rows = table(REFERENCE / "values.md", "value | and | means")
    everywhere = {"operation", "text", "replayed"}
    carried = {
        kind.__name__: [one.name for one in fields(kind) if one.name not in everywhere]
        for kind in get_args(Value)
    }
    assert {name: re.findall(r"`(\w+)`", cells[0]) for name, cells in rows.items()} == carried


def test_the_values_page_lists_the_states_of_a_plan_and_the_outcomes() -> None:
    page = REFERENCE / "values.md"
    assert list(table(page, "`PlanState` | means")) == list(PlanState)
    outcomes = [Acknowledged, Found, Absent, NotYet, NoAnswer]
    signatures = [f"{kind.__name__}({constructed(kind)})" for kind in outcomes]
    assert list(table(page, "outcome | says")) == signatures
    told = prose_of(page).split("`Call` is")[1].split("Lookups")[0]
    assert re.findall(r"`(\w+)`", told) == [one.name for one in fields(Call)]


def constructed(kind: Any) -> str:
    return ", ".join(
        one.name if one.default is MISSING else f"{one.name}={spelt(one.default)}"
        for one in fields(kind)
    )


def test_the_errors_page_lists_each_error() -> None:
    rows = table(REFERENCE / "errors.md", "error | whose turn it is")
    ours = [
        name
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and kind.__module__ == errors.__name__
    ]
    assert list(rows) == ours


def test_each_public_name_is_in_the_reference() -> None:
    told = " ".join(text_of(page) for page in REFERENCE.glob("*.md"))
    missing = [n for n in library.__all__ if not re.search(rf"\b{n}\b", told)]
    assert missing == []


BOUND = re.compile(r"^((?:[A-Z]+_)+MAX(?:_CHARS|_BYTES)?|MAX_[A-Z]+)\b *=", re.MULTILINE)


def test_the_limits_page_lists_each_limit_with_its_value() -> None:
    rows = table(REFERENCE / "limits.md", "bound | value | of")
    for name, cells in rows.items():
        module, _, constant = name.rpartition(".")
        assert float(cells[0]) == getattr(import_module(module), constant), name
    for room in ("core", "runtime", "tools", "agent", "stores", "telemetry", "server"):
        for path in sorted((CHECKOUT / "src/landed" / room).glob("*.py")):
            for constant in BOUND.findall(path.read_text("utf-8")):
                assert f"landed.{room}.{path.stem}.{constant}" in rows


@pytest.mark.parametrize("name", COMMANDS)
def test_the_command_line_page_lists_each_option(name: str) -> None:
    pages = "\n".join(map(text_of, sorted(REFERENCE.glob("cli*.md"))))
    section = pages.split(f"## `landed {name}`")[1].split("\n## ")[0]
    listed = {option for option, _ in ROW.findall(section) if option.startswith("--")}
    assert listed == options(COMMANDS[name])


def test_the_command_line_page_lists_each_command() -> None:
    rows = table(REFERENCE / "cli.md", "command | does")
    assert {words.split()[1] for words in rows} == {"--version", "--help", *COMMANDS}


def test_the_records_page_lists_each_table_and_kind() -> None:
    page = REFERENCE / "records.md"
    database = driver.connect(":memory:")
    for migration in migrations():
        database.executescript(migration.sql)
    told = re.findall(r"\| column \| holds \|\n\| --- \| --- \|\n((?:\|.*\n)+)", text_of(page))
    columns = [[name for name, _ in ROW.findall(rows)] for rows in told]
    kept = [
        [row[1] for row in database.execute(f"PRAGMA table_info({name})")]
        for name in ("record", "journal", "name", "worker")
    ]
    database.close()
    assert columns == kept
    assert list(table(page, "kind | is | moves")) == list(Kind)


def test_the_records_page_knows_each_form_of_a_name(tmp_path: Path) -> None:
    """Every name that a conversation takes has one of the forms on the page."""
    forms = table(REFERENCE / "records.md", "form | is held by | until")
    held = asyncio.run(_names_of_a_conversation(f"{tmp_path}/names.db"))
    taken = {name.split("/")[0]: name.count("/") for name in held}
    known = {form.split("/")[0]: form.count("/") for form in forms}
    assert taken.keys() == {"ask", "delivery", "question", "same", "target"}
    assert taken == {kind: known[kind] for kind in taken}


async def _names_of_a_conversation(path: str) -> list[str]:
    @library.tool(effect="irreversible", target=["it"], service="s")
    async def touch() -> None:
        raise TimeoutError

    @library.tool(effect="irreversible")
    async def act() -> None:
        raise TimeoutError

    async with library.open(f"sqlite:///{path}", tools=[touch, act]) as rt:
        heard = await rt.receive("Do it.", delivery="d1")
        for tool in (touch, act):
            await rt.perform(tool, ask=heard.ask(tool.name), patience_s=0.0)
        await rt.ask(heard, "Which?")
        database = driver.connect(path)
        held = [str(row[0]) for row in database.execute("SELECT name FROM name")]
        database.close()
    return held


# The architecture.


def test_the_architecture_tells_the_reading_order_of_core() -> None:
    rows = text_of(CHECKOUT / "ARCHITECTURE.md").split("| read | for |")[1].split("\n\n")[0]
    told = [
        name for row in rows.splitlines()[2:] for name in re.findall(r"`(\w+)`", row.split("|")[1])
    ]
    settings = tomllib.loads(text_of(CHECKOUT / "pyproject.toml"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    (layers,) = (one["layers"] for one in contracts if one["id"] == "reading-order")
    files = {path.stem for path in (CHECKOUT / "src/landed/core").glob("[!_]*.py")}
    names = [layer.strip("()") for layer in reversed(layers)]
    assert told == [name for name in names if name in files]


def test_the_architecture_names_each_room() -> None:
    (drawn,) = (body for _, body in fences(CHECKOUT / "ARCHITECTURE.md", "") if "core/" in body)
    rooms = set(re.findall(r"^  (\w+)/", drawn, re.MULTILINE))
    there = {path.parent.name for path in (CHECKOUT / "src/landed").glob("*/__init__.py")}
    assert rooms == there


# The pages together.


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_each_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", prose_of(page)):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.is_file(), target
        assert not anchor or anchor in anchors(there), target


def anchors(page: Path) -> set[str]:
    heads = re.findall(r"^#+ (.*)$", prose_of(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def test_the_contents_list_each_page_once() -> None:
    listed = re.findall(r": (\S+\.md)$", text_of(CHECKOUT / "mkdocs.yml"), re.MULTILINE)
    assert sorted(listed) == sorted(p.relative_to(DOCS).as_posix() for p in DOCS.rglob("*.md"))


def test_each_page_is_reached_from_the_first() -> None:
    linked = set(re.findall(r"\]\(([^)#]+\.md)\)", text_of(DOCS / "index.md")))
    every = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")} - {"index.md"}
    assert linked == every


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.name)
def test_pages_are_short(page: Path) -> None:
    """The two at the root have bounds of their own, in `tests/tidy.py`."""
    if page.is_relative_to(DOCS):
        assert len(text_of(page).splitlines()) <= PAGE_LINES_MAX
