"""A demo beside a SQLite store is played in a file of its own, and LANDED_STORE names it none."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from landed.cli.main import landed
from landed.core.errors import StoreError
from landed.testing.beside import base_beside, store_beside
from landed.testing.scenario import run
from landed.testing.scenarios import BY_NAME

LOST = BY_NAME["reply-lost"]


def test_it_takes_the_same_course_and_leaves_nothing(tmp_path: Path) -> None:
    with base_beside(f"sqlite:///{tmp_path}/agent.db") as base:
        assert len(list(tmp_path.iterdir())) == 1
        ran = run(LOST, base=base)
    assert ran.plain() == run(LOST).plain()
    assert list(tmp_path.iterdir()) == []


def test_beside_one_in_memory_is_a_file_for_the_moment() -> None:
    with store_beside("sqlite://:memory:") as own:
        assert Path(own.removeprefix("sqlite:///")).parent.is_dir()
    assert not Path(own.removeprefix("sqlite:///")).parent.exists()


def test_beside_a_directory_that_is_not_there_is_nothing(tmp_path: Path) -> None:
    with (
        pytest.raises(StoreError, match="make it first"),
        store_beside(f"sqlite:///{tmp_path}/none/agent.db"),
    ):
        pass


def test_the_store_of_the_application_is_none_for_a_demo(tmp_path: Path) -> None:
    named = {"LANDED_STORE": f"sqlite:///{tmp_path}/none/agent.db"}
    assert CliRunner().invoke(landed, ["demo", "reply-lost"], env=named).exit_code == 0


def test_a_store_without_a_scenario_is_a_command_that_makes_no_sense() -> None:
    refused = CliRunner().invoke(landed, ["demo", "--store", "sqlite:///agent.db"])
    assert refused.exit_code == 2
    assert "--store goes with the NAME of a scenario" in refused.output
