"""Says which addresses a URL that somebody else chose may reach: public ones, and only over TLS.

A webhook goes where its receiver wants it, so that without this whoever may name a receiver could
have us call our own network: a database, a neighbour, the cloud's metadata (SSRF). Three rules:

1. The URL is judged as the client's own parser reads it, never as it looks: `127。0。0。1` is an
   address after IDNA, and `https://shop.example@127.0.0.1` has no shop in it.
2. A name is resolved, and *every* address of it must be allowed. One that is not refuses them all.
3. Whoever connects, connects to an address that was checked. A name that is resolved a second time
   may say something else by then (DNS rebinding); `landed.tools.egress` does it right.

Addresses are refused by a table of the special networks (the IANA registries of RFC 6890), since
`ipaddress.is_global` has changed its mind between patch releases of Python. What is written as an
address in another form (octal, decimal, `127.1`) is refused, not read.
"""

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from landed.core.errors import NotSentError
from landed.tools.classify import bounded, described
from landed.tools.threads import Threads

URL_MAX_CHARS = 2048
"""Characters of a URL that somebody else chose."""

ADDRESSES_MAX = 16
"""Addresses of one name; a name with more is refused."""

RESOLVE_MAX_S = 5.0
"""Seconds that the system may take to resolve a name."""

RESOLVERS_MAX = 8
"""Names that are being resolved at once."""

PORT_LAST = 65_535

PORTS = frozenset({443, 8443})
"""Ports that may be reached unless said otherwise."""

# What is no public unicast address, with the reason that is given.
V4_REFUSED = {
    "0.0.0.0/8": "this host",
    "10.0.0.0/8": "private",
    "100.64.0.0/10": "shared by a carrier (CGNAT)",
    "127.0.0.0/8": "loopback",
    "168.63.129.16/32": "a cloud's metadata",
    "169.254.0.0/16": "link-local, or a cloud's metadata",
    "172.16.0.0/12": "private",
    "192.0.0.0/24": "for protocols",
    "192.0.2.0/24": "for documentation",
    "192.31.196.0/24": "for protocols",
    "192.52.193.0/24": "for protocols",
    "192.88.99.0/24": "a 6to4 relay",
    "192.168.0.0/16": "private",
    "192.175.48.0/24": "for protocols",
    "198.18.0.0/15": "for benchmarks",
    "198.51.100.0/24": "for documentation",
    "203.0.113.0/24": "for documentation",
    "224.0.0.0/4": "multicast",
    "240.0.0.0/4": "reserved, or broadcast",
}

# Of IPv6 only 2000::/3 is public unicast at all; these are the exceptions in it.
V6_PUBLIC = ip_network("2000::/3")
V6_REFUSED = {
    "2001::/23": "for protocols, or Teredo",
    "2001:db8::/32": "for documentation",
    "2002::/16": "an IPv4 address inside (6to4)",
    "2620:4f:8000::/48": "for protocols",
    "3fff::/20": "for documentation",
}

# Where IPv4 is reached through a translator (RFC 6052) every name of IPv4 looks like this, so that
# the address inside is judged.
NAT64 = ip_network("64:ff9b::/96")

# Names that mean something inside one network only (RFC 6761, 6762, 8375; ICANN on `internal`).
INNER_NAMES = frozenset({"localhost", "local", "internal", "home.arpa", "onion", "invalid"})

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns the addresses of a host and port; raises, or returns none, where it knows none."""

_V4_REFUSED = tuple((ip_network(each), why) for each, why in V4_REFUSED.items())
_V6_REFUSED = tuple((ip_network(each), why) for each, why in V6_REFUSED.items())
_LOOPBACK = (ip_network("127.0.0.0/8"), ip_network("::1/128"))

_USER = re.compile(r"[^/?#]*//[^/?#]*@")
_LABEL = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")  # A last label like this makes readers see an address.
_NAME_MAX_CHARS = 253


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A URL that may be reached, at these addresses and no others; try them in their order.

    `host` is the name, or the address, in ASCII: what the Host header and TLS say.
    """

    url: str
    host: str
    port: int
    addresses: tuple[str, ...]

    @property
    def address(self) -> str:
        """The first of the addresses."""
        return self.addresses[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Forbidden:
    """A URL that may not be reached. Nothing was sent; another try would be no other."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unresolved:
    """A name that nobody could say the addresses of, now. Nothing was sent."""

    reason: str


async def check(
    url: str,
    resolver: Resolver,
    *,
    ports: frozenset[int] = PORTS,
    loopback: bool = False,
) -> Checked | Forbidden | Unresolved:
    """Resolve the host of a URL and say whether it may be reached. Never raises for a URL.

    `loopback` is for tests: it allows loopback addresses too, at any port, and plain `http` there.
    """
    there = target(url, ports=ports, loopback=loopback)
    if isinstance(there, Forbidden):
        return there
    plain, host, port = there
    try:
        found = [host] if _address(host) else list(await resolver(host, port))
    except Exception as error:
        return Unresolved(reason=bounded(f"{host} was not resolved: {described(error)}"))
    if not found:
        return Unresolved(reason=f"{host} has no address")
    if len(found) > ADDRESSES_MAX:
        return Forbidden(reason=f"{host} has more than {ADDRESSES_MAX} addresses")
    for each in found:
        if why := refusal(each, loopback=loopback, only_loopback=plain):
            return Forbidden(reason=bounded(f"{host} is at {each}: {why}"))
    return Checked(url=url, host=host, port=port, addresses=tuple(dict.fromkeys(found)))


def target(
    url: str, *, ports: frozenset[int] = PORTS, loopback: bool = False
) -> tuple[bool, str, int] | Forbidden:
    """Return whether a URL is plain HTTP, its host and its port, as httpx2 reads them.

    Looks no name up: a `Forbidden` here is one that a form can show at once.
    """
    import httpx2

    if why := _wrong_form(url):
        return Forbidden(reason=f"the URL {why}")
    try:
        read = httpx2.URL(url)
    except (httpx2.InvalidURL, ValueError) as error:
        return Forbidden(reason=f"the URL cannot be read: {described(error)}")
    plain, host = read.scheme == "http", read.raw_host.decode("ascii")
    if read.scheme != "https" and not (loopback and plain):
        return Forbidden(reason="the URL is not https")
    port = read.port if read.port is not None else (80 if plain else 443)
    if port not in ports and not (loopback and 0 < port <= PORT_LAST):
        return Forbidden(reason=f"port {port} may not be reached")
    if why := _no_host(host, plain=plain, loopback=loopback):
        return Forbidden(reason=bounded(f"{host or 'the URL'} {why}"))
    return plain, host, port


def refusal(address: str, *, loopback: bool = False, only_loopback: bool = False) -> str:
    """Return why an address may not be reached, "" where it may."""
    read = _address(address)
    if read is None:
        return "not an address"
    is_loopback = any(read in network for network in _LOOPBACK)
    if only_loopback and not is_loopback:
        return "reached over plain http"
    if loopback and is_loopback:
        return ""
    if isinstance(read, IPv4Address):
        return _of_table(read, _V4_REFUSED)
    if read in NAT64:
        inside = IPv4Address(int(read) & 0xFFFF_FFFF)
        return _of_table(inside, _V4_REFUSED)
    if read.ipv4_mapped is not None:
        return "an IPv4 address inside (mapped)"
    if read not in V6_PUBLIC:
        return "not public"
    return _of_table(read, _V6_REFUSED)


_THREADS = Threads("resolver", at_most=RESOLVERS_MAX)


async def system_resolver(host: str, port: int) -> Sequence[str]:
    """Ask the operating system, in a thread of our own and within RESOLVE_MAX_S.

    Raises what `socket.getaddrinfo` raises, or `TimeoutError`.
    """

    def ask() -> list[str]:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return [str(each[4][0]) for each in found]

    try:
        async with asyncio.timeout(RESOLVE_MAX_S):
            return await _THREADS.run(ask, wait_s=RESOLVE_MAX_S)
    except NotSentError as error:
        raise TimeoutError(str(error)) from error


def _wrong_form(url: str) -> str:
    """Return what no receiver's URL has, and readers disagree about; "" where it is fine."""
    if len(url) > URL_MAX_CHARS:
        return f"has more than {URL_MAX_CHARS} characters"
    if any(character <= " " or character in "\\\x7f" for character in url):
        return "has a space, a control character or a backslash in it"
    if _USER.match(url):
        return "has a user or a password in it"
    return "has a fragment" if "#" in url else ""


def _no_host(host: str, *, plain: bool, loopback: bool) -> str:
    """Return why this is no public name and no public address, "" where it is one."""
    if not host:
        return "has no host"
    if _address(host) is not None:
        why = refusal(host, loopback=loopback, only_loopback=plain)
        return f"may not be reached: {why}" if why else ""
    labels = host.split(".")
    if len(host) > _NAME_MAX_CHARS or not all(_LABEL.fullmatch(label) for label in labels):
        return "is no name of a host"
    if _NUMBER.fullmatch(labels[-1]):
        return "is an address in another form"
    if loopback and host == "localhost":
        return ""
    if len(labels) == 1 or not INNER_NAMES.isdisjoint((labels[-1], ".".join(labels[-2:]))):
        return "is no public name"
    return ""


def _address(text: str) -> Address | None:
    if "%" in text:  # A zone: link-local, whatever it says.
        return None
    try:
        return ip_address(text)
    except ValueError:
        return None


def _of_table(address: Address, refused: Sequence[tuple[Network, str]]) -> str:
    return next((why for network, why in refused if address in network), "")
