"""The chains of several opened stores hold side by side, and a lost link in one is noticed."""

from collections.abc import Callable

import pytest

from landed.runtime.checking import Checker
from landed.runtime.reader import Reader
from landed.testing.store_checks.suite import inserted
from tests.stores.postgres.embedded import Server

pytestmark = [pytest.mark.anyio, pytest.mark.services]


async def test_what_several_stores_wrote_is_checked_as_chains_of_each(
    url: str, server: Server, opened: Callable
) -> None:
    first, second = await opened(), await opened()
    for n in range(6):
        await inserted(first, f"op-a{n}")
        await inserted(second, f"op-b{n}")
    late = await opened()
    await inserted(late, "op-c")
    checker = Checker(reader=Reader(store=first), tenant="default")

    whole = await checker.check(after=0, in_time=lambda: True)
    assert (whole.holds, whole.checked, whole.outside) == (True, 13, 0)
    entries = await first.journal()
    part = await checker.check(after=entries[5].seq, in_time=lambda: True)
    assert (part.holds, part.outside) == (True, 2)

    server.execute(url, "ALTER TABLE landed.journal DISABLE TRIGGER USER")
    server.execute(url, f"DELETE FROM landed.journal WHERE seq = {entries[4].seq}")
    torn = await checker.check(after=0, in_time=lambda: True)
    assert [(each.seq, each.why) for each in torn.breaks] == [(entries[6].seq, "unlinked")]
