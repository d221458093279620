"""The chain: a far side that moves amounts between accounts, one numbered transaction at a time.

It knows nothing of the runtime. A transaction is bytes with a signature over them, known by their
digest. Each account numbers its transactions (nonce) without gaps, and each number is used once. A
transaction waits in the pool until a block takes it in; while it waits, another of the same number
that bids more takes its place. No block is ever taken back.

The signature is a toy (an HMAC with the account's secret, which the chain knows too): enough to
tell changed bytes and foreign accounts, and nothing to build on.

    POST   /transactions                 {raw}: hex; answers {hash, status: pending}
    GET    /transactions/HASH            {found, transaction?, position}: position is the height
    GET    /accounts/ana                 {account, amount, nonce, next}: used so far, and free next
    POST   /blocks                       takes in what waits; the miner's desk, not the agent's
    GET    /transfers                    what the blocks hold
    GET    /log?after=0                  what it did, numbered

The same bytes again are answered `pending` while they wait, and refused as `nonce-used` once they
are in a block, as chains do: a refusal says nothing about the bytes that came first.
"""

import asyncio
import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from landed.testing.worlds.far_side import Json, Ledger, ProblemError, count, far_side, read_body
from landed.testing.worlds.faults import Clock, Fault, Sleep

FEE = 1
"""What a transaction bids unless it says more; the toy takes no fee from anybody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """How one chain behaves.

    `accounts`: what each account has at the start. `block_s`: a block is made this often, None for
    only when somebody asks for one. `forgets`: how many transactions, from the first on, are taken
    and then dropped from the pool. Raises ValueError for a negative number, and
    for a block_s of 0.
    """

    accounts: Mapping[str, int] = field(default_factory=lambda: {"ana": 1_000, "bob": 0})
    block_s: float | None = None
    forgets: int = 0

    def __post_init__(self) -> None:
        if min((self.forgets, *self.accounts.values())) < 0:
            raise ValueError("forgets and amounts must be 0 or more")
        if self.block_s is not None and self.block_s <= 0:
            raise ValueError("block_s must be more than 0")


def secret_of(account: str) -> bytes:
    """The secret by which an account signs here: made of its name, since this is a toy."""
    return hashlib.sha256(f"the secret of {account}".encode()).digest()


def signed(transaction: Mapping[str, object], secret: bytes) -> bytes:
    """The bytes of a transaction (`from`, `to`, `amount`, `nonce`, `fee`?), with a signature."""
    body = json.dumps(transaction, sort_keys=True)
    return json.dumps({"body": body, "signature": _signature(body, secret)}).encode()


def hash_of(raw: bytes) -> str:
    """The name of a transaction: the digest of its bytes."""
    return hashlib.sha256(raw).hexdigest()


def _signature(body: str, secret: bytes) -> str:
    return hmac.new(secret, body.encode(), "sha256").hexdigest()


_SCHEMA = """
CREATE TABLE IF NOT EXISTS account (name TEXT PRIMARY KEY, amount INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS block (height INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL);
CREATE TABLE IF NOT EXISTS tx (
    hash TEXT PRIMARY KEY, sender TEXT NOT NULL, recipient TEXT NOT NULL, amount INTEGER NOT NULL,
    nonce INTEGER NOT NULL, fee INTEGER NOT NULL, status TEXT NOT NULL, block INTEGER,
    at REAL NOT NULL
);
CREATE UNIQUE INDEX IF NOT EXISTS used ON tx (sender, nonce) WHERE status IN ('pending', 'mined');
"""


class _Node:
    """The chain's endpoints, over its ledger. All of them are async and none blocks long."""

    def __init__(self, path: str, clock: Clock, settings: Chain) -> None:
        self._settings = settings
        self._clock = clock
        self._opened_at = clock.now()
        self._forgotten = 0
        self.ledger = Ledger(path, clock, schema=_SCHEMA)
        with self.ledger.unit():
            for account in settings.accounts.items():
                self.ledger.sql.execute("INSERT OR IGNORE INTO account VALUES (?, ?)", account)

    async def submit(self, request: Request) -> Response:
        raw = _raw((await read_body(request)).get("raw"))
        name, wanted = hash_of(raw), _opened(raw)
        with self.ledger.unit():
            self._mine_due()
            if earlier := self._earlier(wanted):
                self._check_free(name, wanted, earlier)
            if earlier is None or earlier["hash"] != name:
                self._take(name, wanted, replaces=earlier)
        return JSONResponse({"hash": name, "status": "pending"}, 202)

    async def transaction(self, request: Request) -> Response:
        with self.ledger.unit():
            self._mine_due()
            found = self._one("SELECT * FROM tx WHERE hash = ?", request.path_params["hash"])
            answer: Json = {"found": found is not None, "position": self._height()}
        return JSONResponse(answer | ({"transaction": found} if found else {}))

    async def account(self, request: Request) -> Response:
        with self.ledger.unit():
            self._mine_due()
            return JSONResponse(self._account(request.path_params["name"]))

    async def mine(self, request: Request) -> Response:
        with self.ledger.unit():
            return JSONResponse({"height": self._block(self._clock.now())})

    async def transfers(self, request: Request) -> Response:
        with self.ledger.unit():
            self._mine_due()
            mined = self._all("SELECT * FROM tx WHERE status = 'mined' ORDER BY block, nonce")
        return JSONResponse({"transfers": mined})

    def _take(self, name: str, wanted: Json, *, replaces: Json | None) -> None:
        if replaces:
            self._mark(replaces, "replaced", None)
            self.ledger.note("replaced", f"replaced {replaces['hash'][:8]} by {name[:8]}")
        if self._forgotten < self._settings.forgets:
            self._forgotten += 1
            self.ledger.note("forgot", f"took {name[:8]}, and forgot it")
            return
        self.ledger.sql.execute(
            "INSERT INTO tx VALUES (:hash, :from, :to, :amount, :nonce, :fee, 'pending', NULL, :at)"
            " ON CONFLICT (hash) DO UPDATE SET status = 'pending'",
            {**wanted, "hash": name, "at": self._clock.now()},
        )
        self.ledger.note("took", f"took {name[:8]}: {_text(wanted)}")

    def _earlier(self, wanted: Json) -> Json | None:
        """What holds the number of a transaction; raises for one that can't be taken at all."""
        account = self._account(wanted["from"])
        self._account(wanted["to"])
        earlier = self._one(
            "SELECT * FROM tx WHERE sender = ? AND nonce = ? AND status IN ('pending', 'mined')",
            wanted["from"],
            wanted["nonce"],
        )
        if earlier is None and wanted["nonce"] != account["next"]:
            raise ProblemError(422, "bad-nonce", f"the next nonce is {account['next']}")
        if wanted["amount"] > account["amount"]:
            raise ProblemError(422, "too-little", f"{wanted['from']} has {account['amount']}")
        return earlier

    def _check_free(self, name: str, wanted: Json, earlier: Json) -> None:
        if earlier["status"] == "mined":
            raise ProblemError(422, "nonce-used", f"nonce {wanted['nonce']} is used already")
        if earlier["hash"] != name and wanted["fee"] <= earlier["fee"]:
            raise ProblemError(422, "underpriced", f"bid more than {earlier['fee']} to replace it")

    def _account(self, name: str) -> Json:
        held = self._one("SELECT * FROM account WHERE name = ?", name)
        if held is None:
            raise ProblemError(422, "no-such-account", f"there is no account {name}")
        count = "SELECT count(*) AS n FROM tx WHERE sender = ? AND status IN "
        used = self._one(f"{count} ('mined')", name)
        numbered = self._one(f"{count} ('mined', 'pending')", name)
        assert used is not None
        assert numbered is not None
        return {
            "account": name,
            "amount": held["amount"],
            "nonce": used["n"],
            "next": numbered["n"],
        }

    def _mine_due(self) -> None:
        """Make the blocks whose time has come; what arrived after a block's time is not in it."""
        every_s, now = self._settings.block_s, self._clock.now()
        if every_s is None:
            return
        made = self._one("SELECT coalesce(max(at), ?) AS at FROM block", self._opened_at)
        assert made is not None
        at = float(made["at"]) + every_s
        if self._one("SELECT hash FROM tx WHERE status = 'pending' LIMIT 1") is None:
            # Empty blocks are made in one go: nobody could tell, and a long silence costs nothing.
            at += every_s * max(0, (now - at) // every_s)
        while at <= now:
            self._block(at)
            at += every_s

    def _block(self, at: float) -> int:
        made = self._one("INSERT INTO block (at) VALUES (?) RETURNING height", at)
        assert made is not None
        waiting = self._all("SELECT * FROM tx WHERE status = 'pending' AND at <= ?", at)
        short = set[str]()
        for tx in sorted(waiting, key=lambda tx: (tx["sender"], tx["nonce"])):
            if tx["sender"] in short or not self._settled(tx, made["height"]):
                short.add(tx["sender"])
                self._mark(tx, "dropped", None)
        return int(made["height"])

    def _settled(self, tx: Json, height: int) -> bool:
        moved = self.ledger.sql.execute(
            "UPDATE account SET amount = amount - :amount"
            " WHERE name = :sender AND amount >= :amount",
            tx,
        )
        if moved.rowcount == 0:
            return False
        self.ledger.sql.execute(
            "UPDATE account SET amount = amount + :amount WHERE name = :recipient", tx
        )
        self._mark(tx, "mined", height)
        self.ledger.note("mined", f"mined {tx['hash'][:8]} in block {height}")
        return True

    def _mark(self, tx: Json, status: str, block: int | None) -> None:
        update = "UPDATE tx SET status = ?, block = ? WHERE hash = ?"
        self.ledger.sql.execute(update, (status, block, tx["hash"]))

    def _height(self) -> int:
        return int((self._one("SELECT coalesce(max(height), 0) AS n FROM block") or {})["n"])

    def _one(self, statement: str, *values: object) -> Json | None:
        rows = self._all(statement, *values)
        return rows[0] if rows else None

    def _all(self, statement: str, *values: object) -> list[Json]:
        cursor = self.ledger.sql.execute(statement, values)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def app(
    path: str,
    clock: Clock,
    faults: Sequence[Fault] = (),
    *,
    settings: Chain | None = None,
    sleep: Sleep = asyncio.sleep,
) -> Starlette:
    """A chain whose blocks are the SQLite file `path` (or ":memory:").

    Time comes from `clock` alone and delays go through `sleep`; no thread is started, so that it
    runs on a virtual event loop. Whoever is done with it closes `app.state.desk.ledger.sql`.
    """
    node = _Node(path, clock, settings or Chain())
    routes = [
        Route("/transactions", node.submit, methods=["POST"]),
        Route("/transactions/{hash}", node.transaction, methods=["GET"]),
        Route("/accounts/{name}", node.account, methods=["GET"]),
        Route("/blocks", node.mine, methods=["POST"]),
        Route("/transfers", node.transfers, methods=["GET"]),
    ]
    chain = far_side(node.ledger, routes, faults=faults, sleep=sleep)
    chain.state.desk = node
    return chain


def _raw(text: object) -> bytes:
    try:
        return bytes.fromhex(text) if isinstance(text, str) else b""
    except ValueError:
        raise ProblemError(400, "bad-raw", "raw must be hex") from None


def _opened(raw: bytes) -> Json:
    """The transaction in the bytes, or a refusal of what nobody has signed."""
    try:
        outer = json.loads(raw)
        body, signature = str(outer["body"]), str(outer["signature"])
        wanted: dict[str, Any] = {"fee": FEE, **json.loads(body)}
        sender = str(wanted["from"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ProblemError(400, "bad-raw", "these bytes are no transaction") from None
    if not hmac.compare_digest(signature, _signature(body, secret_of(sender))):
        raise ProblemError(422, "bad-signature", f"{sender} has not signed these bytes")
    for name in ("amount", "nonce", "fee"):
        count(wanted.get(name), name)
    return {"from": sender, "to": str(wanted.get("to")), **{n: wanted[n] for n in _NUMBERS}}


_NUMBERS = ("amount", "nonce", "fee")


def _text(one: Json) -> str:
    return f"{one['from']} ▸ {one['to']} {one['amount']} (nonce {one['nonce']})"
