"""Makes writing a file a tool: whole or not at all, and afterwards it can be told which.

The note of what is about to happen, the key in the name of the file that is made ready, and the
one rename stand in `landed.tools.folder`. Here is what that means for an operation.
"""

import errno
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Literal, Unpack

from landed.core.canonical import Json
from landed.core.contract import Effect
from landed.core.errors import ProposalError, RefusedError
from landed.core.outcome import (
    Absent,
    Acknowledged,
    Found,
    ListedEffect,
    LookOutcome,
    NotSent,
    Refused,
    SendOutcome,
)
from landed.core.preview import Preview, Previewing
from landed.core.tool import Call
from landed.tools.blocking import BlockingTool, patience_s
from landed.tools.classify import described
from landed.tools.folder import NONE, Folder, Note, check_path, digest_of
from landed.tools.promises import Promises

BYTES_MAX = 200_000
"""Bytes of one file, unless said: what arguments can hold, with room for their other fields."""

KEPT_MAX_BYTES = 50_000_000
"""How large a file may be that is kept, so that writing over it can be undone."""

KEY = "operation"

# What a folder says before anything was renamed that no other try will change. The rest (a full
# disk, too many open files) may be over in a moment.
_REFUSALS = frozenset(
    {
        *(errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EACCES, errno.EPERM),
        *(errno.ELOOP, errno.EROFS, errno.ENAMETOOLONG, errno.EXDEV),
    }
)


class _Changing(BlockingTool):
    """A tool that changes one file of a folder by one rename."""

    _folder: Folder
    _keeps: bool = False

    def _wanted(self, call: Call) -> bytes | None:
        """Return what is to be there, None for no file; `RefusedError` where that can't be."""
        raise RefusedError(f"{self.name} writes nothing")

    def _expected(self, call: Call) -> str:
        """Return the digest that must be there now, "" for any."""
        return ""

    def _send(self, call: Call) -> SendOutcome:
        try:
            with self._folder.locked(within_s=patience_s(call)):
                ready = self._ready(call)
                if isinstance(ready, Note):
                    self._folder.change(call.key, ready)
                    return Acknowledged(result=self._result(ready))
                return ready
        except RefusedError as error:
            return Refused(reason=described(error))
        except OSError as error:  # Nothing was renamed: that would be a `RenameError`.
            refused = error.errno in _REFUSALS
            return (Refused if refused else NotSent)(reason=described(error))

    def _ready(self, call: Call) -> Note | Acknowledged:
        """Make ready what is to be renamed; what landed already is only said again."""
        folder, path = self._folder, str(call.arguments["path"])
        if folder.closed(call.key):
            raise RefusedError(f"{call.key} was closed")
        if earlier := folder.landed(call.key):
            self._check_same(call, earlier)
            return Acknowledged(result=self._result(earlier))
        content, there = self._wanted(call), folder.see(path)
        if (expected := self._expected(call)) not in ("", there.digest):
            raise RefusedError(f"{path} has changed: it is {there.digest} now, not {expected}")
        if self._keeps and there.bytes > KEPT_MAX_BYTES:
            raise RefusedError(f"{path} has {there.bytes} bytes, more than are kept to undo it")
        note = Note(
            tool=self.name,
            key=call.key,
            path=path,
            before=there.digest,
            after=NONE if content is None else digest_of(content),
            bytes=0 if content is None else len(content),
        )
        folder.ready(call.key, note, content, mode=there.mode, keeps=self._keeps)
        return note

    def _list(self, since: float) -> tuple[ListedEffect, ...]:
        return tuple(
            ListedEffect(id=note.path, key=note.key, result=self._result(note))
            for note in self._folder.landed_since(since)
            if note.tool == self.name
        )

    def _lookup(self, call: Call) -> LookOutcome:
        note = self._folder.landed(call.key)
        return Absent() if note is None else Found(result=self._result(note))

    def _close(self, call: Call) -> LookOutcome:
        with self._folder.locked(within_s=patience_s(call)):
            answer = self._lookup(call)
            if isinstance(answer, Absent):
                self._folder.shut(call.key)
        return answer

    def _check_same(self, call: Call, earlier: Note) -> None:
        """Refuse a key that comes back with other arguments."""

    def _result(self, note: Note) -> Json:
        return {
            "path": note.path,
            "digest": note.after,
            "bytes": note.bytes,
            "replaced": note.before,
            "write": note.key,
        }


class FileTool(_Changing):
    """Writes text files inside one folder, each whole or not at all.

    root      the folder; nothing outside of it is read or written, by `..` or by a link
    effect    `reversible` (what was there is kept, and `restoring()` is the tool that puts it back)
              or `irreversible`
    bytes_max how large one file may be

    Its arguments are `path` (relative, `/` between names; folders must be there), `content`, and
    `if_digest`: what the file must hold now (`sha256:…`, or `none` for no file), else the write is
    refused. That and the rename are two steps to anybody who writes there without this tool.

    The result is `{path, digest, bytes, replaced, write}`. Lookup and close are exact: see
    `landed.tools.folder`. The other promises are the fields of `landed.core.contract.Contract`;
    without `preview` the path and both sizes are shown, and what is there is the basis.

    Raises `ContractError` where the promises contradict each other.
    """

    def __init__(
        self,
        *,
        name: str,
        root: str | Path,
        effect: Literal["reversible", "irreversible"] = "reversible",
        bytes_max: int = BYTES_MAX,
        description: str = "",
        **promises: Unpack[Promises],
    ) -> None:
        self._folder = Folder(Path(root))
        self._keeps = effect == "reversible"
        self._bytes_max = bytes_max
        undo: dict[str, object] = {
            "undo": f"undo_{name}",
            "undo_arguments": {"path": "{result.path}", "write": "{result.write}"},
        }
        given = {
            "preview": self._preview,
            "makes": "path",
            "target": ("file/{path}",),
            **(undo if self._keeps else {}),
            **promises,
            **_EXACT,
            "effect": Effect(effect),
        }
        arguments = {"path": str, "content": str, "if_digest": (str, "")}
        super().__init__(name, arguments, given, description=description)

    def check(self, arguments: Mapping[str, Json]) -> Mapping[str, Json]:
        """Return the arguments as stored; `ProposalError` for a path that leaves the folder."""
        stored = super().check(arguments)
        check_path(str(stored["path"]))
        if (length := len(_bytes(stored))) > self._bytes_max:
            raise ProposalError(f"{self.name}: {length} bytes; at most {self._bytes_max} fit")
        return stored

    def restoring(self, **promises: Unpack[Promises]) -> "RestoreTool":
        """Return the tool that takes a write back: what was there before is there again."""
        return RestoreTool(
            name=self.contract.undo or f"undo_{self.name}",
            folder=self._folder,
            promises={"service": self.contract.service, **promises},
        )

    def forget(self, *, before: float) -> int:
        """Delete what is kept of writes before a time (UTC, seconds); returns how many files.

        Declare `retention_s` in the contract where this is done: a forgotten key looks unused.
        """
        return self._folder.forget(before=before, within_s=self.contract.deadline_s)

    def _wanted(self, call: Call) -> bytes:
        return _bytes(call.arguments)

    def _expected(self, call: Call) -> str:
        return str(call.arguments["if_digest"])

    def _check_same(self, call: Call, earlier: Note) -> None:
        wanted = (call.arguments["path"], digest_of(self._wanted(call)))
        if wanted != (earlier.path, earlier.after):
            raise RefusedError(f"{call.key} wrote something else")

    async def _preview(self, asked: Previewing) -> Preview:
        path, length = str(asked.arguments["path"]), len(_bytes(asked.arguments))
        there = await self._asks.run(
            partial(self._folder.see, path), wait_s=self.contract.deadline_s
        )
        words = _SHOWN.get(asked.language, _SHOWN["en"])[there.digest != NONE]
        return Preview(
            summary=words.format(path=path, length=length, there=there.bytes),
            basis={"digest": there.digest},
            makes={"path": path},
        )


class RestoreTool(_Changing):
    """Takes a write of a `FileTool` back; made by `FileTool.restoring`.

    It is refused where the file is no longer what was written: what came after is not ours to lose.
    """

    def __init__(self, *, name: str, folder: Folder, promises: Mapping[str, object]) -> None:
        self._folder = folder
        given = {
            "makes": "path",
            "target": ("file/{path}",),
            **promises,
            **_EXACT,
            "effect": Effect.IRREVERSIBLE,
        }
        super().__init__(name, {"path": str, "write": str}, given, description="")

    def check(self, arguments: Mapping[str, Json]) -> Mapping[str, Json]:
        """Return the arguments as stored; `ProposalError` for a path that leaves the folder."""
        stored = super().check(arguments)
        check_path(str(stored["path"]))
        return stored

    def _wanted(self, call: Call) -> bytes | None:
        write = self._taken_back(call)
        if write.before == NONE:
            return None
        kept = self._folder.before(str(call.arguments["write"]))
        if kept is None or digest_of(kept) != write.before:
            raise RefusedError(f"what {write.path} held before was not kept")
        return kept

    def _expected(self, call: Call) -> str:
        return self._taken_back(call).after

    def _check_same(self, call: Call, earlier: Note) -> None:
        if (earlier.path, earlier.after) != (call.arguments["path"], self._taken_back(call).before):
            raise RefusedError(f"{call.key} restored something else")

    def _taken_back(self, call: Call) -> Note:
        write = self._folder.landed(str(call.arguments["write"]))
        if write is None or write.path != call.arguments["path"]:
            raise RefusedError(f"{call.arguments['write']} wrote no {call.arguments['path']}")
        return write


# What the order of the disk's steps makes true, whoever registers the tool.
_EXACT: Mapping[str, object] = {
    "keyed": KEY,
    "compares_payload": True,
    "lookup": True,
    "close": True,
    "list_effects": True,
}

_SHOWN = {
    "en": ("write {path} ({length} bytes)", "write {path} ({length} bytes, now {there})"),
    "es": ("escribir {path} ({length} bytes)", "escribir {path} ({length} bytes, ahora {there})"),
}


def _bytes(arguments: Mapping[str, Json]) -> bytes:
    try:
        return str(arguments["content"]).encode()
    except UnicodeEncodeError as error:
        raise ProposalError(f"content: no file can hold that as text ({error.reason})") from None
