"""Makes an HTTP endpoint a tool: JSON there and back, a key, a version, questions by URL."""

import math
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal, Unpack
from urllib.parse import urlencode

from landed.core.canonical import Json, canonical
from landed.core.contract import Contract, Effect, check
from landed.core.declared import from_values
from landed.core.errors import ContractError, ProposalError
from landed.core.key import Ask
from landed.core.outcome import Listed, LookOutcome, NoAnswer, NotSent, Prepared, SendOutcome
from landed.core.tool import Call
from landed.tools.arguments import Arguments
from landed.tools.blocking import fields_of
from landed.tools.classify import Unanswered, described
from landed.tools.exchange import Exchange, HeadersOf, Reply
from landed.tools.foresight import foresight
from landed.tools.listing import Gathered, Listing, gathered, listed, picked
from landed.tools.promises import Promises
from landed.tools.reading import Reading, answer_of, kept_of, outcome_of
from landed.tools.routes import Route, route
from landed.tools.shaping import Shape

if TYPE_CHECKING:
    import httpx2

# Methods whose arguments travel in the body; those of the others are the query.
BODIES = frozenset({"POST", "PUT", "PATCH"})

# What these mean in a URL and a template, whatever the arguments are called.
RESERVED = frozenset({"key", "result", "prepared"})

Asked = dict[str, "str | Listing"]


class HttpTool:
    """One endpoint, as a `landed.core.tool.Tool`. Needs the extra `landed[http]`.

    url         where it sends, as `[METHOD ]https://…/reservations/{id}/cancel`; POST unless said
    arguments   per argument its type, or (type, default)
    keyed       the header that carries the key, or as `shape` says; `fence` that of the epoch
    shape       where the key goes, what else is filled in, and which version a send rests on
    prepare     where it reads, before the first send, what every send rests on; GET unless said
    lookup, close, read_back
                where it asks, as `https://…/keys/{key}`; GET, for close POST, unless said. A lookup
                may be a `Listing`, of which the one with the key is picked
    list_effects
                the `Listing` of what the service holds
    reading     how replies are read
    headers     sent with every request; a function of the call where principals differ
    sent_at_header
                the header that says when the send left (UTC, seconds since the epoch)
    url_in_body whether arguments that stand in the URL are in the body as well
    transport   an httpx2 transport of one's own (a proxy, a client certificate, a simulation); it
                must not retry, and whoever made it closes it

    Braces name arguments, `key`, `prepared` and, for read_back, parts of the `result`
    (`{result.id}`). The arguments that are named nowhere are the JSON body (of POST, PUT and
    PATCH), in the canonical form so that every send has the same bytes, or else the query. The
    other promises are the fields of `landed.core.contract.Contract`.

    Raises `ContractError` where the promises contradict each other, or httpx2 is not installed.
    Close it with `aclose` on the loop it was used on.
    """

    interruptible = True

    def __init__(
        self,
        *,
        name: str,
        effect: Effect | Literal["none", "reversible", "irreversible"],
        url: str,
        arguments: Mapping[str, object] | None = None,
        description: str = "",
        shape: Shape | None = None,
        prepare: str = "",
        lookup: str | Listing = "",
        close: str = "",
        read_back: str = "",
        list_effects: Listing | None = None,
        reading: Reading | None = None,
        headers: Mapping[str, str] | HeadersOf | None = None,
        sent_at_header: str = "",
        url_in_body: bool = False,
        transport: "httpx2.AsyncBaseTransport | None" = None,
        **promises: Unpack[Promises],
    ) -> None:
        asked: Asked = {"prepare": prepare, "lookup": lookup, "close": close}
        asked |= {"read_back": read_back, "list_effects": list_effects or ""}
        self.foresight, plain = foresight(name, {**promises, "effect": effect})
        plain |= {question: bool(spec) for question, spec in asked.items()}
        self.name = name
        self.contract = check(from_values(plain, tool=name), tool=name)
        self._arguments = _arguments(self.contract, arguments or {}, description, tool=name)
        self._shape = replace(shape or Shape(), keyed=self.contract.keyed)
        self._listings = {key: spec for key, spec in asked.items() if isinstance(spec, Listing)}
        self._routes = _routes({"send": url, **asked}, set(arguments or {}), self.contract, name)
        _check_shape(self._shape, self._routes["send"], set(arguments or {}), self.contract, name)
        self._reading = reading or Reading()
        self._url_in_body = url_in_body
        self._exchange = Exchange(
            self.contract,
            headers=_headers(headers),
            sent_at_header=sent_at_header,
            transport=transport,
        )

    @property
    def schema(self) -> Mapping[str, Json]:
        """The JSON Schema of its arguments."""
        return self._arguments.schema

    def check(self, arguments: Mapping[str, Json]) -> Mapping[str, Json]:
        """Return the arguments as stored; `ProposalError` also for what no request can carry."""
        stored = self._arguments.check(arguments)
        for each in self._routes.values():
            each.fits(stored)
        self._shape.fits(self._beside(stored), stored)
        return stored

    async def prepare(self, call: Call) -> Prepared | NoAnswer:
        """Read, at the `prepare` URL, what every send rests on."""
        reply = await self._reply("prepare", call, {})
        return kept_of(reply, self._reading) if isinstance(reply, Reply) else reply

    async def send(self, call: Call) -> SendOutcome:
        """Send one request, once, and say what came back."""
        way = self._routes["send"]
        try:
            values = self._values(call)
            url, body = way.url(values), None
            more = self._shape.headers(values)
            beside = self._beside(call.arguments)
            if way.method in BODIES:
                body = canonical(self._shape.body(beside, values))
            else:
                url = _with_query(url, beside)
        except ProposalError as error:
            return NotSent(reason=described(error))
        effect = self.contract.effect != Effect.NONE
        reply = await self._exchange.carry(
            call, method=way.method, url=url, body=body, effect=effect, more=more
        )
        if isinstance(reply, Reply):
            rests_on = _shown(more.get("if-match") or call.prepared)
            return outcome_of(reply, self._reading, self.contract, rests_on=rests_on)
        return reply

    async def list_effects(self, since: float) -> Listed | NoAnswer:
        """List what the service holds since then (UTC, seconds since the epoch)."""
        listing = self._listings.get("list_effects")
        if listing is None:
            return NoAnswer(reason=f"{self.name} has no list of effects")
        whole = math.floor(since)
        at = datetime.fromtimestamp(whole, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        call = _asking(self.contract, tool=self.name)
        url = self._routes["list_effects"].url({"since": whole, "since_at": at})
        found = await self._gathered("list_effects", call, url, listing)
        if isinstance(found, Gathered):
            return listed(found, listing, self._shape.stored)
        return found if isinstance(found, NoAnswer) else NoAnswer(reason=f"it says {found}")

    async def lookup(self, call: Call) -> LookOutcome:
        """Ask at the `lookup` URL, or find the call in its list."""
        listing = self._listings.get("lookup")
        if listing is None:
            return await self._ask("lookup", call, {})
        try:
            url = self._routes["lookup"].url(self._values(call))
        except ProposalError as error:
            return NoAnswer(reason=described(error))
        found = await self._gathered("lookup", call, url, listing)
        if isinstance(found, Gathered):
            return picked(found, self._shape.written(call.key), listing)
        return found

    async def close(self, call: Call) -> LookOutcome:
        """Ask at the `close` URL."""
        return await self._ask("close", call, {})

    async def read_back(self, call: Call, result: Json) -> LookOutcome:
        """Ask at the `read_back` URL."""
        return await self._ask("read_back", call, {"result": result})

    async def aclose(self) -> None:
        """Close the connections; the next call makes new ones."""
        await self._exchange.aclose()

    async def _ask(self, question: str, call: Call, more: Mapping[str, Json]) -> LookOutcome:
        reply = await self._reply(question, call, more)
        return answer_of(reply, self._reading) if isinstance(reply, Reply) else reply

    async def _reply(self, question: str, call: Call, more: Mapping[str, Json]) -> Reply | NoAnswer:
        way = self._routes.get(question)
        if way is None:
            return NoAnswer(reason=f"{self.name} has no {question}")
        try:
            url = way.url({**self._values(call), **more})
        except ProposalError as error:
            return NoAnswer(reason=described(error))
        reply = await self._get(way.method, call, url)
        return reply if isinstance(reply, Reply) else NoAnswer(reason=reply.reason)

    async def _gathered(
        self, question: str, call: Call, url: str, listing: Listing
    ) -> Gathered | LookOutcome:
        method = self._routes[question].method
        return await gathered(
            lambda page: self._get(method, call, page), url, listing, self._reading
        )

    async def _get(self, method: str, call: Call, url: str) -> Reply | Unanswered:
        """Put one question; where the key stands in bodies, it stands in those of questions too."""
        body = canonical(self._shape.asking(call.key)) if method in BODIES else None
        return await self._exchange.carry(call, method=method, url=url, body=body, effect=False)

    def _values(self, call: Call) -> Mapping[str, Json]:
        """Return what the braces of URLs and templates may name."""
        key = self._shape.written(call.key)
        return {**call.arguments, "key": key, "prepared": call.prepared}

    def _beside(self, arguments: Mapping[str, Json]) -> Mapping[str, Json]:
        """Return the arguments that go into the body or the query under their own names."""
        used = self._shape.names
        if not self._url_in_body:
            used |= self._routes["send"].parameters
        return {name: value for name, value in arguments.items() if name not in used}


def _arguments(
    contract: Contract, kinds: Mapping[str, object], description: str, *, tool: str
) -> Arguments:
    if find_spec("httpx2") is None:
        raise ContractError(f"{tool} is reached over HTTP: install landed[http]")
    fields = fields_of(kinds)
    own = {contract.keyed, contract.fence} - {""}
    return Arguments(tool, lambda: fields, own=own, description=description)


METHODS = {
    "send": "POST",
    "prepare": "GET",
    "lookup": "GET",
    "close": "POST",
    "read_back": "GET",
    "list_effects": "GET",
}


def _routes(
    specs: Mapping[str, str | Listing], arguments: set[str], contract: Contract, tool: str
) -> Mapping[str, Route]:
    usual = arguments | _given(contract)
    allowed = {
        "prepare": arguments,
        "read_back": usual | {"result"},
        "list_effects": {"since", "since_at"},
    }
    routes = {
        question: route(
            _address(spec, question, tool=tool),
            method=METHODS[question],
            allowed=allowed.get(question, usual),
            tool=tool,
        )
        for question, spec in specs.items()
        if spec
    }
    named = frozenset[str]().union(*(each.parameters for each in routes.values()))
    _check_reserved(named, arguments, tool=tool)
    return routes


def _given(contract: Contract) -> set[str]:
    """Return what braces may name besides arguments."""
    named = {"key": bool(contract.keyed), "prepared": contract.prepare}
    return {name for name, there in named.items() if there}


def _check_reserved(named: frozenset[str], arguments: set[str], *, tool: str) -> None:
    for name in sorted(RESERVED & named & arguments):
        raise ContractError(
            f"{tool}: in a URL or a template {{{name}}} is not an argument; call that otherwise"
        )


def _check_shape(
    shape: Shape, send: Route, arguments: set[str], contract: Contract, tool: str
) -> None:
    allowed = frozenset(arguments | _given(contract))
    shape.check(allowed=allowed, has_body=send.method in BODIES, tool=tool)
    _check_reserved(shape.names, arguments, tool=tool)
    if shape.key_in == "path" and "key" not in send.parameters:
        raise ContractError(f"contract of {tool}: key_in='path' needs {{key}} in the url")
    taken = shape.places.keys() & (arguments - shape.names - send.parameters)
    if taken:
        raise ContractError(f"{tool}: {sorted(taken)[0]} is filled by the runtime, no argument")


def _address(spec: str | Listing, question: str, *, tool: str) -> str:
    if isinstance(spec, str):
        return spec
    if question == "lookup" and not spec.key:
        raise ContractError(
            f"contract of {tool}: a lookup in a list finds its own by the key: say in key= where"
            " each has it"
        )
    if spec.pages_max < 1:
        raise ContractError(f"contract of {tool}: pages_max must be at least 1")
    return spec.url


def _asking(contract: Contract, *, tool: str) -> Call:
    """Return the call that a question is put for which is about none."""
    now = time.time()
    return Call(
        operation="",
        tool=tool,
        key="",
        arguments={},
        ask=Ask(),
        epoch=0,
        attempt=1,
        sent_at=now,
        deadline_at=now + contract.deadline_s,
    )


def _shown(rests_on: Json) -> str:
    if rests_on is None:
        return ""
    return rests_on if isinstance(rests_on, str) else canonical(rests_on).decode()


def _headers(headers: Mapping[str, str] | HeadersOf | None) -> HeadersOf:
    if callable(headers):
        return headers
    fixed = dict(headers or {})
    return lambda call: fixed


def _with_query(url: str, arguments: Mapping[str, Json]) -> str:
    """Add the arguments: a list repeats its name, null is left out, an object is its JSON."""
    pairs: list[tuple[str, str]] = []
    for name, value in arguments.items():
        each = value if isinstance(value, list) else [value]
        pairs += [(name, _in_query(one)) for one in each if one is not None]
    if not pairs:
        return url
    return f"{url}{'&' if '?' in url else '?'}{urlencode(pairs)}"


def _in_query(value: Json) -> str:
    return value if isinstance(value, str) else canonical(value).decode()
