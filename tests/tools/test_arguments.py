"""The arguments of a tool: the schema a model sees, what is refused, and what is stored."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, cast

import pytest
from pydantic import BaseModel, BeforeValidator, Field, PlainSerializer, RootModel, SecretStr

from landed.core.canonical import Json, parse
from landed.core.errors import ContractError, ProposalError
from landed.tools.arguments import Arguments, Fields


class Guest(BaseModel):
    name: str
    age: int = 30


def arguments_of(**fields: tuple[object, object]) -> Arguments:
    return Arguments("book", lambda: fields, own={"idempotency_key"})


BOOK = arguments_of(day=(date, ...), people=(int, ...), guest=(Guest | None, None))


def test_the_schema_names_types_and_defaults_and_no_titles() -> None:
    arguments = arguments_of(
        day=(str, ...), people=(Annotated[int, Field(ge=1, description="how many")], 2)
    )
    assert arguments.schema == {
        "type": "object",
        "properties": {
            "day": {"type": "string"},
            "people": {
                "type": "integer",
                "minimum": 1,
                "description": "how many",
                "default": 2,
            },
        },
        "required": ["day"],
        "additionalProperties": False,
    }


def test_what_is_checked_is_json_with_the_defaults_filled_in() -> None:
    stored = BOOK.check({"day": "2031-05-02", "people": "4"})
    assert stored == {"day": "2031-05-02", "people": 4, "guest": None}
    assert BOOK.check(stored) == stored


def test_a_tool_is_given_python_values_made_from_the_stored_ones() -> None:
    stored = BOOK.check({"day": "2031-05-02", "people": 4, "guest": {"name": "Ana"}})
    assert stored["guest"] == {"name": "Ana", "age": 30}
    assert BOOK.typed(stored) == {
        "day": date(2031, 5, 2),
        "people": 4,
        "guest": Guest(name="Ana", age=30),
    }


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"people": 4}, "day: Field required"),
        ({"day": "2031-05-02", "people": "four"}, "people: Input should be a valid integer"),
        ({"day": "2031-05-02", "people": 4, "fee": 1}, "fee: Extra inputs are not permitted"),
        ({"day": "2031-05-02", "people": 4, "guest": {}}, "guest.name: Field required"),
        ({"argument_0": "2031-05-02", "people": 4}, "day: Field required"),
        (["2031-05-02", 4], "arguments: Input should be a valid dictionary"),
    ],
    ids=["missing", "wrong type", "unknown", "nested", "inner name", "no object"],
)
def test_what_does_not_fit_is_a_proposal_error_that_says_where(given: Any, says: str) -> None:
    with pytest.raises(ProposalError) as raised:
        BOOK.check(given)
    assert says in str(raised.value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 2.0**60])
def test_numbers_that_json_cannot_hold_are_refused(value: float) -> None:
    with pytest.raises(ProposalError):
        arguments_of(amount=(float, ...)).check({"amount": value})


def test_a_long_list_of_problems_is_cut() -> None:
    fields: Fields = {f"field_{n}": (int, ...) for n in range(9)}
    with pytest.raises(ProposalError) as raised:
        Arguments("book", lambda: fields).check({})
    assert str(raised.value).endswith("and 4 more")


@pytest.mark.req("S4-04")
def test_a_key_from_the_model_is_refused() -> None:
    with pytest.raises(ProposalError, match="idempotency_key is filled by the runtime"):
        BOOK.check({"day": "2031-05-02", "people": 4, "idempotency_key": "mine"})


@pytest.mark.parametrize("name", ["schema", "copy", "model_config", "_private", "json", "dict"])
def test_a_parameter_may_have_any_name(name: str) -> None:
    arguments = arguments_of(**{name: (str, ...)})
    assert arguments.typed(arguments.check({name: "x"})) == {name: "x"}
    properties: Any = arguments.schema["properties"]
    assert list(properties) == [name]


# Amounts are exact.


class Line(BaseModel):
    price: Decimal = Field(alias="unitPrice", gt=0)
    pieces: int = 1


@dataclass
class Tip:
    amount: Decimal


class Prices(RootModel[dict[int, Decimal]]):
    pass


class Price(RootModel[Decimal]):
    pass


# Where a type may hold an amount ▸ how a value stands there.
HOLDERS: list[tuple[object, Callable[[object], object], str]] = [
    (Decimal, lambda x: x, "amount"),
    (Decimal | None, lambda x: x, "amount"),
    (Annotated[Decimal, Field(ge=0)], lambda x: x, "amount"),
    (list[Decimal], lambda x: ["1", x], "amount.1"),
    (tuple[str, Decimal], lambda x: ["a", x], "amount.1"),
    (set[Decimal], lambda x: [x], "amount.0"),
    (dict[str, Decimal], lambda x: {"tip": x}, "amount.tip"),
    (Line, lambda x: {"unitPrice": x}, "amount.unitPrice"),
    (list[Line] | None, lambda x: [{"unitPrice": x, "pieces": 2}], "amount.0.unitPrice"),
    (Tip, lambda x: {"amount": x}, "amount.amount"),
    (Prices, lambda x: {"3": x}, "amount.3"),
    (Price, lambda x: x, "amount"),
]
KINDS = [str(kind) for kind, _, _ in HOLDERS]


@pytest.mark.fault("X72")
@pytest.mark.parametrize(("kind", "held", "where"), HOLDERS, ids=KINDS)
def test_a_float_is_no_amount_wherever_it_stands(
    kind: object, held: Callable[[object], object], where: str
) -> None:
    with pytest.raises(ProposalError) as raised:
        arguments_of(amount=(kind, ...)).check({"amount": cast("Json", held(12.5))})
    assert str(raised.value) == (
        f"book: {where}: 12.5 is a float, which holds no exact amount; write the amount as text,"
        ' "12.50", or in cents'
    )


@pytest.mark.fault("X72")
@pytest.mark.parametrize(("kind", "held", "where"), HOLDERS, ids=KINDS)
@pytest.mark.parametrize("given", ["12.50", "12.5", "1.25e1", "012.5", "+12.5", " 12.500 "])
def test_an_amount_is_stored_in_one_form_however_it_was_written(
    kind: object, held: Callable[[object], object], where: str, given: str
) -> None:
    arguments = arguments_of(amount=(kind, ...))
    stored = arguments.check({"amount": cast("Json", held(given))})
    assert stored == arguments.check({"amount": cast("Json", held("12.5"))})
    assert '"12.5"' in json.dumps(stored)
    assert arguments.check(stored) == stored


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (0, "0"),
        ("-0.00", "0"),
        (100, "100"),
        (100.0, "100"),
        ("1E+2", "100"),
        ("0.10", "0.1"),
        ("-3.00", "-3"),
        ("0.0000001", "0.0000001"),
        ("9007199254740993.10", "9007199254740993.1"),
    ],
)
def test_an_amount_keeps_its_value_to_the_last_digit(given: Any, kept: str) -> None:
    arguments = arguments_of(amount=(Decimal, ...))
    stored = arguments.check({"amount": given})
    assert stored == {"amount": kept}
    assert arguments.typed(stored)["amount"] == Decimal(str(given))


def test_an_amount_that_is_left_out_is_stored_in_the_same_form() -> None:
    arguments = arguments_of(amount=(Decimal, Decimal("2.50")))
    assert arguments.check({}) == arguments.check({"amount": "2.5"}) == {"amount": "2.5"}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("1E+1000000", "at most 40 digits"),
        ("1E-1000000", "at most 40 digits"),
        ("1" * 41, "at most 40 digits"),
        (2.0**60, "is a float"),
        (True, "amount: "),
        ("NaN", "finite number"),
        ("Infinity", "finite number"),
        ("12,50", "valid decimal"),
    ],
)
def test_what_is_no_amount_is_refused(given: Any, says: str) -> None:
    with pytest.raises(ProposalError, match=says):
        arguments_of(amount=(Decimal, ...)).check({"amount": given})


def test_a_float_stays_a_float_where_no_amount_is_wanted() -> None:
    arguments = arguments_of(share=(float, ...), either=(Decimal | float, ...), rest=(Any, 0.5))
    assert arguments.check({"share": 0.5, "either": 0.5}) == {
        "share": 0.5,
        "either": 0.5,
        "rest": 0.5,
    }


def test_what_a_type_makes_of_something_else_is_left_alone() -> None:
    count = Annotated[
        int, BeforeValidator(lambda given: given if type(given) is int else len(given))
    ]
    arguments = arguments_of(one=(count, ...), two=(count, ...), line=(Line | None, None))
    stored = arguments.check(
        {"one": {"a": 0.5}, "two": [0.5, 0.5], "line": {"unitPrice": 1, "x": 0.5}}
    )
    assert stored == {"one": 1, "two": 2, "line": {"unitPrice": "1", "pieces": 1}}


def test_an_amount_that_its_author_writes_otherwise_keeps_that_form() -> None:
    euros = Annotated[
        Decimal,
        BeforeValidator(lambda given: str(given).removesuffix(" EUR")),
        PlainSerializer(lambda amount: f"{amount} EUR"),
    ]
    arguments = arguments_of(amount=(euros, ...))
    assert arguments.check({"amount": "12.50"}) == {"amount": "12.50 EUR"}


def test_a_form_that_reads_back_as_another_amount_is_not_taken() -> None:
    def four_places(given: str) -> Decimal:
        whole, _, rest = given.partition(".")
        return Decimal(f"{whole}.{rest}") * 10 ** len(rest)

    odd = Annotated[
        Decimal,
        BeforeValidator(four_places),
        PlainSerializer(lambda amount: f"{amount / 100:.2f}"),
    ]
    assert arguments_of(amount=(odd, ...)).check({"amount": "12.50"}) == {"amount": "12.50"}


def test_a_model_is_shown_that_an_amount_is_text() -> None:
    arguments = arguments_of(
        amount=(Annotated[Decimal, Field(gt=0, le=500)], ...), line=(Line | None, None)
    )
    properties: Any = arguments.schema["properties"]
    assert properties["amount"] == {
        "type": "string",
        "pattern": r"^-?[0-9]+(\.[0-9]+)?$",
        "description": 'an exact amount as text, such as "12.50", more than 0, at most 500',
    }
    assert "number" not in json.dumps(arguments.schema)


# Numbers in another form.


@pytest.mark.fault("X72")
@pytest.mark.parametrize("text", ["4", "4.0", "4e0", "40e-1", "4.000"])
def test_a_whole_number_is_one_value_however_it_is_written(text: str) -> None:
    given: Any = parse(f'{{"day": "2031-05-02", "people": {text}}}')
    stored = BOOK.check(given)
    assert stored["people"] == 4
    assert type(stored["people"]) is int


@pytest.mark.parametrize("given", [4.0, 4])
def test_a_whole_float_is_taken_for_its_whole_number(given: Any) -> None:
    stored = BOOK.check({"day": "2031-05-02", "people": given})
    assert type(stored["people"]) is int


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (1.5, "people: Input should be a valid integer"),
        (True, "people: true is no number; write the number"),
        (False, "people: false is no number; write the number"),
    ],
)
def test_what_is_no_whole_number_is_refused(given: Any, says: str) -> None:
    with pytest.raises(ProposalError, match=says):
        BOOK.check({"day": "2031-05-02", "people": given})


def test_true_stays_true_where_that_is_wanted() -> None:
    assert arguments_of(all=(bool, ...), any=(Any, 1)).check({"all": True, "any": True}) == {
        "all": True,
        "any": True,
    }


# Limits at the border.


def nested(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.fault("X70")
@pytest.mark.parametrize("levels", [64, 1_000, 10_000])
def test_what_is_nested_too_deep_is_refused_before_anything_walks_down_it(levels: int) -> None:
    with pytest.raises(ProposalError, match="book: its arguments are nested deeper than 64 levels"):
        arguments_of(tree=(Any, ...)).check({"tree": nested(levels)})


@pytest.mark.fault("X70")
def test_the_deepest_value_that_is_accepted_is_stored() -> None:
    given = {"tree": nested(63)}
    assert arguments_of(tree=(Any, ...)).check(given) == given


@pytest.mark.fault("X70")
def test_a_list_that_stands_in_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(ProposalError, match="nested deeper"):
        arguments_of(tree=(Any, ...)).check({"tree": loop})


@pytest.mark.fault("X70")
def test_one_list_a_million_times_over_is_refused_at_once() -> None:
    wide: Any = [0] * 1_000
    for _ in range(5):
        wide = [wide] * 1_000
    with pytest.raises(ProposalError, match="hold more than 262144 values"):
        arguments_of(tree=(Any, ...)).check({"tree": wide})


@pytest.mark.fault("X70")
def test_five_megabytes_in_one_argument_are_refused() -> None:
    with pytest.raises(ProposalError, match="more than 262144 bytes"):
        arguments_of(note=(str, ...)).check({"note": "x" * 5_000_000})


def test_types_that_do_not_survive_storage_are_the_authors_fault() -> None:
    with pytest.raises(ContractError, match="do not survive"):
        arguments_of(password=(SecretStr, ...)).check({"password": "hunter2"})


def test_types_that_cannot_be_written_are_the_authors_fault() -> None:
    def fail(given: int) -> int:
        raise ValueError("not today")

    with pytest.raises(ContractError, match="not today"):
        arguments_of(n=(Annotated[int, PlainSerializer(fail)], ...)).check({"n": 1})


@pytest.mark.parametrize("kind", [object(), Callable[[], None]], ids=["no type", "no schema"])
def test_types_without_a_schema_are_the_authors_fault(kind: object) -> None:
    with pytest.raises(ContractError, match="make no JSON Schema"):
        _ = arguments_of(callback=(kind, ...)).schema


def test_arguments_that_were_stored_for_an_older_tool_no_longer_fit() -> None:
    with pytest.raises(ProposalError, match="no longer fit"):
        BOOK.typed({"table": 4})
