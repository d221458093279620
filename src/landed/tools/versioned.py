"""Makes an update of an object with versions a tool, in the manner of Kubernetes.

The service's own concurrency control does the work. An update says which version it is based on,
and leaves the operation's key in the object (the mark). A version never comes back, so that

- an update takes effect at most once: a second one is based on a version that is gone;
- whoever overwrote it in between is never overwritten: the update is refused, and says what moved;
- a lookup reads the mark, and where the version has moved on without it, ours can never land.

The version is read before the first send, or given (`version`), and kept with the record. A close
makes the version move, by a change of the marks alone. Whoever reads from a replica learns nothing
from a version older than that.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypedDict, Unpack, cast

from landed.core.canonical import Json, canonical, fingerprint, parse
from landed.core.contract import Contract, Effect, check
from landed.core.declared import from_values
from landed.core.errors import ContractError, ProposalError
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
from landed.tools.classify import Unanswered, bounded, described, of_status
from landed.tools.exchange import Exchange, Reply
from landed.tools.foresight import foresight
from landed.tools.promises import Promises
from landed.tools.reading import YES
from landed.tools.routes import Missing, at, route

if TYPE_CHECKING:
    import httpx2

KEY = "landed_operation"
CONFLICTS = frozenset({409, 412})
SHOWN_MAX = 5  # Fields that are named when the object has moved.


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where an object keeps what, as dotted names; the defaults are those of Kubernetes.

    version    its version; `If-Match` carries it where `if_match`, else the patch does, there
    marks      an object of texts, in which updates leave their keys
    mark       the name of ours in it
    fields     under which the arguments are set
    patch      the content type of a merge patch
    """

    version: str = "metadata.resourceVersion"
    marks: str = "metadata.annotations"
    mark: str = "landed-operation"
    fields: str = "spec"
    if_match: bool = False
    patch: str = "application/merge-patch+json"


class Basis(TypedDict):
    """What is stored before the first send: the version, and what the fields to be set were."""

    version: str
    was: Mapping[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Object:
    """An object as it was read; `number` is its version where that is a whole number."""

    body: Json
    version: str
    mark: str

    @property
    def number(self) -> int | None:
        """The version as a position."""
        return number_of(self.version)


class VersionedTool:
    """Updates of one object each, as a `landed.core.tool.Tool`. Needs the extra `landed[http]`.

    url        the object, as `https://…/deployments/{name}`
    arguments  per argument its type, or (type, default); those that are not in the URL are fields
               that are set. `version` is added: the version to be based on, "" for that of now
    layout     where the object keeps what
    read_from  another address to look at, such as a replica; the object itself unless said
    headers    sent with every request; a function of the call where principals differ
    transport  as of `HttpTool`

    The result is `{object, based_on}`. Versions that are whole numbers are positions. The other
    promises are the fields of `landed.core.contract.Contract`; `target` is the address unless said.

    Raises `ContractError` where the promises contradict each other. Close it with `aclose`.
    """

    interruptible = True

    def __init__(
        self,
        *,
        name: str,
        effect: Literal["reversible", "irreversible"],
        url: str,
        arguments: Mapping[str, object],
        layout: Layout | None = None,
        read_from: str = "",
        headers: Mapping[str, str] | None = None,
        description: str = "",
        transport: "httpx2.AsyncBaseTransport | None" = None,
        **promises: Unpack[Promises],
    ) -> None:
        self._layout = layout or Layout()
        if "version" in arguments:
            raise ContractError(f"contract of {name}: version is its own; call yours otherwise")
        exact = {"prepare": True, "keyed": KEY, "compares_payload": True}
        asked = {"lookup": True, "close": True, "effect": Effect(effect)}
        given = {"target": (url,), "makes": "object", **promises, **exact, **asked}
        self.foresight, plain = foresight(name, given)
        self.name = name
        self.contract = check(from_values(plain, tool=name), tool=name)
        fields = fields_of({**arguments, "version": (str, "")})
        self._arguments = Arguments(name, lambda: fields, own={KEY}, description=description)
        self._object = route(url, method="PATCH", allowed=set(arguments), tool=name)
        self._reads = route(read_from or url, method="GET", allowed=set(arguments), tool=name)
        own = dict(headers or {})
        self._looking = Exchange(
            _PLAIN, headers=lambda call: own, sent_at_header="", transport=transport
        )
        self._changing = Exchange(
            _PLAIN,
            headers=lambda call: own | self._conditions(call),
            sent_at_header="",
            transport=transport,
        )

    @property
    def schema(self) -> Mapping[str, Json]:
        """The JSON Schema of its arguments."""
        return self._arguments.schema

    def check(self, arguments: Mapping[str, Json]) -> Mapping[str, Json]:
        """Return the arguments as stored; `ProposalError` also for what no URL can carry."""
        stored = self._arguments.check(arguments)
        self._object.url(stored)
        return stored

    async def prepare(self, call: Call) -> Prepared | NoAnswer:
        """Read the version that the update will be based on, and what the fields are now."""
        there = await self._read(call, at_source=True)
        if not isinstance(there, _Object):
            return there
        was = {name: _plain(self._field(there, name)) for name in self._set_by(call)}
        basis: Basis = {"version": str(call.arguments["version"]) or there.version, "was": was}
        return Prepared(value=cast("Json", basis))

    async def send(self, call: Call) -> SendOutcome:
        """Send the update, once, on the version that was stored."""
        basis = _basis_of(call)
        if basis is None:
            return NotSent(reason=_NO_BASIS)
        reply = await self._change(call, self._set_by(call), {self._layout.mark: _mark(call)})
        if not isinstance(reply, Reply):
            return reply
        if reply.status in CONFLICTS:
            return await self._conflict(call, basis, reply)
        if reply.status not in YES:
            return of_status(reply.status, self.contract, says=reply.says)
        after = self._object_in(reply)
        if not isinstance(after, _Object) or after.mark != _mark(call):
            return AnswerLost(reason=bounded(f"{reply.status} without our mark: {reply.says}"))
        return Acknowledged(result=self._result(call, basis), position=after.number)

    async def list_effects(self, since: float) -> Listed | NoAnswer:
        """Say that it has no list of what the service holds."""
        return NoAnswer(reason=f"{self.name} has no list of effects")

    async def lookup(self, call: Call) -> LookOutcome:
        """Read the mark, where `read_from` says."""
        return self._judged(call, await self._read(call, at_source=False))

    async def close(self, call: Call) -> LookOutcome:
        """Read the mark at the object itself, and see that its version moves on without ours."""
        there = await self._read(call, at_source=True)
        if self._can_still_land(call, there):
            await self._change(call, {}, {f"{self._layout.mark}-closed": call.key})
            there = await self._read(call, at_source=True)
        if self._can_still_land(call, there):
            return NotYet(reason="the object is still at the version that the update is based on")
        return self._judged(call, there)

    async def read_back(self, call: Call, result: Json) -> LookOutcome:
        """Say that an update is there when the object says yes."""
        return NoAnswer(reason=f"{self.name} has no read_back")

    async def aclose(self) -> None:
        """Close the connections; the next call makes new ones."""
        await self._looking.aclose()
        await self._changing.aclose()

    def _judged(self, call: Call, there: "_Object | NoAnswer") -> LookOutcome:
        """Return what an object says about our update."""
        basis = _basis_of(call)
        if not isinstance(there, _Object) or basis is None:
            return there if isinstance(there, NoAnswer) else NoAnswer(reason=_NO_BASIS)
        if there.mark.partition(" ")[0] == call.key:
            return Found(result=self._result(call, basis), position=there.number)
        based_on = number_of(basis["version"])
        if there.number is not None and based_on is not None and there.number < based_on:
            return NotYet(reason=f"it was read at {there.version}, before {based_on}")
        return Absent(position=there.number)

    def _can_still_land(self, call: Call, there: "_Object | NoAnswer") -> bool:
        basis = _basis_of(call)
        return (
            isinstance(there, _Object)
            and basis is not None
            and (there.version == basis["version"] and not there.mark.startswith(f"{call.key} "))
        )

    async def _conflict(self, call: Call, basis: Basis, reply: Reply) -> SendOutcome:
        """Say what has moved; what has moved may be our own doing."""
        there = await self._read(call, at_source=True)
        if not isinstance(there, _Object):
            return AnswerLost(reason=f"{reply.status}; and to the question: {there.reason}")
        if there.mark == _mark(call):
            return Acknowledged(result=self._result(call, basis), position=there.number)
        if there.mark.partition(" ")[0] == call.key:
            return Refused(reason=f"{call.key} was used for another update")
        if there.version == basis["version"]:
            return AnswerLost(reason=bounded(f"{reply.status} {reply.says}"))
        return Refused(reason=bounded(self._moved(there, basis)))

    def _moved(self, there: "_Object", basis: Basis) -> str:
        now = {name: _plain(self._field(there, name)) for name in basis["was"]}
        moved = [
            f"{name} was {_shown(was)} and is {_shown(now[name])}"
            for name, was in list(basis["was"].items())
            if now[name] != was
        ]
        what = "; ".join(moved[:SHOWN_MAX]) or "but none of the fields to be set has changed"
        return f"it is at {there.version} now, not at {basis['version']}: {what}"

    async def _change(
        self, call: Call, fields: Mapping[str, Json], marks: Mapping[str, Json]
    ) -> "Reply | Unanswered":
        basis = _basis_of(call)
        assert basis is not None
        patch: dict[str, Json] = {}
        for path, values in ((self._layout.fields, fields), (self._layout.marks, marks)):
            if values:
                _put(patch, path, dict(values))
        if not self._layout.if_match:
            _put(patch, self._layout.version, basis["version"])
        return await self._changing.carry(
            call,
            method=self._object.method,
            url=self._object.url(call.arguments),
            body=canonical(patch),
            effect=False,  # It has no header for a key: the mark is the key.
        )

    async def _read(self, call: Call, *, at_source: bool) -> "_Object | NoAnswer":
        where = self._object if at_source else self._reads
        try:
            url = where.url(call.arguments)
        except ProposalError as error:
            return NoAnswer(reason=described(error))
        reply = await self._looking.carry(call, method="GET", url=url, body=None, effect=False)
        if not isinstance(reply, Reply):
            return NoAnswer(reason=reply.reason)
        if reply.status != 200:
            return NoAnswer(reason=bounded(f"{reply.status} {reply.says}"))
        return self._object_in(reply)

    def _object_in(self, reply: Reply) -> "_Object | NoAnswer":
        try:
            body = parse(reply.body)
        except ProposalError as error:
            return NoAnswer(reason=described(error))
        version = at(body, self._layout.version)
        if self._layout.if_match:
            version = reply.headers.get("etag", "")
        if not isinstance(version, str) or not version:
            return NoAnswer(reason=bounded(f"it says no version: {reply.says}"))
        marks = at(body, self._layout.marks)
        mark = marks.get(self._layout.mark) if isinstance(marks, Mapping) else None
        return _Object(body=body, version=version, mark=mark if isinstance(mark, str) else "")

    def _field(self, there: "_Object", name: str) -> "Json | Missing":
        path = f"{self._layout.fields}.{name}" if self._layout.fields else name
        return at(there.body, path)

    def _set_by(self, call: Call) -> dict[str, Json]:
        """Return the fields that a call sets: its arguments, but for the address and the basis."""
        beside = self._object.parameters | self._reads.parameters | {"version"}
        return {name: value for name, value in call.arguments.items() if name not in beside}

    def _conditions(self, call: Call) -> dict[str, str]:
        basis = _basis_of(call)
        own = {"content-type": self._layout.patch}
        return own | {"if-match": basis["version"]} if self._layout.if_match and basis else own

    def _result(self, call: Call, basis: Basis) -> Json:
        return {"object": self._object.url(call.arguments), "based_on": basis["version"]}


_NO_BASIS = "it is based on no version"

# The exchanges carry no key and no epoch in a header, and judge by the tool's own contract.
_PLAIN = Contract(effect=Effect.IRREVERSIBLE)


def number_of(version: str) -> int | None:
    """Return a version as a position, None where it is no whole number."""
    plain = version.isascii() and version.isdigit() and len(version) < 20
    return int(version) if plain else None


def _basis_of(call: Call) -> Basis | None:
    prepared = call.prepared
    whole = isinstance(prepared, Mapping) and prepared.keys() >= Basis.__required_keys__
    return cast("Basis", prepared) if whole else None


def _mark(call: Call) -> str:
    """Return what is left in the object: the key, and what it stood for."""
    return f"{call.key} {fingerprint(dict(call.arguments), domain='update')}"


def _put(into: dict[str, Json], path: str, value: Json) -> None:
    """Put a value at a dotted name, beside what is there."""
    *outer, last = path.split(".") if path else [""]
    for name in outer:
        into = cast("dict[str, Json]", into.setdefault(name, {}))
    if path:
        into[last] = value
    else:
        into.update(cast("Mapping[str, Json]", value))


def _plain(value: "Json | Missing") -> Json:
    return None if isinstance(value, Missing) else value


def _shown(value: Json) -> str:
    return canonical(value).decode()
