"""What a send carries beside its URL: the key where the service wants it, and what it rests on.

Services want the key in a header, at some place in the body, or as the name of what is made; many
want it in a second place too, by which they can be asked for it later (`metadata.operation`). An
update rests on a version that was read before. All of that is filled in by the runtime, from
templates that are values of the tool; a model sees none of it.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from string import Formatter
from typing import Literal, cast

from landed.core.canonical import Json
from landed.core.contract import filled
from landed.core.errors import ContractError, ProposalError

KEY_IN = ("header", "body", "path")
KeyAs = Literal["text", "hex"]


def _from_hex(text: str) -> str:
    try:
        return bytes.fromhex(text).decode()
    except ValueError:
        return text  # It was made by somebody else, under a key of his own.


# How a key is written at the service, and how it is read back from there.
WRITTEN: Mapping[str, tuple[Callable[[str], str], Callable[[str], str]]] = {
    "text": (str, str),
    "hex": (lambda key: key.encode().hex(), _from_hex),
}

# One entity tag (RFC 9110 §8.8.3), or a bare version. Not `*`, nor a list: they match what was
# never read.
_TAG = re.compile(r'(W/)?"[!#-~\x80-\xff]*"|[A-Za-z0-9._:+/=-]+')


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How the sends of one `HttpTool` are made up.

    key_in      where the key goes: a `header`, a dotted place in the `body`, or the `path` (`{key}`
                in the URL); the contract's `keyed` names the header or the place
    key_as      how the key is written at the service: as `text`, or in `hex`
    fills       what is put at dotted places of the body, as templates (`metadata.ref`: `{key}`)
    if_match    the version in If-Match, as a template (`{prepared.etag}`, `"{version}"`)
    keyed       left out: it is the contract's

    Templates name arguments, `key`, and what was `prepared`. An argument that they name goes where
    they say, and not into the body under its own name.
    """

    key_in: str = "header"
    key_as: KeyAs = "text"
    fills: Mapping[str, str] = field(default_factory=dict[str, str])
    if_match: str = ""
    keyed: str = ""

    @property
    def places(self) -> Mapping[str, str]:
        """The templates by their dotted places in the body."""
        own = {self.keyed: "{key}"} if self.keyed and self.key_in == "body" else {}
        return {**own, **self.fills}

    @property
    def names(self) -> frozenset[str]:
        """What the templates name, each up to its first dot."""
        return frozenset[str]().union(*map(named_in, (*self.places.values(), self.if_match)))

    def written(self, key: str) -> str:
        """Return a key as the service is sent it."""
        return WRITTEN[self.key_as][0](key)

    def stored(self, key: str) -> str:
        """Return the key that was sent as `key`; the reverse of `written`."""
        return WRITTEN[self.key_as][1](key)

    def headers(self, values: Mapping[str, Json]) -> Mapping[str, str]:
        """Return the headers of a send. Raises `ProposalError` for what no header can carry."""
        made: dict[str, str] = {}
        if self.keyed and self.key_in == "header":
            made[self.keyed] = cast("str", values["key"])
        if self.if_match:
            made["if-match"] = self.tag(values)
        return made

    def tag(self, values: Mapping[str, Json]) -> str:
        """Return the version that a send rests on; `ProposalError` unless it is exactly one."""
        value = filled({"it": self.if_match}, arguments=values, result=None)["it"]
        whole = isinstance(value, str | int) and not isinstance(value, bool)
        if not whole or not _TAG.fullmatch(str(value)):
            raise ProposalError(f"a version that was read goes into If-Match, not {value!r}")
        return str(value)

    def body(self, beside: Mapping[str, Json], values: Mapping[str, Json]) -> Mapping[str, Json]:
        """Return the arguments `beside` the URL with what is filled in."""
        made = beside
        for place, value in filled(self.places, arguments=values, result=None).items():
            made = placed(made, place, value)
        return made

    def asking(self, key: str) -> Mapping[str, Json]:
        """Return the body of a question that is put by POST."""
        if self.keyed and self.key_in == "body":
            return placed({}, self.keyed, self.written(key))
        return {}

    def fits(self, beside: Mapping[str, Json], stored: Mapping[str, Json]) -> None:
        """Raise `ProposalError` for arguments that leave no room for what is filled in."""
        for place in self.places:
            placed(beside, place, None)
        if self.if_match and named_in(self.if_match) <= stored.keys():
            self.tag(stored)

    def check(self, *, allowed: frozenset[str], has_body: bool, tool: str) -> None:
        """Raise `ContractError` for templates that name what is not there, or have no place."""
        if self.places and not has_body:
            raise ContractError(f"contract of {tool}: a request without a body has no places in it")
        if self.key_as not in WRITTEN or self.key_in not in KEY_IN:
            raise ContractError(
                f"contract of {tool}: key_in is header, body or path, key_as is text or hex"
            )
        wrong = sorted(self.names - allowed)
        if wrong:
            raise ContractError(
                f"contract of {tool}: fills or if_match name {{{wrong[0]}}}; they may name"
                f" {', '.join(sorted(allowed)) or 'nothing'}"
            )


def placed(body: Mapping[str, Json], place: str, value: Json) -> Mapping[str, Json]:
    """Return `body` with a value at a dotted place; it itself stays as it is.

    Raises `ProposalError` where the caller has put something there.
    """
    name, _, rest = place.partition(".")
    if not rest:
        if name in body:
            raise ProposalError(f"{name} is filled by the runtime; leave it out")
        return {**body, name: value}
    inner = body.get(name, {})
    if not isinstance(inner, Mapping):
        raise ProposalError(f"{name} must be an object, for {rest} is filled in there")
    return {**body, name: placed(inner, rest, value)}


def named_in(template: str) -> frozenset[str]:
    """Return what a template names, each up to its first dot. Raises `ContractError` for none."""
    try:
        parsed = list(Formatter().parse(template))
    except ValueError as error:
        raise ContractError(f"{template!r} is no template: {error}") from None
    if any(form or conversion for _, _, form, conversion in parsed):
        raise ContractError(f"{template!r}: write {{name}}, and nothing else in the braces")
    return frozenset(name.partition(".")[0] for _, name, _, _ in parsed if name is not None)
