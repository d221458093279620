"""The soak against a model counts what happened, and notices what is not valid."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from landed.agent.messages import Message, tool_call, tool_result
from landed.testing.provider import Called, Protocol, Reply, ScriptedProvider
from landed.testing.soak import WAYS, Report, Soak, Talk, main, soak
from tests.agent.speaking import PROTOCOLS, model_of

WRITES = Reply(calls=[Called(id="c1", name="write", arguments={"path": "a.txt", "content": "7"})])
READS = Reply(
    text="I look.",
    calls=[
        Called(id="c1", name="read", arguments={"path": "a.txt"}),
        Called(id="c2", name="read", arguments={"path": "../b.txt"}),
    ],
)
SILENT = Reply(text="Hm", silent_at=300)
DONE = Reply(text="Done.")
MANY = (WRITES, READS, DONE, SILENT, WRITES, Reply(status=400), READS, SILENT, DONE) * 4


def asked(there: ScriptedProvider, protocol: Protocol, turns: int = 8) -> Soak:
    return Soak(
        base_url=there.url_of(protocol),
        model="scripted-1",
        dialect=protocol,
        turns=turns,
        talk_turns=3,
        stop_within_s=0.01,
        most_s=0.1,
        seed=5,
    )


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_some_turns_with_stops_are_counted_and_all_is_valid(protocol: Protocol) -> None:
    async def program() -> Report:
        async with ScriptedProvider(DONE, *MANY, forever=DONE) as there:
            report = await soak(asked(there, protocol))
            # One request more came: the one that asked whether anybody is there. One that was
            # stopped at once may not have left.
            assert len(there.received) <= report.counts["requests"] + 1
            return report

    report = asyncio.run(program())

    counts = report.counts
    assert report.problems == []
    assert counts["turns"] == 8 == sum(counts[f"ended: {way}"] for way in WAYS)
    told = sum(count for name, count in counts.items() if name.startswith("request: "))
    assert told == counts["requests"] > 0
    assert report.lines()[-1] == "problems: 0"


def test_each_way_to_end_a_turn_leaves_it_whole(tmp_path: Path) -> None:
    async def program() -> None:
        async with ScriptedProvider(forever=SILENT) as there:
            model, report = model_of("openai-chat", there), Report()
            talk = Talk(model, report, tmp_path / "talk")
            for way in WAYS:
                if way not in ("left alone", "told more"):
                    await talk.turn("Write.", way, 0.01)
            await model.aclose()
        assert report.problems == []
        assert report.counts["turns"] == 3
        assert not talk.harness.is_running

    asyncio.run(program())


def test_what_is_not_valid_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unrepaired(messages: Sequence[Message]) -> list[Message]:
        return [*messages, tool_result(tool_call("c9", "read"), "never asked for")]

    monkeypatch.setattr("landed.agent.loop.messages_for_model", unrepaired)

    async def program() -> Report:
        async with ScriptedProvider(forever=DONE) as there:
            model, report = model_of("openai-chat", there), Report()
            talk = Talk(model, report, tmp_path / "talk")
            await talk.turn("Write.", "left alone", 0)
            assert len(report.problems) == 1
            talk.harness.replace_messages([])
            assert talk.problems() == ["the log is not the record"]
            run = talk.harness.prompt("Go on.")
            assert "the run is not over" in talk.problems()
            await run.aclose()
            await model.aclose()
            return report

    report = asyncio.run(program())
    assert "out of its place" in report.problems[0]
    assert report.lines()[-1] == "problems: 1"


@pytest.mark.parametrize("way", ["left alone", "forced to stop"])
def test_a_run_that_dies_is_noticed(tmp_path: Path, way: str) -> None:
    def full(event: object) -> None:
        raise OSError("disk full")

    async def program() -> Report:
        async with ScriptedProvider(forever=DONE) as there:
            model, report = model_of("openai-chat", there), Report()
            talk = Talk(model, report, tmp_path / "talk")
            talk.harness.subscribe(full)
            await talk.turn("Write.", way, 5)
            await model.aclose()
            return report

    assert "the run died of OSError('disk full')" in asyncio.run(program()).problems[0]


def test_without_a_server_it_says_how_to_get_one(capsys: pytest.CaptureFixture[str]) -> None:
    async def closed() -> str:
        async with ScriptedProvider() as there:
            return there.openai_url

    url = asyncio.run(closed())

    assert main(["--base-url", url, "--model", "local", "--turns", "1"]) == 2
    told = capsys.readouterr()
    assert (url in told.err, "llama-server" in told.err, told.out) == (True, True, "")
