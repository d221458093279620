"""What a send carries beside its URL: keys at their places, versions, and nothing of a model's."""

from collections.abc import Mapping
from typing import Any

import httpx2
import pytest

from landed.core.canonical import Json, parse
from landed.core.errors import ContractError, ProposalError
from landed.core.outcome import (
    Acknowledged,
    AnswerLost,
    NoAnswer,
    NotSent,
    Prepared,
    Refused,
)
from landed.tools.http import HttpTool
from landed.tools.reading import Reading
from landed.tools.shaping import Shape
from tests.tools.calls import call_of, run
from tests.tools.test_http import Far, far_json

FAR = "http://far.test"
OCTAL: Any = "octal"


def tool_of(far: Far, **more: Any) -> HttpTool:
    given: dict[str, Any] = {
        "name": "change",
        "effect": "reversible",
        "url": f"PUT {FAR}/things/{{id}}",
        "arguments": {"id": str, "text": str, "more": (dict[str, str], {})},
        "transport": far.transport,
    }
    return HttpTool(**(given | more))


ARGUMENTS: Mapping[str, Json] = {"id": "t1", "text": "x", "more": {}}
CALL = call_of(ARGUMENTS, key="op-1")


def body_of(far: Far) -> Json:
    return parse(far.last.content)


# The key.


@pytest.mark.parametrize(
    ("keyed", "shape", "body"),
    [
        ("ref", Shape(key_in="body"), {"text": "x", "more": {}, "ref": "op-1"}),
        ("a.b.c", Shape(key_in="body"), {"text": "x", "more": {}, "a": {"b": {"c": "op-1"}}}),
        ("more.ref", Shape(key_in="body"), {"text": "x", "more": {"ref": "op-1"}}),
        ("K", Shape(fills={"ref": "x-{key}"}), {"text": "x", "more": {}, "ref": "x-op-1"}),
        ("K", Shape(fills={"in": "{text}"}), {"more": {}, "in": "x"}),
        ("ref", Shape(key_in="body", key_as="hex"), {"text": "x", "more": {}, "ref": "6f702d31"}),
    ],
)
def test_the_key_and_what_is_filled_in_stand_at_their_places(
    keyed: str, shape: Shape, body: Json
) -> None:
    far = far_json(200, {})
    tool = tool_of(far, keyed=keyed, shape=shape)
    assert isinstance(run(tool.send(CALL)), Acknowledged)
    assert body_of(far) == body
    assert far.last.headers.get(keyed) == ("op-1" if keyed == "K" else None)
    assert CALL.arguments == ARGUMENTS


def test_a_key_in_the_path_is_in_no_header() -> None:
    far = far_json(200, {})
    tool = tool_of(far, url=f"PUT {FAR}/things/{{key}}", keyed="thing", shape=Shape(key_in="path"))
    run(tool.send(CALL))
    assert far.last.url.path == "/things/op-1"
    assert "thing" not in far.last.headers


@pytest.mark.req("S4-04")
@pytest.mark.parametrize(
    ("shape", "arguments", "says"),
    [
        (Shape(key_in="body"), {"ref": "mine"}, "filled by the runtime"),
        (Shape(fills={"more.ref": "{key}"}), {"more": {"ref": "mine"}}, "filled by the runtime"),
        (Shape(fills={"text.ref": "{key}"}), {}, "text must be an object"),
    ],
)
def test_a_key_that_the_caller_makes_up_is_refused(
    shape: Shape, arguments: dict[str, Json], says: str
) -> None:
    tool = tool_of(far_json(200, {}), keyed="ref", shape=shape)
    with pytest.raises(ProposalError, match=says):
        tool.check({**ARGUMENTS, **arguments})
    stored = call_of({**ARGUMENTS, **arguments})
    assert isinstance(run(tool.send(stored)), NotSent)


def test_questions_by_post_carry_the_key_where_sends_do() -> None:
    far = far_json(200, {"found": False})
    tool = tool_of(far, keyed="in.ref", shape=Shape(key_in="body"), close=f"{FAR}/cancel")
    run(tool.close(CALL))
    assert (far.last.method, body_of(far)) == ("POST", {"in": {"ref": "op-1"}})


# Versions.


@pytest.mark.req("S4-28")
@pytest.mark.parametrize(
    ("template", "value", "header"),
    [
        ("{text}", '"v1"', '"v1"'),
        ("{text}", 'W/"v1"', 'W/"v1"'),
        ('"{text}"', "7", '"7"'),
        ("{text}", "abc=", "abc="),
    ],
)
def test_an_argument_may_be_the_version_and_is_then_in_no_body(
    template: str, value: str, header: str
) -> None:
    far = far_json(200, {})
    tool = tool_of(far, shape=Shape(if_match=template))
    call = call_of(tool.check({**ARGUMENTS, "text": value}))
    run(tool.send(call))
    assert far.last.headers["if-match"] == header
    assert body_of(far) == {"more": {}}


@pytest.mark.req("S4-28")
@pytest.mark.parametrize("value", ["*", "", '"a", "b"', 'a"b', "a\r\nX: 1", '"a\x00"', "ü"])
def test_what_is_not_one_version_is_refused_for_it_may_match_anything(value: str) -> None:
    far = far_json(200, {})
    tool = tool_of(far, shape=Shape(if_match="{text}"))
    with pytest.raises(ProposalError, match="version"):
        tool.check({**ARGUMENTS, "text": value})
    assert isinstance(run(tool.send(call_of({**ARGUMENTS, "text": value}))), NotSent)
    assert far.requests == []


def prepared(far: Far, **more: Any) -> Prepared | NoAnswer:
    given: dict[str, Any] = {"prepare": f"{FAR}/things/{{id}}", **more}
    return run(tool_of(far, **given).prepare(CALL))


@pytest.mark.req("S4-28")
@pytest.mark.parametrize(
    ("keeps", "value"),
    [
        ({"etag": "header:ETag"}, {"etag": '"v1"'}),
        ({"v": "meta.version"}, {"v": 0}),
        ({"v": "meta.version", "t": "header:etag"}, {"v": 0, "t": '"v1"'}),
    ],
)
def test_what_a_send_rests_on_is_read_and_kept(keeps: dict[str, str], value: Json) -> None:
    far = far_json(200, {"meta": {"version": 0}}, etag='"v1"')
    assert prepared(far, reading=Reading(keeps=keeps)) == Prepared(value=value)
    assert (far.last.method, far.last.url.path) == ("GET", "/things/t1")


@pytest.mark.parametrize(
    ("status", "body", "headers", "keeps"),
    [
        (404, {}, {"etag": '"v1"'}, {"etag": "header:ETag"}),
        (200, {}, {}, {"etag": "header:ETag"}),
        (200, {}, {"etag": ""}, {"etag": "header:ETag"}),
        (200, {}, {}, {"v": "version"}),
        (200, {"version": None}, {}, {"v": "version"}),
        (200, "no object", {}, {"v": "version"}),
    ],
)
def test_without_all_of_it_nothing_is_sent(
    status: int, body: Json, headers: dict[str, str], keeps: dict[str, str]
) -> None:
    far = far_json(status, body, **headers)
    assert isinstance(prepared(far, reading=Reading(keeps=keeps)), NoAnswer)


def test_a_send_without_what_it_rests_on_does_not_leave() -> None:
    far = far_json(200, {})
    tool = tool_of(far, prepare=f"{FAR}/x", shape=Shape(if_match="{prepared.etag}"))
    assert isinstance(run(tool.send(CALL)), NotSent)
    assert isinstance(run(tool_of(far).prepare(CALL)), NoAnswer)
    assert far.requests == []


def test_a_version_may_stand_in_the_body_and_in_a_url() -> None:
    far = far_json(409, {"message": "VERSION_MISMATCH"})
    tool = tool_of(
        far,
        url=f"PUT {FAR}/things/{{id}}?was={{prepared.v}}",
        prepare=f"{FAR}/things/{{id}}",
        shape=Shape(fills={"object.version": "{prepared.v}"}),
        refusals=(409,),
    )
    outcome = run(tool.send(call_of(ARGUMENTS, prepared={"v": 3})))
    assert far.last.url.query == b"was=3"
    assert body_of(far) == {"text": "x", "more": {}, "object": {"version": 3}}
    assert outcome == Refused(
        reason='409 it has changed since it was {"v":3}: VERSION_MISMATCH',
    )


def test_a_409_that_the_contract_does_not_list_leaves_doubt() -> None:
    tool = tool_of(far_json(409, {"message": "busy"}), shape=Shape(if_match="{text}"))
    assert run(tool.send(CALL)) == AnswerLost(reason="409 busy")


def test_a_412_to_what_rests_on_nothing_is_refused_in_the_services_words() -> None:
    assert run(tool_of(far_json(412, {"message": "no"})).send(CALL)) == Refused(reason="412 no")


@pytest.mark.parametrize("value", ['"41"', 'W/"41"', "41"])
def test_an_etag_that_counts_is_a_position(value: str) -> None:
    tool = tool_of(far_json(200, {}, etag=value), reading=Reading(position_header="ETag"))
    assert run(tool.send(CALL)) == Acknowledged(result={}, position=41)


def test_what_a_yes_made_may_be_a_part_of_it() -> None:
    reading = Reading(yes_result="thing")
    made = tool_of(far_json(200, {"thing": {"id": "t1"}}), reading=reading)
    assert run(made.send(CALL)) == Acknowledged(result={"id": "t1"})
    assert isinstance(run(tool_of(far_json(200, {}), reading=reading).send(CALL)), AnswerLost)
    empty = tool_of(Far(httpx2.Response(204)), reading=reading)
    assert run(empty.send(CALL)) == Acknowledged(result=None)


# Not now.


@pytest.mark.fault("X66")
@pytest.mark.parametrize(
    ("header", "wait_s"),
    [
        ({}, 1.0),
        ({"retry-after": "0"}, 1.0),
        ({"retry-after": "30"}, 30.0),
        ({"retry-after": "soon"}, 1.0),
        ({"retry-after": "9" * 12}, 86_400.0),
        ({"retry-after": "Tue, 14 Nov 2023 22:14:20 GMT"}, 59.5),
    ],
)
def test_a_429_is_not_now_for_as_long_as_it_says(header: dict[str, str], wait_s: float) -> None:
    outcome = run(tool_of(far_json(429, {"message": "slow"}, **header)).send(CALL))
    assert outcome == NotSent(reason=f"429, asked to wait {wait_s:g} s: slow", wait_s=wait_s)


def test_a_contract_may_say_that_a_429_is_final() -> None:
    tool = tool_of(far_json(429, {"message": "quota used up"}), refusals=(429,))
    assert run(tool.send(CALL)) == Refused(reason="429 quota used up")


@pytest.mark.fault("X60")
def test_a_503_leaves_doubt_whatever_it_asks_for() -> None:
    tool = tool_of(far_json(503, {}, **{"retry-after": "3"}))
    assert isinstance(run(tool.send(CALL)), AnswerLost)


# What is refused when it is registered.


@pytest.mark.parametrize(
    ("promises", "says"),
    [
        ({"shape": Shape(fills={"a": "{nobody}"})}, "name {nobody}"),
        ({"shape": Shape(fills={"a": "{key}"})}, "name {key}"),
        ({"shape": Shape(if_match="{prepared.etag}")}, "name {prepared}"),
        ({"shape": Shape(if_match="{text")}, "is no template"),
        ({"shape": Shape(fills={"a": "{text!r}"})}, "nothing else in the braces"),
        ({"shape": Shape(fills={"text": "y"})}, "text is filled by the runtime"),
        ({"keyed": "text", "shape": Shape(key_in="body")}, "text is filled by the runtime"),
        ({"keyed": "k", "shape": Shape(key_in="path")}, "needs {key} in the url"),
        ({"keyed": "k", "shape": Shape(key_as=OCTAL)}, "key_as is text or hex"),
        ({"keyed": "k", "shape": Shape(key_in="soul")}, "key_in is header"),
        (
            {"keyed": "k", "shape": Shape(key_in="body"), "url": f"DELETE {FAR}/{{id}}"},
            "has no places in it",
        ),
        (
            {"prepare": f"{FAR}/x", "arguments": {"prepared": str}, "url": f"{FAR}/{{prepared}}"},
            "{prepared} is not an argument",
        ),
        ({"prepare": f"{FAR}/{{key}}", "keyed": "k"}, "names {key}"),
        ({"prepare": f"{FAR}/x", "effect": "none"}, "promises no effect"),
    ],
)
def test_a_shape_that_does_not_fit_is_refused_at_once(promises: dict[str, Any], says: str) -> None:
    with pytest.raises(ContractError) as raised:
        tool_of(far_json(200, {}), **promises)
    assert says in str(raised.value)
