"""The `act` tool: the one schema that a model is shown, made from the registered tools."""

import json
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from landed.core.act import act_schema
from landed.core.canonical import canonical
from landed.core.contract import Contract, Effect
from landed.core.errors import ContractError
from landed.tools.function import tool
from tests.core.selling import TOOLS, Card, Cash, Hand, Line


def shapes(schema: Any) -> dict[str, Any]:
    return {
        each["properties"]["tool"]["const"]: each
        for each in schema["properties"]["steps"]["items"]["anyOf"]
    }


def arguments_of(name: str) -> Any:
    return shapes(act_schema(TOOLS))[name]["properties"]["arguments"]


@pytest.mark.req("S1-01")
def test_one_schema_takes_every_tool_and_tells_them_apart_by_name() -> None:
    schema: Any = act_schema(TOOLS)
    assert schema["required"] == ["steps"]
    steps = schema["properties"]["steps"]
    assert (steps["minItems"], steps["maxItems"]) == (1, 100)
    assert list(shapes(schema)) == sorted(one.name for one in TOOLS)
    for shape in shapes(schema).values():
        assert shape["required"] == ["tool", "arguments"]
        assert set(shape["properties"]) == {"tool", "arguments"}


def test_the_same_tools_give_the_same_bytes_in_whatever_order() -> None:
    assert canonical(act_schema(TOOLS)) == canonical(act_schema(TOOLS[::-1]))
    assert json.dumps(act_schema(TOOLS)) == json.dumps(act_schema(TOOLS[::-1]))


def test_without_a_tool_no_step_fits() -> None:
    schema: Any = act_schema([])
    assert schema["properties"]["steps"]["items"] == {
        "type": "object",
        "additionalProperties": False,
    }


# What OpenAI (strict) and Anthropic both take. `$defs` stands at the root only.
TAKEN = {
    *("type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf"),
    *("$ref", "description", "pattern", "format", "minimum", "maximum", "exclusiveMinimum"),
    *("exclusiveMaximum", "multipleOf", "minItems", "maxItems"),
}


def every_schema(schema: Any) -> Iterator[dict[str, Any]]:
    yield schema
    for word in ("properties", "$defs"):
        for each in schema.get(word, {}).values():
            yield from every_schema(each)
    for each in schema.get("anyOf", []):
        yield from every_schema(each)
    for word in ("items", "additionalProperties"):
        if isinstance(schema.get(word), dict):
            yield from every_schema(schema[word])


def test_it_keeps_to_the_words_that_providers_take_and_closes_every_object() -> None:
    schema: Any = act_schema(TOOLS)
    definitions = schema.pop("$defs")
    for each in [
        *every_schema(schema),
        *(s for d in definitions.values() for s in every_schema(d)),
    ]:
        assert set(each) <= TAKEN
        if "properties" in each:
            assert each["additionalProperties"] is False
        if "$ref" in each:
            assert each["$ref"].removeprefix("#/$defs/") in definitions


def test_definitions_of_two_tools_that_share_a_name_stay_apart() -> None:
    def measured(name: str, definition: str, bound: int) -> Hand:
        size = {"type": "object", "properties": {"cm": {"type": "integer", "maximum": bound}}}
        properties = {"size": {"$ref": f"#/$defs/{definition}"}}
        return Hand(
            name=name,
            schema={"type": "object", "properties": properties, "$defs": {definition: size}},
        )

    # `a__b__Size` would come of both.
    schema: Any = act_schema([measured("a__b", "Size", 1), measured("a", "b__Size", 2)])
    bounds = {
        name: schema["$defs"][
            shape["properties"]["arguments"]["properties"]["size"]["$ref"].removeprefix("#/$defs/")
        ]["properties"]["cm"]["maximum"]
        for name, shape in shapes(schema).items()
    }
    assert bounds == {"a__b": 1, "a": 2}


def test_a_hand_written_schema_may_take_anything_somewhere() -> None:
    far = Hand(schema={"type": "object", "properties": {"any": True, "some": {"items": {}}}})
    shape = shapes(act_schema([far]))["far"]
    assert shape["properties"]["arguments"]["properties"] == {"any": True, "some": {"items": {}}}


def test_what_no_kept_word_can_say_is_said_in_the_description() -> None:
    assert arguments_of("pay")["properties"]["all"] == {
        "type": "boolean",
        "description": "default: true",
    }
    schema: Any = act_schema(TOOLS)
    number = schema["$defs"]["pay__Card"]["properties"]["number"]
    assert number == {"type": "string", "description": "minLength: 4"}


def test_a_choice_between_types_is_any_of_them() -> None:
    @tool(effect="none")
    async def pick(how: Annotated[Card | Cash, Field(discriminator="kind")]) -> None: ...

    shape = shapes(act_schema([pick]))["pick"]
    assert shape["properties"]["arguments"]["properties"]["how"] == {
        "anyOf": [{"$ref": "#/$defs/pick__Card"}, {"$ref": "#/$defs/pick__Cash"}]
    }


class Tree(BaseModel):
    below: "list[Tree]"


def test_a_type_that_contains_itself_is_refused_with_what_to_do() -> None:
    @tool(effect="none")
    async def grow(tree: Tree) -> None: ...

    with pytest.raises(ContractError, match="grow: its type Tree contains itself"):
        act_schema([grow])


def test_a_schema_that_refers_to_what_is_not_there_is_refused() -> None:
    far = Hand(schema={"type": "object", "properties": {"x": {"$ref": "#/definitions/X"}}})
    with pytest.raises(ContractError, match="far: its schema refers to '#/definitions/X'"):
        act_schema([far])


# References in the schema.


def ways(parameter: Any) -> list[Any]:
    return [each for each in parameter.get("anyOf", [parameter]) if "pattern" in each]


@pytest.mark.req("S1-02", "S1-03")
def test_a_reference_may_stand_where_a_contract_says_so_and_nowhere_else() -> None:
    allowed = {
        (name, parameter)
        for name, shape in shapes(act_schema(TOOLS)).items()
        for parameter, schema in shape["properties"]["arguments"]["properties"].items()
        if {"type": "string", "pattern": r"^\$[1-9][0-9]*$"} in ways(schema)
    }
    assert allowed == {(one.name, parameter) for one in TOOLS for parameter in one.contract.accepts}


@pytest.mark.req("S1-02")
def test_a_parameter_says_what_it_takes_and_a_tool_what_it_makes() -> None:
    assert arguments_of("issue_invoice")["properties"]["draft"] == {
        "description": "what to issue\nTakes: draft. Its id, or $n for what step n of this plan"
        " makes, n before this step.",
        "anyOf": [{"type": "string"}, {"type": "string", "pattern": r"^\$[1-9][0-9]*$"}],
    }
    card = arguments_of("pay")["properties"]["card"]
    assert [each["type"] for each in card["anyOf"]] == ["string", "null", "string"]
    told = {name: shape["description"] for name, shape in shapes(act_schema(TOOLS)).items()}
    assert told["issue_invoice"] == (
        "Issue a draft.\nMakes: invoice. A later step refers to it as $n, where n is this step's"
        " number."
    )
    assert told["pay"] == "Record a payment."


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        (int, "which cannot take the text"),
        (Annotated[str, Field(pattern="^d-")], "which cannot take the text"),
        (Annotated[str, Field(min_length=3)], "which cannot take the text"),
        (Literal["a", "b"], "which cannot take the text"),
        (list[str], "which cannot take the text"),
        (Line, "which cannot take the text"),
    ],
)
def test_a_parameter_that_cannot_take_a_reference_is_the_authors_fault(
    kind: Any, says: str
) -> None:
    @tool(effect="none", accepts={"draft": "draft"})
    async def show(draft: kind) -> None: ...  # pyright: ignore[reportInvalidTypeForm]

    with pytest.raises(ContractError, match=says):
        act_schema([show])


def test_a_parameter_that_does_not_exist_is_the_authors_fault() -> None:
    @tool(effect="none", accepts={"invoice": "invoice"})
    async def show(draft: str) -> None: ...

    with pytest.raises(ContractError, match="'invoice', which is no parameter of it; its"):
        act_schema([show])


@pytest.mark.parametrize("kind", ["string", ["string", "null"]])
def test_a_hand_written_parameter_of_text_takes_a_reference(kind: Any) -> None:
    far = Hand(
        schema={"type": "object", "properties": {"x": {"type": kind}}},
        contract=Contract(effect=Effect.NONE, accepts={"x": "draft"}),
    )
    shape = shapes(act_schema([far]))["far"]
    assert len(shape["properties"]["arguments"]["properties"]["x"]["anyOf"]) == 2


@pytest.mark.req("S1-30", "S4-11", "S1-13")
@pytest.mark.fault("X72")
def test_no_field_is_shown_for_what_is_the_runtimes() -> None:
    shown = json.dumps(act_schema(TOOLS)).lower()
    for word in ("idempotency", "token", "epoch", "attempt", "call_id", "retry", "approv"):
        assert word not in shown
