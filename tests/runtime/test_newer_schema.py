"""A newer `landed` takes over a store while an older one works on it: the older one stops."""

import asyncio

import pytest

from landed.core.errors import NewerSchemaError, StoreError
from landed.core.operation import State
from landed.core.value import Confirmed, Value
from landed.runtime.runtime import Runtime
from tests.runtime.rig import Rig, Wire, booking

pytestmark = pytest.mark.fault("X42")

FRIDAY = {"day": "Fri"}
SLOW = Wire(replies_s=60.0)
OUTGROWN = "asks for writers of version 9000.*; upgrade landed. Nothing was changed"


def migrate(rig: Rig, *, back: bool = False) -> None:
    """Change the schema as a newer `landed` does, or stand for that newer one from here on."""
    connection = rig.sqlite._opened.writer
    if back:
        connection.execute("DELETE FROM migration WHERE version = 9000")
    else:
        connection.execute("INSERT INTO migration VALUES (9000, 'far', 'x', 9000)")


def test_a_worker_that_is_outgrown_ends_with_a_sentence_and_finishes_nothing(rig: Rig) -> None:
    rig.far.wire.append(SLOW)
    mine = booking(rig.far, deadline_s=90.0)

    async def serve(rt: Runtime) -> tuple[Value | BaseException, list[str]]:
        call = asyncio.ensure_future(rt.perform("book", FRIDAY, patience_s=80.0))
        await asyncio.sleep(1.0)  # virtual time
        with pytest.raises(NewerSchemaError, match=OUTGROWN):
            await rt.serve(asyncio.Event())
        with pytest.raises(NewerSchemaError, match=OUTGROWN):
            await rt.perform("book", {"day": "Sat"})
        (told,) = await asyncio.gather(call, return_exceptions=True)
        return told, rig.far.sends

    old = rig.start(serve, mine)
    rig.world.pass_time(5.0)
    before = rig.events()
    migrate(rig)
    rig.world.wait(old)
    told, sends = old.result()
    assert isinstance(told, NewerSchemaError), "what came back could not be written, and says so"
    assert sends == ["op-a1"]
    assert rig.events() == before
    assert rig.states() == [State.SENT]

    migrate(rig, back=True)
    rig.base.worker_died("w1")
    value = rig.run(lambda rt: rt.resolve("op-a1", patience_s=300.0), mine)
    assert isinstance(value, Confirmed)
    assert rig.far.effects == {"op-a1": 1}
    assert rig.far.sends == ["op-a1"], "the newer one finds out, and does not run it again"


def test_one_that_starts_on_a_newer_schema_claims_nothing(rig: Rig) -> None:
    rig.far.wire.append(SLOW)
    mine = booking(rig.far, deadline_s=90.0)
    killed = rig.start(lambda rt: rt.perform("book", FRIDAY), mine)
    rig.world.pass_time(1.0)
    rig.kill(killed)
    migrate(rig)
    with pytest.raises(StoreError, match=OUTGROWN):
        rig.run(lambda rt: rt.status("op-a1"), mine)
    assert rig.operation().worker == "w1"
    assert rig.states() == [State.SENT]


def test_a_newer_schema_that_older_writers_may_write_stops_nobody(rig: Rig) -> None:
    connection = rig.sqlite._opened.writer
    connection.execute("INSERT INTO migration VALUES (9000, 'far', 'x', 1)")

    async def script(rt: Runtime) -> Value:
        await asyncio.sleep(60.0)  # virtual time
        return await rt.perform("book", FRIDAY)

    assert isinstance(rig.run(script, booking(rig.far)), Confirmed)
