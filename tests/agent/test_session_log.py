"""The session log: ids that are line numbers, torn ends refused and repaired, any byte survived."""

import contextlib
import gc
import json
import multiprocessing
import os
import random
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from landed.agent.log_lines import LogError
from landed.agent.messages import (
    Message,
    assistant_message,
    error_message,
    text_block,
    text_of,
    tool_call,
    tool_result,
    user_message,
)
from landed.agent.session_log import Repaired, SessionLog, Sync, persist_to, repair_tail
from landed.testing.stops.designs import SkippingLog
from tests.agent.cutting import Places, wherever_it_matters

CALL = tool_call("c1", "read", {"path": "naïve.py", "lines": [1, 2]})
TALK: list[Message] = [
    user_message("What is in naïve.py?\nBoth lines.  "),
    assistant_message(text_block("I look."), CALL),
    tool_result(CALL, "é = 1\n\x00\x1b[2J"),
    assistant_message(text_block("An é.")),
    error_message("Operation aborted", "aborted"),
]


def logged(path: Path, messages: Sequence[Message], **options: Any) -> SessionLog:
    log = SessionLog(path, **options)
    for message in messages:
        log.append(message)
    return log


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "talk.jsonl"


# Lines and ids.


@pytest.mark.req("S2-72")
def test_each_message_is_a_line_whose_id_is_its_number(path: Path) -> None:
    log = SessionLog(path)
    assert [log.append(message) for message in TALK] == ["e1", "e2", "e3", "e4", "e5"]
    assert [json.loads(line) for line in path.read_text("utf-8").splitlines()] == [
        {"id": f"e{number}", "type": "message", "message": message}
        for number, message in enumerate(TALK, 1)
    ]


@pytest.mark.req("S2-72")
def test_two_logs_over_one_file_agree_on_ids(path: Path) -> None:
    first, second = SessionLog(path), SessionLog(path)
    order = random.Random(7).choices([first, second], k=40)
    ids = [log.append(user_message(str(n))) for n, log in enumerate(order)]
    assert ids == [f"e{n}" for n in range(1, 41)]
    assert first.replay() == second.replay() == [user_message(str(n)) for n in range(40)]


def append_many(path: Path, name: str, start: Any) -> None:
    log = SessionLog(path, sync=Sync.SYSTEM)
    start.wait()
    for n in range(50):
        log.append(user_message(f"{name} {n} {'x' * 5_000}"))


@pytest.mark.req("S2-72")
def test_two_processes_append_to_one_file_and_lose_nothing(path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    start = spawn.Barrier(2)
    writers = [spawn.Process(target=append_many, args=(path, name, start)) for name in "ab"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0]
    log = SessionLog(path)
    assert [entry["id"] for entry in log.entries()] == [f"e{n}" for n in range(1, 101)]
    said = [text_of(message).split()[:2] for message in log.replay()]
    for name in "ab":
        assert [n for who, n in said if who == name] == [str(n) for n in range(50)]


def test_an_append_reads_what_others_appended_and_nothing_else(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an append costs does not grow with the file: counted in lines that are looked at."""
    log, other = logged(path, TALK * 20), SessionLog(path)
    other.replay()
    looked: list[int] = []
    read = SessionLog._catch_up

    def counting(self: SessionLog, file: Any) -> Any:
        entries = read(self, file)
        looked.append(len(entries))
        return entries

    monkeypatch.setattr(SessionLog, "_catch_up", counting)
    for _ in range(3):
        log.append(TALK[0])
    other.append(TALK[0])
    other.append(TALK[0])
    assert looked == [0, 0, 0, 3, 0]


# Resume.


@pytest.mark.req("S2-73")
def test_the_conversation_is_computed_from_what_happened(path: Path) -> None:
    assert SessionLog(path).replay() == []
    assert logged(path, TALK).replay() == SessionLog(path).replay() == TALK


def test_half_a_character_of_a_broken_reply_comes_back_as_it_was(path: Path) -> None:
    odd = [user_message("\ud83d"), user_message("\u2028 and \x85")]
    assert logged(path, odd).replay() == odd
    path.read_text("utf-8")  # And the file is UTF-8 all the same.


def test_a_log_is_its_owners_alone(path: Path) -> None:
    logged(path, TALK)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_garbage_collector_is_at_work_again_after_a_replay(path: Path) -> None:
    log = logged(path, TALK)
    log.replay()
    assert gc.isenabled()
    path.write_text("torn")
    with pytest.raises(LogError):
        log.replay()
    assert gc.isenabled()
    gc.disable()
    try:
        SessionLog(path.with_name("other.jsonl")).replay()
        assert not gc.isenabled()
    finally:
        gc.enable()


# What is refused.


@pytest.mark.req("S2-75", "K27")
@pytest.mark.parametrize("verb", ["replay", "append"])
def test_a_torn_line_is_refused_by_file_and_number(path: Path, verb: str) -> None:
    logged(path, TALK)
    whole = path.read_bytes()
    path.write_bytes(whole[:-9])
    log = SessionLog(path)
    with pytest.raises(ValueError, match=r"talk\.jsonl, line 5: .*repair_tail") as refused:
        log.append(TALK[0]) if verb == "append" else log.replay()
    assert isinstance(refused.value, LogError)
    assert (refused.value.path, refused.value.line) == (path, 5)
    assert path.read_bytes() == whole[:-9]


@pytest.mark.req("S2-75")
def test_a_line_torn_behind_a_logs_back_is_refused_by_its_next_append(path: Path) -> None:
    log = logged(path, TALK)
    with path.open("ab") as file:
        file.write(b'{"id":"e6","type":"mess')
    with pytest.raises(LogError, match="line 6"):
        log.append(TALK[0])


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"", "not one whole JSON object"),
        (b"[]", "not one whole JSON object"),
        (b"\xff\xfe", "not one whole JSON object"),
        (b'{"id":"e1","type":"message"}{"id":"e2"}', "not one whole JSON object"),
        (b'{"id":"e2","type":"message","message":{"role":"user"}}', "its id is 'e2', not 'e1'"),
        (b'{"type":"message","message":{"role":"user"}}', "its id is None"),
        (b'{"id":"e1","type":"dream"}', "knows no entry of the type 'dream'"),
        (b'{"id":"e1","type":["message"]}', "knows no entry of the type"),
        (b'{"id":"e1","type":"message","message":"Hi"}', "not all that an entry"),
        (b'{"id":"e1","type":"compaction","summary":"So."}', "not all that an entry"),
        (b'{"id":"e1","type":"compaction","summary":"So.","first_kept_id":"e7"}', "'e7'"),
        (b'{"id":"e1","x":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deeply"),
    ],
    ids=range(12),
)
def test_a_line_that_is_no_entry_is_refused(path: Path, line: bytes, problem: str) -> None:
    path.write_bytes(line + b"\n")
    with pytest.raises(LogError, match=problem) as refused:
        SessionLog(path).replay()
    assert refused.value.line == 1


@pytest.mark.parametrize(
    "content", [float("nan"), b"bytes", {"a", "set"}, 10**5_000], ids=["nan", "bytes", "set", "int"]
)
def test_what_is_not_json_is_refused_and_nothing_is_written(path: Path, content: object) -> None:
    log = logged(path, TALK)
    before = path.read_bytes()
    message: Any = {"role": "user", "content": content}
    with pytest.raises(LogError, match="cannot be an entry"):
        log.append(message)
    assert path.read_bytes() == before
    assert log.append(TALK[0]) == "e6"


def test_what_is_nested_too_deeply_is_refused_before_it_is_written(path: Path) -> None:
    nested: Any = []
    for _ in range(100_000):
        nested = [nested]
    log = logged(path, TALK)
    with pytest.raises(LogError, match="nested too deeply"):
        log.append({"role": "user", "content": nested})
    assert log.replay() == TALK


def test_another_file_in_its_place_is_refused(path: Path) -> None:
    log = logged(path, TALK)
    path.rename(path.with_suffix(".old"))
    logged(path, TALK * 2)
    with pytest.raises(LogError, match="not the file that was read before"):
        log.append(TALK[0])


def test_a_file_that_became_shorter_is_refused(path: Path) -> None:
    log = logged(path, TALK)
    os.truncate(path, path.read_bytes().index(b"\n") + 1)
    with pytest.raises(LogError, match="not the file that was read before"):
        log.append(TALK[0])


# The disk.


@pytest.mark.req("S2-76")
@pytest.mark.parametrize(("sync", "flushed"), [(Sync.EACH, 3), (Sync.SYSTEM, 0)])
def test_when_a_line_counts_as_written_is_said(
    path: Path, monkeypatch: pytest.MonkeyPatch, sync: Sync, flushed: int
) -> None:
    """By default each line is on the disk before its append returns, the first with its name."""
    calls: list[str] = []
    fsync = os.fsync

    def counting(descriptor: int) -> None:
        calls.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", counting)
    logged(path, TALK[:2], sync=sync)
    assert calls == ["file", "folder", "file"][:flushed]
    assert SessionLog(path).sync is Sync.EACH


def test_a_disk_that_fills_up_in_the_middle_of_a_line_leaves_no_half_of_it(path: Path) -> None:
    """A real limit on the size of files, in a process of its own."""
    logged(path, TALK)
    whole = path.read_bytes()
    child = multiprocessing.get_context("spawn").Process(
        target=append_under_a_limit, args=(path, len(whole) + 30)
    )
    child.start()
    child.join()
    assert child.exitcode == 0
    assert path.read_bytes() == whole


def append_under_a_limit(path: Path, most_bytes: int) -> None:
    import resource
    import signal

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))
    with pytest.raises(OSError, match="File too large"):
        SessionLog(path).append(user_message("x" * 1_000))


def test_a_lock_that_is_never_let_go_is_not_waited_for_for_ever(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    log = logged(path, TALK)
    waited: list[float] = []
    monkeypatch.setattr("landed.agent.session_log.time.sleep", waited.append)
    with path.open() as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        with pytest.raises(LogError, match="another process holds it"):
            log.append(TALK[0])
    assert 5 < sum(waited) < 20
    assert log.append(TALK[0]) == "e6"


# Killed at any byte.


@pytest.mark.req("S2-76", "K27")
@wherever_it_matters
def test_a_log_that_is_cut_at_any_byte_is_resumed_after_a_repair(
    path: Path, monkeypatch: pytest.MonkeyPatch, places: Places
) -> None:
    """Whatever was acknowledged before the cut is there, and a next append finds its place."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # It is the cut that is tried here.
    logged(path, TALK)
    whole = path.read_bytes()
    ends = [at + 1 for at, byte in enumerate(whole) if byte == ord("\n")]
    for size in places(whole):
        path.write_bytes(whole[:size])
        acknowledged = sum(end <= size for end in ends)
        is_torn = size not in (0, *ends)
        if is_torn:
            with pytest.raises(LogError, match=f"line {acknowledged + 1}:"):
                SessionLog(path).replay()
        done = repair_tail(path)
        assert (done is not None) == is_torn
        # Only the end of the last line was cut off: then the line itself is kept.
        is_kept = is_torn and size + 1 in ends
        log = SessionLog(path)
        assert log.replay() == TALK[: acknowledged + is_kept], size
        assert repair_tail(path) is None
        log.append(TALK[0])
        assert SessionLog(path).replay()[-1] == TALK[0]
        if done and done.kept_in:
            assert done.kept_in.read_bytes() == whole[(0, *ends)[acknowledged] : size]
            done.kept_in.unlink()


def append_for_ever(path: Path, acknowledged: Any) -> None:
    log = SessionLog(path, sync=Sync.SYSTEM)
    while True:
        acknowledged.send(log.append(user_message("x" * 20_000)))


@pytest.mark.req("S2-76")
def test_a_process_that_is_killed_while_it_appends_leaves_what_it_had_acknowledged(
    path: Path,
) -> None:
    """And neither its lock nor half a line keeps the next one from going on."""
    spawn = multiprocessing.get_context("spawn")
    receiving, sending = spawn.Pipe(duplex=False)
    writer = spawn.Process(target=append_for_ever, args=(path, sending), daemon=True)
    writer.start()
    sending.close()
    heard = [receiving.recv() for _ in range(20)]
    writer.kill()
    with contextlib.suppress(EOFError, OSError):
        while True:
            heard.append(receiving.recv())
    writer.join()
    repair_tail(path)
    log = SessionLog(path)
    ids = [entry["id"] for entry in log.entries() if entry["type"] == "message"]
    assert ids[: len(heard)] == heard == [f"e{n}" for n in range(1, len(heard) + 1)]
    assert len(ids) <= len(heard) + 1
    log.append(TALK[0])
    assert log.replay()[-1] == TALK[0]


@pytest.mark.req("K27")
def test_what_a_repair_cuts_is_kept_and_written_down(path: Path) -> None:
    logged(path, TALK)
    with path.open("ab") as file:
        file.write(b'{"id":"e6","type":"mess')
    done = repair_tail(path)
    aside = path.with_name("talk.jsonl.torn-6")
    assert done == Repaired(line=6, cut_bytes=23, kept_in=aside)
    assert aside.read_bytes() == b'{"id":"e6","type":"mess'
    assert SessionLog(path).entries()[-1] == {
        "id": "e6",
        "type": "repaired",
        "cut_bytes": 23,
        "kept_in": "talk.jsonl.torn-6",
    }
    assert SessionLog(path).replay() == TALK


def test_a_repair_overwrites_nothing_that_an_earlier_one_kept(path: Path) -> None:
    """One that died after it had kept the tail aside is simply done again."""
    aside = path.with_name("talk.jsonl.torn-1")
    aside.write_bytes(b"kept")
    path.write_bytes(b"torn")
    done = repair_tail(path)
    assert done is not None
    assert done.kept_in
    assert done.kept_in.name == "talk.jsonl.torn-1-1"
    assert (aside.read_bytes(), done.kept_in.read_bytes()) == (b"kept", b"torn")


@pytest.mark.parametrize("lost", [b"\0" * 4096, b'{"id":"e6\0\0\0\0\n', b"\0\0\n\0\0\n\xff"])
def test_what_a_power_cut_left_instead_of_an_end_is_cut(path: Path, lost: bytes) -> None:
    """A file may have grown before its bytes were there."""
    logged(path, TALK)
    with path.open("ab") as file:
        file.write(lost)
    with pytest.raises(LogError, match="line 6"):
        SessionLog(path).replay()
    done = repair_tail(path)
    assert done is not None
    assert done.kept_in is not None
    assert done.kept_in.read_bytes() == lost
    assert SessionLog(path).replay() == TALK


def test_a_line_that_can_be_read_is_never_cut(path: Path) -> None:
    logged(path, TALK)
    whole = path.read_bytes()
    damaged = whole.replace(b'"e2"', b'"e2\n')
    path.write_bytes(damaged)
    with pytest.raises(LogError, match=r"line 2: .* line 4 after it can"):
        repair_tail(path)
    # Nor one that says something which this version does not know.
    newer = whole + b'{"id":"e6","type":"dream"}\n'
    path.write_bytes(newer)
    assert repair_tail(path) is None
    assert path.read_bytes() == newer
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.req("F2-14")
def test_a_torn_line_that_is_skipped_costs_two_entries(path: Path) -> None:
    """The wrong design: a log that reads what it can, and appends at the end of the file."""

    def cut_by_a_power_cut() -> None:
        logged(path, [user_message("one"), user_message("two")])
        os.truncate(path, path.stat().st_size - 5)

    cut_by_a_power_cut()
    wrong = SkippingLog(path)
    wrong.append(user_message("three"))
    wrong.append(user_message("four"))
    # "three" was acknowledged after the cut and is glued to what was left of "two".
    assert wrong.replay() == [user_message("one"), user_message("four")]

    path.unlink()
    cut_by_a_power_cut()
    with pytest.raises(LogError, match="line 2"):
        SessionLog(path).append(user_message("three"))
    repair_tail(path)
    logged(path, [user_message("three"), user_message("four")])
    assert SessionLog(path).replay() == [user_message(each) for each in ("one", "three", "four")]


def test_a_saver_writes_what_is_completed_and_hears_nothing_else(path: Path) -> None:
    save = persist_to(log := SessionLog(path))
    for event in ("agent_start", "turn_start", "message_end", "turn_end"):
        save({"type": event, "message": TALK[0]})
    assert log.replay() == TALK[:1]
