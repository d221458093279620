"""Where a request goes and where a reply keeps things: URL templates and dotted names."""

from collections.abc import Mapping, Set
from dataclasses import dataclass
from string import Formatter
from urllib.parse import quote, urlsplit

from landed.core.canonical import Json
from landed.core.errors import ContractError, ProposalError


class Missing:
    """What `at` returns where there is nothing; null is something."""


MISSING = Missing()


def at(value: Json, path: str) -> "Json | Missing":
    """Return what stands at a dotted name (`result.id`) in objects; "" is the whole value."""
    found: Json = value
    for name in path.split(".") if path else ():
        if not isinstance(found, Mapping):
            return MISSING
        if name not in found:
            return MISSING
        found = found[name]
    return found


@dataclass(frozen=True, slots=True)
class Route:
    """A method and a URL template; the names in its braces may have dots."""

    method: str
    pieces: tuple[tuple[str, str | None], ...]

    @property
    def parameters(self) -> frozenset[str]:
        """The names in the braces, each up to its first dot."""
        return frozenset(name.partition(".")[0] for _, name in self.pieces if name is not None)

    def url(self, values: Mapping[str, Json]) -> str:
        """Return the URL, each value percent-encoded whole.

        Raises `ProposalError` for a value that is missing or would make another path: only texts
        and whole numbers are taken, and no empty text and no dots alone.
        """
        return "".join(
            text + ("" if name is None else _segment(at(values, name), name=name))
            for text, name in self.pieces
        )

    def fits(self, values: Mapping[str, Json]) -> None:
        """Raise `ProposalError` for a value that the URL cannot carry; others may come later."""
        for _, name in self.pieces:
            if name is not None and name.partition(".")[0] in values:
                _segment(at(values, name), name=name)


def route(spec: str, *, method: str, allowed: Set[str], tool: str) -> Route:
    """Read `[METHOD ]https://host/path/{name}`; `method` is the one where none is said.

    Raises `ContractError` unless it is an absolute http(s) URL that names only what is `allowed`
    (before the first dot).
    """
    said, _, url = spec.rpartition(" ")
    if urlsplit(url).scheme not in ("http", "https"):
        raise ContractError(f"contract of {tool}: {spec!r} is no absolute http(s) URL")
    try:
        parsed = list(Formatter().parse(url))
    except ValueError as error:
        raise ContractError(f"contract of {tool}: {spec!r} is no template: {error}") from None
    for _, name, form, conversion in parsed:
        if name is not None and (name.partition(".")[0] not in allowed or form or conversion):
            raise ContractError(
                f"contract of {tool}: {spec!r} names {{{name}}}; it may name"
                f" {', '.join(sorted(allowed)) or 'nothing'}"
            )
    pieces = tuple((text, name) for text, name, _, _ in parsed)
    return Route(said.strip().upper() or method, pieces)


def _segment(value: "Json | Missing", *, name: str) -> str:
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise ProposalError(f"{name} goes into an address: send text or a whole number")
    text = str(value)
    if not text.strip("."):
        raise ProposalError(f"{name} goes into an address: it cannot be {text!r}")
    return quote(text, safe="")
