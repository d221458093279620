"""Every query has a name, a sentence and the parameters in the order in which they appear."""

import re
from dataclasses import fields

import pytest

from landed.core.store import WAITING
from landed.stores.migrate import migrations
from landed.stores.queries import SQLITE, Queries, many, read

TWO = """-- Some words about the file: not a query.

-- first: Does one thing; says so
-- in two lines.
SELECT a FROM b WHERE c = :c AND d > :d AND e = :c;

-- second: Does another.
DELETE FROM b WHERE c IN :ids AND d = :d;

-- third: Reads a list as a table.
SELECT ids.value FROM EACH :ids;
"""


def test_a_file_is_read_into_queries_by_name() -> None:
    assert read(TWO) == {
        "first": "SELECT a FROM b WHERE c = ?1 AND d > ?2 AND e = ?1;",
        "second": "DELETE FROM b WHERE c IN (SELECT value FROM json_each(?1)) AND d = ?2;",
        "third": "SELECT ids.value FROM json_each(?1) AS ids;",
    }


def test_every_query_of_the_file_is_used_by_name() -> None:
    assert all(getattr(SQLITE, field.name) for field in fields(SQLITE))
    with pytest.raises(TypeError):
        Queries(**read(TWO))


def test_no_query_holds_a_rule() -> None:
    """States and kinds are the core's words; SQL only compares what it is handed.

    One index may cover only what waits for a person, so two queries have to name those states, and
    they are the core's.
    """
    texts = {field.name: getattr(SQLITE, field.name) for field in fields(SQLITE)}
    for name in ("waiting", "waiting_counts"):
        assert tuple(re.findall(r"'([^']*)'", texts.pop(name))) == WAITING
    (index,) = [one.sql for one in migrations() if one.name == "waiting"]
    assert tuple(re.findall(r"'([^']*)'", index)) == WAITING
    assert {word for text in texts.values() for word in re.findall(r"'([^']*)'", text)} == {""}


def test_a_list_is_handed_over_as_json() -> None:
    assert many(["a", 'b"']) == '["a", "b\\""]'
