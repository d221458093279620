"""A lookup in a list: one is found, none is absent, two are no answer; and pages have an end."""

from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from landed.core.canonical import Json
from landed.core.errors import ContractError
from landed.core.outcome import Absent, Found, Listed, ListedEffect, LookOutcome, NoAnswer, NotYet
from landed.tools.http import HttpTool
from landed.tools.listing import Listing
from landed.tools.reading import Reading
from landed.tools.shaping import Shape
from tests.tools.calls import call_of, run

FAR = "http://far.test"
CALL = call_of({"order": "A17"}, key="op-1")
LIST = Listing(
    url=f"{FAR}/refunds?order={{order}}", items="data", key="ref", next="next", next_as="after"
)
OURS: dict[str, Json] = {"id": "R1", "ref": "op-1"}
OTHER: dict[str, Json] = {"id": "R2", "ref": "op-2"}
NO_REF: dict[str, Json] = {"id": "R3"}

AT_7: dict[str, Any] = {"x-position": "7"}
AT_9: dict[str, Any] = {"x-position": "9"}

Pages = Callable[[httpx2.Request], httpx2.Response]


def refunding(pages: Pages | httpx2.Response, listing: Listing = LIST, **more: Any) -> HttpTool:
    def take(request: httpx2.Request) -> httpx2.Response:
        return pages if isinstance(pages, httpx2.Response) else pages(request)

    given: dict[str, Any] = {
        "name": "refund",
        "effect": "irreversible",
        "url": f"{FAR}/refunds",
        "arguments": {"order": str},
        "keyed": "Idempotency-Key",
        "lookup": listing,
        "transport": httpx2.MockTransport(take),
    }
    return HttpTool(**(given | more))


def one_page(body: Json, status: int = 200, **headers: Any) -> httpx2.Response:
    return httpx2.Response(status, json=body, headers=headers)


def looked(pages: Pages | httpx2.Response, listing: Listing = LIST, **more: Any) -> LookOutcome:
    return run(refunding(pages, listing, **more).lookup(CALL))


@pytest.mark.req("S4-08")
@pytest.mark.parametrize(
    ("items", "answer"),
    [
        ([], Absent()),
        ([OTHER, NO_REF], Absent()),
        ([OTHER, OURS], Found(result=OURS)),
        ([OURS, OURS], Found(result=OURS)),
        ([{"id": "R1", "ref": "op-11"}], Absent()),
        ([{"id": "R1", "ref": ["op-1"]}], Absent()),
    ],
)
def test_the_one_with_the_key_is_found_and_none_is_absent(items: Json, answer: object) -> None:
    assert looked(one_page({"data": items})) == answer


@pytest.mark.fault("X63")
def test_two_under_one_key_are_a_contradiction_and_nobody_picks() -> None:
    answer = looked(one_page({"data": [OURS, OTHER, {**OURS, "id": "R9"}]}))
    assert answer == NoAnswer(reason='2 effects under one key: "R1", "R9"')


def test_two_under_one_key_are_seen_also_when_pages_lie_between_them() -> None:
    def pages(request: httpx2.Request) -> httpx2.Response:
        last = "after" in request.url.params
        return one_page({"data": [{**OURS, "id": "R9"}]} if last else {"data": [OURS], "next": "x"})

    assert looked(pages) == NoAnswer(reason='2 effects under one key: "R1", "R9"')


@pytest.mark.fault("X63")
@pytest.mark.parametrize(
    "body",
    [
        {},
        {"data": None},
        {"data": {"id": "R1"}},
        {"data": ["R1"]},
        {"data": [OURS], "next": 1.5},
        {"data": [], "next": True},
        {"data": [NO_REF, {"ref": "op-2"}], "next": True},
        [],
    ],
    ids=str,
)
def test_what_is_no_list_is_no_answer(body: Json) -> None:
    assert isinstance(looked(one_page(body)), NoAnswer)


@pytest.mark.parametrize(
    ("status", "answer"),
    [(404, NoAnswer), (500, NoAnswer), (302, NoAnswer), (202, NotYet), (204, NoAnswer)],
)
def test_a_status_that_is_no_list_says_no_more_than_to_any_question(
    status: int, answer: type
) -> None:
    assert isinstance(looked(one_page({"data": []}, status)), answer)
    absent = looked(one_page({}, 404), reading=Reading(absent_on=(404,)))
    assert absent == Absent()


@pytest.mark.parametrize("first", [[OTHER], []], ids=["some", "empty"])
@pytest.mark.parametrize("status", [404, 202, 500])
def test_a_later_page_that_fails_says_nothing_about_the_earlier_ones(
    status: int, first: Json
) -> None:
    def pages(request: httpx2.Request) -> httpx2.Response:
        if "after" in request.url.params:
            return one_page({}, status)
        return one_page({"data": first, "next": "c1"})

    answer = looked(pages, reading=Reading(absent_on=(404,)))
    assert isinstance(answer, NoAnswer)
    assert answer.reason.startswith("page 2: ")


@pytest.mark.fault("X64")
def test_pages_have_an_end_and_what_was_not_read_is_not_absent() -> None:
    asked: list[str] = []

    def endless(request: httpx2.Request) -> httpx2.Response:
        asked.append(request.url.params.get("after", ""))
        return one_page({"data": [OTHER], "next": f"c{len(asked)}"})

    answer = looked(endless)
    assert answer == NoAnswer(reason="not among the first 10 pages, and there are more")
    assert asked == ["", *(f"c{number}" for number in range(1, 10))]
    listing = refunding(
        endless,
        list_effects=Listing(
            url=f"{FAR}/refunds", items="data", next="next", next_as="after", pages_max=2
        ),
    )
    assert run(listing.list_effects(0.0)) == NoAnswer(
        reason="it has more than 2 pages: ask for a later time"
    )


def test_what_was_found_is_found_though_there_are_more_pages() -> None:
    def endless(request: httpx2.Request) -> httpx2.Response:
        first = "after" not in request.url.params
        return one_page({"data": [OURS if first else OTHER], "next": "on"})

    assert looked(endless) == Found(result=OURS)


@pytest.mark.parametrize(
    ("listing", "first", "second"),
    [
        ({"next": "next", "next_as": "a b"}, {"next": "c/1&x"}, "/refunds?order=A17&a+b=c%2F1%26x"),
        ({"next": "meta.more", "next_as": "after"}, {"meta": {"more": True}}, "…&after=R2"),
        ({"next": "next", "next_as": "page"}, {"next": 2}, "…&page=2"),
        ({"next": "next"}, {"next": "/refunds/2"}, "/refunds/2"),
        ({"next": "next"}, {"next": f"{FAR}/more?x=1"}, "/more?x=1"),
        ({"next": "header:Link"}, {}, "/linked"),
    ],
)
def test_each_way_of_going_on_is_gone(listing: dict[str, Any], first: Any, second: str) -> None:
    asked: list[str] = []

    def pages(request: httpx2.Request) -> httpx2.Response:
        asked.append(request.url.raw_path.decode())
        if len(asked) > 1:
            return one_page({"data": [OURS]})
        link = f'<{FAR}/first>; rel="prev", <{FAR}/linked>; rel="next"'
        return one_page({"data": [OTHER], **first}, link=link)

    base: dict[str, Any] = {"url": f"{FAR}/refunds?order={{order}}", "items": "data", "key": "ref"}
    assert looked(pages, Listing(**base, **listing)) == Found(result=OURS)
    assert asked[1] == second.replace("…", "/refunds?order=A17")
    assert len(asked) == 2


@pytest.mark.fault("X65")
@pytest.mark.parametrize(
    "elsewhere", ["http://evil.test/refunds", "https://far.test/refunds", "//evil.test/x"]
)
def test_a_next_page_at_another_service_gets_none_of_our_headers(elsewhere: str) -> None:
    asked: list[httpx2.Request] = []

    def pages(request: httpx2.Request) -> httpx2.Response:
        asked.append(request)
        return one_page({"data": [OTHER], "next": elsewhere})

    listing = Listing(url=f"{FAR}/refunds", items="data", key="ref", next="next")
    answer = looked(pages, listing, headers={"Authorization": "Bearer of-ana-secret"})
    assert isinstance(answer, NoAnswer)
    assert "another service" in answer.reason
    assert [request.url.host for request in asked] == ["far.test"]


def test_a_list_has_the_position_of_its_oldest_page() -> None:
    def pages(request: httpx2.Request) -> httpx2.Response:
        if "after" in request.url.params:
            return one_page({"data": []}, **AT_7)
        return one_page({"data": [OTHER], "next": "c"}, **AT_9)

    reading = Reading(position_header="X-Position")
    assert looked(pages, reading=reading) == Absent(position=7)
    untold = one_page({"data": [OURS]})
    assert looked(untold, reading=reading) == Found(result=OURS)


def test_what_a_reply_would_have_said_may_be_a_part_of_what_is_listed() -> None:
    wrapped: Json = [{"id": "R1", "of": {"ref": "op-1"}, "refund": OURS}]
    listing = Listing(url=f"{FAR}/refunds", key="of.ref", result="refund")
    assert looked(one_page(wrapped), listing) == Found(result=OURS)
    without = looked(one_page([{"id": "R1", "of": {"ref": "op-1"}}]), listing)
    assert without == NoAnswer(reason="it is there, but has no 'refund'")


def test_a_lookup_that_cannot_be_asked_is_no_answer() -> None:
    refund = refunding(one_page({"data": [OURS]}))
    assert isinstance(run(refund.lookup(call_of({"order": ""}, key="op-1"))), NoAnswer)

    def down(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("refused")

    assert isinstance(looked(down), NoAnswer)


# What the service holds.


def listing_of(body: Json, status: int = 200, **more: Any) -> tuple[Any, list[str]]:
    asked: list[str] = []

    def take(request: httpx2.Request) -> httpx2.Response:
        asked.append(str(request.url))
        return one_page(body, status)

    where = {"url": f"{FAR}/refunds?from={{since_at}}&n={{since}}", "key": "ref", **more}
    tool = refunding(take, list_effects=Listing(**where), shape=Shape(key_as="hex"))
    assert tool.contract.list_effects
    return run(tool.list_effects(1_700_000_000.9)), asked


def test_effects_are_listed_since_then_under_the_keys_that_are_stored() -> None:
    mine: dict[str, Json] = {"id": 7, "ref": b"op-1".hex(), "n": 3}
    by_hand: dict[str, Json] = {"id": "x", "ref": "not hex"}
    listed, asked = listing_of([mine, by_hand, NO_REF])
    assert listed == Listed(
        effects=(
            ListedEffect(id="7", key="op-1", result=mine),
            ListedEffect(id="x", key="not hex", result=by_hand),
            ListedEffect(id="R3", result=NO_REF),
        )
    )
    assert asked == [f"{FAR}/refunds?from=2023-11-14T22%3A13%3A20Z&n=1700000000"]


@pytest.mark.parametrize(
    ("body", "status", "more"),
    [
        ([{"ref": "x"}], 200, {}),
        ([{"id": None}], 200, {}),
        ([{"id": True}], 200, {}),
        ([OURS], 200, {"says": "{amount}"}),
        ({"data": []}, 200, {}),
        ([], 202, {}),
        ([], 500, {}),
    ],
    ids=str,
)
def test_effects_that_are_not_all_told_are_no_list(body: Json, status: int, more: Any) -> None:
    assert isinstance(listing_of(body, status, **more)[0], NoAnswer)


def test_a_text_about_one_may_be_any_field_of_it() -> None:
    listed, _ = listing_of([{"id": "R1", "amount": 5}], says="{amount}")
    assert listed.effects[0].says == "5"


def test_without_a_list_there_is_no_answer() -> None:
    refund = refunding(one_page([]))
    assert not refund.contract.list_effects
    assert isinstance(run(refund.list_effects(0.0)), NoAnswer)


@pytest.mark.parametrize(
    ("promises", "says"),
    [
        ({"lookup": Listing(url=f"{FAR}/refunds")}, "finds its own by the key"),
        ({"lookup": Listing(url=f"{FAR}/x", key="ref", pages_max=0)}, "pages_max"),
        ({"list_effects": Listing(url=f"{FAR}/{{order}}")}, "names {order}"),
        ({"lookup": Listing(url=f"{FAR}/{{since}}", key="ref")}, "names {since}"),
    ],
)
def test_a_list_that_cannot_be_read_is_refused_when_it_is_registered(
    promises: dict[str, Any], says: str
) -> None:
    with pytest.raises(ContractError) as raised:
        refunding(one_page([]), **promises)
    assert says in str(raised.value)
