"""The arguments of a tool: the schema a model sees, what is refused, and what is stored."""

from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field, SecretStr

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


def test_money_keeps_its_digits() -> None:
    arguments = arguments_of(amount=(Decimal, ...))
    stored = arguments.check({"amount": "10.10"})
    assert stored == {"amount": "10.10"}
    assert str(arguments.typed(stored)["amount"]) == "10.10"


def test_types_that_do_not_survive_storage_are_the_authors_fault() -> None:
    with pytest.raises(ContractError, match="do not survive"):
        arguments_of(password=(SecretStr, ...)).check({"password": "hunter2"})


@pytest.mark.parametrize("kind", [object(), Callable[[], None]], ids=["no type", "no schema"])
def test_types_without_a_schema_are_the_authors_fault(kind: object) -> None:
    with pytest.raises(ContractError, match="make no JSON Schema"):
        _ = arguments_of(callback=(kind, ...)).schema


def test_arguments_that_were_stored_for_an_older_tool_no_longer_fit() -> None:
    with pytest.raises(ProposalError, match="no longer fit"):
        BOOK.typed({"table": 4})
