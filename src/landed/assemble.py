"""Behind `landed.open()`: joins a store, tools and settings into a runtime."""

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from landed.core.errors import ContractError
from landed.core.onlooker import Onlooker
from landed.core.pacing import Pacing
from landed.core.store import Store
from landed.core.tool import Tool
from landed.runtime.archive import Archive
from landed.runtime.clock import MACHINE
from landed.runtime.guarding import guarded
from landed.runtime.keeping import Keeper, Retention, Tally
from landed.runtime.notifying import Notify
from landed.runtime.opened import Settings
from landed.runtime.parts import assemble, register
from landed.runtime.permissions import Permissions
from landed.runtime.planning import PlanFor, no_plan_for
from landed.runtime.runtime import Runtime
from landed.stores.marks import marks_of
from landed.stores.urls import open_store


@asynccontextmanager
async def open_runtime(
    store: str,
    *,
    tools: Iterable[object] = (),
    settings: Settings | None = None,
    plan_for: PlanFor = no_plan_for,
    permissions: Permissions | None = None,
    secret: bytes | Sequence[bytes] = b"",
    notify: Notify | None = None,
    pacing: Pacing | None = None,
    telemetry: Onlooker | None = None,
    mark: str | Path | None = None,
) -> AsyncGenerator[Runtime]:
    """Open a runtime on a store and enter it; the way to use `landed`.

        async with landed.open("sqlite:///agent.db", tools=[reserve_table]) as rt:
            value = await rt.perform(reserve_table, {"day": "Fri"})

    `store` is a URL (`landed.stores.urls`). With a `secret`, or several, the newest first, links
    are keyed and approvals sealed. `mark` is where a restored store is noticed by, "" for none.
    """
    secrets = (secret,) if isinstance(secret, bytes) else tuple(secret) or (b"",)
    permitted, watching = _permitted(register(tools), permissions), guarded(telemetry)
    opened = await _opened(store, secrets, watching)
    try:
        async with assemble(
            opened,
            tools=permitted,
            settings=settings,
            plan_for=plan_for,
            permissions=permissions,
            secrets=secrets,
            notify=notify,
            pacing=pacing,
            telemetry=watching,
            marks=marks_of(store, mark),
        ) as runtime:
            yield runtime
    finally:
        await opened.close()


async def keep_store(
    store: str, retention: Retention, *, by: str, secret: bytes | Sequence[bytes] = b""
) -> Tally:
    """Archive and erase what a retention says is due, beside the workers of a store.

        await landed.keep("sqlite:///agent.db", landed.Retention(erase_after_days=90), by="cron")

    `by` is who has it done, for the journal. Running it again goes on where one that died stopped.
    Raises `StoreError`; what was archived and erased by then stays so.
    """
    secrets = (secret,) if isinstance(secret, bytes) else tuple(secret) or (b"",)
    opened = await open_store(store, secret=secrets[0], older=secrets[1:])
    try:
        archive = Archive(place=Path(retention.to), secrets=secrets) if retention.to else None
        keeper = Keeper(store=opened, keeping=opened.keeping(), archive=archive)
        return await keeper.keep(retention, by=by, now=MACHINE.now())
    finally:
        await opened.close()


async def _opened(url: str, secrets: Sequence[bytes], watching: Onlooker) -> Store:
    """Open the store; it tells the time of leases by the clock of this process, as workers do."""
    secret, *older = secrets
    wrote, clock = watching.wrote, MACHINE.now
    return await open_store(url, secret=secret, older=tuple(older), wrote=wrote, clock=clock)


def _permitted(tools: dict[str, Tool], permissions: Permissions | None) -> dict[str, Tool]:
    """Return the tools, or raise `ContractError` where nobody can say who may use one."""
    for tool in tools.values():
        if tool.contract.permission and permissions is None:
            raise ContractError(
                f"contract of {tool.name}: it needs the permission {tool.contract.permission!r},"
                " but landed.open() was given no permissions=; give what says who has it"
            )
    return tools
