"""The far sides of these scenarios: payments, a chain, a folder; what they hold, how one asks."""

import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from starlette.applications import Starlette

from landed.core.canonical import Json
from landed.core.operation import Operation
from landed.core.tool import Tool
from landed.testing.doubts.around import FailsAfterwards
from landed.testing.paying import payment_tools
from landed.testing.sim import World
from landed.testing.worlds import chain, payments
from landed.testing.worlds.chain import Chain, hash_of, secret_of, signed
from landed.testing.worlds.faults import Fault
from landed.testing.worlds.payments import Payments
from landed.testing.worlds.transport import WorldTransport
from landed.tools.chain import ChainTool, HttpNode
from landed.tools.files import FileTool
from landed.tools.folder import Folder

PAYMENTS_URL = "http://payments.test"
CHAIN_URL = "http://chain.test"
NOTE = "notes/plan.txt"

Held = list[dict[str, Json]]
Logged = list[tuple[float, str]]


class Place(Protocol):
    """One far side in a simulated world."""

    @property
    def name(self) -> str:
        """What it is called in a timeline."""
        ...

    def tools(self) -> list[Tool]:
        """Return the ways to reach it, for one process."""
        ...

    def holds(self) -> Held:
        """Return what it holds, for a reader."""
        ...

    def made(self) -> list[str]:
        """Return one line for each effect, as `made_by` says it of an operation."""
        ...

    def made_by(self, operation: Operation) -> str:
        """Return the effect that a confirmed operation stands for."""
        ...

    def log(self) -> Logged:
        """Return what it did, with the time (UTC seconds)."""
        ...

    def close(self) -> None:
        """Let go of what it keeps."""
        ...


@dataclass(slots=True, eq=False, kw_only=True)
class Bank:
    """The payments service. `reads` is where it is asked, `promises` replace some of the tool's.

    `asked` are the questions it was put, as paths; `around` is what stands before its tools.
    """

    world: World
    settings: Payments
    faults: Sequence[Fault] = ()
    reads: str = ""
    promises: Mapping[str, object] = field(default_factory=dict[str, object])
    around: Callable[[Tool], Tool] = lambda tool: tool
    asked: list[str] = field(default_factory=list[str])
    name: str = "payments"
    _app: Starlette = field(init=False)

    def __post_init__(self) -> None:
        self._app = payments.app(":memory:", self.world.clock, self.faults, settings=self.settings)

    def tools(self) -> list[Tool]:
        """Return the order's total, and the refund."""
        transport = WorldTransport(self._app, self.world.spawn, witness=self._see)
        total, refund = payment_tools(
            PAYMENTS_URL,
            self.settings,
            transport=transport,
            reads=self.reads,
            **self.promises,
        )
        return [total, self.around(refund)]

    def holds(self) -> Held:
        """Return the refunds."""
        return [
            {
                "id": one["id"],
                "text": f"{one['id']} {one['order']} {one['cents'] / 100:.2f}",
                "order": one["order"],
                "cents": one["cents"],
            }
            for one in self._refunds()
        ]

    def made(self) -> list[str]:
        """Return each refund with its amount."""
        return [_refund(one["id"], one["cents"]) for one in self._refunds()]

    def made_by(self, operation: Operation) -> str:
        """Return the refund as it was agreed to: what the record says must be what was paid."""
        result = operation.result
        id = result.get("id", "") if isinstance(result, Mapping) else ""
        return _refund(id, operation.arguments["cents"])

    def log(self) -> Logged:
        """Return what it did."""
        return [(one["at"], one["text"]) for one in self._ledger.log(after=0)]

    def close(self) -> None:
        """Close its ledger."""
        self._ledger.sql.close()

    @property
    def _ledger(self) -> Any:
        return self._app.state.desk.ledger

    def _refunds(self) -> list[dict[str, Any]]:
        refunds: list[dict[str, Any]] = self._ledger.refunds(self.world.clock.now())
        return refunds

    def _see(self, request: Any) -> None:
        if request.url.path != "/refunds" or request.method != "POST":
            self.asked.append(request.url.path)


def _refund(id: object, cents: object) -> str:
    return f"{id} {cents}"


@dataclass(slots=True, eq=False, kw_only=True)
class Wallet:
    """A chain, and the one account that pays from it. `broadcast` is every send, as it went out."""

    world: World
    settings: Chain
    faults: Sequence[Fault] = ()
    broadcast: list[str] = field(default_factory=list[str])
    name: str = "chain"
    _app: Starlette = field(init=False)

    def __post_init__(self) -> None:
        self._app = chain.app(":memory:", self.world.clock, self.faults, settings=self.settings)

    def tools(self) -> list[Tool]:
        """Return the transfer; a person's yes to it is not what these scenarios are about."""
        transport = WorldTransport(self._app, self.world.spawn, witness=self._see)
        return [
            ChainTool(
                name="transfer",
                node=HttpNode(CHAIN_URL, transport=transport),
                sign=_sign,
                hash_of=hash_of,
                risk="safe",
                says=TRANSFERRED,
            )
        ]

    def holds(self) -> Held:
        """Return what the blocks hold."""
        return [
            {"id": f"T{n}", "text": f"T{n} {one['sender']} > {one['recipient']} {one['amount']}"}
            for n, one in enumerate(self._mined(), 1)
        ]

    def made(self) -> list[str]:
        """Return the digests of what was transferred."""
        return [one["hash"] for one in self._mined()]

    def made_by(self, operation: Operation) -> str:
        """Return the digest of what was signed for it."""
        result = operation.result
        return str(result.get("hash", "")) if isinstance(result, Mapping) else ""

    def log(self) -> Logged:
        """Return what it did."""
        return [(one["at"], one["text"]) for one in self._app.state.desk.ledger.log(after=0)]

    def close(self) -> None:
        """Close its ledger."""
        self._app.state.desk.ledger.sql.close()

    def _mined(self) -> list[dict[str, Any]]:
        cursor = self._app.state.desk.ledger.sql.execute(
            "SELECT hash, sender, recipient, amount FROM tx WHERE status = 'mined'"
            " ORDER BY block, nonce"
        )
        names = ("hash", "sender", "recipient", "amount")
        return [dict(zip(names, row, strict=True)) for row in cursor]

    def _see(self, request: Any) -> None:
        if request.method == "POST":
            self.broadcast.append(request.content.decode())


TRANSFERRED = {
    "en": {
        "confirmed": "{amount} went from {from} to {to}",
        "unknown": "{amount} may have gone from {from} to {to}: {why}",
        "failed": "nothing went from {from} to {to}: {why}",
    }
}


def _sign(transaction: Mapping[str, Json]) -> bytes:
    return signed(transaction, secret_of(str(transaction["from"])))


@dataclass(slots=True, eq=False, kw_only=True)
class Notes:
    """A folder. Its tool writes as often as it is asked, and says of some that they failed."""

    world: World
    failures: list[str] = field(default_factory=list[str])
    done: Logged = field(default_factory=list[tuple[float, str]])
    name: str = "folder"
    _root: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="landed-demo-")))

    def __post_init__(self) -> None:
        (self._root / "notes").mkdir()

    def tools(self) -> list[Tool]:
        """Return the tool that writes files in it."""
        write = FileTool(
            name="write_file", root=self._root, effect="irreversible", says=WRITTEN, bytes_max=1_000
        )
        return [FailsAfterwards(write, self.failures)]

    def edit(self, content: str) -> None:
        """Write the note by hand, as a person would."""
        (self._root / NOTE).write_text(content, "utf-8")
        self.done.append((self.world.clock.now(), f"ana writes {NOTE}: {content}"))

    def holds(self) -> Held:
        """Return the files, with what stands in them."""
        files = sorted(self._root.glob("notes/*.txt"))
        return [
            {"id": NOTE, "text": f"notes/{one.name}: {one.read_text('utf-8')}"} for one in files
        ]

    def made(self) -> list[str]:
        """Return the keys of all writes that landed."""
        return [note.key for note in Folder(self._root).landed_since(0.0)]

    def made_by(self, operation: Operation) -> str:
        """Return the key of the write."""
        return operation.key

    def log(self) -> Logged:
        """Return what was done by hand; a folder keeps no log."""
        return self.done

    def close(self) -> None:
        """Remove it."""
        shutil.rmtree(self._root)


WRITTEN = {
    "en": {
        "confirmed": "wrote {path}",
        "unknown": "I may have written {path}: {why}",
        "failed": "{path} was not written: {why}",
    }
}
