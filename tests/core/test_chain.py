"""A stretch of the journal holds together, or it is said where it does not."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

import landed
from landed.core.chain import Chain
from landed.core.journal import GENESIS, Entry, link


@landed.tool(effect="reversible")
async def book(day: str) -> dict[str, str]:
    return {"id": day}


def written(secret: bytes = b"") -> list[Entry]:
    async def write() -> list[Entry]:
        async with landed.open("sqlite://:memory:", tools=[book], secret=secret) as rt:
            for n in range(8):
                await rt.perform(book, {"day": f"d{n}"})
            return list(await rt.driver.store.journal())

    return asyncio.run(write())


def checked(entries: Sequence[Entry], **how: object) -> Chain:
    chain = Chain(**{"is_one": True, "is_from_beginning": True, **how})  # type: ignore[arg-type]
    chain.read(entries[:5])
    chain.read(entries[5:])
    return chain


def breaks(chain: Chain) -> list[tuple[int, str]]:
    return [(each.seq, each.why) for each in chain.breaks]


def test_what_nobody_touched_holds() -> None:
    entries = written()
    chain = checked(entries)
    assert chain.holds
    assert (chain.first, chain.last, chain.checked) == (1, entries[-1].seq, len(entries))
    assert chain.outside == 0


def test_a_body_or_a_state_that_was_edited_is_noticed() -> None:
    entries = written()
    entries[3] = replace(entries[3], body=b"{}")
    entries[6] = replace(entries[6], state="failed")
    assert breaks(checked(entries)) == [(4, "edited"), (7, "edited")]


def test_an_entry_that_was_taken_out_put_in_or_moved_is_noticed() -> None:
    entries = written()
    gone = entries[:4] + entries[5:]
    assert breaks(checked(gone)) == [(6, "unlinked")]
    assert breaks(checked(entries[1:])) == [(2, "unlinked")]
    doubled = [*entries[:4], entries[3], *entries[4:]]
    assert breaks(checked(doubled)) == [(4, "unlinked")]


def test_of_a_stretch_only_the_first_link_leads_out() -> None:
    entries = written()
    part = checked(entries[4:], is_from_beginning=False)
    assert (part.holds, part.outside) == (True, 1)
    torn = checked(entries[4:8] + entries[9:], is_from_beginning=False)
    assert breaks(torn) == [(10, "unlinked")]


def test_an_entry_whose_details_were_erased_is_counted_and_holds() -> None:
    entries = written()
    entries[2] = replace(entries[2], body=None)
    chain = checked(entries)
    assert (chain.holds, chain.erased) == (True, 1)


def test_links_made_with_a_secret_hold_with_it_alone() -> None:
    entries = written(b"s3cret")
    assert checked(entries, secrets=(b"new", b"s3cret")).holds
    assert checked(entries, secrets=(b"other",)).broken == len(entries)


def made_after(prev: Entry, seq: int) -> Entry:
    plain = replace(prev, seq=seq, prev=prev.hash)
    return replace(
        plain,
        hash=link(
            prev=plain.prev,
            seq=seq,
            id=plain.id,
            version=plain.version,
            before=plain.before,
            event=plain.event,
            state=plain.state,
            at=plain.at,
            body_digest=plain.body_digest,
        ),
    )


def test_chains_of_several_stores_hold_side_by_side() -> None:
    trunk = written()[:3]
    assert trunk[0].prev == GENESIS
    left, right = made_after(trunk[2], 4), made_after(trunk[2], 5)
    both = [*trunk, left, right, made_after(left, 6), made_after(right, 7)]
    assert checked(both, is_one=False).holds
    assert not checked(both, is_one=True).holds
    second = made_after(replace(trunk[0], hash=GENESIS), 8)
    assert checked([*both, second], is_one=False).holds
    assert breaks(checked([*trunk, second])) == [(8, "unlinked")]
    assert breaks(checked([*both[:3], *both[4:]], is_one=False)) == [(6, "unlinked")]


@pytest.mark.parametrize("one", [True, False])
def test_of_nothing_nothing_is_said(one: bool) -> None:
    chain = checked([], is_one=one)
    assert (chain.checked, chain.holds, chain.first) == (0, True, 0)


def test_a_stretch_of_several_chains_counts_what_leads_out() -> None:
    entries = written()
    torn = checked(entries[4:8] + entries[9:], is_one=False, is_from_beginning=False)
    assert (torn.holds, torn.outside) == (True, 2)
    whole = checked(entries, is_one=False)
    assert (whole.holds, whole.outside) == (True, 0)
    assert breaks(checked(entries[:4] + entries[5:], is_one=False)) == [(6, "unlinked")]


def test_only_so_many_links_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = written()
    monkeypatch.setattr("landed.core.chain.REMEMBERED", 3)
    assert checked(entries).holds
    far_behind = checked(entries[:4] + entries[5:], is_one=False)
    assert (far_behind.holds, far_behind.outside) == (True, 1)
