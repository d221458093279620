"""`landed chat -p`: one shot, its exit status, and what becomes of one that is killed."""

import asyncio
import fcntl
import json
import os
import signal
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from landed.agent.loop import Account
from landed.agent.messages import text_of, user_message
from landed.agent.session import AgentSession
from landed.agent.session_log import SessionLog
from landed.assemble import open_runtime
from landed.cli.chatting.asked import Speaker
from landed.cli.chatting.talks import WithEffects
from landed.cli.main import landed
from landed.runtime.opened import Settings
from landed.testing.provider import Reply, ScriptedProvider
from landed.testing.scripted import ScriptedReplies, asks, call, says
from landed.testing.shapes import shape
from tests.cli import table
from tests.cli.chatting import BOOKS, HANGS, MAX_S, Chat, ended, problems
from tests.cli.table import booked

Speaks = Callable[..., Result]
SAYS = "Book Friday."


@asynccontextmanager
async def chatting(directory: Path, *replies: Reply) -> AsyncGenerator[Chat]:
    async with ScriptedProvider(*replies) as provider:
        yield Chat(directory=directory, provider=provider)


def ledger_of(chat: Chat) -> list[Any]:
    file = chat.directory / "ledger"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def played(directory: Path, *replies: Reply) -> Callable[[Callable[[Chat], Awaitable[None]]], None]:
    """Run a play with a chat, over a provider with these replies."""

    def run(play: Callable[[Chat], Awaitable[None]]) -> None:
        async def act() -> None:
            async with chatting(directory, *replies) as chat:
                await play(chat)

        asyncio.run(act())

    return run


async def killed_asking(chat: Chat, process: asyncio.subprocess.Process) -> None:
    """Kill it when the provider has its first request: nothing was begun."""
    await asyncio.wait_for(chat.provider.came(1), MAX_S)


async def killed_landed(chat: Chat, process: asyncio.subprocess.Process) -> None:
    """Kill it when the table is booked, and nobody was told."""
    pipe = await asyncio.to_thread(os.open, chat.gate, os.O_WRONLY)
    chat.gate.unlink()
    process.kill()
    await process.wait()
    os.close(pipe)


async def killed_told(chat: Chat, process: asyncio.subprocess.Process) -> None:
    """Kill it when the result is in the record, and the model is asked what to say of it."""
    await asyncio.wait_for(chat.provider.came(2), MAX_S)


KILLS = {
    "asking": (killed_asking, (HANGS, BOOKS, Reply(text="Booked."))),
    "landed": (killed_landed, (BOOKS, Reply(text="Booked."))),
    "told": (killed_told, (BOOKS, HANGS, Reply(text="Booked."))),
}


@pytest.fixture
def speaks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Speaks:
    """Let the chat speak to a model in this process, and run it here."""
    monkeypatch.setenv("LANDED_LEDGER", str(tmp_path / "ledger"))
    monkeypatch.setenv("LANDED_AS", "ana")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.chdir(tmp_path)

    def run(model: Any, *more: str, app: str = "tests.cli.table") -> Result:
        monkeypatch.setattr(model, "aclose", closed, raising=False)
        monkeypatch.setattr(Speaker, "begin", lambda speaker: model)
        given = ["chat", "--provider", "openai", "--model", "m", *(["--app", app] if app else [])]
        return CliRunner().invoke(landed, [*given, *more], catch_exceptions=False)

    return run


async def closed() -> None:
    """Close nothing."""


def test_words_that_are_a_question_to_the_person_are_status_three_and_a_yes_ends_it(
    speaks: Speaks,
) -> None:
    model = ScriptedReplies(asks(call("c1", "text", to="Sam")), says("I asked you."))
    first = speaks(model, "--session", "m.db", "-p", "Text Sam.")
    assert first.exit_code == 3
    assert first.stdout == "I asked you.\n1. text(to=Sam)\nShall I do it?\n"
    assert "waits for your yes or no" in first.stderr
    assert not booked()
    perhaps = speaks(ScriptedReplies(says("Not then.")), "--session", "m.db", "-p", "yes, maybe")
    assert perhaps.exit_code == 0
    assert not booked()


def test_a_strict_yes_is_carried_out_without_the_model(speaks: Speaks) -> None:
    asked = ScriptedReplies(asks(call("c1", "text", to="Sam")), says("I asked you."))
    speaks(asked, "--session", "m.db", "-p", "Text Sam.")
    silent = ScriptedReplies()
    second = speaks(silent, "--session", "m.db", "-p", "yes")
    assert (second.exit_code, silent.calls) == (0, [])
    assert second.stdout == "Done: texted Sam. There is nothing left to do.\n"
    assert [line["id"] for line in booked()] == ["to Sam"]


def test_a_failure_is_status_one_and_the_same_delivery_tries_again(speaks: Speaks) -> None:
    given = ("--session", "m.db", "-p", SAYS, "--delivery", "d1")
    failed = speaks(ScriptedReplies(OSError("no network")), *given)
    assert failed.exit_code == 1
    assert failed.stdout == "Error: no network\n"
    again = speaks(ScriptedReplies(asks(call("c1", "book", day="Fri")), says("Booked.")), *given)
    assert again.exit_code == 0
    done = speaks(ScriptedReplies(), *given)
    assert (done.exit_code, done.stdout) == (0, "Booked.\nBooked R1 (Fri).\n")
    assert len(booked()) == 1


def test_what_was_received_and_not_begun_is_finished_and_not_said_twice(speaks: Speaks) -> None:
    async def heard() -> None:
        async with open_runtime("sqlite:///m.db") as rt:
            await rt.receive(SAYS, session="m", principal="ana")

    asyncio.run(heard())
    model = ScriptedReplies(asks(call("c1", "book", day="Fri")), says("Booked."))
    ran = speaks(model, "--session", "m.db", "-p", SAYS)
    assert ran.exit_code == 0
    assert len(model.calls) == 2
    assert f"finishing what was left: {SAYS}" in ran.stderr
    assert speaks(ScriptedReplies(), "--session", "m.db", "--resume").exit_code == 0


def test_what_is_not_known_is_said_to_be_open(speaks: Speaks) -> None:
    async def faxed() -> None:
        settings = Settings(patience_s=0.0)
        async with open_runtime("sqlite://:memory:", tools=table.tools, settings=settings) as rt:
            session = await AgentSession.begin(rt, model=ScriptedReplies(), principal="ana")
            fax = await rt.perform("fax", {"to": "Sam"})
            sent = await rt.perform("book", {"day": "Fri"}, patience_s=10.0)
            account: Account = {
                "turn": "",
                "report": "",
                "operations": [fax.operation, sent.operation],
                "questions": [],
                "unsupported": [],
            }
            told = await WithEffects(session).still_open(account)
            assert told == [f"{fax.operation} is not known yet"]

    asyncio.run(faxed())


@pytest.mark.req("S2-86", "S2-87")
def test_with_json_each_event_is_a_line_and_nothing_else_is_there(speaks: Speaks) -> None:
    model = ScriptedReplies(asks(call("c1", "book", day="Fri")), says("Booked \x1b[2J\u202e."))
    ran = speaks(model, "--session", "m.db", "-p", SAYS, "--json")
    events = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [event["type"] for event in events][-2:] == ["agent_end", "account"]
    assert events[-1]["account"]["report"] == "Booked R1 (Fri)."
    assert ran.stdout.isascii()
    assert "\x1b" not in ran.stdout


def test_a_log_alone_keeps_the_conversation_and_has_no_effects(speaks: Speaks) -> None:
    Path("AGENTS.md").write_text("Be kind.")
    Path("hours.txt").write_text("from seven")
    given = ("--session", "m.jsonl", "-p")
    reads = asks(call("c1", "read", path="hours.txt"))
    model = ScriptedReplies(reads, says("From seven."), says("Yes."))
    assert speaks(model, *given, "Since when?", app="").stdout == "From seven.\n"
    assert speaks(model, *given, "Really?", app="").exit_code == 0
    assert shape(SessionLog("m.jsonl").replay()) == "U A[c1] R(c1) A U A"
    assert [tool["name"] for tool in model.calls[0].tools] == ["read"]
    assert "Be kind." in model.calls[0].system
    assert text_of(model.calls[1].messages[-1]) == "from seven"


def test_a_log_alone_that_was_cut_off_is_gone_on_with(speaks: Speaks) -> None:
    SessionLog("m.jsonl").append(user_message("Hi."))
    ran = speaks(ScriptedReplies(says("Hello.")), "--session", "m.jsonl", "-p", "Hi.", app="")
    assert (ran.exit_code, ran.stdout) == (0, "Hello.\n")
    assert shape(SessionLog("m.jsonl").replay()) == "U A"


@pytest.mark.parametrize(
    ("more", "because"),
    [
        (("--session", "m.jsonl"), "leave out --app"),
        (("--session", "m.db", "--store", "sqlite:///n.db"), "leave out --store"),
        (("--session", "m.db", "--resume"), "leave out either it or -p"),
    ],
)
def test_what_makes_no_sense_is_said_before_anything_is_made(
    speaks: Speaks, more: tuple[str, ...], because: str
) -> None:
    ran = speaks(ScriptedReplies(), *more, "-p", "Hi.")
    assert ran.exit_code == 2
    assert because in ran.stderr
    assert not list(Path().iterdir())


def test_without_a_key_it_says_which_variable_it_wants(
    speaks: Speaks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "")
    ran = speaks(ScriptedReplies(), "-p", "Hi.")
    assert ran.exit_code == 2
    assert "the environment has no OPENAI_API_KEY" in ran.stderr


def test_a_second_process_does_not_lead_the_same_conversation(speaks: Speaks) -> None:
    with Path("m.db-chat.m").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_SH)
        ran = speaks(ScriptedReplies(), "--session", "m.db", "-p", "Hi.")
    assert ran.exit_code == 1
    assert "another process leads this conversation" in ran.stderr
    assert not Path("m.db").exists()


@pytest.mark.services
@pytest.mark.parametrize("again", [("-p", SAYS, "--delivery", "d1"), ("--resume",)])
@pytest.mark.parametrize("point", KILLS)
def test_a_booking_is_killed_and_resumed_and_there_is_one(
    tmp_path: Path, point: str, again: tuple[str, ...]
) -> None:
    kill, replies = KILLS[point]

    async def play(chat: Chat) -> None:
        if point == "landed":
            os.mkfifo(chat.gate)
        process = await chat.start("-p", SAYS, "--delivery", "d1")
        await kill(chat, process)
        if process.returncode is None:
            process.kill()
        assert (await ended(process)).status == -signal.SIGKILL
        second = await chat.run(*again)
        assert second.status == 0, second.notes
        assert second.said == "Booked.\nBooked R1 (Fri).\n"
        assert f"finishing what was left: {SAYS}" in second.notes
        assert [line["id"] for line in ledger_of(chat)] == ["R1"]
        messages = await chat.transcript()
        assert problems(messages) == []
        assert shape(messages) == "U A[c1] R(c1) A"
        assert "Booked R1 (Fri)" in text_of(messages[2])
        third = await chat.run(*again)
        assert third.status == 0
        assert shape(await chat.transcript()) == "U A[c1] R(c1) A"

    played(tmp_path, *replies)(play)
