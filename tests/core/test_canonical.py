"""What comes in through the border is unambiguous, and what it means decides its bytes."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from types import MappingProxyType
from typing import NamedTuple, cast
from uuid import UUID

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from landed.core.canonical import (
    MAX_BYTES,
    MAX_DEPTH,
    RECORD_DEPTH,
    Json,
    canonical,
    checked,
    parse,
)
from landed.core.errors import ProposalError

WHOLE_MAX = 2**53 - 1

whole_numbers = st.integers(min_value=-WHOLE_MAX, max_value=WHOLE_MAX)
real_numbers = st.floats(allow_nan=False, allow_infinity=False).filter(
    lambda number: abs(number) <= WHOLE_MAX or abs(number) >= 1e21
)
scalars = st.none() | st.booleans() | whole_numbers | real_numbers | st.text()


def nested(
    leaves: st.SearchStrategy[Json], *, keys: st.SearchStrategy[str]
) -> st.SearchStrategy[Json]:
    def grow(inner: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
        return st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4)

    return st.recursive(leaves, grow, max_leaves=12)


values = nested(scalars, keys=st.text(max_size=4))

# Few leaves that are easily taken for one another, so that two random values often are near.
look_alikes: st.SearchStrategy[Json] = nested(
    st.sampled_from(
        [
            None,
            True,
            False,
            0,
            1,
            1.0,
            -0.0,
            1.5,
            "",
            "0",
            "1",
            "1.0",
            "true",
            "null",
            "é",
            "e\u0301",
        ]
    ),
    keys=st.sampled_from(["a", "b", "1", "é", "e\u0301", "\ufb33", "\U0001f600"]),
)


def exact(value: Json) -> str:
    """Tell values apart by type as well, which `==` does not: 1, 1.0 and True are equal there."""
    return json.dumps(value, sort_keys=True)


def refusal(value: object) -> str:
    with pytest.raises(ProposalError) as refused:
        checked(value)
    return str(refused.value)


def refusal_of_text(text: str | bytes) -> str:
    with pytest.raises(ProposalError) as refused:
        parse(text)
    return str(refused.value)


def nest(levels: int) -> Json:
    value: Json = 1
    for _ in range(levels):
        value = [value]
    return value


# The one form


@given(values)
def test_the_form_is_that_of_an_independent_implementation(value: Json) -> None:
    assert canonical(value) == rfc8785.dumps(value)


@given(values)
def test_the_slow_writer_agrees_with_the_fast_one(value: Json) -> None:
    # A read-only mapping is nothing that the C encoder knows.
    assert canonical(MappingProxyType({"k": value})) == canonical({"k": value})


@given(values)
def test_a_key_beyond_the_basic_plane_changes_no_other_byte(value: Json) -> None:
    assert canonical({"\U0001f600": value}) == rfc8785.dumps({"\U0001f600": value})


@pytest.mark.fault("X72")
@given(values)
def test_what_came_in_survives_the_way_out_and_back_in_the_same_types(value: Json) -> None:
    accepted = checked(value)
    assert exact(parse(canonical(accepted))) == exact(accepted)
    assert canonical(accepted) == canonical(value)


@pytest.mark.fault("X72")
@given(look_alikes, look_alikes)
def test_two_values_share_their_bytes_exactly_when_they_mean_the_same(one: Json, two: Json) -> None:
    same = exact(checked(one)) == exact(checked(two))
    assert (canonical(one) == canonical(two)) is same


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("333333333.33333329", "333333333.3333333"),
        ("1E30", "1e+30"),
        ("4.50", "4.5"),
        ("2e-3", "0.002"),
        ("0.000000000000000000000000001", "1e-27"),
        ("5e-324", "5e-324"),
        ("1.7976931348623157e308", "1.7976931348623157e+308"),
        ("1e21", "1e+21"),
        ("-1e21", "-1e+21"),
        ("9.999999999999997e22", "9.999999999999997e+22"),
        ("0.0001", "0.0001"),
        ("0.00001", "0.00001"),
        ("-0.0000123", "-0.0000123"),
        ("0.000001", "0.000001"),
        ("-1.5e-6", "-0.0000015"),
        ("0.0000001", "1e-7"),
        ("-1.25e-7", "-1.25e-7"),
        ("9007199254740991", "9007199254740991"),
        ("-9007199254740991.0", "-9007199254740991"),
        ("4503599627370495.5", "4503599627370495.5"),
        ("1e15", "1000000000000000"),
        ("-0", "0"),
        ("-0.0", "0"),
        ("0e7", "0"),
        ("1.0", "1"),
        ("1e0", "1"),
        ("10E-1", "1"),
        ("1e2", "100"),
    ],
)
@pytest.mark.fault("X72")
def test_numbers_are_spelled_as_ecmascript_spells_them(text: str, written: str) -> None:
    assert canonical(parse(text)) == written.encode()
    assert canonical(float(text)) == written.encode()


def test_only_what_must_be_escaped_is_escaped() -> None:
    text = "".join(map(chr, range(0x20))) + '"\\/\x7f\u2028€\U0001f600'
    assert (
        canonical(text)
        == (
            r'"\u0000\u0001\u0002\u0003\u0004\u0005\u0006\u0007\b\t\n\u000b\f\r\u000e\u000f'
            r"\u0010\u0011\u0012\u0013\u0014\u0015\u0016\u0017\u0018\u0019\u001a\u001b\u001c\u001d"
            r"\u001e\u001f"
            '\\"\\\\/\x7f\u2028€\U0001f600"'
        ).encode()
    )


@pytest.mark.fault("X72")
def test_keys_are_ordered_by_utf_16_units() -> None:
    # The example of RFC 8785: by code points the smiley would come last.
    keys = ["€", "\r", "\ufb33", "1", "\U0001f600", "\x80", "ö"]
    form = canonical({key: n for n, key in enumerate(keys)})
    assert list(json.loads(form)) == ["\r", "1", "\x80", "ö", "€", "\U0001f600", "\ufb33"]


@pytest.mark.fault("X72")
def test_unicode_is_never_folded() -> None:
    assert canonical("é") != canonical("e\u0301")
    assert canonical("\u212b") != canonical("\u00c5")
    assert parse('{"é": 1, "e\u0301": 2}') == {"é": 1, "e\u0301": 2}


def test_the_form_is_refused_to_a_value_that_has_none() -> None:
    for value in (float("nan"), 2**53, {"a": "\ud800"}, cast(Json, {1: "a"}), cast(Json, {1})):
        with pytest.raises(ProposalError):
            canonical(value)


def test_a_record_may_wrap_what_was_accepted() -> None:
    assert canonical(nest(RECORD_DEPTH)) == b"[" * RECORD_DEPTH + b"1" + b"]" * RECORD_DEPTH
    assert canonical({"arguments": checked(nest(MAX_DEPTH)), "\U0001f600": 1})
    with pytest.raises(ProposalError, match=f"deeper than {RECORD_DEPTH} levels"):
        canonical(nest(RECORD_DEPTH + 1))


# The border, for text


@pytest.mark.fault("X72")
@pytest.mark.parametrize(
    ("text", "place", "advice"),
    [
        ('{"a": 1, "a": 1}', "$:", 'the key "a" appears twice: send each key once'),
        ('{"a": {"b": 1, "\\u0062": 2}}', "$.a:", 'the key "b" appears twice'),
        ('[0, {"x y": {"z": 1, "z": 1}}]', '$[1]["x y"]:', "send each key once"),
        ('{"a": [1, 2, NaN]}', "$.a[2]:", "send null"),
        ("Infinity", "$:", "send money as integer minor units"),
        ("[-Infinity]", "$[0]:", "send money as integer minor units"),
        ('{"cents": 9007199254740992}', "$.cents:", "send money as integer minor units"),
        ("-9007199254740992", "$:", "a longer number as text"),
        ("9007199254740993.0", "$:", "a longer number as text"),
        ("1e16", "$:", "a longer number as text"),
        ("-999999999999999900000", "$:", "a longer number as text"),
        ("9.999999999999999e20", "$:", "a longer number as text"),
        ("1000000000000000000000", "$:", "a longer number as text"),
        ("1e400", "$:", "a longer number as text"),
        ("9" * 5000, "$:", "a longer number as text"),
        ('"\\ud800"', "$:", r'"\ud800" holds half of a surrogate pair: send whole characters'),
        ('["\\udc00\\ud800"]', "$[0]:", "send whole characters"),
        ('["a\udfff"]', "$[0]:", "send whole characters"),
        ('["\ud83d\ude00"]', "$[0]:", "send whole characters"),
        ('{"a": {"\\ud83d": 1}}', "$.a:", "send whole characters"),
        ('{"a":1} x', "not one JSON value", "column 9: Extra data): send exactly one"),
        ("", "not one JSON value", "send exactly one"),
        ("{'a': 1}", "not one JSON value", "send exactly one"),
        ("[01]", "not one JSON value", "send exactly one"),
        ('"a\tb"', "not one JSON value", "send exactly one"),
        ("\ufeff1", "byte order mark", "send it without"),
        (b"\xef\xbb\xbf1", "byte order mark", "send it without"),
        (b'["\xff"]', "byte 2 is not UTF-8", "send UTF-8"),
        (b'["\xed\xa0\x80"]', "byte 2 is not UTF-8", "send UTF-8"),
        (b'["\xc0\xaf"]', "byte 2 is not UTF-8", "send UTF-8"),
    ],
)
def test_an_ambiguous_text_is_refused_with_its_place_and_what_to_send(
    text: str | bytes, place: str, advice: str
) -> None:
    words = refusal_of_text(text)
    assert place in words
    assert advice in words
    words.encode()  # What is said can be printed, also about half a surrogate pair.


@pytest.mark.fault("X72")
@given(values)
def test_every_spelling_of_a_value_means_that_value(value: Json) -> None:
    form = canonical(value)
    for text in (
        json.dumps(value),
        json.dumps(value, ensure_ascii=False),
        json.dumps(value, indent=1, sort_keys=True).encode(),
        form,
    ):
        assert canonical(parse(text)) == form


@pytest.mark.fault("X72")
def test_one_number_comes_in_as_one_value_however_it_is_spelled() -> None:
    numbers = cast("list[object]", parse("[1, 1.0, 1e0, 10e-1]"))
    assert [(type(number), number) for number in numbers] == [(int, 1)] * 4
    assert exact(parse("[-0, -0.0, 0e1, true]")) == "[0, 0, 0, true]"


def test_an_escaped_pair_is_one_character() -> None:
    assert parse('"\\ud83d\\ude00"') == "\U0001f600"


def test_depth_is_bounded_for_text() -> None:
    assert parse("[" * MAX_DEPTH + "1" + "]" * MAX_DEPTH) == nest(MAX_DEPTH)
    for levels in (MAX_DEPTH + 1, 10_000, MAX_BYTES // 2):
        words = refusal_of_text("[" * levels + "]" * levels)
        assert f"deeper than {MAX_DEPTH} levels: send it flatter" in words
    assert parse("[[]]", max_depth=2) == [[]]
    with pytest.raises(ProposalError, match="deeper than 1 level"):
        parse('[{"a": 1}]', max_depth=1)


@pytest.mark.parametrize(
    "text",
    [
        '"' + "a" * (MAX_BYTES - 2) + '"',
        '"' + "é" * (MAX_BYTES // 2 - 1) + '"',
        ("1" + " " * (MAX_BYTES - 1)).encode(),
    ],
)
def test_size_is_bounded_for_text_in_bytes(text: str | bytes) -> None:
    assert parse(text)
    longer = text + " " if isinstance(text, str) else text + b" "
    assert f"more than {MAX_BYTES} bytes: send less" in refusal_of_text(longer)


def test_a_short_text_with_a_long_form_is_refused_too() -> None:
    text = "[" + ",".join(["1e15"] * 10) + "]"
    form = canonical(parse(text))
    assert len(form) > len(text)
    assert parse(text, max_bytes=len(form)) == [10**15] * 10
    with pytest.raises(ProposalError, match="send less"):
        parse(text, max_bytes=len(form) - 1)


# The border, for Python values


class Colour(StrEnum):
    RED = "red"


class Size(IntEnum):
    BIG = 3


class Shade(str, Enum):  # noqa: UP042 - the older kind, whose str() is the member's name
    LIGHT = "léger"


class Ratio(float):
    pass


class Pair(NamedTuple):
    left: int
    right: str


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (Colour.RED, "red"),
        (Size.BIG, 3),
        (Shade.LIGHT, "léger"),
        (Ratio(0.5), 0.5),
        (Pair(1, "r"), [1, "r"]),
        ((1, (2,)), [1, [2]]),
        (MappingProxyType({"a": (1,)}), {"a": [1]}),
        ({Colour.RED: Colour.RED}, {"red": "red"}),
        ([True, 1, 1.0], [True, 1, 1]),
        (None, None),
    ],
)
@pytest.mark.fault("X72")
def test_subclasses_and_tuples_become_plain(value: object, plain: Json) -> None:
    accepted = checked(value)
    assert exact(accepted) == exact(plain)
    assert type(accepted) is type(plain)
    assert repr(accepted) == repr(plain)  # An enum member that is left inside shows its name.


def test_what_was_accepted_is_out_of_reach_of_the_caller() -> None:
    lines = [{"sku": "a"}]
    order: dict[str, object] = {"lines": lines, "notes": {"gift": True}}
    accepted = checked(order)
    before = canonical(accepted)
    lines[0]["sku"] = "b"
    lines.append({"sku": "c"})
    cast("dict[str, object]", order["notes"])["gift"] = False
    order["more"] = 1
    assert canonical(accepted) == before == b'{"lines":[{"sku":"a"}],"notes":{"gift":true}}'


@pytest.mark.fault("X72")
@pytest.mark.parametrize(
    ("value", "place", "advice"),
    [
        ({"fee": Decimal("4.50")}, "$.fee:", "JSON has no Decimal: send money as integer minor"),
        ([b"x"], "$[0]:", "send it as base64 text"),
        ({"a": {1, 2}}, "$.a:", "send it as a sorted list"),
        (frozenset[int](), "$:", "send it as a sorted list"),
        (datetime(2026, 1, 2, tzinfo=UTC), "$:", "send it as RFC 3339 text in UTC"),
        (date(2026, 1, 2), "$:", "YYYY-MM-DD"),
        (UUID(int=1), "$:", "send it as text"),
        (object(), "$:", "JSON has no object: send text, a number, a list or an object"),
        ({1: "a"}, "$:", "the keys of an object are text, not int: quote it"),
        ({"a": {None: 1}}, "$.a:", "not NoneType"),
        ({"a": [{True: 1}]}, "$.a[0]:", "not bool"),
        ([float("nan")], "$[0]:", "send null"),
        (float("inf"), "$:", "send money as integer minor units"),
        (2**53, "$:", "send money as integer minor units"),
        (-(2**53), "$:", "send money as integer minor units"),
        (float(2**53), "$:", "send money as integer minor units"),
        (10**400, "$:", "a longer number as text"),
        ("a\ud800", "$:", r'"a\ud800" holds half'),
        ({"\udfff": 1}, "$:", r'"\udfff" holds half'),
    ],
)
def test_a_value_that_json_does_not_have_is_refused_with_advice(
    value: object, place: str, advice: str
) -> None:
    words = refusal(value)
    assert words.startswith(place)
    assert advice in words


def test_a_place_is_named_shortly_and_in_ascii() -> None:
    assert refusal({"ok_1": {"no good": {"é": [0, {"": b""}]}}}).startswith(
        '$.ok_1["no good"]["\\u00e9"][1][""]: JSON has no bytes'
    )
    assert refusal({"k" * 41: b""}).startswith(f'$["{"k" * 40}..."]: ')
    assert refusal({"k" * 40: b""}).startswith(f"${'.' + 'k' * 40}: ")


def test_depth_is_bounded_for_values() -> None:
    assert checked(nest(MAX_DEPTH)) == nest(MAX_DEPTH)
    assert "deeper than 64 levels" in refusal(nest(MAX_DEPTH + 1))
    assert "deeper than 64 levels" in refusal(nest(10_000))
    itself: list[object] = []
    itself.extend([itself] * 10)
    assert "deeper than 64 levels" in refusal(itself)
    assert checked({"a": ()}, max_depth=2) == {"a": []}
    with pytest.raises(ProposalError, match="deeper than 1 level"):
        checked({"a": ()}, max_depth=1)


def test_a_small_value_that_is_huge_when_written_is_refused_at_once() -> None:
    doubled: Json = [1]
    for _ in range(50):
        doubled = [doubled, doubled]
    assert f"more than {MAX_BYTES} bytes" in refusal(doubled)


@given(values)
def test_size_is_bounded_for_values_by_the_bytes_of_their_form(value: Json) -> None:
    size = len(canonical(value))
    assert canonical(checked(value, max_bytes=size)) == canonical(value)
    with pytest.raises(ProposalError, match=f"more than {size - 1} bytes: send less"):
        checked(value, max_bytes=size - 1)


@pytest.mark.parametrize("item", [-1.2345678901234567e-100, "\x00" * 200, {"\x00" * 200: "é"}, []])
def test_no_value_is_so_long_for_its_weight_that_its_size_escapes(item: Json) -> None:
    value = [item] * 1000
    size = len(canonical(value))
    assert checked(value, max_bytes=size)
    with pytest.raises(ProposalError, match="send less"):
        checked(value, max_bytes=size - 1)
