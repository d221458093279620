"""A yes to what was edited in the file: seen by its links, its seal, and the plan's own hash."""

import asyncio
import json
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import landed
from landed.core.approval import (
    Problem,
    approval_from,
    approval_record,
    sealed,
    sealing_key,
)
from landed.core.changes import Changes, Move
from landed.core.errors import StoreError
from landed.core.event import Event
from landed.core.journal import body_digest, link
from landed.core.value import PlanValue
from landed.runtime.runtime import Runtime
from landed.testing.sim import World
from tests.runtime.office import Office, OfficeRig, proposed, refused, token_of

SECRET = b"s3cret"


@pytest.fixture
def rig() -> Iterator[OfficeRig]:
    with World() as world:
        yield OfficeRig(world)


def edit(
    path: Path, record: str, change: Callable[[dict[str, Any]], None], *, secret: bytes
) -> None:
    """Rewrite every body of a record in the file, and link the whole journal anew."""
    with sqlite3.connect(path) as db:
        guards = db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in guards:
            db.execute(f"DROP TRIGGER {name}")
        rows = db.execute(
            "SELECT seq, id, version, before, event, state, at, body FROM journal ORDER BY seq"
        ).fetchall()
        prev = ""
        for seq, id, version, before, event, state, at, body in rows:
            if id == record:
                values = json.loads(body)
                change(values)
                change(values.get("now", {}))
                body = json.dumps(values, separators=(",", ":"), ensure_ascii=False).encode()
            digest = body_digest(body)
            hash = link(
                prev=prev,
                seq=seq,
                id=id,
                version=version,
                before=before,
                event=event,
                state=state,
                at=at,
                body_digest=digest,
                secret=secret,
            )
            db.execute(
                "UPDATE journal SET body = ?, body_digest = ?, prev = ?, hash = ? WHERE seq = ?",
                (body, digest, prev, hash, seq),
            )
            prev = hash
        for _, guard in guards:
            db.execute(guard)
    db.close()


def pay_eve(body: dict[str, Any]) -> None:
    for step in body.get("steps", ()):
        step["arguments"]["to"] = "eve"


def for_eve(body: dict[str, Any]) -> None:
    if "principal" in body:
        body["principal"] = "eve"


def for_longer(body: dict[str, Any]) -> None:
    if "answer_by" in body:
        body["answer_by"] += 10_000


@pytest.mark.req("S1-16", "S1-17", "S1-62")
@pytest.mark.fault("X83")
@pytest.mark.parametrize(
    ("kind", "change", "presenter", "hears"),
    [
        ("plan", pay_eve, "ana", "tampered"),
        ("plan", pay_eve, "eve", "absent"),
        ("approval", for_longer, "ana", "tampered"),
        ("approval", for_eve, "ana", "absent"),
    ],
)
def test_an_edit_of_the_file_is_seen_even_where_the_journal_was_linked_anew(
    tmp_path: Path, kind: str, change: Any, presenter: str, hears: str
) -> None:
    office, path = Office(), tmp_path / "office.db"

    async def process(act: Any) -> Any:
        opened = landed.open(
            f"sqlite:///{path}", tools=office.tools(), permissions=office, secret=SECRET
        )
        async with opened as rt:
            return await act(rt)

    async def say_yes(rt: Runtime) -> Any:
        error = await refused(rt.approve(token=token_of(value), principal=presenter))
        return error, await rt.driver.store.journal(record=approval)

    value: PlanValue = asyncio.run(process(proposed))
    approval = f"approval/{value.plan}/confirm/1"
    edit(path, value.plan if kind == "plan" else approval, change, secret=SECRET)
    error, entries = asyncio.run(process(say_yes))
    assert error.problem == hears
    assert json.loads(entries[-1].body)["problem"] == "tampered"
    assert office.effects == []


@pytest.mark.fault("X83")
def test_an_edit_without_the_secret_is_seen_by_its_link(tmp_path: Path) -> None:
    office, path = Office(), tmp_path / "office.db"

    async def process(act: Any) -> Any:
        opened = landed.open(
            f"sqlite:///{path}", tools=office.tools(), permissions=office, secret=SECRET
        )
        async with opened as rt:
            return await act(rt)

    value: PlanValue = asyncio.run(process(proposed))
    edit(path, value.plan, pay_eve, secret=b"a guess")
    with pytest.raises(StoreError, match="secret"):
        asyncio.run(process(lambda rt: rt.approve(token=token_of(value), principal="ana")))
    assert office.effects == []


@pytest.mark.req("S1-16")
@pytest.mark.parametrize("after_s", [0.0, 601.0])
def test_a_seal_that_is_not_of_this_record_is_tampered_and_that_comes_before_all_else(
    rig: OfficeRig, after_s: float
) -> None:
    async def script(rt: Runtime) -> Any:
        value = await proposed(rt)
        store = rt.driver.store
        (record,) = await store.load(f"approval/{value.plan}/confirm/1")
        forged = replace(approval_from(record), by="nobody", hash="sha256:0", version=2)
        forged = sealed(forged, [sealing_key(SECRET)])
        move = Move(
            after=approval_record(forged),
            event=Event(name="approval_renewed", record=forged.id, at=0.0),
        )
        await store.commit(Changes(moves=(move,)))
        await asyncio.sleep(after_s)  # virtual time
        owner = await refused(rt.approve(token=token_of(value), principal="ana"))
        wrong = await refused(rt.approve(token=token_of(value), principal="eve"))
        return owner, wrong

    owner, wrong = rig.run(script)
    assert (owner.problem, wrong.problem) == ("tampered", "absent")
    assert rig.problems() == ["tampered", "tampered"]
    assert rig.office.effects == []


def test_a_seal_of_another_secret_is_none(rig: OfficeRig) -> None:
    value = rig.run(proposed)
    rig.secrets = (b"another",)

    async def script(rt: Runtime) -> Any:
        error = await refused(rt.approve(token=token_of(value), principal="ana"))
        heard = await rt.receive("yes", principal="ana")
        return error, await rt.report(heard.turn)

    error, told = rig.run(script)
    assert error.problem == Problem.TAMPERED
    assert told.text.startswith("What is stored is not what you were shown")
    assert rig.office.effects == []
