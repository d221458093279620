"""A conversation in a store's journal: whole, in order, exported, and without what was erased."""

import asyncio
from pathlib import Path

import pytest
from click.testing import CliRunner

import landed
from landed.agent.journal_log import JournalLog, export_to
from landed.agent.log_lines import LogError
from landed.agent.messages import (
    Message,
    assistant_message,
    text_block,
    text_of,
    tool_call,
    user_message,
)
from landed.agent.session_log import SessionLog
from landed.cli.main import landed as program
from landed.core.session import conversing

ODD: list[Message] = [
    user_message('half a character: \ud83d, and "quotes" \x00'),
    assistant_message(
        text_block("é 🎉"), tool_call("c1", "read", {"n": 2**80, "x": 1e300, "none": None})
    ),
]


def in_store(store: str, work) -> None:
    async def opened() -> None:
        async with landed.open(store) as rt:
            await work(JournalLog(rt, "s1"))

    asyncio.run(opened())


@pytest.mark.req("S2-72", "K29")
def test_what_was_said_comes_back_as_it_was_whatever_it_holds(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/a.db"

    async def written(log: JournalLog) -> None:
        for message in ODD:
            await log.append(message)
        assert await log.replay() == ODD

    async def read(log: JournalLog) -> None:
        assert await log.replay() == ODD
        assert [entry["id"] for entry in await log.entries()] == ["e1", "e2"]
        assert await JournalLog(log.rt, "other").replay() == []

    in_store(store, written)
    in_store(store, read)


def test_two_logs_over_one_conversation_agree(tmp_path: Path) -> None:
    async def both(log: JournalLog) -> None:
        again = JournalLog(log.rt, "s1")
        for n in range(4):
            await (log, again)[n % 2].append(user_message(str(n)))
        assert await log.replay() == await again.replay()
        assert [m["content"] for m in await log.replay()] == ["0", "1", "2", "3"]

    in_store("sqlite://:memory:", both)


def test_more_lines_than_a_page_are_read() -> None:
    async def many(log: JournalLog) -> None:
        said = [user_message(str(n)) for n in range(1_203)]
        await asyncio.gather(*(log.append(message) for message in said))
        assert sorted(int(text_of(m)) for m in await log.replay()) == [*range(1_203)]

    in_store("sqlite://:memory:", many)


def test_a_line_that_this_version_cannot_read_is_named() -> None:
    async def odd(log: JournalLog) -> None:
        await log.append(user_message("Hello."))
        unit = conversing(
            id="line-9", tenant="default", session="s1", line='{"type":"hologram"}', at=1.0
        )
        await log.rt.driver.store.commit(unit)
        with pytest.raises(LogError, match=r"session s1, line 2: .*hologram"):
            await log.entries()
        with pytest.raises(LogError, match="cannot be an entry"):
            await log.append_entry({"type": "hologram"})

    in_store("sqlite://:memory:", odd)


def test_it_is_exported_as_json_lines_with_a_summary_in_its_place(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/a.db"

    async def written(log: JournalLog) -> None:
        for n in range(3):
            await log.append(user_message(str(n)))
        await log.append_entry({"type": "compaction", "summary": "0, 1", "first_kept_id": "e3"})

    in_store(store, written)
    file = tmp_path / "out.jsonl"
    done = CliRunner().invoke(program, ["log", "export", "s1", str(file), "--store", store])
    assert (done.exit_code, done.output) == (0, f"{file}: 4 entries of s1\n")
    told = [message["content"] for message in SessionLog(file).replay()]
    assert told == ["Previous conversation summary:\n0, 1", "2"]
    again = CliRunner().invoke(program, ["log", "export", "s1", str(file), "--store", store])
    assert again.exit_code == 1
    assert "there already" in again.output
    none = CliRunner().invoke(program, ["log", "export", "s2", str(file), "--store", store])
    assert none.exit_code == 1
    assert "no conversation" in none.output


def test_what_was_erased_is_left_out_and_the_rest_keeps_its_place(tmp_path: Path) -> None:
    async def erased(log: JournalLog) -> None:
        for n in range(3):
            await log.append(user_message(str(n)))
        entries = [entry for entry in await log.entries() if entry["id"] != "e2"]
        compacted = {"id": "e4", "type": "compaction", "summary": "s", "first_kept_id": "e3"}
        out = SessionLog(tmp_path / "out.jsonl")
        assert export_to(out, [*entries, compacted]) == 3
        assert [message["content"] for message in out.replay()][-1] == "2"

    in_store("sqlite://:memory:", erased)
