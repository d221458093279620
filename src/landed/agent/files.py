"""Reads, writes and edits the files of a workspace, within the budget of one result."""

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from landed.agent.budget import RESULT_BYTES, head, lines_of
from landed.agent.signal import Signal
from landed.agent.tool import AgentTool, integer_argument, text_argument

FILE_BYTES_MAX = 10_000_000
"""A larger file is not read as a whole."""

NAMES_MAX = 50
"""Names listed where a file is missing."""


class Workspace(Protocol):
    """Where the files are."""

    def read(self, path: str) -> str:
        """Return the text of a file; raises `FileNotFoundError`, or `OSError` with what is so."""
        ...

    def write(self, path: str, text: str) -> None:
        """Put this text in place of the file, or make it."""
        ...

    def names(self) -> list[str]:
        """Return the paths of some files that are there, in order."""
        ...


def file_tools(workspace: Workspace) -> tuple[AgentTool, AgentTool, AgentTool]:
    """Return the tools `read`, `write` and `edit` over a workspace."""
    return read_tool(workspace), write_tool(workspace), edit_tool(workspace)


def read_tool(workspace: Workspace) -> AgentTool:
    """Return the tool `read`: the head of a file, and how to go on where it is cut."""

    async def execute(arguments: Mapping[str, Any], signal: Signal | None = None) -> str:
        path = text_argument(arguments, "path")
        offset, limit = _from_one(arguments, "offset"), _from_one(arguments, "limit")
        return _shown(path, _text(workspace, path), offset or 1, limit)

    return AgentTool(
        name="read",
        description="Read a text file. Long files are cut; use offset and limit to go on.",
        parameters=_schema(
            required={"path": "string"}, optional={"offset": "integer", "limit": "integer"}
        ),
        execute=execute,
        snippet="read: read a file",
        guidelines=("Read a file before you change it.",),
    )


def write_tool(workspace: Workspace) -> AgentTool:
    """Return the tool `write`: a whole file, made or replaced."""

    async def execute(arguments: Mapping[str, Any], signal: Signal | None = None) -> str:
        path = text_argument(arguments, "path")
        workspace.write(path, text_argument(arguments, "content"))
        return f"Successfully wrote to {path}."

    return AgentTool(
        name="write",
        description="Write a whole file: it is made, or replaced.",
        parameters=_schema(required={"path": "string", "content": "string"}),
        execute=execute,
        snippet="write: make or replace a file",
    )


def edit_tool(workspace: Workspace) -> AgentTool:
    """Return the tool `edit`: one text, found once, gives way to another."""

    async def execute(arguments: Mapping[str, Any], signal: Signal | None = None) -> str:
        path, old, new = (text_argument(arguments, name) for name in ("path", "old", "new"))
        text = _text(workspace, path)
        found = text.count(old) if old else 0
        if found != 1:
            raise ValueError(f"old must be found once in {path}; it is found {found} times")
        workspace.write(path, text.replace(old, new))
        return f"Successfully edited {path}."

    return AgentTool(
        name="edit",
        description="Replace one text of a file by another. It must be found exactly one time.",
        parameters=_schema(required={"path": "string", "old": "string", "new": "string"}),
        execute=execute,
        snippet="edit: replace one text in a file",
    )


def _text(workspace: Workspace, path: str) -> str:
    try:
        return workspace.read(path)
    except FileNotFoundError:
        names = workspace.names()
        listed = ", ".join(names[:NAMES_MAX]) + (", …" if len(names) > NAMES_MAX else "")
        raise FileNotFoundError(f"No file {path}. Files here: {listed or 'none'}") from None


def _shown(path: str, text: str, offset: int, limit: int | None) -> str:
    """Return the part of a file that was asked for and fits, and how to go on."""
    lines = lines_of(text)
    if offset > max(len(lines), 1):
        raise ValueError(f"offset {offset} is past the end: {path} has {len(lines)} lines")
    wanted = lines[offset - 1 :][:limit]
    kept = head("".join(f"{line}\n" for line in wanted))
    if wanted and not kept.shown:
        size = len(wanted[0].encode("utf-8", "replace"))
        return (
            f"[Line {offset} has {size} bytes, more than the {RESULT_BYTES} of a result. "
            f"Use offset={offset + 1} to skip it.]"
        )
    last = offset - 1 + kept.shown
    if last == len(lines):
        return kept.text
    return (
        f"{kept.text}\n[Showing lines {offset}-{last} of {len(lines)}. "
        f"Use offset={last + 1} to continue.]"
    )


def _from_one(arguments: Mapping[str, Any], name: str) -> int | None:
    value = integer_argument(arguments, name)
    if value is not None and value < 1:
        raise ValueError(f"{name} must be at least 1")
    return value


def _schema(
    *, required: Mapping[str, str], optional: Mapping[str, str] | None = None
) -> dict[str, Any]:
    properties = {name: {"type": type} for name, type in {**required, **(optional or {})}.items()}
    return {"type": "object", "properties": properties, "required": list(required)}


class Folder:
    """A workspace on the disk; no path leads out of it, not by `..` and not by a link."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()

    def read(self, path: str) -> str:
        """Return the text of a file, read as UTF-8; what is not UTF-8 becomes �."""
        file = self._inside(path)
        if file.stat().st_size > FILE_BYTES_MAX:
            raise OSError(f"{path} has more than {FILE_BYTES_MAX} bytes; look at parts of it")
        return file.read_bytes().decode("utf-8", "replace")

    def write(self, path: str, text: str) -> None:
        """Put this text in place of the file: whoever reads sees the old one or the new one."""
        file = self._inside(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            dir=file.parent, prefix=f".{file.name}.", delete=False
        ) as new:
            new.write(text.encode("utf-8", "replace"))
        if file.exists():
            shutil.copymode(file, new.name)
        Path(new.name).replace(file)

    def names(self) -> list[str]:
        """Return the paths of the first files, by name; what begins with a dot is left out."""
        found: list[str] = []
        for folder, folders, files in os.walk(self._root):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            place = Path(folder).relative_to(self._root)
            found += [
                (place / name).as_posix() for name in sorted(files) if not name.startswith(".")
            ]
            if len(found) > NAMES_MAX:
                break
        return found

    def _inside(self, path: str) -> Path:
        file = (self._root / path).resolve()
        if not file.is_relative_to(self._root):
            raise PermissionError(f"{path} is outside of the workspace")
        return file
