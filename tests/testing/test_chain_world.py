"""The chain keeps its word: signatures, numbers, the pool, blocks, and what it refuses."""

from pathlib import Path
from typing import Any

import httpx2
import pytest

from landed.testing.worlds import chain, serve
from landed.testing.worlds.chain import Chain, hash_of, secret_of, signed
from tests.testing.far_sides import FarSide, SetClock, Sleeps, code

pytestmark = pytest.mark.anyio
TRANSFER: dict[str, Any] = {"from": "ana", "to": "bob", "amount": 10, "nonce": 0}


def raw(by: str = "ana", **more: Any) -> bytes:
    return signed(TRANSFER | more, secret_of(by))


class Far(FarSide):
    """A chain in this process."""

    def __init__(self, **settings: Any) -> None:
        self.clock, sleeps = SetClock(), Sleeps()
        own = chain.app(":memory:", self.clock, settings=Chain(**settings), sleep=sleeps)
        super().__init__(own, sleeps, witness=None, before=None)

    async def submit(self, bytes_: bytes) -> httpx2.Response:
        return await self.client.post("/transactions", json={"raw": bytes_.hex()})

    async def mine(self) -> int:
        return (await self.client.post("/blocks")).raise_for_status().json()["height"]

    async def look(self, bytes_: bytes) -> tuple[bool, str, int]:
        said = (await self.client.get(f"/transactions/{hash_of(bytes_)}")).json()
        return said["found"], said.get("transaction", {}).get("status", ""), said["position"]

    async def account(self, name: str) -> tuple[int, int, int]:
        said = (await self.client.get(f"/accounts/{name}")).raise_for_status().json()
        return said["amount"], said["nonce"], said["next"]

    async def hashes(self) -> list[str]:
        every = (await self.client.get("/transfers")).raise_for_status().json()["transfers"]
        return [one["hash"] for one in every]


async def test_a_transaction_waits_for_its_block_and_moves_the_amount_then() -> None:
    async with Far() as far:
        assert (await far.submit(raw())).status_code == 202
        assert await far.look(raw()) == (True, "pending", 0)
        assert (await far.account("ana"), await far.account("bob")) == ((1_000, 0, 1), (0, 0, 0))
        assert await far.mine() == 1
        assert await far.look(raw()) == (True, "mined", 1)
        assert (await far.account("ana"), await far.account("bob")) == ((990, 1, 1), (10, 0, 0))


async def test_the_same_bytes_are_taken_once_and_refused_once_they_are_in_a_block() -> None:
    async with Far() as far:
        for _ in range(3):
            assert (await far.submit(raw())).json() == {"hash": hash_of(raw()), "status": "pending"}
        await far.mine()
        assert code(await far.submit(raw())) == (422, "nonce-used")
        await far.mine()
        assert await far.hashes() == [hash_of(raw())]


async def test_another_of_the_same_number_takes_its_place_only_by_bidding_more() -> None:
    async with Far() as far:
        await far.submit(raw())
        assert code(await far.submit(raw(amount=11))) == (422, "underpriced")
        assert (await far.submit(raw(amount=11, fee=2))).status_code == 202
        assert await far.look(raw()) == (True, "replaced", 0)
        await far.mine()
        assert await far.hashes() == [hash_of(raw(amount=11, fee=2))]
        assert code(await far.submit(raw())) == (422, "nonce-used")


REFUSED = [
    (raw(by="bob"), (422, "bad-signature")),
    (raw(nonce=1), (422, "bad-nonce")),
    (raw(amount=1_001), (422, "too-little")),
    (raw(to="nobody"), (422, "no-such-account")),
    (raw(by="nobody", **{"from": "nobody"}), (422, "no-such-account")),
    (raw(amount=-1), (400, "bad-amount")),
    (raw(nonce=True), (400, "bad-nonce")),
    (raw(fee="much"), (400, "bad-fee")),
    (b"", (400, "bad-raw")),
    (b"{}", (400, "bad-raw")),
    (b'{"body": "[]", "signature": ""}', (400, "bad-raw")),
    (raw()[:-9] + b'"}', (422, "bad-signature")),
]


@pytest.mark.parametrize(("bytes_", "expected"), REFUSED)
async def test_what_is_refused_leaves_nothing(bytes_: bytes, expected: tuple[int, str]) -> None:
    async with Far() as far:
        assert code(await far.submit(bytes_)) == expected
        await far.mine()
        assert await far.hashes() == []


@pytest.mark.parametrize("body", [{}, {"raw": 7}, {"raw": "xyz"}])
async def test_what_is_no_hex_is_refused(body: Any) -> None:
    async with Far() as far:
        assert code(await far.client.post("/transactions", json=body)) == (400, "bad-raw")
        assert code(await far.client.get("/accounts/nobody")) == (422, "no-such-account")


async def test_blocks_come_by_the_clock_and_take_what_was_there() -> None:
    async with Far(block_s=10.0) as far:
        far.clock.at += 95.0
        await far.submit(raw())
        assert await far.look(raw()) == (True, "pending", 1)
        far.clock.at += 4.0
        assert (await far.look(raw()))[1] == "pending"
        far.clock.at += 1.0
        assert await far.look(raw()) == (True, "mined", 2)
        far.clock.at += 1e9
        assert await far.look(raw()) == (True, "mined", 3)


async def test_a_pool_may_forget_and_take_the_same_bytes_again() -> None:
    async with Far(forgets=1) as far:
        assert (await far.submit(raw())).status_code == 202
        assert await far.look(raw()) == (False, "", 0)
        await far.submit(raw())
        await far.mine()
        assert await far.look(raw()) == (True, "mined", 1)


async def test_what_there_is_not_enough_for_in_the_end_is_dropped_with_what_follows() -> None:
    async with Far() as far:
        for nonce, amount in enumerate((600, 600, 1)):
            await far.submit(raw(nonce=nonce, amount=amount))
        await far.mine()
        assert await far.hashes() == [hash_of(raw(nonce=0, amount=600))]
        assert (await far.look(raw(nonce=1, amount=600)))[1] == "dropped"
        assert await far.account("ana") == (400, 1, 1)


@pytest.mark.parametrize("wrong", [{"block_s": 0}, {"forgets": -1}, {"accounts": {"ana": -1}}])
async def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be"):
        Chain(**wrong)


async def test_it_is_served_as_a_process_of_its_own(tmp_path: Path) -> None:
    settings = Chain(accounts={"ana": 7})
    with serve.start("chain", db=str(tmp_path / "chain.db"), settings=settings) as far:
        assert httpx2.get(f"{far.url}/accounts/ana").json()["amount"] == 7
