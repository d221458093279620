"""Writes that die anywhere: at each step on the disk, and what is told of them afterwards."""

import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from landed.core.outcome import Absent, Acknowledged, Found
from landed.tools import folder
from tests.tools.test_files import NEW, OLD, both, files, look, send, taking_back, writing


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "root"
    (place / "notes").mkdir(parents=True)
    return place


class KilledError(BaseException):
    """The process ends here."""


STEPS = ("open", "fsync", "rename", "fchmod")


def killed_at(
    monkeypatch: pytest.MonkeyPatch, point: int, *, after: bool, work: Callable[[], object]
) -> bool:
    """Do `work`, and end at the nth step on the disk, before or after it; whether it got there.

    What a tool knows is on the disk only: the next call of the same one is that of a new process.
    """
    steps = [0]

    def watched(real: Any) -> Any:
        def step(*given: Any, **more: Any) -> Any:
            steps[0] += 1
            if steps[0] == point and not after:
                raise KilledError
            done = real(*given, **more)
            if steps[0] == point:
                raise KilledError
            return done

        return step

    with monkeypatch.context() as patched:
        for name in STEPS:
            patched.setattr(os, name, watched(getattr(os, name)))
        with suppress(KilledError):
            work()
    return steps[0] >= point


@pytest.mark.req("S4-46", "S4-30")
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("there", [OLD, None], ids=["replaces", "new"])
def test_a_write_that_dies_anywhere_is_told_exactly_and_done_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: str | None, after: bool
) -> None:
    old = {} if there is None else {"notes/a.txt": there}
    ends = set[type]()
    point = 0
    while True:
        point += 1
        root = tmp_path / f"root{point}"
        (root / "notes").mkdir(parents=True)
        for path, text in old.items():
            (root / path).write_text(text)

        tool, undo = both(root)
        write = partial(send, tool)
        if not killed_at(monkeypatch, point, after=after, work=write):
            break
        told = look(tool)
        ends.add(type(told))
        now = {name: text for name, text in files(root).items() if ".landed" not in name}
        assert now == ({"notes/a.txt": NEW} if isinstance(told, Found) else old), point
        assert isinstance(write(), Acknowledged)
        assert files(root) == {"notes/a.txt": NEW}
        assert isinstance(send(undo, taking_back("op-1"), "op-2"), Acknowledged)
        assert files(root) == old
    assert (ends, point > 15) == ({Absent, Found}, True)


def test_a_second_try_that_dies_anywhere_is_told_exactly(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one died right before its rename, with everything made ready."""
    tool = writing(root)
    write, look_again = partial(send, tool), partial(look, tool)
    monkeypatch.setattr(folder.Folder, "change", lambda *_: (_ for _ in ()).throw(KilledError))
    with pytest.raises(KilledError):
        write()
    monkeypatch.undo()
    assert look_again() == Absent()
    point = 0
    while True:
        point += 1
        assert killed_at(monkeypatch, point, after=False, work=write)
        told = look_again()
        there = files(root).get("notes/a.txt")
        assert there == (NEW if isinstance(told, Found) else None), point
        if isinstance(told, Found):
            break
    assert point > 10


def test_everything_is_synced_before_what_depends_on_it(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "notes" / "a.txt").write_text(OLD)
    steps: list[str] = []

    def name_of(at: int) -> str:
        same = os.fstat(at).st_ino
        name = next(each.name for each in root.rglob("*") if each.stat().st_ino == same)
        return {"notes": "its folder", ".landed": "our folder"}.get(name, name)

    fsync, rename = os.fsync, os.rename

    def synced(at: int) -> None:
        steps.append(f"sync {name_of(at)}")
        fsync(at)

    def renamed(old: str, new: str, **more: Any) -> None:
        steps.append(f"{old} is {new}")
        rename(old, new, **more)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "rename", renamed)
    send(writing(root))
    assert steps == [
        *("sync op-1.before.new", "op-1.before.new is op-1.before", "sync our folder"),
        *("sync .landed-op-1.part", "sync its folder"),
        *("sync op-1.json.new", "op-1.json.new is op-1.json", "sync our folder"),
        *(".landed-op-1.part is a.txt", "sync its folder"),
    ]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("there", [OLD, None], ids=["puts back", "removes"])
def test_an_undo_that_dies_anywhere_is_told_exactly_and_done_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: str | None, after: bool
) -> None:
    old = {} if there is None else {"notes/a.txt": there}
    ends = set[type]()
    point = 0
    while True:
        point += 1
        root = tmp_path / f"root{point}"
        (root / "notes").mkdir(parents=True)
        for path, text in old.items():
            (root / path).write_text(text)
        tool, undo = both(root)
        send(tool)
        take_back = partial(send, undo, taking_back("op-1"), "op-2")
        if not killed_at(monkeypatch, point, after=after, work=take_back):
            break
        told = look(undo, taking_back("op-1"), "op-2")
        ends.add(type(told))
        now = {name: text for name, text in files(root).items() if ".landed" not in name}
        assert now == (old if isinstance(told, Found) else {"notes/a.txt": NEW}), point
        assert isinstance(take_back(), Acknowledged), point
        assert files(root) == old
    assert ends == {Absent, Found}
