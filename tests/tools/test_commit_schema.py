"""What a commit's body has to be is published: a token needs its fingerprint and its plan."""

import json
from typing import Any

import jsonschema_rs
import pytest

from landed.core.outcome import Acknowledged
from landed.tools.dry_run import Layout
from tests.tools.calls import run
from tests.tools.test_two_phase import COMMITTED, Recorded, paying, planned

COMMIT = {"plan_id": "p1", "plan_token": "ptk_x", "input_fingerprint": "sha256:x"}


@pytest.mark.req("S3-29")
@pytest.mark.parametrize("missing", list(COMMIT))
def test_the_schema_of_a_commit_says_what_needs_what(missing: str) -> None:
    schema = dict(paying(Recorded()).commit_schema)
    assert jsonschema_rs.is_valid(schema, COMMIT)
    assert not jsonschema_rs.is_valid(
        schema, {name: COMMIT[name] for name in COMMIT if name != missing}
    )
    assert not jsonschema_rs.is_valid(schema, COMMIT | {missing: ""})
    assert not jsonschema_rs.is_valid(schema, COMMIT | {"amount": 1})
    # Also where a service asks for nothing by itself.
    loose = schema | {"required": []}
    assert jsonschema_rs.is_valid(loose, {})
    token = missing == "plan_token"
    rest = {name: COMMIT[name] for name in COMMIT if name != missing}
    assert jsonschema_rs.is_valid(loose, rest) is token


def test_the_schema_of_a_commit_is_in_the_services_words() -> None:
    sends = {"plan": "plan_id", "secret": "token"}
    schema = paying(Recorded(), layout=Layout(sends=sends)).commit_schema
    assert schema["required"] == ["plan", "secret"]
    assert schema["dependentRequired"] == {"secret": ["plan"]}


@pytest.mark.req("S3-29", "S3-31")
def test_what_is_committed_is_what_its_schema_says() -> None:
    wire = Recorded(commit=(200, COMMITTED))
    tool = paying(wire)

    async def commits() -> Any:
        return await tool.send(await planned(tool))

    assert isinstance(run(commits()), Acknowledged)
    (body,) = [
        json.loads(each.content) for each in wire.requests if each.url.path.endswith("/commit")
    ]
    assert jsonschema_rs.is_valid(dict(tool.commit_schema), body)
