"""The group-text service: a text goes out when it is taken, once for each request, for good."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from landed.testing.worlds.faults import Fault
from tests.testing.far_sides import TextWorld, code

HELLO: dict[str, Any] = {"to": "group", "text": "table for 4, Fri 19:00"}
M1 = "M1 group: table for 4, Fri 19:00"
TEXTED = "texted group 'table for 4, Fri 19:00'"

pytestmark = pytest.mark.anyio


@pytest.fixture
async def world() -> AsyncIterator[TextWorld]:
    async with TextWorld() as world:
        yield world


async def test_a_text_goes_out_and_its_answer_is_the_receipt(world: TextWorld) -> None:
    receipt = await world.deliver(HELLO)
    assert (receipt.status_code, receipt.json()) == (201, {"id": "M1", **HELLO})
    assert receipt.headers["x-position"] == "1"
    assert (await world.client.get("/texts")).json()["texts"] == [
        {"id": "M1", "to": "group", "said": HELLO["text"], "text": M1}
    ]
    entry = {"n": 1, "at": 1_000.0, "kind": "texted", "text": TEXTED, "key": None}
    assert (await world.client.get("/log")).json()["log"] == [entry]


async def test_a_key_is_not_read_and_the_same_text_again_goes_out_again(world: TextWorld) -> None:
    headers = {"Idempotency-Key": "s1:op-a3"}
    names = [(await world.deliver(HELLO, headers=headers)).json()["id"] for _ in range(2)]
    assert names == ["M1", "M2"]
    assert await world.log() == [TEXTED, TEXTED]


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/keys/k"), ("POST", "/keys/k/close"), ("GET", "/texts/M1"), ("DELETE", "/texts")],
)
async def test_a_text_can_not_be_asked_about_or_taken_back(
    method: str, path: str, world: TextWorld
) -> None:
    await world.deliver(HELLO)
    assert (await world.client.request(method, path)).status_code in (404, 405)
    assert await world.sent() == [M1]


REFUSED: list[tuple[object, tuple[int, str]]] = [
    *((HELLO | {"to": to}, (400, "bad-to")) for to in ("", None, 7, "a\nb", "x" * 201)),
    *((HELLO | {"text": text}, (400, "bad-text")) for text in ("", None, ["a"], "a\nb", "x" * 201)),
    *((body, (400, "bad-body")) for body in ([HELLO], b"{", b"\xff")),
    ({}, (400, "bad-to")),
    (HELLO | {"note": "x" * 10_000}, (413, "too-large")),
    (HELLO | {"to": "nobody"}, (422, "unreachable")),
]


@pytest.mark.parametrize(("body", "expected"), REFUSED)
async def test_a_refused_text_never_went_out(body: object, expected: tuple[int, str]) -> None:
    async with TextWorld(unreachable=("nobody",)) as world:
        assert code(await world.deliver(body)) == expected
        assert await world.sent() == []
        assert [line.split()[0] for line in await world.log()] == ["refused"]


async def test_a_late_receipt_comes_after_the_text_went_out() -> None:
    async with TextWorld(Fault(path="/texts", kind="delay_reply", seconds=0.02)) as world:
        waiting = asyncio.ensure_future(world.deliver(HELLO))
        seconds, woken = await world.sleeps.get()
        assert (seconds, await world.sent(), waiting.done()) == (0.02, [M1], False)
        woken.set()
        assert (await waiting).json()["id"] == "M1"


async def test_a_text_whose_receipt_never_comes_went_out_all_the_same() -> None:
    async with TextWorld(Fault(path="/texts", kind="lose_reply", hang=True)) as world:
        with pytest.raises(httpx2.ReadTimeout):
            await world.deliver(HELLO, timeout=0.02)
        await world.finish()
        assert await world.sent() == [M1]


async def test_texts_and_log_go_on_after_a_restart(tmp_path: Path) -> None:
    path = str(tmp_path / "texts.db")
    async with TextWorld(path=path) as world:
        await world.deliver(HELLO)
    async with TextWorld(path=path) as world:
        assert (await world.deliver(HELLO | {"text": "Sat"})).json()["id"] == "M2"
        assert await world.sent(after="1") == ["M2 group: Sat"]
        assert code(await world.client.get("/texts?after=x")) == (400, "bad-after")
        entries = (await world.client.get("/log?after=1")).json()["log"]
        assert [entry["text"] for entry in entries][:1] == ["texted group 'Sat'"]
