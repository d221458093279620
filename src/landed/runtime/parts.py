"""Joins a store, tools and settings into a runtime that is not entered yet.

Behind `landed.open`, and for simulation, tests and other faces, which bring parts of their own.
"""

import os
import socket
from collections.abc import Iterable
from secrets import token_hex
from typing import TypedDict, TypeGuard, Unpack

from landed.core.approval import sealing_key
from landed.core.contract import Contract
from landed.core.errors import ContractError
from landed.core.incarnation import Marks
from landed.core.lease import Lease
from landed.core.next import what_next, what_was_said
from landed.core.onlooker import Onlooker
from landed.core.pacing import Pacing
from landed.core.rules import RULES, Rules
from landed.core.schedule import Schedule
from landed.core.store import Store
from landed.core.tool import Tool
from landed.runtime.clock import MACHINE, Clock, Ids, RandomIds
from landed.runtime.desk import WhatNext
from landed.runtime.driver import Driver
from landed.runtime.foreseeing import Foreseer
from landed.runtime.guarding import guarded
from landed.runtime.lookout import Lookout
from landed.runtime.notifying import Notifier, Notify
from landed.runtime.opened import Settings
from landed.runtime.permissions import NobodyMay, Permissions
from landed.runtime.planning import PlanFor, Planner, no_plan_for
from landed.runtime.remembering import Remembering
from landed.runtime.runtime import Runtime
from landed.runtime.schedule import LocalSchedule
from landed.runtime.worker import Worker


class Parts(TypedDict, total=False):
    """What a runtime can be given beside its store, tools and settings; all have defaults.

    `rules` and `what_next` decide (a simulation may run wrong ones), `clock` and `ids` are time and
    chance, `worker` and `lease` name this process and how long its claims stand. `plan_for` makes
    calls of an intent, `permissions` says who may do what, `secrets` seal (the first is today's),
    `notify` is told of cases, `telemetry` of all that happens; `pacing` says how fast what may
    leave, `schedule` calls the loops. One that `decides_only` claims nothing of others and starts
    nothing: what somebody decides is written down, and carried out by a worker that has the tools.
    `marks` is where it is kept, outside the store, which entry of its journal was durable.
    """

    rules: Rules
    what_next: WhatNext
    clock: Clock | None
    ids: Ids | None
    worker: str
    lease: Lease | None
    plan_for: PlanFor
    permissions: Permissions | None
    secrets: tuple[bytes, ...]
    notify: Notify | None
    pacing: Pacing | None
    schedule: Schedule | None
    decides_only: bool
    telemetry: Onlooker | None
    marks: Marks | None


def assemble(
    store: Store,
    *,
    tools: dict[str, Tool],
    settings: Settings | None = None,
    **parts: Unpack[Parts],
) -> Runtime:
    """Join parts into a runtime that is not entered yet: for simulation, tests and other faces."""
    bounds, time = settings or Settings(), parts.get("clock") or MACHINE
    foreseer = Foreseer(
        tools=tools,
        permissions=parts.get("permissions") or NobodyMay(),
        clock=time,
        language=bounds.language,
    )
    remembering = Remembering(store)
    driver = _driver(remembering, tools, bounds, foreseer, time, parts)
    driver.reader.secrets = parts.get("secrets", (b"",))
    if any(tool.contract.prepare and tool.contract.preview for tool in tools.values()):
        driver.setting.hear.append(foreseer.touched.stored)
    planner = Planner(
        driver=driver,
        clock=time,
        ids=driver.ids,
        send_within_s=bounds.send_within_s,
        answer_within_s=bounds.answer_within_s,
        foreseer=foreseer,
        language=bounds.language,
        plan_for=parts.get("plan_for", no_plan_for),
    )
    return Runtime(
        driver=driver,
        worker=_worker(remembering, driver, time, parts),
        ids=driver.ids,
        settings=bounds,
        planner=planner,
        notifier=_notifier(driver, bounds, parts.get("notify")),
    )


def _driver(
    store: Store,
    tools: dict[str, Tool],
    bounds: Settings,
    foreseer: Foreseer,
    time: Clock,
    parts: Parts,
) -> Driver:
    decides_only = parts.get("decides_only", False)
    return Driver(
        store=store,
        tools=tools,
        rules=parts.get("rules", RULES),
        what_next=what_was_said if decides_only else parts.get("what_next", what_next),
        clock=time,
        ids=parts.get("ids") or RandomIds(),
        worker=parts.get("worker") or worker_name(),
        language=bounds.language,
        keys=tuple(map(sealing_key, parts.get("secrets", (b"",)))),
        check=foreseer.check,
        schedule=parts.get("schedule") or LocalSchedule(clock=time),
        pacing=parts.get("pacing"),
        decides_only=decides_only,
        onlooker=guarded(parts.get("telemetry")),
        adopt_max=bounds.adopt_max,
        adopt_at_once=bounds.adopt_at_once,
        tenant_max=bounds.tenant_max,
    )


def _worker(store: Remembering, driver: Driver, time: Clock, parts: Parts) -> Worker:
    lookout = Lookout(
        store=store,
        clock=time,
        by=driver.worker,
        marks=parts.get("marks"),
        changed=driver.restored,
    )
    return Worker(
        name=driver.worker,
        store=store,
        driver=driver,
        clock=time,
        lease=parts.get("lease") or Lease(),
        lookout=lookout,
    )


def _notifier(driver: Driver, bounds: Settings, notify: Notify | None) -> Notifier | None:
    if notify is None:
        return None
    return Notifier(notify=notify, reader=driver.reader, clock=driver.clock, tenants=bounds.tenants)


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
