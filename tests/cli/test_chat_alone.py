"""A conversation in a log alone: what was left is finished, and what was stopped hard is not."""

import asyncio
from pathlib import Path
from typing import Any

from landed.agent.harness import Harness
from landed.agent.session_log import SessionLog
from landed.agent.stop import stop_run
from landed.cli.chatting.alone import Alone
from landed.testing.scripted import ScriptedReplies, never_answers, says
from landed.testing.shapes import shape
from landed.testing.ticks import Background, driven


def alone(file: Path, *replies: Any) -> Alone:
    model, log = ScriptedReplies(*replies), SessionLog(file, sync="system")
    harness = Harness(model=model, messages=log.replay())
    return Alone(harness, log, model, window=100_000)


def begun(talk: Alone) -> Background:
    """Begin a run whose model never answers."""
    return Background(talk.hear("Think.", delivery=""))


def test_what_a_process_left_is_finished_by_the_next_one(tmp_path: Path) -> None:
    async def left() -> None:
        background = begun(alone(tmp_path / "a.jsonl", never_answers))
        await background.until("message_end")
        background.running.cancel()
        await asyncio.wait({background.running})
        talk = alone(tmp_path / "a.jsonl", says("I have."))
        assert await talk.left() == ["Think."]
        await driven(talk.finish())
        assert shape(talk.harness.messages) == "U A"
        assert await talk.left() == []

    asyncio.run(left())


def test_what_a_person_stopped_hard_is_left_also_by_the_next_process(tmp_path: Path) -> None:
    async def stopped() -> None:
        talk = alone(tmp_path / "a.jsonl", never_answers, says("Here."))
        background = begun(talk)
        await background.until("message_end")
        assert await stop_run(talk.harness, background.running, grace=0, by="ana") == "hard"
        assert await talk.left() == []
        again = alone(tmp_path / "a.jsonl", says("Here."))
        assert await again.left() == []
        await driven(again.hear("And?", delivery=""))
        assert shape(again.harness.messages) == "U U A"

    asyncio.run(stopped())
