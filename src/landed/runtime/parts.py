"""Joins a store, tools and settings into a runtime that is not entered yet.

Behind `landed.open`, and for simulation, tests and other faces, which bring parts of their own.
"""

import os
import socket
from collections.abc import Iterable
from secrets import token_hex
from typing import TypeGuard

from landed.core.approval import sealing_key
from landed.core.contract import Contract
from landed.core.errors import ContractError
from landed.core.lease import Lease
from landed.core.next import what_next, what_was_said
from landed.core.rules import RULES, Rules
from landed.core.store import Store
from landed.core.tool import Tool
from landed.runtime.clock import Clock, Ids, RandomIds, WallClock
from landed.runtime.desk import WhatNext
from landed.runtime.driver import Driver
from landed.runtime.foreseeing import Foreseer
from landed.runtime.notifying import Notifier, Notify
from landed.runtime.opened import Settings
from landed.runtime.permissions import NobodyMay, Permissions
from landed.runtime.planning import PlanFor, Planner, no_plan_for
from landed.runtime.runtime import Runtime
from landed.runtime.worker import Worker


def assemble(
    store: Store,
    *,
    tools: dict[str, Tool],
    settings: Settings | None = None,
    rules: Rules = RULES,
    what_next: WhatNext = what_next,
    clock: Clock | None = None,
    ids: Ids | None = None,
    worker: str = "",
    lease: Lease | None = None,
    plan_for: PlanFor = no_plan_for,
    permissions: Permissions | None = None,
    secrets: tuple[bytes, ...] = (b"",),
    notify: Notify | None = None,
    decides_only: bool = False,
) -> Runtime:
    """Join parts into a runtime that is not entered yet: for simulation, tests and other faces.

    One that `decides_only` claims nothing of others and starts nothing: what somebody decides is
    written down, and carried out by a worker that has the tools.
    """
    time, source = clock or WallClock(), ids or RandomIds()
    name, bounds = worker or worker_name(), settings or Settings()
    foreseer = Foreseer(
        tools=tools, permissions=permissions or NobodyMay(), clock=time, language=bounds.language
    )
    driver = Driver(
        store=store,
        tools=tools,
        rules=rules,
        what_next=what_was_said if decides_only else what_next,
        clock=time,
        ids=source,
        worker=name,
        language=bounds.language,
        keys=tuple(map(sealing_key, secrets)),
        check=foreseer.check,
        decides_only=decides_only,
    )
    beating = Worker(name=name, store=store, driver=driver, clock=time, lease=lease or Lease())
    planner = Planner(
        driver=driver,
        clock=time,
        ids=source,
        send_within_s=bounds.send_within_s,
        answer_within_s=bounds.answer_within_s,
        foreseer=foreseer,
        language=bounds.language,
        plan_for=plan_for,
    )
    notifier = None
    if notify is not None:
        notifier = Notifier(notify=notify, reader=driver.reader, clock=time, tenants=bounds.tenants)
    return Runtime(
        driver=driver,
        worker=beating,
        ids=source,
        settings=bounds,
        planner=planner,
        notifier=notifier,
    )


def register(tools: Iterable[object]) -> dict[str, Tool]:
    """Return the tools by name, or raise `ContractError` for what cannot be registered."""
    registered: dict[str, Tool] = {}
    for tool in tools:
        if not is_tool(tool):
            name = getattr(tool, "__name__", repr(tool))
            raise ContractError(
                f"{name} has no contract; say what it does to the world:"
                " @landed.tool(effect='none' | 'reversible' | 'irreversible')"
            )
        if tool.name in registered:
            raise ContractError(f"two tools are called {tool.name!r}; give one another name=")
        registered[tool.name] = tool
    for tool in registered.values():
        _check_names(tool.name, tool.contract, registered)
    return registered


def is_tool(tool: object) -> TypeGuard[Tool]:
    """Whether an object offers what the `Tool` seam asks for."""
    return isinstance(getattr(tool, "contract", None), Contract) and hasattr(tool, "send")


def _check_names(name: str, contract: Contract, registered: dict[str, Tool]) -> None:
    for field, other in _named(contract):
        if other and other not in registered:
            raise ContractError(
                f"contract of {name}: {field} names {other!r}, which is not registered; register"
                " it too, or drop the promise"
            )


def _named(contract: Contract) -> tuple[tuple[str, str], ...]:
    """Return the fields by which a contract names another tool."""
    return (
        ("undo", contract.undo),
        ("undo_priced_by", contract.undo_priced_by),
        ("correct", contract.correct),
    )


def worker_name() -> str:
    """Return a name for this process that no other has had: host, pid and chance."""
    return f"{socket.gethostname()}-{os.getpid()}-{token_hex(4)}"
