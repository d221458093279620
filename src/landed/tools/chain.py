"""Makes a transfer on a chain a tool: signed once, kept before it is sent, and never signed again.

A chain has no keys, and needs none: a transaction is known by the digest of its bytes, and its
number (nonce) is used once by its account. So the bytes are made and stored *before* the first
send (`prepare`), every send is those bytes, and a lookup asks for their digest. A second signature
with a new number would be a second transfer; nothing here makes one.

Where the number was used by another transaction, ours can never be taken in: that, and only that,
is a no. The position of an answer is therefore the highest number of the account that is used.
"""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypedDict, Unpack, cast

from landed.core.canonical import Json, canonical, fingerprint
from landed.core.contract import Contract, Effect, check
from landed.core.declared import from_values
from landed.core.errors import ProposalError
from landed.core.outcome import (
    Absent,
    Acknowledged,
    AnswerLost,
    Found,
    Listed,
    LookOutcome,
    NoAnswer,
    NotSent,
    NotYet,
    Prepared,
    Refused,
    SendOutcome,
)
from landed.core.tool import Call
from landed.tools.arguments import Arguments
from landed.tools.blocking import fields_of
from landed.tools.classify import described
from landed.tools.exchange import Exchange, Reply
from landed.tools.foresight import foresight
from landed.tools.function import THREADS_MAX
from landed.tools.promises import Promises
from landed.tools.reading import Reading, answer_of, outcome_of
from landed.tools.routes import route
from landed.tools.threads import Threads

if TYPE_CHECKING:
    import httpx2

KEY = "hash"

TRANSFER: Mapping[str, object] = {"from": str, "to": str, "amount": int}

# A transfer cannot be taken back, so that a person is asked; it may wait for its block for a while.
DEFAULTS: Promises = {
    "risk": "confirm",
    "deadline_s": 10.0,
    "settlement_lag_s": 600.0,
    "target": ("account/{from}",),
    "makes": "hash",
}

Sign = Callable[[Mapping[str, Json]], "bytes | Awaitable[bytes]"]
"""Signs a transaction (`from`, `to`, `amount`, `nonce`, `fee`), plain or async. The secret stays
where it is: only the bytes come back."""


class Signed(TypedDict):
    """What is stored before the first send: the bytes in hex, their digest, their number.

    `stands_for` is the digest of the arguments that were signed for.
    `cancel` are the bytes that use the number up without moving anything, "" where there are none.
    """

    raw: str
    hash: str
    nonce: int
    stands_for: str
    cancel: str
    cancel_hash: str


class Node(Protocol):
    """A way into one chain. It raises nothing for what the chain did."""

    async def next_nonce(self, call: Call) -> int | NoAnswer:
        """Return the number that the account's next transaction must have."""
        ...

    async def submit(self, call: Call, raw: bytes) -> SendOutcome:
        """Hand the bytes to the chain, once; a yes is a receipt."""
        ...

    async def find(self, call: Call, hash: str) -> LookOutcome:
        """Say whether those bytes are in a block; *not yet* where they wait for one.

        The position of an absence is the highest number of the account that was used *before* the
        chain was asked for the bytes; None where none was.
        """
        ...


class ChainTool:
    """Transfers from one account each, as a `landed.core.tool.Tool`.

    node     the way into the chain, such as an `HttpNode`
    sign     signs a transaction; called when it is prepared, and never again
    hash_of  the digest by which the chain knows those bytes
    fee      what a transfer bids
    closes   whether bytes are signed along that use the number up and move nothing, bidding more;
             a close sends them, and whichever of the two is taken in shuts the other out

    Its arguments are `from`, `to` and `amount`. The result is `{hash, nonce}`; it is confirmed when
    it is in a block. While it is in doubt it holds its account, so that no other transfer from
    there gets a number. The promises are the fields of `landed.core.contract.Contract`, and start
    from DEFAULTS; `settlement_lag_s` is how long a transaction may wait for its block.

    Raises `ContractError` where the promises contradict each other.
    """

    interruptible = True

    def __init__(
        self,
        *,
        name: str,
        node: Node,
        sign: Sign,
        hash_of: Callable[[bytes], str],
        fee: int = 1,
        closes: bool = False,
        description: str = "",
        **promises: Unpack[Promises],
    ) -> None:
        exact = {"prepare": True, "keyed": KEY, "compares_payload": True}
        asked = {"lookup": True, "close": closes, "read_back": True}
        given = {**DEFAULTS, **promises, **exact, **asked, "effect": Effect.IRREVERSIBLE}
        self.foresight, plain = foresight(name, given)
        self.name = name
        self.contract = check(from_values(plain, tool=name), tool=name)
        fields = fields_of(TRANSFER)
        self._arguments = Arguments(name, lambda: fields, own={KEY}, description=description)
        self._node = node
        self._sign = sign
        self._hash_of = hash_of
        self._fee = fee
        self._threads = Threads(f"{name} signing", at_most=THREADS_MAX)

    @property
    def schema(self) -> Mapping[str, Json]:
        """The JSON Schema of its arguments."""
        return self._arguments.schema

    def check(self, arguments: Mapping[str, Json]) -> Mapping[str, Json]:
        """Return the arguments as they will be stored; `ProposalError` when they do not fit."""
        return self._arguments.check(arguments)

    async def prepare(self, call: Call) -> Prepared | NoAnswer:
        """Take the account's next number and sign, once; nothing is sent."""
        nonce = await self._node.next_nonce(call)
        if isinstance(nonce, NoAnswer):
            return nonce
        transfer = {**call.arguments, "nonce": nonce, "fee": self._fee}
        cancel = {**transfer, "to": transfer["from"], "amount": 0, "fee": self._fee + 1}
        try:
            raw = await self._signed(call, transfer)
            other = await self._signed(call, cancel) if self.contract.close else b""
        except Exception as error:
            return NoAnswer(reason=described(error))
        signed: Signed = {
            "raw": raw.hex(),
            "hash": self._hash_of(raw),
            "nonce": nonce,
            "stands_for": _digest(call),
            "cancel": other.hex(),
            "cancel_hash": self._hash_of(other) if other else "",
        }
        return Prepared(value=cast("Json", signed))

    async def send(self, call: Call) -> SendOutcome:
        """Send the stored bytes; the same ones, however often."""
        signed = _signed_for(call)
        if signed is None:
            return NotSent(reason="nothing was signed for it")
        if signed["stands_for"] != _digest(call):
            return Refused(reason="what was signed stands for other arguments")
        outcome = await self._node.submit(call, bytes.fromhex(signed["raw"]))
        if isinstance(outcome, Refused):
            # A chain refuses bytes that it has taken in already: that is no no.
            outcome = await self._refused(call, signed, outcome)
        if isinstance(outcome, Acknowledged):
            return Acknowledged(result=_result(signed), position=signed["nonce"], accepted=True)
        return outcome

    async def list_effects(self, since: float) -> Listed | NoAnswer:
        """Say that it has no list of what the service holds."""
        return NoAnswer(reason=f"{self.name} has no list of effects")

    async def lookup(self, call: Call) -> LookOutcome:
        """Ask for the bytes by their digest."""
        signed = _signed_for(call)
        if signed is None:
            return NoAnswer(reason="nothing was signed for it")
        match await self._node.find(call, signed["hash"]):
            case Found(position=position):
                return Found(result=_result(signed), position=position)
            case other:
                return other

    async def close(self, call: Call) -> LookOutcome:
        """Ask the same, and use the number up, so that the bytes can never be taken in."""
        signed, answer = _signed_for(call), await self.lookup(call)
        if signed is None or not signed["cancel"] or isinstance(answer, Found | NoAnswer):
            return answer
        await self._node.submit(call, bytes.fromhex(signed["cancel"]))
        match await self.lookup(call):
            case Absent(position=used) if used is not None and used >= signed["nonce"]:
                return Absent(position=used)
            case Absent():
                return NotYet(reason="its number is not used yet")
            case other:
                return other

    async def read_back(self, call: Call, result: Json) -> LookOutcome:
        """Ask the same as a lookup: a block is where it matters."""
        return await self.lookup(call)

    async def _refused(self, call: Call, signed: Signed, refused: Refused) -> SendOutcome:
        match await self._node.find(call, signed["hash"]):
            case Absent():
                return refused
            case Found() | NotYet():
                return Acknowledged(result=_result(signed))
            case NoAnswer(reason=reason):
                return AnswerLost(reason=f"{refused.reason}; and to the question: {reason}")

    async def _signed(self, call: Call, transaction: Mapping[str, Json]) -> bytes:
        if inspect.iscoroutinefunction(self._sign):
            return await cast("Awaitable[bytes]", self._sign(transaction))
        wait_s = max(call.deadline_at - call.sent_at, 0.0)
        raw = await self._threads.run(partial(self._sign, transaction), wait_s=wait_s)
        return await raw if inspect.isawaitable(raw) else raw


def _signed_for(call: Call) -> Signed | None:
    prepared = call.prepared
    whole = isinstance(prepared, Mapping) and prepared.keys() >= Signed.__required_keys__
    return cast("Signed", prepared) if whole else None


def _digest(call: Call) -> str:
    return fingerprint(dict(call.arguments), domain="signed")


def _result(signed: Signed) -> Json:
    return {"hash": signed["hash"], "nonce": signed["nonce"]}


# Of the node itself: only its refusals matter, and it is asked like any service.
_OF_NODE = Contract(effect=Effect.IRREVERSIBLE)
_TAKEN = Reading(requires=("hash",))
_TRANSACTION = Reading(result="")
_WHOLE = Reading(found="", result="", position="")


class HttpNode:
    """The way into a chain whose node speaks JSON over HTTP, as that of `landed.testing` does.

    It has `/transactions` (POST {raw}), `/transactions/HASH` and `/accounts/NAME` under `url`.
    `confirmations` is how many blocks, its own among them, make a transaction certain.
    """

    def __init__(
        self,
        url: str,
        *,
        confirmations: int = 1,
        transport: "httpx2.AsyncBaseTransport | None" = None,
    ) -> None:
        self._url = url
        self._accounts = route(
            f"{url}/accounts/{{from}}", method="GET", allowed={"from"}, tool="a node"
        )
        self._confirmations = confirmations
        self._exchange = Exchange(
            _OF_NODE, headers=lambda call: {}, sent_at_header="", transport=transport
        )

    async def next_nonce(self, call: Call) -> int | NoAnswer:
        """Ask for the account."""
        answer = await self._account(call)
        match answer:
            case {"next": int(number)}:
                return number
            case NoAnswer():
                return answer
            case _:
                return NoAnswer(reason="the node does not say which number is next")

    async def submit(self, call: Call, raw: bytes) -> SendOutcome:
        """Post the bytes."""
        reply = await self._exchange.carry(
            call,
            method="POST",
            url=f"{self._url}/transactions",
            body=canonical({"raw": raw.hex()}),
            effect=False,  # It has no key to carry: the bytes are their own.
        )
        return outcome_of(reply, _TAKEN, _OF_NODE) if isinstance(reply, Reply) else reply

    async def find(self, call: Call, hash: str) -> LookOutcome:
        """Ask for the account first, and then for the bytes: see `Node.find`."""
        account = await self._account(call)
        used = account.get("nonce") if isinstance(account, Mapping) else None
        if not isinstance(used, int):
            return (
                account if isinstance(account, NoAnswer) else NoAnswer(reason="no number is told")
            )
        match await self._asked(call, f"{self._url}/transactions/{hash}", _TRANSACTION):
            case Found(
                result={
                    "transaction": {"status": "mined", "block": int(block)},
                    "position": int(height),
                }
            ):
                return self._deep_enough(block, height)
            case Found(result={"transaction": {"status": "pending"}}):
                return NotYet(reason="it waits for its block")
            case Found() | Absent():
                return Absent(position=used - 1 if used else None)
            case other:
                return other

    async def aclose(self) -> None:
        """Close the connections; the next call makes new ones."""
        await self._exchange.aclose()

    def _deep_enough(self, block: int, height: int) -> LookOutcome:
        deep = height - block + 1
        if deep < self._confirmations:
            return NotYet(reason=f"it is {deep} blocks deep of {self._confirmations}")
        return Found(result=None)

    async def _account(self, call: Call) -> "Mapping[str, Json] | NoAnswer":
        try:
            url = self._accounts.url(call.arguments)
        except ProposalError as error:
            return NoAnswer(reason=described(error))
        match await self._asked(call, url, _WHOLE):
            case Found(result=Mapping() as account):
                return cast("Mapping[str, Json]", account)
            case NoAnswer() as nothing:
                return nothing
            case other:
                return NoAnswer(reason=f"the node says {other!r} about the account")

    async def _asked(self, call: Call, url: str, reading: Reading) -> LookOutcome:
        reply = await self._exchange.carry(call, method="GET", url=url, body=None, effect=False)
        if isinstance(reply, Reply):
            return answer_of(reply, reading)
        return NoAnswer(reason=reply.reason)
