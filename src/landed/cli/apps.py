"""Finds the tools of an application to lint and probe them, and calls nothing that may act."""

import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import cast

import click

from landed.core.contract import Contract
from landed.core.tool import Tool

TOOLS = "tools"


def tools_of(spec: str) -> tuple[object, ...]:
    """Return what `MODULE[:NAME]` names, as it would be handed to `landed.open(tools=…)`.

    Without a NAME it is `tools`, or what that function returns. A function that is named is not
    called, for it may be the very one that acts, unless `()` is written after it; and what is no
    tool is returned as well, to be told of. The module may be in the current directory. Raises a
    usage error where there is no such thing.
    """
    module, _, name = spec.partition(":")
    told = _named(_module(module), name.removesuffix("()") or TOOLS, spec)
    if callable(told) and not _is_tool(told) and (not name or name.endswith("()")):
        told = cast("Callable[[], object]", told)()
    if _is_tool(told) or not isinstance(told, Iterable):
        return (told,)
    return tuple(cast("Iterable[object]", told))


def one_tool(spec: str, *, name: str = "") -> Tool:
    """Return the one tool that `spec` names, by `name` where there are several."""
    found = [cast("Tool", each) for each in tools_of(spec) if _is_tool(each)]
    named = [each for each in found if not name or each.name == name]
    if len(named) == 1:
        return named[0]
    has = ", ".join(each.name for each in found) or "no tool"
    raise click.UsageError(f"{spec} has {has}; say which one with --tool")


def _is_tool(told: object) -> bool:
    return isinstance(getattr(told, "contract", None), Contract)


def _module(name: str) -> object:
    if "" not in sys.path:
        sys.path.insert(0, "")  # As `python -m` does: what is beside where one stands.
    try:
        return import_module(name)
    except (ImportError, ValueError) as error:
        raise click.UsageError(f"--app: {name!r} cannot be imported: {error}") from None


def _named(told: object, path: str, spec: str) -> object:
    for part in path.split("."):
        if not hasattr(told, part):
            raise click.UsageError(f"--app: {spec} has no {part!r}")
        told = getattr(told, part)
    return told
