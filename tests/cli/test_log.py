"""`landed log`: a conversation shown, a log checked, a torn end repaired, and no line skipped."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from landed.agent.messages import (
    Message,
    assistant_message,
    text_block,
    tool_call,
    tool_result,
    user_message,
)
from landed.agent.session_log import SessionLog
from landed.cli.main import landed

CALL = tool_call("c1", "read", {"path": "a.py"})
TALK: list[Message] = [
    user_message("What is\nin a.py?"),
    assistant_message(text_block("I look."), CALL),
    tool_result(CALL, "one\x1b[2J"),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    log = SessionLog(tmp_path / "talk.jsonl")
    for message in TALK:
        log.append(message)
    return log.path


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(landed, ["log", *map(str, arguments)])


def read(*arguments: str | Path) -> Any:
    return json.loads(run(*arguments, "--json").output)


def tear(path: Path, end: bytes = b'{"id":"e4","ty') -> bytes:
    with path.open("ab") as file:
        file.write(end)
    return path.read_bytes()


def test_a_conversation_is_a_line_for_each_message(path: Path) -> None:
    assert run("show", path).output.splitlines() == [
        "user: What is in a.py?",
        'assistant: I look. read({"path": "a.py"})',
        "toolResult: one",
    ]
    assert read("show", path) == TALK


def test_a_conversation_is_shown_as_it_stands(path: Path) -> None:
    compaction = {"type": "compaction", "summary": "They read.", "first_kept_id": "e2"}
    SessionLog(path).append_entry(compaction)
    shown = run("show", path).output.splitlines()
    assert shown[0] == "user: Previous conversation summary: They read."
    assert [line.split(":")[0] for line in shown[1:]] == ["assistant", "toolResult"]


def test_an_empty_log_is_an_empty_conversation(tmp_path: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.touch()
    assert (run("show", empty).output, read("show", empty)) == ("", [])
    assert run("check", empty).exit_code == 0


def test_a_sound_log_is_told_as_one(path: Path) -> None:
    said = run("check", path)
    assert (said.exit_code, said.output) == (0, f"{path}: 3 messages, nothing wrong\n")
    assert read("check", path) == {"ok": True, "messages": 3, "problems": []}


@pytest.mark.req("K27")
@pytest.mark.parametrize("verb", ["show", "check"])
def test_a_line_that_cannot_be_read_is_an_error_that_names_it(path: Path, verb: str) -> None:
    before = tear(path)
    said = run(verb, path)
    assert (said.exit_code, f"{path}, line 4: " in said.output) == (1, True)
    assert path.read_bytes() == before


@pytest.mark.req("K27")
def test_a_line_that_cannot_be_read_is_in_the_object_of_a_check(path: Path) -> None:
    tear(path)
    found = read("check", path)
    assert (found["ok"], found["messages"], found["problems"][0]["line"]) == (False, 0, 4)


def test_a_result_that_answers_nothing_is_told_with_its_line(path: Path) -> None:
    log = SessionLog(path)
    log.append_entry({"type": "compaction", "summary": "They read.", "first_kept_id": "e3"})
    said = run("check", path)
    problem = "a result of c1, which is no call before it, or answered"
    assert (said.exit_code, said.output) == (1, f"{path}, line 3: {problem}\n")
    assert read("check", path)["problems"] == [{"line": 3, "problem": problem}]


@pytest.mark.req("K27")
def test_a_torn_end_is_cut_and_kept_and_the_log_goes_on(path: Path) -> None:
    whole = path.read_bytes()
    tear(path)
    said = run("repair", path)
    aside = path.with_name("talk.jsonl.torn-4")
    cut = f"{path}, line 4: cut 14 bytes that cannot be read; they are in {aside}\n"
    assert (said.exit_code, said.output) == (0, cut)
    assert aside.read_bytes() == b'{"id":"e4","ty'
    assert path.read_bytes().startswith(whole)
    assert run("check", path).exit_code == 0


def test_what_was_cut_is_said_as_an_object_too(path: Path) -> None:
    tear(path)
    aside = path.with_name("talk.jsonl.torn-4")
    assert read("repair", path) == {"line": 4, "cut_bytes": 14, "kept_in": str(aside)}
    assert read("repair", path) == {"line": None, "cut_bytes": 0, "kept_in": None}


def test_a_log_without_a_torn_end_is_left_as_it_is(path: Path) -> None:
    before = path.read_bytes()
    said = run("repair", path)
    assert (said.exit_code, "nothing to cut" in said.output) == (0, True)
    assert path.read_bytes() == before


def test_a_line_that_lacks_only_its_end_is_given_it(path: Path) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    said = run("repair", path)
    assert (said.exit_code, "line 3: it was whole but for its end" in said.output) == (0, True)
    assert path.read_bytes() == whole
    path.write_bytes(whole[:-1])
    assert read("repair", path) == {"line": 3, "cut_bytes": 0, "kept_in": None}


@pytest.mark.req("K27")
def test_a_broken_line_before_a_whole_one_is_not_cut(path: Path) -> None:
    before = tear(path, b'{"id":"e4\n{"id":"e5","type":"message"}\n')
    said = run("repair", path)
    assert (said.exit_code, "line 4: " in said.output) == (1, True)
    assert path.read_bytes() == before


@pytest.mark.parametrize("verb", ["show", "check", "repair"])
def test_what_the_system_refuses_is_one_line(
    path: Path, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("landed.agent.session_log.os.open", refuse)
    said = run(verb, path)
    assert (said.exit_code, said.output) == (1, f"Error: {path}: Permission denied\n")


def test_a_log_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    assert run("show", tmp_path / "none.jsonl").exit_code == 2
