"""The command line starts light, knows its sub-commands, and says our errors in one line."""

import json
import subprocess
import sys
from importlib.metadata import entry_points

import pytest
from click.testing import CliRunner

from landed import __version__
from landed.cli.main import COMMANDS, landed, main
from landed.core.errors import LandedError

HEAVY = {
    *("aiosqlite", "anthropic", "anyio", "asyncpg", "fastapi", "google", "httpx", "httpx2"),
    *("mcp", "openai", "psycopg", "pydantic", "pydantic_core", "pysqlite3", "sqlite3"),
    *("starlette", "uvicorn"),
}
IMPORT = "import landed"
VERSION = "from landed.cli.main import landed; landed.main(['--version'], standalone_mode=False)"


@pytest.mark.parametrize("starts", [IMPORT, VERSION])
def test_a_start_loads_no_framework_driver_or_provider(starts: str) -> None:
    code = f"{starts}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30
    )

    loaded = {name.split(".")[0] for name in json.loads(ended.stdout.splitlines()[-1])}
    assert "landed" in loaded
    assert not loaded & HEAVY


def test_importing_the_package_loads_no_other_file_of_it() -> None:
    code = f"{IMPORT}\nimport sys\nprint(*[n for n in sys.modules if n.startswith('landed.')])"
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30
    )

    assert ended.stdout.strip() == ""


def test_it_says_its_version() -> None:
    said = CliRunner().invoke(landed, ["--version"])

    assert (said.exit_code, said.output) == (0, f"landed {__version__}\n")


def test_the_console_script_is_this_one() -> None:
    (script,) = entry_points(group="console_scripts", name="landed")

    assert script.load() is main
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0


def test_help_lists_every_sub_command() -> None:
    said = CliRunner().invoke(landed, ["--help"])

    assert said.exit_code == 0
    for name in COMMANDS:
        assert f"\n  {name}  " in said.output
        assert CliRunner().invoke(landed, [name, "--help"]).exit_code == 0


def test_an_unknown_sub_command_is_a_usage_error() -> None:
    said = CliRunner().invoke(landed, ["undo-everything"])

    assert said.exit_code == 2
    assert "undo-everything" in said.stderr


def test_an_error_of_ours_is_one_line_and_status_1(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(url: str) -> None:
        raise LandedError("first line\n  second line")

    monkeypatch.setattr("landed.cli.doctor.examine", fail)
    said = CliRunner().invoke(landed, ["doctor"])

    assert (said.exit_code, said.stdout) == (1, "")
    assert said.stderr == "Error: first line second line\n"


def test_an_error_of_anybody_else_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(url: str) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("landed.cli.doctor.examine", fail)
    with pytest.raises(ZeroDivisionError):
        CliRunner().invoke(landed, ["doctor"], catch_exceptions=False)
