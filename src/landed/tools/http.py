"""Makes an HTTP endpoint a tool: JSON there and back, the key in a header, questions by URL."""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal, Unpack, cast
from urllib.parse import urlencode

from landed.core.canonical import Json, canonical
from landed.core.contract import Contract, Effect, check
from landed.core.declared import from_values
from landed.core.errors import ContractError, ProposalError
from landed.core.outcome import Listed, LookOutcome, NoAnswer, NotSent, Prepared, SendOutcome
from landed.core.tool import Call
from landed.tools.arguments import Arguments
from landed.tools.classify import described
from landed.tools.exchange import Exchange, HeadersOf, Reply
from landed.tools.foresight import foresight
from landed.tools.promises import Promises
from landed.tools.reading import Reading, answer_of, outcome_of
from landed.tools.routes import Route, route

if TYPE_CHECKING:
    import httpx2

# Methods whose arguments travel in the body; those of the others are the query.
BODIES = frozenset({"POST", "PUT", "PATCH"})

# What these mean in a URL, whatever the arguments are called.
RESERVED = frozenset({"key", "result"})


class HttpTool:
    """One endpoint, as a `landed.core.tool.Tool`. Needs the extra `landed[http]`.

    url         where it sends, as `[METHOD ]https://…/reservations/{id}/cancel`; POST unless said
    arguments   per argument its type, or (type, default)
    keyed       the header that carries the key; `fence` the one that carries the epoch
    lookup, close, read_back
                where it asks, as `https://…/keys/{key}`; GET, for close POST, unless said
    reading     how replies are read
    headers     sent with every request; a function of the call where principals differ
    sent_at_header
                the header that says when the send left (UTC, seconds since the epoch)
    url_in_body whether arguments that stand in the URL are in the body as well
    transport   an httpx2 transport of one's own (a proxy, a client certificate, a simulation); it
                must not retry, and whoever made it closes it

    Braces in a URL name arguments, `key` and, for read_back, parts of the `result` (`{result.id}`).
    The arguments that are not in it are the JSON body (of POST, PUT and PATCH), in the canonical
    form so that every send has the same bytes, or else the query. The other promises are the fields
    of `landed.core.contract.Contract`.

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
        lookup: str = "",
        close: str = "",
        read_back: str = "",
        reading: Reading | None = None,
        headers: Mapping[str, str] | HeadersOf | None = None,
        sent_at_header: str = "",
        url_in_body: bool = False,
        transport: "httpx2.AsyncBaseTransport | None" = None,
        **promises: Unpack[Promises],
    ) -> None:
        asked = {"lookup": lookup, "close": close, "read_back": read_back}
        self.foresight, plain = foresight(name, {**promises, "effect": effect})
        plain |= {question: bool(spec) for question, spec in asked.items()}
        self.name = name
        self.contract = check(from_values(plain, tool=name), tool=name)
        self._arguments = _arguments(self.contract, arguments or {}, description, tool=name)
        self._routes = _routes({"send": url, **asked}, set(arguments or {}), self.contract, name)
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
        """Return the arguments as stored; `ProposalError` also for what no URL can carry."""
        stored = self._arguments.check(arguments)
        for name, each in self._routes.items():
            if name != "read_back":  # Its URL needs the result.
                each.url({**stored, "key": "key"})
        return stored

    async def prepare(self, call: Call) -> Prepared | NoAnswer:
        """Say that there is nothing to prepare: each send is made of the stored arguments."""
        return NoAnswer(reason=f"{self.name} has nothing to prepare")

    async def send(self, call: Call) -> SendOutcome:
        """Send one request, once, and say what came back."""
        way = self._routes["send"]
        try:
            url = way.url({**call.arguments, "key": call.key})
            body = None
            if way.method in BODIES:
                body = canonical(self._beside_url(call.arguments))
            else:
                url = _with_query(url, self._beside_url(call.arguments))
        except ProposalError as error:
            return NotSent(reason=described(error))
        reply = await self._exchange.carry(
            call, method=way.method, url=url, body=body, effect=self.contract.effect != Effect.NONE
        )
        if isinstance(reply, Reply):
            return outcome_of(reply, self._reading, self.contract)
        return reply

    async def list_effects(self, since: float) -> Listed | NoAnswer:
        """Say that it has no list of what the service holds."""
        return NoAnswer(reason=f"{self.name} has no list of effects")

    async def lookup(self, call: Call) -> LookOutcome:
        """Ask at the `lookup` URL."""
        return await self._ask("lookup", call, {})

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
        way = self._routes.get(question)
        if way is None:
            return NoAnswer(reason=f"{self.name} has no {question}")
        try:
            url = way.url({**call.arguments, "key": call.key, **more})
        except ProposalError as error:
            return NoAnswer(reason=described(error))
        body = b"{}" if way.method in BODIES else None
        reply = await self._exchange.carry(
            call, method=way.method, url=url, body=body, effect=False
        )
        if isinstance(reply, Reply):
            return answer_of(reply, self._reading)
        return NoAnswer(reason=reply.reason)

    def _beside_url(self, arguments: Mapping[str, Json]) -> Mapping[str, Json]:
        if self._url_in_body:
            return arguments
        used = self._routes["send"].parameters
        return {name: value for name, value in arguments.items() if name not in used}


def _arguments(
    contract: Contract, kinds: Mapping[str, object], description: str, *, tool: str
) -> Arguments:
    if find_spec("httpx2") is None:
        raise ContractError(f"{tool} is reached over HTTP: install landed[http]")
    fields = {name: _field(kind) for name, kind in kinds.items()}
    own = {contract.keyed, contract.fence} - {""}
    return Arguments(tool, lambda: fields, own=own, description=description)


def _field(kind: object) -> tuple[object, object]:
    if isinstance(kind, tuple):
        annotation, default = cast("tuple[object, object]", kind)
        return annotation, default
    return kind, ...


METHODS = {"send": "POST", "lookup": "GET", "close": "POST", "read_back": "GET"}


def _routes(
    specs: Mapping[str, str], arguments: set[str], contract: Contract, tool: str
) -> Mapping[str, Route]:
    allowed = arguments | ({"key"} if contract.keyed else set[str]())
    routes = {
        question: route(
            spec,
            method=METHODS[question],
            allowed=allowed | {"result"} if question == "read_back" else allowed,
            tool=tool,
        )
        for question, spec in specs.items()
        if spec
    }
    named = frozenset[str]().union(*(each.parameters for each in routes.values()))
    for name in sorted(RESERVED & named & arguments):
        raise ContractError(f"{tool}: in a URL {{{name}}} is not an argument; call that otherwise")
    return routes


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
