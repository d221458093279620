"""The contract of `landed.core.store.Store` as a test suite: run it over your own store.

    async def test_my_store() -> None:
        await check_store(lambda: MyStore.open(new_place()), again=MyStore.open_again)

Each check is named for what it demands and gets a store of its own; `CHECKS` lists them, for those
who want a test for each. The idea of publishing the suite that one's own implementations pass is
that of `trio.testing.check_one_way_stream`.
"""

import asyncio
from collections.abc import Awaitable, Callable

from landed.core.store import Store
from landed.testing.store_checks import claims, commits, handles, reads
from landed.testing.store_checks.programs import Unit, compare, programs
from landed.testing.store_checks.suite import CHECKS, Maker, NotApplicableError, check_maker

__all__ = ["CHECKS", "Maker", "NotApplicableError", "check_store"]

PROGRAMS = 60
"""How many random programs are compared with the reference."""

# The checks enter themselves when these are imported.
FILES = (commits, claims, reads, handles)


async def check_store(
    make: Callable[[], Awaitable[Store]],
    *,
    again: Callable[[Store], Awaitable[Store]] | None = None,
    secret: bytes = b"",
) -> tuple[str, ...]:
    """Run every check and return the names of those that ran.

    `make` opens a new, empty store; it is called often, also from other event loops. `again` opens
    the records of such a store once more, as another process would; without it, the checks with two
    handles are left out. `secret` is what the journal is linked with. Needs Hypothesis.

    Raises `AssertionError` (or what the store raised where it should not), with a note that names
    the check.
    """
    maker = Maker(make=make, again=again, secret=secret)
    ran: list[str] = []
    for name, check in CHECKS.items():
        try:
            await check(maker)
        except NotApplicableError:
            continue
        except Exception as error:
            error.add_note(f"check_store: {name}")
            raise
        ran.append(name)
    return tuple(ran)


@check_maker
async def programs_do_what_apply_does(maker: Maker) -> None:
    """Random programs leave the same records, names and errors as `landed.core.changes.apply`."""
    await asyncio.to_thread(_run_programs, maker)


def _run_programs(maker: Maker) -> None:
    from hypothesis import given, settings

    @settings(max_examples=PROGRAMS, deadline=None, database=None)
    @given(programs())
    def run(program: list[Unit]) -> None:
        asyncio.run(compare(maker.make, program))

    run()
