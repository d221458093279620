"""Files are read within a budget, with a word on how to go on, and never outside of the folder."""

import pytest

from landed.agent.files import FILE_BYTES_MAX, Folder, file_tools
from landed.agent.tool import run_tool
from landed.testing.scripted import call
from landed.testing.workspace import FakeWorkspace
from tests.agent.simulated import simulated

LONG = "".join(f"line {number}\n" for number in range(1, 5_001))


def ran(workspace, name, **arguments):
    result = simulated(run_tool(call("c1", name, **arguments), file_tools(workspace)))
    return result["content"], result["is_error"]


@pytest.fixture(params=["memory", "disk"])
def workspace(request, tmp_path):
    made = FakeWorkspace() if request.param == "memory" else Folder(tmp_path)
    made.write("a.py", "one\ntwo\n")
    return made


def test_a_file_is_read_as_it_is(workspace) -> None:
    assert ran(workspace, "read", path="a.py") == ("one\ntwo", False)
    workspace.write("empty.py", "")
    assert ran(workspace, "read", path="empty.py") == ("", False)


@pytest.mark.req("S2-12")
def test_a_cut_read_says_how_to_go_on(workspace) -> None:
    workspace.write("long.txt", LONG)

    first, _ = ran(workspace, "read", path="long.txt")
    assert first.endswith("line 2000\n[Showing lines 1-2000 of 5000. Use offset=2001 to continue.]")
    second, _ = ran(workspace, "read", path="long.txt", offset=2001, limit=10)
    assert second.startswith("line 2001\n")
    assert second.endswith(
        "line 2010\n[Showing lines 2001-2010 of 5000. Use offset=2011 to continue.]"
    )
    assert ran(workspace, "read", path="long.txt", offset=5000) == ("line 5000", False)


@pytest.mark.req("S2-12", "S2-10")
def test_a_line_over_the_budget_is_not_shown_and_can_be_skipped(workspace) -> None:
    workspace.write("wide.txt", "é" * 25_001 + "\nnext\n")

    assert ran(workspace, "read", path="wide.txt") == (
        "[Line 1 has 50002 bytes, more than the 50000 of a result. Use offset=2 to skip it.]",
        False,
    )
    assert ran(workspace, "read", path="wide.txt", offset=2) == ("next", False)


@pytest.mark.req("S2-13")
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"path": "a.py", "offset": 0}, "offset must be at least 1"),
        ({"path": "a.py", "limit": -1}, "limit must be at least 1"),
        ({"path": "a.py", "offset": 3}, "offset 3 is past the end: a.py has 2 lines"),
        ({"path": "x.py"}, "No file x.py. Files here: a.py, b/c.py"),
    ],
)
def test_what_cannot_be_read_says_what_can(workspace, arguments, told) -> None:
    workspace.write("b/c.py", "three")

    assert ran(workspace, "read", **arguments) == (told, True)


@pytest.mark.req("S2-14")
def test_a_file_is_made_or_replaced_as_a_whole(workspace) -> None:
    for path, text in (("new/b.py", "three\n"), ("a.py", "four")):
        told = ran(workspace, "write", path=path, content=text)
        assert told == (f"Successfully wrote to {path}.", False)
        assert workspace.read(path) == text


@pytest.mark.parametrize(("old", "found"), [("four", 0), ("o", 2), ("", 0)])
def test_an_edit_needs_one_place(workspace, old, found) -> None:
    assert ran(workspace, "edit", path="a.py", old="two", new="2") == (
        "Successfully edited a.py.",
        False,
    )
    workspace.write("a.py", "one\ntwo\n")
    assert ran(workspace, "edit", path="a.py", old=old, new="2") == (
        f"old must be found once in a.py; it is found {found} times",
        True,
    )
    assert workspace.read("a.py") == "one\ntwo\n"


@pytest.mark.parametrize("path", ["../secret", "/etc/passwd", "link/secret", "b/../../secret"])
def test_no_path_leads_out_of_the_folder(tmp_path, path) -> None:
    outside = tmp_path / "secret"
    outside.write_text("secret")
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "link").symlink_to(tmp_path)

    for name, more in (("read", {}), ("write", {"content": "mine"})):
        told = ran(Folder(inside), name, path=path, **more)
        assert told == (f"{path} is outside of the workspace", True)
    assert outside.read_text() == "secret"


def test_a_write_keeps_what_may_run_and_leaves_nothing_beside(tmp_path) -> None:
    script = tmp_path / "run.sh"
    script.write_text("old")
    script.chmod(0o755)

    Folder(tmp_path).write("run.sh", "new")

    assert (script.read_text(), script.stat().st_mode & 0o777) == ("new", 0o755)
    assert [file.name for file in tmp_path.iterdir()] == ["run.sh"]


@pytest.mark.fault("X70")
def test_a_file_that_is_too_large_is_not_read(tmp_path) -> None:
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(FILE_BYTES_MAX + 1)

    told, is_error = ran(Folder(tmp_path), "read", path="huge")
    assert is_error
    assert told.startswith("huge has more than 10000000 bytes")


def test_only_some_names_are_listed(tmp_path) -> None:
    for number in range(60):
        (tmp_path / f"{number:02}.py").touch()
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").touch()

    told, _ = ran(Folder(tmp_path), "read", path="x.py")

    assert told.startswith("No file x.py. Files here: 00.py, 01.py")
    assert told.endswith("49.py, …")


def test_what_is_not_text_is_read_as_well_as_it_goes(tmp_path) -> None:
    (tmp_path / "a.bin").write_bytes(b"a\xffb\r\n")

    assert ran(Folder(tmp_path), "read", path="a.bin") == ("a\ufffdb\r", False)
