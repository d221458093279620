"""What a model's conversation takes of core: a line kept, a tool by its own name, ids of calls."""

from typing import Any

from landed.core.act import call_schema, revision_id_of
from landed.core.changes import Kind
from landed.core.plan import Wanted
from landed.core.session import conversing
from tests.core.selling import TOOLS


def test_a_line_is_kept_as_it_is_and_never_changes() -> None:
    (move,) = conversing(id="l1", tenant="t", session="s1", line='{"n": 1e999}', at=3.0).moves

    assert (move.after.kind, move.after.id, move.after.state) == (Kind.LINE, "l1", "kept")
    assert move.after.frozen == {"line": '{"n": 1e999}', "at": 3.0}


def test_a_tool_called_by_its_own_name_has_every_definition_that_it_refers_to() -> None:
    for one in TOOLS:
        schema: Any = call_schema(one)
        assert schema["type"] == "object"
        assert ("$defs" in schema) is ("#/$defs/" in str(schema))


def test_the_call_id_of_a_revision_is_of_the_turn_the_calls_and_what_is_dropped() -> None:
    calls = [Wanted(tool="book", arguments={"day": "Sat"})]
    same = revision_id_of("T1", calls, ["a"])

    assert same == revision_id_of("T1", calls, ["a"])
    others = {
        revision_id_of("T2", calls, ["a"]),
        revision_id_of("T1", calls, []),
        revision_id_of("T1", [*calls, *calls], ["a"]),
    }
    assert len({same, *others}) == 4
