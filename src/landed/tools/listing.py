"""Asks a service that answers with a list: which of many is the one, and what there is since then.

Some services cannot be asked for a key; they can list what they made, each with a field in which
the key was left (`metadata.operation`). The rule of picking is short: none in the whole list is
*absent*, one is *found*, and two are no answer but a contradiction, which a person has to see.
Pages are bounded; a list that was not read to its end says nothing about what is not in it.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from urllib.parse import quote_plus, urljoin, urlsplit

from landed.core.canonical import Json, canonical
from landed.core.contract import filled
from landed.core.errors import ProposalError
from landed.core.outcome import (
    Absent,
    Found,
    Listed,
    ListedEffect,
    LookOutcome,
    NoAnswer,
)
from landed.tools.classify import Unanswered, bounded, described
from landed.tools.exchange import Reply
from landed.tools.reading import NotSaidError, Reading, body_of, by_status, position_of
from landed.tools.routes import Missing, at

PAGES_MAX = 10
SHOWN_MAX = 5  # Ids that are named where there are too many.


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Where a service lists what it made, and where each of them says what, as dotted names.

    url         `[METHOD ]https://…`, as of `HttpTool`; of `list_effects` it may name `since` (whole
                seconds since the epoch) and `since_at` (`2026-01-31T09:30:00Z`)
    items       where the list is in the reply; "" where the reply is the list
    key         where each has the key it was made under; a lookup finds the one whose key it is
    id          where each has its id
    result      what of each is what a reply to the send would have said; "" for all of it
    says        a text about each for people, its fields in braces
    next        where the reply says how to go on: a cursor or an address, `true` for *after the
                last id*, or `header:Link`; "" where a reply is the whole list
    next_as     the parameter of the query that carries the cursor; "" where next is an address
    pages_max   how many pages are read
    """

    url: str
    items: str = ""
    key: str = ""
    id: str = "id"
    result: str = ""
    says: str = ""
    next: str = ""
    next_as: str = ""
    pages_max: int = PAGES_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """What the pages had; `whole` says that there are no more, `position` that of the oldest."""

    items: tuple[Json, ...] = ()
    position: int | None = None
    whole: bool = False


Get = Callable[[str], Awaitable[Reply | Unanswered]]
"""Gets one page, at a URL."""


async def gathered(
    get: Get, url: str, listing: Listing, reading: Reading
) -> Gathered | LookOutcome:
    """Read the pages of a list, from `url` on; what is no page is the answer instead."""
    items: list[Json] = []
    positions: list[int | None] = []
    page_url: str | None = url
    while page_url is not None and len(positions) < listing.pages_max:
        reply = await get(page_url)
        if not isinstance(reply, Reply):
            return NoAnswer(reason=reply.reason)
        said = by_status(reply, reading)
        if said is not None:
            # Of a later page it says nothing about the earlier ones.
            number = len(positions) + 1
            return said if number == 1 else NoAnswer(reason=bounded(f"page {number}: {said}"))
        try:
            body = body_of(reply)
            page = _items(body, listing)
            positions.append(position_of(reply, body, reading.position, reading))
            page_url = _next(reply, body, page, url, listing)
        except NotSaidError as error:
            return NoAnswer(reason=bounded(f"{reply.status} but {error}: {reply.says}"))
        items += page
    return Gathered(items=tuple(items), position=_oldest(positions), whole=page_url is None)


def picked(found: Gathered, key: str, listing: Listing) -> LookOutcome:
    """Return what the list says of the one effect that was made under `key`."""
    ours = {_id_of(each, listing): each for each in found.items if at(each, listing.key) == key}
    if len(ours) > 1:
        return NoAnswer(reason=bounded(f"{len(ours)} effects under one key: {_named(ours)}"))
    if ours:
        result = at(next(iter(ours.values())), listing.result)
        if isinstance(result, Missing):
            return NoAnswer(reason=f"it is there, but has no {listing.result!r}")
        return Found(result=result, position=found.position)
    if not found.whole:
        more = f"not among the first {listing.pages_max} pages, and there are more"
        return NoAnswer(reason=more)
    return Absent(position=found.position)


def listed(
    found: Gathered, listing: Listing, operation_key: Callable[[str], str]
) -> Listed | NoAnswer:
    """Return what the list holds; `operation_key` makes of a key as it is sent the one stored."""
    if not found.whole:
        return NoAnswer(reason=f"it has more than {listing.pages_max} pages: ask for a later time")
    try:
        return Listed(effects=tuple(_effect(each, listing, operation_key) for each in found.items))
    except ProposalError as error:
        return NoAnswer(reason=described(error))


def _effect(item: Json, listing: Listing, operation_key: Callable[[str], str]) -> ListedEffect:
    id = at(item, listing.id)
    if not isinstance(item, Mapping) or not isinstance(id, str | int) or isinstance(id, bool):
        raise ProposalError(f"one of what it lists has no {listing.id!r}")
    key = at(item, listing.key) if listing.key else None
    says = filled({"says": listing.says}, arguments=item, result=None)["says"]
    return ListedEffect(
        id=str(id),
        key=operation_key(key) if isinstance(key, str) else "",
        result=item,
        says=says if isinstance(says, str) else canonical(says).decode(),
    )


def _items(body: Json, listing: Listing) -> list[Json]:
    items = at(body, listing.items)
    if not isinstance(items, list):
        raise NotSaidError(f"it has no list at {listing.items!r}")
    if not all(isinstance(each, Mapping) for each in items):
        raise NotSaidError("what it lists are no objects")
    return items


def _next(reply: Reply, body: Json, page: list[Json], url: str, listing: Listing) -> str | None:
    """Return where the next page is, None where there is none."""
    cursor = _cursor(reply, body, listing)
    if cursor is True:
        cursor = at(page[-1], listing.id) if page and listing.next_as else None
        if not isinstance(cursor, str | int):
            raise NotSaidError("it has more, and does not say after what")
    if isinstance(cursor, Missing) or cursor in (None, False, ""):
        return None
    if not isinstance(cursor, str | int):
        raise NotSaidError(f"{listing.next!r} is no cursor")
    if listing.next_as:
        parameter = f"{quote_plus(listing.next_as)}={quote_plus(str(cursor))}"
        return f"{url}{'&' if '?' in url else '?'}{parameter}"
    return _beside(url, str(cursor))


def _cursor(reply: Reply, body: Json, listing: Listing) -> "Json | Missing":
    if listing.next.lower() == "header:link":
        link = _NEXT_LINK.search(reply.headers.get("link", ""))
        return link["url"] if link else None
    return at(body, listing.next) if listing.next else None


_NEXT_LINK = re.compile(r'<(?P<url>[^<>]*)>[^<,]*;\s*rel="?next\b')


def _beside(url: str, other: str) -> str:
    """Return an address that a reply names: of the same service, for our headers go with it."""
    there = urljoin(url, other)
    if urlsplit(there)[:2] != urlsplit(url)[:2]:
        raise NotSaidError("its next page is at another service")
    return there


def _oldest(positions: list[int | None]) -> int | None:
    known = [each for each in positions if each is not None]
    return min(known) if len(known) == len(positions) and known else None


def _id_of(item: Json, listing: Listing) -> str:
    """Return what tells one from another: one that stands on two pages is one."""
    id = at(item, listing.id)
    return canonical(item if isinstance(id, Missing) else id).decode()


def _named(ours: Mapping[str, Json]) -> str:
    return ", ".join(list(ours)[:SHOWN_MAX])
