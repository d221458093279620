"""Carries requests to URLs that somebody else chose: to the addresses that were checked, signed.

Two httpx2 transports, one around the other. They serve `Webhook`, and any `HttpTool`:

    transport = SignedTransport(CheckedTransport(), secrets)
    HttpTool(name="notify", effect="irreversible", url=…, keyed="webhook-id", transport=transport)

Neither follows a redirect or tries anything twice. Needs the extra `landed[http]`.
"""

import ssl
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

import httpx2

from landed.tools.addresses import (
    PORTS,
    Checked,
    Forbidden,
    Resolver,
    Unresolved,
    check,
    system_resolver,
)
from landed.tools.signing import ID, secrets_of, sign

CONNECTS_MAX = 4
"""Addresses of one name that are tried in turn, while none of them answers the connection."""


class ForbiddenAddressError(httpx2.ConnectError):
    """The URL may not be reached: nothing has left. As a `ConnectError` it is *not sent*."""


class CheckedTransport(httpx2.AsyncBaseTransport):
    """Connects to an address that was checked, in the name of the host.

    resolver    who says the addresses; the operating system unless given
    ports       the ports that may be reached
    loopback    for tests: loopback addresses too, also over plain http
    proxy       an egress proxy (`http://…`, `socks5://…`) that is asked for the checked address; it
                may refuse more. Proxies of the environment are not used
    trusts      whom TLS trusts; httpx2's own unless given

    The name is resolved for each request, all its addresses are checked, and the connection goes to
    one of them; the Host header, SNI and the certificate are the name's. A connection serves one
    request, since a kept one could answer for another name at the same address.

    Raises `ForbiddenAddressError` for what may not be reached and `httpx2.ConnectError` for a name
    that was not resolved. Close it with `aclose`.
    """

    def __init__(
        self,
        *,
        resolver: Resolver = system_resolver,
        ports: frozenset[int] = PORTS,
        loopback: bool = False,
        proxy: str = "",
        trusts: ssl.SSLContext | None = None,
    ) -> None:
        self._resolver = resolver
        self._ports = ports
        self._loopback = loopback
        self._inner = httpx2.AsyncHTTPTransport(
            verify=True if trusts is None else trusts,
            proxy=proxy or None,
            limits=httpx2.Limits(max_keepalive_connections=0),
            retries=0,
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Check the URL, and send the request to where it was checked to lead."""
        found = await check(
            str(request.url), self._resolver, ports=self._ports, loopback=self._loopback
        )
        match found:
            case Checked():
                return await self._sent(request, found)
            case Forbidden(reason=why):
                raise ForbiddenAddressError(why, request=request)
            case Unresolved(reason=why):
                raise httpx2.ConnectError(why, request=request)

    async def _sent(self, request: httpx2.Request, there: Checked) -> httpx2.Response:
        *others, last = there.addresses[:CONNECTS_MAX]
        for address in others:
            # Where no connection came about nothing has left: the next is not a second try.
            with suppress(httpx2.ConnectError, httpx2.ConnectTimeout):
                return await self._inner.handle_async_request(_pinned(request, address, there))
        return await self._inner.handle_async_request(_pinned(request, last, there))

    async def aclose(self) -> None:
        """Close what is open."""
        await self._inner.aclose()


def _pinned(request: httpx2.Request, address: str, there: Checked) -> httpx2.Request:
    """Return the request as it goes to one address; the headers, so the Host, are the name's."""
    return httpx2.Request(
        request.method,
        request.url.copy_with(host=address),
        headers=request.headers,
        stream=request.stream,
        extensions={**request.extensions, "sni_hostname": there.host},
    )


class SignedTransport(httpx2.AsyncBaseTransport):
    """Signs each request that has a `webhook-id`, for the moment at which it leaves.

    A request without one (a question of a tool) goes on as it is.
    """

    def __init__(
        self,
        inner: httpx2.AsyncBaseTransport,
        secrets: str | Sequence[str],
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._inner = inner
        self._secrets = secrets_of(secrets)
        self._now = now

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Add the three headers over what the request has for a body, and pass it on."""
        webhook_id = request.headers.get(ID)
        if webhook_id is not None:
            body = await request.aread()
            headers = sign(
                self._secrets, webhook_id=webhook_id, timestamp=int(self._now()), body=body
            )
            request.headers.update(headers)
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        """Close the transport within."""
        await self._inner.aclose()
