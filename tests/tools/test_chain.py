"""The chain's tool: signed once, the same bytes each time, and never a second number."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

import landed
from landed.core.canonical import Json
from landed.core.key import Ask
from landed.core.outcome import (
    Absent,
    Acknowledged,
    AnswerLost,
    Found,
    NoAnswer,
    NotSent,
    NotYet,
    Prepared,
    Refused,
    SendOutcome,
)
from landed.core.tool import Call
from landed.core.value import Accepted, Blocked, Confirmed, Failed, Undecided, Unknown, Withdrawn
from landed.runtime.runtime import Runtime
from landed.testing.check_tool import Verdict, check_tool
from landed.testing.faults import FaultyTool, Points, parse_point
from landed.testing.sim import World, current_process
from landed.testing.worlds import chain, serve
from landed.testing.worlds.chain import Chain, hash_of, secret_of, signed
from landed.testing.worlds.faults import Fault
from landed.testing.worlds.transport import WorldTransport
from landed.tools.chain import ChainTool, HttpNode
from landed.tools.function import tool
from tests.runtime.rig import SELDOM, Rig
from tests.testing.far_sides import FarSide, SetClock, Sleeps
from tests.tools.calls import SENT_AT, call_of, run

URL = "http://far.test"
TO_BOB: dict[str, Json] = {"from": "ana", "to": "bob", "amount": 10}


class Signer:
    """Signs, and counts how often."""

    def __init__(self) -> None:
        self.signed: list[Mapping[str, Json]] = []

    def __call__(self, transaction: Mapping[str, Json]) -> bytes:
        self.signed.append(transaction)
        return signed(transaction, secret_of(str(transaction["from"])))


def paying(transport: Any, sign: Callable[..., Any], **given: Any) -> ChainTool:
    told: dict[str, Any] = {"risk": "safe", **given}
    confirmations = told.pop("confirmations", 1)
    node = HttpNode(URL, transport=transport, confirmations=confirmations)
    return ChainTool(name="transfer", node=node, sign=sign, hash_of=hash_of, **told)


class Far(FarSide):
    """A chain in this process, and the tool that reaches it."""

    def __init__(
        self, *faults: Fault, promises: Mapping[str, Any] | None = None, **how: Any
    ) -> None:
        self.clock, sleeps = SetClock(), Sleeps()
        own = chain.app(":memory:", self.clock, faults, settings=Chain(**how), sleep=sleeps)
        super().__init__(own, sleeps, witness=None, before=None)
        self.sign = Signer()
        self.tool = paying(self.transport, self.sign, **(promises or {}))

    async def prepared(self, arguments: Any = TO_BOB, key: str = "op-1") -> Call:
        call = call_of(self.tool.check(arguments), key=key)
        ready = await self.tool.prepare(call)
        assert isinstance(ready, Prepared), ready
        return replace(call, prepared=ready.value)

    async def mine(self) -> None:
        (await self.client.post("/blocks")).raise_for_status()

    async def transfers(self) -> list[tuple[str, int]]:
        every = (await self.client.get("/transfers")).raise_for_status().json()["transfers"]
        return [(one["recipient"], one["amount"]) for one in every if one["amount"]]


def result(call: Call) -> Json:
    prepared: Any = call.prepared
    return {"hash": prepared["hash"], "nonce": prepared["nonce"]}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


# Prepared once, sent as it is.


@pytest.mark.anyio
@pytest.mark.req("S4-45")
async def test_ten_broadcasts_of_what_was_prepared_are_one_transfer() -> None:
    async with Far() as far:
        call = await far.prepared()
        assert (len(far.sign.signed), await far.log()) == (1, [])
        for _ in range(5):
            yes = Acknowledged(result=result(call), position=0, accepted=True)
            assert await far.tool.send(call) == yes
        await far.mine()
        for _ in range(5):
            assert await far.tool.send(call) == yes
        await far.mine()
        assert await far.transfers() == [("bob", 10)]
        assert await far.tool.lookup(call) == Found(result=result(call))
        assert len(far.sign.signed) == 1


@pytest.mark.anyio
@pytest.mark.req("S4-45")
async def test_a_lookup_goes_by_the_digest_and_knows_the_pool_from_a_block() -> None:
    async with Far(promises={"confirmations": 2}) as far:
        call = await far.prepared()
        assert await far.tool.lookup(call) == Absent()
        await far.tool.send(call)
        assert await far.tool.lookup(call) == NotYet(reason="it waits for its block")
        await far.mine()
        assert await far.tool.read_back(call, None) == NotYet(reason="it is 1 blocks deep of 2")
        await far.mine()
        assert await far.tool.read_back(call, None) == Found(result=result(call))


@pytest.mark.anyio
async def test_a_number_that_another_transaction_used_is_a_no_and_only_then() -> None:
    async with Far() as far:
        call = await far.prepared()
        await far.tool.send(call)
        other = signed({**TO_BOB, "amount": 1, "nonce": 0, "fee": 9}, secret_of("ana"))
        (await far.client.post("/transactions", json={"raw": other.hex()})).raise_for_status()
        assert await far.tool.lookup(call) == Absent()
        await far.mine()
        assert await far.tool.lookup(call) == Absent(position=0)
        outcome = await far.tool.send(call)
        assert isinstance(outcome, Refused)
        assert "nonce 0 is used already" in outcome.reason
        assert await far.transfers() == [("bob", 1)]


@pytest.mark.anyio
@pytest.mark.parametrize(
    "wanted", [{**TO_BOB, "amount": 5_000}, {**TO_BOB, "to": "nobody"}], ids=["too much", "nobody"]
)
async def test_what_the_chain_will_not_take_is_refused(wanted: dict[str, Json]) -> None:
    async with Far() as far:
        assert isinstance(await far.tool.send(await far.prepared(wanted)), Refused)
        await far.mine()
        assert await far.transfers() == []


@pytest.mark.anyio
async def test_a_refusal_that_nobody_can_check_leaves_doubt() -> None:
    silent = Fault(path="/transactions/*", method="GET", kind="drop", nth=None)
    async with Far(silent) as far:
        call = await far.prepared({**TO_BOB, "amount": 5_000})
        assert isinstance(await far.tool.send(call), AnswerLost)


@pytest.mark.anyio
async def test_without_its_bytes_nothing_is_sent_or_asked() -> None:
    async with Far() as far:
        call = call_of(far.tool.check(TO_BOB))
        assert isinstance(await far.tool.send(call), NotSent)
        assert isinstance(await far.tool.lookup(call), NoAnswer)
        assert isinstance(await far.tool.close(call), NoAnswer)
        assert isinstance(await far.tool.list_effects(0.0), NoAnswer)
        assert await far.log() == []


@pytest.mark.anyio
@pytest.mark.parametrize("sender", ["nobody", "."])
async def test_an_account_that_cannot_be_asked_about_is_not_signed_for(sender: str) -> None:
    async with Far() as far:
        call = call_of(far.tool.check({**TO_BOB, "from": sender}))
        assert isinstance(await far.tool.prepare(call), NoAnswer)
        assert far.sign.signed == []


@pytest.mark.anyio
@pytest.mark.parametrize("closes", [False, True])
async def test_a_signature_that_is_not_given_is_no_answer_and_nothing_left(closes: bool) -> None:
    def locked(transaction: Mapping[str, Json]) -> bytes:
        raise PermissionError("the wallet is locked")

    async with Far() as far:
        transfer = paying(far.transport, locked, closes=closes)
        outcome = await transfer.prepare(call_of(transfer.check(TO_BOB)))
        assert outcome == NoAnswer(reason="PermissionError: the wallet is locked")
        assert await far.log() == []


@pytest.mark.anyio
async def test_a_signer_may_be_asynchronous() -> None:
    signer = Signer()

    async def sign(transaction: Mapping[str, Json]) -> bytes:
        return signer(transaction)

    def handing_out(transaction: Mapping[str, Json]) -> Any:
        return sign(transaction)

    async with Far() as far:
        for each in (sign, handing_out):
            transfer = paying(far.transport, each)
            assert isinstance(await transfer.prepare(call_of(transfer.check(TO_BOB))), Prepared)
    assert len(signer.signed) == 2


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("account", "found"),
    [
        (b"{}", b'{"found": false}'),
        (b'{"nonce": "1", "next": "1"}', b'{"found": false}'),
        (b"no JSON", b"{}"),
        (b'{"nonce": 1, "next": 1}', b'{"found": 1}'),
    ],
)
async def test_a_node_that_answers_nonsense_gives_no_answer(account: bytes, found: bytes) -> None:
    class Nonsense(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            of_account = request.url.path.startswith("/accounts")
            return httpx2.Response(200, content=account if of_account else found)

    node = HttpNode(URL, transport=Nonsense())
    assert isinstance(await node.find(call_of(TO_BOB), "ab"), NoAnswer)
    await node.aclose()


# Closing: the number is used up.


@pytest.mark.anyio
@pytest.mark.req("S4-45")
async def test_a_close_uses_the_number_up_and_what_comes_late_is_refused() -> None:
    async with Far(promises={"closes": True}) as far:
        call = await far.prepared()
        assert await far.tool.close(call) == NotYet(reason="its number is not used yet")
        await far.mine()
        assert await far.tool.close(call) == Absent(position=0)
        assert isinstance(await far.tool.send(call), Refused)
        await far.mine()
        assert await far.transfers() == []
        assert len(far.sign.signed) == 2


@pytest.mark.anyio
async def test_a_close_of_what_is_in_a_block_finds_it_and_sends_nothing() -> None:
    async with Far(promises={"closes": True}) as far:
        call = await far.prepared()
        await far.tool.send(call)
        await far.mine()
        before = await far.log()
        assert await far.tool.close(call) == Found(result=result(call))
        assert await far.log() == before


async def no_time(seconds: float) -> None:
    """Wait for nothing: the clock of the chain goes by itself."""


@pytest.mark.anyio
async def test_it_keeps_its_promises() -> None:
    class Ticking(SetClock):
        """Each look at the clock is a second later, so that what waits is soon in a block."""

        def now(self) -> float:
            self.at += 1.0
            return self.at

    async with Far(promises={"closes": True}, block_s=1.0) as far:
        far.app.state.desk._clock = Ticking()

        async def holds() -> Json:
            return [list(one) for one in await far.transfers()]

        found = await check_tool(
            far.tool,
            TO_BOB,
            changed={**TO_BOB, "amount": 11},
            refused={**TO_BOB, "amount": 5_000},
            holds=holds,
            clock=lambda: SENT_AT,
            sleep=no_time,
        )
        assert found.ok, found
        assert found.of(Verdict.SKIPPED) == frozenset()


# Through the runtime.


@pytest.fixture
def rig() -> Any:
    with World() as world:
        yield Rig(world, lease=SELDOM)


class Wired:
    """A chain of the rig's world, behind a wire that remembers what was broadcast."""

    def __init__(self, rig: Rig, *faults: Fault, **settings: Any) -> None:
        self.broadcast: list[bytes] = []
        kept = Chain(**{"block_s": 12.0, **settings})
        self.app = chain.app(":memory:", rig.world.clock, faults, settings=kept)
        self.transport = WorldTransport(self.app, rig.world.spawn, self._see)
        self.sign = Signer()

    def _see(self, request: httpx2.Request) -> None:
        if request.method == "POST":
            self.broadcast.append(bytes.fromhex(json.loads(request.content)["raw"]))

    def tool(self, **promises: Any) -> ChainTool:
        return paying(self.transport, self.sign, **promises)

    @property
    def transfers(self) -> list[tuple[str, int]]:
        rows = self.app.state.desk.ledger.sql.execute(
            "SELECT recipient, amount FROM tx WHERE status = 'mined' AND amount > 0 ORDER BY block"
        )
        return list(rows)


ASK = Ask(input="in-1", call_id="1")


async def transfer(rt: Runtime) -> Any:
    return await rt.perform("transfer", TO_BOB, ask=ASK, patience_s=3_600.0)


def submit(kind: Any, **more: Any) -> Fault:
    return Fault(path="/transactions", kind=kind, **more)


@pytest.mark.req("S4-45")
@pytest.mark.parametrize(
    ("faults", "settings", "broadcasts"),
    [
        ((), {}, 1),
        ((submit("lose_reply"),), {}, 1),
        ((submit("drop"), submit("drop", nth=2)), {}, 3),
        ((submit("error_after"),), {}, 1),
        ((submit("duplicate", seconds=1.0),), {}, 1),
        ((submit("drop"), submit("lose_reply", nth=2)), {}, 2),
        ((submit("lose_reply"),), {"forgets": 1}, 2),
    ],
    ids=["fine", "lost", "dropped", "500", "duplicate", "dropped and lost", "forgotten"],
)
def test_whatever_is_lost_the_same_bytes_go_again_and_move_the_amount_once(
    rig: Rig, faults: Any, settings: dict[str, Any], broadcasts: int
) -> None:
    wired = Wired(rig, *faults, **settings)
    value = rig.run(transfer, wired.tool())
    assert isinstance(value, Confirmed), value
    assert len(wired.broadcast) == broadcasts
    assert len(set(wired.broadcast)) == 1
    assert (len(wired.sign.signed), wired.transfers) == (1, [("bob", 10)])


@pytest.mark.req("S4-45", "S4-40")
@pytest.mark.parametrize(
    "point", ["after:prepared", "before:send", "after:sent", "before:accepted"]
)
def test_a_process_that_dies_leaves_the_bytes_and_nobody_signs_again(rig: Rig, point: str) -> None:
    wired = Wired(rig)
    points = Points(die=lambda at: current_process().crash(at), kill=parse_point(point))
    rig.kill_at = parse_point(point)
    first = rig.start(transfer, FaultyTool(wired.tool(), points))
    rig.world.wait(first)
    assert first.ended().crashed_at == point
    rig.kill(first)
    rig.kill_at = None
    assert isinstance(rig.run(transfer, wired.tool()), Confirmed)
    assert (len(wired.sign.signed), len(set(wired.broadcast))) == (1, 1)
    assert wired.transfers == [("bob", 10)]


@pytest.mark.req("S4-45", "F4-12")
def test_no_other_transfer_gets_a_number_while_one_is_unknown(rig: Rig) -> None:
    silent = Fault(path="/transactions/*", method="GET", kind="drop", nth=None)
    wired = Wired(rig, submit("drop", nth=None), silent)

    async def twice(rt: Runtime) -> Any:
        first = await rt.perform("transfer", TO_BOB, patience_s=20.0)
        second = await rt.perform("transfer", {**TO_BOB, "amount": 11}, patience_s=20.0)
        other = await rt.perform("transfer", {**TO_BOB, "from": "bob", "amount": 1})
        return first, second, other

    first, second, other = rig.run(twice, wired.tool())
    assert isinstance(first, Unknown)
    assert isinstance(second, Blocked)
    assert second.by == first.operation
    assert [one["from"] for one in wired.sign.signed] == ["ana", "bob"]
    assert not isinstance(other, Blocked)


@pytest.mark.req("F4-12")
def test_who_signs_again_with_a_new_number_pays_twice(rig: Rig) -> None:
    """The wrong design: each try takes the next number, and the first was only slow to answer."""
    wired = Wired(rig, submit("lose_reply"))
    node = HttpNode(URL, transport=wired.transport)

    @tool(effect="irreversible", keyed="key", compares_payload=True, deadline_s=5.0)
    async def naive(to: str, key: str, call: Call) -> SendOutcome:
        """Transfer, signed anew at each try."""
        call = replace(call, arguments=TO_BOB)
        nonce = await node.next_nonce(call)
        assert isinstance(nonce, int)
        return await node.submit(call, wired.sign({**TO_BOB, "nonce": nonce}))

    async def script(rt: Runtime) -> Any:
        return await rt.perform("naive", {"to": "bob"}, patience_s=600.0)

    rig.run(script, naive)
    rig.world.pass_time(60.0)
    rig.run(
        lambda rt: rt.perform("transfer", {**TO_BOB, "amount": 1}, patience_s=60.0), wired.tool()
    )
    assert wired.transfers == [("bob", 10), ("bob", 10), ("bob", 1)]


def test_a_transfer_whose_number_was_used_by_another_is_failed(rig: Rig) -> None:
    wired = Wired(rig)

    async def script(rt: Runtime) -> Any:
        first = await rt.perform("transfer", TO_BOB, ask=ASK)
        assert isinstance(first, Accepted)
        other = signed({**TO_BOB, "amount": 1, "nonce": 0, "fee": 9}, secret_of("ana"))
        await HttpNode(URL, transport=wired.transport).submit(call_of(TO_BOB), other)
        return await rt.perform("transfer", TO_BOB, ask=ASK, patience_s=600.0)

    value = rig.run(script, wired.tool(deadline_s=2.0))
    assert isinstance(value, Failed)
    assert wired.transfers == [("bob", 1)]


def test_what_cannot_be_signed_is_withdrawn_and_nothing_left(rig: Rig) -> None:
    def locked(transaction: Mapping[str, Json]) -> bytes:
        raise PermissionError("the wallet is locked")

    wired = Wired(rig)
    value = rig.run(transfer, paying(wired.transport, locked))
    assert isinstance(value, Withdrawn)
    assert (wired.broadcast, wired.transfers) == ([], [])


@pytest.mark.parametrize("closes", [False, True])
def test_one_that_nobody_wants_any_more_is_closed_where_it_can_be(rig: Rig, closes: bool) -> None:
    """It never arrived, and its time to be sent is over: only a close can end the doubt."""
    wired = Wired(rig, submit("drop"), submit("drop", nth=2))

    async def script(rt: Runtime) -> Any:
        ask = replace(ASK, send_by=rig.world.clock.now() + 0.2)
        return await rt.perform("transfer", TO_BOB, ask=ask, patience_s=9_000.0)

    value = rig.run(script, wired.tool(closes=closes))
    assert isinstance(value, Failed if closes else Undecided), value
    assert (len(wired.sign.signed), wired.transfers) == (1 + closes, [])


@pytest.mark.req("S4-45")
def test_over_real_sockets_a_lost_reply_is_found_in_a_block(tmp_path: Path) -> None:
    signer = Signer()

    async def transferred(url: str) -> Any:
        node = HttpNode(url)
        pay = ChainTool(name="transfer", node=node, sign=signer, hash_of=hash_of, risk="safe")
        async with landed.open("sqlite://:memory:", tools=[pay]) as rt:
            value = await rt.perform("transfer", TO_BOB, patience_s=30.0)
        await node.aclose()
        return value

    settings, lost = Chain(block_s=0.2), submit("lose_reply")
    path = str(tmp_path / "chain.db")
    with serve.start("chain", db=path, faults=[lost], settings=settings) as far:
        assert isinstance(run(transferred(far.url)), Confirmed)
        assert httpx2.get(f"{far.url}/accounts/bob").json()["amount"] == 10
    assert len(signer.signed) == 1
