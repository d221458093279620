"""`landed contract`: shows what is known about services, finds faults in contracts, tries them."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict

import click

from landed.catalogue.entry import Entry, Fact
from landed.catalogue.files import contract, contracts, from_toml, shipped, text_of
from landed.catalogue.lint import Problem, Severity, lint_file, lint_tools, span
from landed.cli.apps import one_tool, tools_of
from landed.cli.shown import show, show_json, table
from landed.core.canonical import Json, parse
from landed.core.declared import values
from landed.core.errors import ProposalError
from landed.core.tool import Tool
from landed.testing.check_tool import Arguments, Findings, check_tool


@click.group()
def command() -> None:
    """Show, lint and probe contracts: what services offer for calls in doubt."""


@command.command("list")
@click.argument("files", nargs=-1, metavar="[FILE]...")
@click.option("--json", "as_json", is_flag=True, help="Print an array instead of a table.")
def list_(files: tuple[str, ...], as_json: bool) -> None:
    """List the contracts of the catalogue, or of FILEs."""
    entries = list(_entries(files).values())
    if as_json:
        show_json([told(entry) for entry in entries])
        return
    table([HEAD, *(_row(entry) for entry in entries)])


@command.command("show")
@click.argument("name")
@click.option("--file", default="", metavar="FILE", help="Look in a file of yours.")
@click.option("--json", "as_json", is_flag=True, help="Print an object instead.")
def show_one(name: str, file: str, as_json: bool) -> None:
    """Show the contract called NAME, such as stripe.refund, with the source of each fact."""
    entry = from_toml(file).get(name) if file else contract(name)
    if entry is None:
        raise click.ClickException(f"{file} has no {name!r}")
    if as_json:
        show_json(told(entry))
        return
    for line in lines_of(entry):
        show(line)


@command.command("lint")
@click.argument("files", nargs=-1, metavar="[FILE]...")
@click.option("--app", default="", metavar="MODULE[:NAME]", help="Lint tools as they are made.")
@click.option("--json", "as_json", is_flag=True, help="Print an array instead of lines.")
def lint_each(files: tuple[str, ...], app: str, as_json: bool) -> None:
    """Find what is wrong in FILEs, in the tools of an app, or, with neither, in the catalogue.

    An error must be mended, and makes the exit status 1. A warning says what will happen.
    """
    found = _problems(files, app)
    errors = [one for one in found if one.severity is Severity.ERROR]
    if as_json:
        show_json([asdict(one) for one in found])
    else:
        for one in found:
            show(one)
        show(f"{len(errors)} errors, {len(found) - len(errors)} warnings")
    raise SystemExit(1 if errors else 0)


@command.command()
@click.option("--app", required=True, metavar="MODULE[:NAME]", help="The tool, or a list of tools.")
@click.option("--tool", "name", default="", metavar="NAME", help="Which one of a list.")
@click.option("--arguments", default="{}", metavar="JSON", help="Ones that the service accepts.")
@click.option("--changed", default="", metavar="JSON", help="Others that it accepts too.")
@click.option("--refused", default="", metavar="JSON", help="Ones that it refuses.")
@click.option("--wait", "wait_s", type=float, default=None, metavar="SECONDS", help="Then resend.")
@click.option("--json", "as_json", is_flag=True, help="Print an object instead of lines.")
def probe(
    app: str,
    name: str,
    arguments: str,
    changed: str,
    refused: str,
    wait_s: float | None,
    as_json: bool,
) -> None:
    """Try a tool's promises on the service it reaches: a TEST ACCOUNT, for effects are real.

    It sends twice with one key, sends another payload under it, looks up, closes and sends late;
    after --wait it sends the first key once more. The exit status is 1 where a promise was broken.
    """
    tried = {
        "arguments": _object(arguments, "--arguments"),
        "changed": _object(changed, "--changed") if changed else None,
        "refused": _object(refused, "--refused") if refused else None,
    }
    try:
        findings = asyncio.run(_probed(one_tool(app, name=name), tried, wait_s))
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if as_json:
        each = [asdict(one) for one in findings.each]
        show_json({"tool": findings.tool, "ok": findings.ok, "findings": each})
    else:
        show(findings)
    raise SystemExit(0 if findings.ok else 1)


async def _probed(
    tool: Tool, tried: Mapping[str, Arguments | None], wait_s: float | None
) -> Findings:
    try:
        return await check_tool(
            tool,
            tried["arguments"] or {},
            changed=tried["changed"],
            refused=tried["refused"],
            wait_s=wait_s,
        )
    finally:
        close = getattr(tool, "aclose", None)
        if close is not None:
            await close()


def _object(text: str, option: str) -> Mapping[str, Json]:
    try:
        told_value = parse(text)
    except ProposalError as error:
        raise click.UsageError(f"{option} is no JSON: {error}") from None
    if not isinstance(told_value, Mapping):
        raise click.UsageError(f"{option} must be a JSON object")
    return told_value


def _problems(files: tuple[str, ...], app: str) -> list[Problem]:
    found: list[Problem] = []
    for origin, text in _texts(files) if files or not app else ():
        found += lint_file(text, origin=origin)
    if app:
        found += lint_tools(tools_of(app))
    return found


def _texts(files: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    if not files:
        yield from shipped().items()
    for file in files:
        yield file, text_of(file)


def _entries(files: tuple[str, ...]) -> Mapping[str, Entry]:
    if not files:
        return contracts()
    return {name: entry for file in files for name, entry in from_toml(file).items()}


HEAD = ("name", "effect", "key", "kept", "asked", "unverified")


def _row(entry: Entry) -> tuple[str, ...]:
    it = entry.contract
    kept = "for ever" if it.retention_s is None else span(it.retention_s)
    asked = " ".join(entry.questions)
    return (
        *(entry.name, it.effect.value, it.keyed or "-", kept if it.keyed else "-", asked or "-"),
        str(len(entry.unverified)),
    )


def lines_of(entry: Entry) -> Iterator[str]:
    """Yield what is known about one call, each fact with its source."""
    yield f"{entry.name}  {entry.request}".rstrip()
    stated = values(entry.contract)
    beside = ("key_in", "key_max", "replays_failures", "cancel_by_key")
    told_values = {name: stated[name] for name in entry.stated if name != "service"}
    told_values |= {name: getattr(entry, name) for name in beside if getattr(entry, name)}
    for name, value in told_values.items():
        yield f"  {name} = {json.dumps(value)}{_cited(entry, name)}"
    for name in entry.facts:
        if name not in told_values:
            yield f"  no {name}{_cited(entry, name)}"
    for name, way in entry.ways.items():
        yield f"  how ({name}): {way}"
    for note in entry.notes:
        yield f"  note: {note}"


def _cited(entry: Entry, name: str) -> str:
    fact = entry.facts.get(name, Fact(verified=name not in entry.unverified))
    page = f"{fact.source}, read {fact.checked}" if fact.source else ""
    if fact.verified:
        return f"  ({page})" if page else ""
    why = ": ".join(part for part in ("UNVERIFIED", fact.why) if part)
    return f"  ({'; '.join(part for part in (why, page) if part)})"


def told(entry: Entry) -> dict[str, object]:
    """Return an entry as JSON has it."""
    plain = asdict(entry)
    plain["contract"] = values(entry.contract)
    plain["facts"] = {name: _plain(fact) for name, fact in entry.facts.items()}
    return plain


def _plain(fact: Fact) -> dict[str, object]:
    return {**asdict(fact), "checked": str(fact.checked) if fact.checked else None}
