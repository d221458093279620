"""Writes through the runtime: a file is written once, told truly, and taken back."""

import os
from pathlib import Path
from typing import Any

import pytest

from landed.core.key import Ask
from landed.core.plan import PlanState, Wanted
from landed.core.value import Confirmed, Failed
from landed.runtime.runtime import Runtime
from landed.testing.faults import Point
from landed.testing.sim import World
from landed.tools import folder
from tests.runtime.rig import Rig
from tests.tools.test_files import HELLO, NEW, OLD, both, broken_sync, digest, files, writing


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "root"
    (place / "notes").mkdir(parents=True)
    return place


@pytest.fixture
def rig() -> Any:
    with World() as world:
        yield Rig(world)


async def write(rt: Runtime) -> Any:
    ask = Ask(input="in-1", call_id="1")
    return await rt.perform("write", {**HELLO}, ask=ask, patience_s=3_600.0)


@pytest.mark.req("S4-46", "S4-40")
def test_a_tool_error_after_the_bytes_landed_is_confirmed_without_a_second_write(
    rig: Rig, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    renames: list[tuple[str, str]] = []
    real = os.rename

    def watched(old: str, new: str, **more: Any) -> None:
        renames.append((old, new))
        real(old, new, **more)

    monkeypatch.setattr(os, "rename", watched)
    monkeypatch.setattr(folder, "sync", broken_sync)
    value = rig.run(write, *both(root))
    assert isinstance(value, Confirmed)
    assert rig.events("op-a1") == ["made", "sent", "answer_lost", "found"]
    assert [new for _, new in renames].count("a.txt") == 1
    assert files(root) == {"notes/a.txt": NEW}


@pytest.mark.req("S4-46")
def test_a_write_whose_yes_could_not_be_written_down_is_not_done_again(
    rig: Rig, root: Path
) -> None:
    rig.kill_at = Point(side="before", name="acknowledged")
    first = rig.start(write, *both(root))
    rig.world.wait(first)
    rig.kill(first)
    (root / "notes" / "a.txt").write_text("by hand, since")
    rig.kill_at = None
    assert isinstance(rig.run(write, *both(root)), Confirmed)
    assert files(root) == {"notes/a.txt": "by hand, since"}


def test_a_file_that_changed_before_the_send_is_failed_in_plain_words(rig: Rig, root: Path) -> None:
    async def stale(rt: Runtime) -> Any:
        return await rt.perform("write", {**HELLO, "if_digest": digest(OLD)})

    value = rig.run(stale, *both(root))
    assert isinstance(value, Failed)
    assert "has changed" in value.reason


@pytest.mark.parametrize("changed_since", [False, True])
def test_a_plan_of_writes_is_taken_back_but_not_over_what_came_after(
    rig: Rig, root: Path, changed_since: bool
) -> None:
    (root / "notes" / "a.txt").write_text(OLD)
    tool = writing(root)

    async def script(rt: Runtime) -> Any:
        done = await rt.propose([Wanted(tool="write", arguments=HELLO)], ask=Ask(principal="ana"))
        assert done.state is PlanState.DONE, done
        assert files(root) == {"notes/a.txt": NEW}
        if changed_since:
            (root / "notes" / "a.txt").write_text("by hand")
        return await rt.undo(done.plan, principal="ana")

    undone = rig.run(script, tool, tool.restoring())
    if changed_since:
        assert undone.state is PlanState.UNDO_PARTIAL
        assert files(root) == {"notes/a.txt": "by hand"}
    else:
        assert undone.state is PlanState.UNDONE
        assert files(root) == {"notes/a.txt": OLD}
