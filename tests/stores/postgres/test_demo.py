"""A demo with `--store` is played beside that store, ends as on SQLite, and leaves nothing."""

import json
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner, Result

from landed.cli.main import landed
from landed.core.errors import StoreError
from landed.testing.beside import PREFIX, store_beside
from tests.stores.postgres.embedded import Server

pytestmark = [pytest.mark.services, pytest.mark.req("K29")]


def demo(*arguments: str) -> Result:
    return CliRunner().invoke(landed, ["demo", *arguments])


def databases(server: Server) -> set[str]:
    return {name for (name,) in server.execute(server.uri, "SELECT datname FROM pg_database")}


@pytest.mark.parametrize("name", ["revise-in-flight", "invoice-undo", "refund-restart"])
def test_what_is_printed_is_what_sqlite_prints(name: str, url: str, server: Server) -> None:
    before = databases(server)
    printed = demo(name, "--store", url)

    assert printed.exit_code == 0, printed.output
    assert printed.output == demo(name).output
    assert databases(server) == before
    assert server.execute(url, "SELECT to_regnamespace('landed')") == [(None,)], "it is untouched"


def test_kills_and_points_and_seeds_go_with_it(url: str) -> None:
    points = demo("reply-lost", "--store", url, "--points").output.splitlines()
    ran = demo("reply-lost", "--store", url, "--seed", "3", "--kill", points[3], "--json")
    told = json.loads(ran.output)

    assert points == demo("reply-lost", "--points").output.splitlines()
    assert told["reconciled"]
    assert [line["text"] for line in told["timeline"] if line["type"] == "crash"] == [points[3]]


@pytest.mark.timeout(120)
def test_the_invoice_is_played_for_real_beside_it(url: str, server: Server) -> None:
    before = databases(server)
    printed = demo("invoice-redeploy", "--store", url)

    assert printed.exit_code == 0, printed.output
    assert "killed by SIGKILL" in printed.output
    assert "-- reconciled: yes" in printed.output
    assert databases(server) == before


def test_who_may_not_create_a_database_is_told_what_to_do(url: str, server: Server) -> None:
    server.execute(url, "DROP ROLE IF EXISTS nobody")
    server.execute(url, "CREATE ROLE nobody LOGIN")
    refused = demo("reply-lost", "--store", server.url(server.name(url), user="nobody"))
    server.execute(url, "DROP ROLE nobody")

    assert refused.exit_code == 1
    assert "CREATEDB" in refused.output


def test_a_server_that_is_down_is_a_sentence(tmp_path: Path) -> None:
    refused = demo("reply-lost", "--store", f"postgresql://postgres@/x?host={tmp_path}")

    assert refused.exit_code == 1
    assert "cannot be reached" in refused.output


def test_what_is_beside_is_empty_and_removed_whatever_happens(url: str, server: Server) -> None:
    def fail(own: str) -> None:
        assert server.name(own).startswith(PREFIX)
        with psycopg.connect(own) as connection:
            assert connection.info.dbname == server.name(own)
        raise RuntimeError

    with pytest.raises(RuntimeError), store_beside(f"{url}&dbname=postgres") as own:
        fail(own)
    assert not any(name.startswith(PREFIX) for name in databases(server))


def test_a_store_that_is_none_is_refused() -> None:
    with pytest.raises(StoreError, match="names no store"), store_beside("mysql://here"):
        pass
