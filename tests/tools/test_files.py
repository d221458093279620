"""Files: what each failure leaves on the disk, what is said of it, and that nothing is lost."""

import errno
import os
import stat
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from landed.core.canonical import Json
from landed.core.errors import ProposalError
from landed.core.key import Ask
from landed.core.outcome import (
    Absent,
    Acknowledged,
    AnswerLost,
    Found,
    Listed,
    NoAnswer,
    NotSent,
    Refused,
)
from landed.core.preview import Preview, Previewing
from landed.core.tool import Call
from landed.testing.check_tool import Verdict, check_tool
from landed.tools import folder
from landed.tools.files import FileTool, RestoreTool
from landed.tools.folder import NONE, digest_of
from tests.tools.calls import call_of, run

OLD, NEW = "first\n", "second, and longer\n"
HELLO: dict[str, Json] = {"path": "notes/a.txt", "content": NEW, "if_digest": ""}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "root"
    (place / "notes").mkdir(parents=True)
    return place


def writing(root: Path, **promises: Any) -> FileTool:
    return FileTool(name="write", root=root, **promises)


def call(tool: Any, arguments: Any = HELLO, key: str = "op-1") -> Call:
    return call_of(tool.check(arguments), key=key)


def send(tool: Any, arguments: Any = HELLO, key: str = "op-1") -> Any:
    return run(tool.send(call(tool, arguments, key)))


def look(tool: Any, arguments: Any = HELLO, key: str = "op-1") -> Any:
    return run(tool.lookup(call(tool, arguments, key)))


def close(tool: Any, arguments: Any = HELLO, key: str = "op-1") -> Any:
    return run(tool.close(call(tool, arguments, key)))


def files(root: Path) -> dict[str, str]:
    """What somebody who only reads the folder sees."""
    found = [each for each in root.rglob("*") if each.is_file() and ".landed" not in each.parts]
    return {str(each.relative_to(root)): each.read_text() for each in found}


def digest(text: str) -> str:
    return digest_of(text.encode())


def both(root: Path) -> tuple[FileTool, RestoreTool]:
    tool = writing(root)
    return tool, tool.restoring()


# What a write does.


def test_a_file_is_written_whole_and_only_it(root: Path) -> None:
    outcome = send(writing(root))
    expected: dict[str, Json] = {
        "path": "notes/a.txt",
        "digest": digest(NEW),
        "bytes": len(NEW),
        "replaced": NONE,
        "write": "op-1",
    }
    assert outcome == Acknowledged(result=expected)
    assert files(root) == {"notes/a.txt": NEW}


def test_a_file_that_is_there_is_replaced_and_keeps_its_mode(root: Path) -> None:
    there = root / "notes" / "a.txt"
    there.write_text(OLD)
    there.chmod(0o600)
    outcome = send(writing(root))
    assert outcome.result["replaced"] == digest(OLD)
    assert (files(root), stat.S_IMODE(there.stat().st_mode)) == ({"notes/a.txt": NEW}, 0o600)


@pytest.mark.req("S4-46")
def test_the_same_key_again_says_the_same_and_writes_nothing(root: Path) -> None:
    tool = writing(root)
    first = send(tool)
    before = (root / "notes" / "a.txt").stat()
    assert send(tool) == first
    assert look(tool) == Found(result=first.result)
    after = (root / "notes" / "a.txt").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.req("S4-46")
def test_what_was_written_since_by_somebody_else_is_not_overwritten_by_a_resend(root: Path) -> None:
    tool = writing(root)
    first = send(tool)
    (root / "notes" / "a.txt").write_text("by hand")
    assert send(tool) == first
    assert look(tool) == Found(result=first.result)
    assert files(root) == {"notes/a.txt": "by hand"}


@pytest.mark.parametrize("other", [{"content": "x"}, {"path": "notes/b.txt"}])
def test_one_key_never_stands_for_two_writes(root: Path, other: dict[str, Json]) -> None:
    tool = writing(root)
    send(tool)
    assert isinstance(send(tool, {**HELLO, **other}), Refused)
    assert files(root) == {"notes/a.txt": NEW}


@pytest.mark.parametrize(("there", "expected"), [(OLD, NEW), (OLD, None), (None, OLD)])
def test_a_file_that_is_not_what_was_expected_is_left_alone(
    root: Path, there: str | None, expected: str | None
) -> None:
    if there is not None:
        (root / "notes" / "a.txt").write_text(there)
    before = files(root)
    wanted = {**HELLO, "if_digest": NONE if expected is None else digest(expected)}
    outcome = send(writing(root), wanted)
    assert isinstance(outcome, Refused)
    assert "has changed" in outcome.reason
    assert files(root) == before


@pytest.mark.parametrize("there", [OLD, None])
def test_a_file_that_is_what_was_expected_is_written(root: Path, there: str | None) -> None:
    if there is not None:
        (root / "notes" / "a.txt").write_text(there)
    wanted = {**HELLO, "if_digest": NONE if there is None else digest(there)}
    assert isinstance(send(writing(root), wanted), Acknowledged)


def test_what_is_too_large_is_refused_before_it_is_recorded(root: Path) -> None:
    with pytest.raises(ProposalError, match="at most 10"):
        writing(root, bytes_max=10).check({"path": "a", "content": "ä" * 6})


def test_what_is_no_text_is_refused_before_it_is_recorded(root: Path) -> None:
    with pytest.raises(ProposalError):
        writing(root).check({"path": "a", "content": "\ud800"})


# Nothing leaves the folder.


@pytest.mark.fault("X96")
@pytest.mark.parametrize(
    "path",
    [
        *(
            "../x",
            "notes/../../x",
            "/etc/passwd",
            "",
            ".",
            "..",
            "notes/",
            "/",
            "notes//a",
            "a/./b",
        ),
        *("a\\..\\b", "a\0b", "a\nb", ".landed/op-1.json", "notes/.landed-op-1.part", "…/" * 40),
        *("x" * 300, "é" * 150, "\ud800", "a\u202eb"),
    ],
)
def test_a_path_that_is_not_plainly_inside_is_refused(root: Path, path: str) -> None:
    with pytest.raises(ProposalError):
        writing(root).check({**HELLO, "path": path})


@pytest.mark.fault("X96")
@pytest.mark.parametrize("effect", ["reversible", "irreversible"])
@pytest.mark.parametrize("link", ["notes/out", "notes/a.txt"])
def test_a_link_leads_nowhere(root: Path, link: str, effect: Any) -> None:
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "b.txt").write_text("theirs")
    is_folder = link == "notes/out"
    (root / link).symlink_to(outside if is_folder else outside / "b.txt")
    path = "notes/out/b.txt" if is_folder else link
    outcome = send(writing(root, effect=effect), {**HELLO, "path": path})
    assert isinstance(outcome, Refused), outcome
    assert {each.name: each.read_text() for each in outside.iterdir()} == {"b.txt": "theirs"}


@pytest.mark.fault("X96")
def test_a_key_that_is_no_file_name_is_none_on_the_disk(root: Path) -> None:
    tool = writing(root)
    key = "../../s1:op/1"
    outcome = send(tool, key=key)
    assert (look(tool, key=key), outcome.result["write"]) == (Found(result=outcome.result), key)
    assert sorted(each.name for each in root.parent.iterdir()) == ["root"]


def test_what_is_no_plain_file_is_left_alone(root: Path) -> None:
    os.mkfifo(root / "notes" / "a.txt")
    assert isinstance(send(writing(root)), Refused)
    assert isinstance(send(writing(root), {**HELLO, "path": "notes"}), Refused)


def test_a_folder_that_is_not_there_is_refused_and_not_made(root: Path) -> None:
    assert isinstance(send(writing(root), {**HELLO, "path": "other/a.txt"}), Refused)
    assert isinstance(send(writing(root / "gone")), Refused)
    assert sorted(each.name for each in root.iterdir()) == [".landed", "notes"]


# What goes wrong.


def failing(
    monkeypatch: pytest.MonkeyPatch, name: str, error: BaseException, *, nth: int = 1
) -> None:
    """Make the nth call of an `os` function raise, as far as folders are concerned."""
    real, calls = getattr(os, name), [0]

    def faulty(*given: Any, **more: Any) -> Any:
        calls[0] += 1
        if calls[0] == nth:
            raise error
        return real(*given, **more)

    monkeypatch.setattr(os, name, faulty)


@pytest.mark.req("S4-01")
@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (errno.ENOSPC, NotSent),
        (errno.EIO, NotSent),
        (errno.EROFS, Refused),
        (errno.EACCES, Refused),
    ],
)
def test_an_error_before_the_rename_left_nothing(
    root: Path, monkeypatch: pytest.MonkeyPatch, code: int, expected: type
) -> None:
    tool = writing(root)
    failing(monkeypatch, "fsync", OSError(code, "no"))
    assert isinstance(send(tool), expected)
    assert look(tool) == Absent()
    assert files(root).get("notes/a.txt") is None
    assert isinstance(send(tool), Acknowledged)


@pytest.mark.req("S4-46")
def test_an_error_after_the_rename_leaves_doubt_and_a_look_ends_it(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = writing(root)
    monkeypatch.setattr(folder, "sync", broken_sync)
    assert isinstance(send(tool), AnswerLost)
    assert isinstance(look(tool), Found)


def broken_sync(folder: int) -> None:
    raise OSError(errno.EIO, "the disk went away")


def test_what_does_not_read_back_is_not_renamed(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = writing(root)
    monkeypatch.setattr(folder, "_read", lambda parent, name: b"bits that rotted")
    assert isinstance(send(tool), NotSent)
    assert look(tool) == Absent()
    assert files(root).get("notes/a.txt") is None


# Closing.


def test_a_closed_key_writes_nothing_any_more(root: Path) -> None:
    tool = writing(root)
    assert (close(tool), close(tool)) == (Absent(), Absent())
    assert isinstance(send(tool), Refused)
    assert (look(tool), files(root)) == (Absent(), {})


def test_a_close_of_what_landed_says_so(root: Path) -> None:
    tool = writing(root)
    assert close(tool).__class__ is Absent
    assert close(tool, key="op-2") == Absent()
    made = send(tool, key="op-3")
    assert close(tool, key="op-3") == Found(result=made.result)


@pytest.mark.req("S4-46")
def test_a_close_waits_for_a_write_that_is_under_way(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process, as far as the lock can tell: its own descriptor."""
    renaming, go_on = threading.Event(), threading.Event()

    def slow_sync(folder: int) -> None:
        renaming.set()
        assert go_on.wait(20.0)
        os.fsync(folder)

    monkeypatch.setattr(folder, "sync", slow_sync)
    came: dict[str, Any] = {}
    writer = threading.Thread(target=lambda: came.update(sent=send(writing(root))))
    closer = threading.Thread(target=lambda: came.update(closed=close(writing(root))))
    writer.start()
    assert renaming.wait(20.0)
    closer.start()
    closer.join(0.1)
    assert closer.is_alive()
    go_on.set()
    writer.join(20.0)
    closer.join(20.0)
    assert came["closed"] == Found(result=came["sent"].result)


def test_a_folder_that_another_keeps_locked_was_never_written_to(root: Path) -> None:
    tool = writing(root)
    mine = replace(call(tool), deadline_at=call(tool).sent_at + 0.1)
    with folder.Folder(root).locked(within_s=1.0):
        assert isinstance(run(tool.send(mine)), NotSent)
        assert isinstance(run(tool.close(mine)), NoAnswer)
        assert look(tool) == Absent()
    assert isinstance(run(tool.send(mine)), Acknowledged)


# Taking it back.


def undoing(root: Path) -> RestoreTool:
    return writing(root).restoring()


def taking_back(write: str) -> dict[str, Json]:
    return {"path": "notes/a.txt", "write": write}


@pytest.mark.parametrize("there", [OLD, None])
def test_a_write_is_taken_back(root: Path, there: str | None) -> None:
    if there is not None:
        (root / "notes" / "a.txt").write_text(there)
    before = files(root)
    send(writing(root))
    undone = send(undoing(root), taking_back("op-1"), "op-2")
    assert isinstance(undone, Acknowledged)
    assert files(root) == before
    assert look(undoing(root), taking_back("op-1"), "op-2") == Found(result=undone.result)
    assert send(undoing(root), taking_back("op-1"), "op-2") == undone
    assert isinstance(send(undoing(root), taking_back("op-1"), "op-3"), Refused)
    assert files(root) == before


def test_what_was_changed_since_is_not_taken_back(root: Path) -> None:
    send(writing(root))
    (root / "notes" / "a.txt").write_text("by hand")
    assert isinstance(send(undoing(root), taking_back("op-1"), "op-2"), Refused)
    assert isinstance(send(undoing(root), taking_back("op-7"), "op-2"), Refused)
    assert files(root) == {"notes/a.txt": "by hand"}


def test_what_was_not_kept_cannot_be_put_back(root: Path) -> None:
    (root / "notes" / "a.txt").write_text(OLD)
    send(writing(root, effect="irreversible"))
    assert isinstance(send(undoing(root), taking_back("op-1"), "op-2"), Refused)
    assert files(root) == {"notes/a.txt": NEW}


def test_what_is_too_large_to_be_kept_is_not_replaced(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("landed.tools.files.KEPT_MAX_BYTES", 3)
    (root / "notes" / "a.txt").write_text(OLD)
    assert isinstance(send(writing(root)), Refused)
    assert isinstance(send(writing(root, effect="irreversible")), Acknowledged)


def test_what_is_kept_is_forgotten_when_it_is_told_to(root: Path) -> None:
    tool = writing(root)
    send(tool)
    assert tool.forget(before=1.0) == 0
    assert tool.forget(before=4e9) == 1
    assert look(tool) == Absent()
    assert files(root) == {"notes/a.txt": NEW}


def test_it_lists_what_it_wrote_and_no_undo(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = writing(root)
    assert run(tool.list_effects(0.0)) == Listed(effects=())
    made = send(tool)
    send(undoing(root), taking_back("op-1"), "op-2")
    listed = run(tool.list_effects(0.0))
    assert isinstance(listed, Listed)
    assert [(one.id, one.key, one.result) for one in listed.effects] == [
        ("notes/a.txt", "op-1", made.result)
    ]
    assert run(tool.list_effects(4e9)) == Listed(effects=())
    monkeypatch.setattr(folder, "LISTED_MAX", 1)
    assert isinstance(run(tool.list_effects(0.0)), NoAnswer)


# Its promises.


@pytest.mark.parametrize("effect", ["reversible", "irreversible"])
def test_it_keeps_its_promises(root: Path, effect: Any) -> None:
    async def holds() -> Json:
        return [len(list((root / ".landed").glob("*.json"))), *sorted(files(root).items())]

    tool = writing(root, effect=effect)
    found = run(
        check_tool(
            tool,
            HELLO,
            changed={**HELLO, "content": "other"},
            refused={**HELLO, "path": "gone/a.txt"},
            holds=holds,
        )
    )
    assert found.ok, found
    assert found.of(Verdict.SKIPPED) == frozenset()


def test_a_preview_shows_what_is_there_and_stands_on_it(root: Path) -> None:
    (root / "notes" / "a.txt").write_text(OLD)
    tool = writing(root)
    asked = Previewing(tool="write", arguments=HELLO, ask=Ask(), now=0.0)
    seen = run(tool.foresight.preview(asked))
    assert seen == Preview(
        summary="write notes/a.txt (19 bytes, now 6)",
        basis={"digest": digest(OLD)},
        makes={"path": "notes/a.txt"},
    )


def test_questions_that_it_has_no_answer_to_are_no_answer(root: Path) -> None:
    tool = writing(root)
    assert isinstance(run(tool.prepare(call(tool))), NoAnswer)
    assert isinstance(run(tool.read_back(call(tool), None)), NoAnswer)
    (root / ".landed").mkdir()
    (root / ".landed" / "op-1.json").write_text("no note")
    assert isinstance(look(tool), NoAnswer)
