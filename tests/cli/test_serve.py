"""`landed serve`: where it listens, who may call, and that it drains."""

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from landed.cli.main import landed

APP = """
import landed

DONE = []


@landed.tool(effect="irreversible")
async def note(what: str) -> dict[str, str]:
    return {"id": what}


tools = [note]
"""


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "noting.py").write_text(APP)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "noting", raising=False)
    return "noting:tools"


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::", "example.org"])
def test_elsewhere_than_on_the_loopback_it_wants_to_know_who_calls(app: str, host: str) -> None:
    ran = CliRunner().invoke(landed, ["serve", "--app", app, "--host", host])
    assert ran.exit_code == 2
    assert "without --tokens only the loopback is listened on" in ran.output
    assert not Path("agent.db").exists()


def test_a_port_that_is_taken_is_said_in_a_line(app: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ran = CliRunner().invoke(landed, ["serve", "--app", app, "--port", port])
    assert ran.exit_code == 1
    assert "cannot be listened on" in ran.output


@pytest.mark.parametrize(
    "said", [[], ["--demo", "--app", "noting"], ["--demo", "--tokens", "tokens.toml"]]
)
def test_it_is_said_what_is_served(app: str, said: list[str]) -> None:
    Path("tokens.toml").write_text("")
    ran = CliRunner().invoke(landed, ["serve", *said])
    assert ran.exit_code == 2
    assert "either --app, or --demo" in ran.output


@pytest.mark.parametrize(("named", "stays"), [([], False), (["--store", "sqlite:///d.db"], True)])
def test_the_demo_is_served_on_a_store_of_its_own(
    app: str, tmp_path: Path, named: list[str], stays: bool
) -> None:
    command = [sys.executable, "-c", "from landed.cli.main import main; main()"]
    command += ["serve", "--demo", "--port", "0", "--as", "ana", *named]
    environment = {**os.environ, "LANDED_STORE": "sqlite:///other.db", "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(2)]
        assert "/console/sign-in?key=" in lines[1]
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)
    assert process.returncode == 0
    assert (tmp_path / "d.db").exists() is stays
    assert not (tmp_path / "other.db").exists()
    assert not list(tmp_path.glob("landed-demo-*"))


def _called(base: str, path: str, body: object, **headers: str) -> tuple[int, Any]:
    sent = None if body is None else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    asked = urllib.request.Request(f"{base}{path}", data=sent, headers=named)
    try:
        with urllib.request.urlopen(asked, timeout=20) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


@pytest.mark.services
def test_a_real_server_commits_once_survives_a_kill_and_drains(app: str, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.toml"
    digest = sha256(b"t0ken").hexdigest()
    tokens.write_text(f'[[token]]\nsha256 = "{digest}"\nprincipal = "ana"\n')
    asked = ["serve", "--app", app, "--port", "0", "--tokens", str(tokens)]
    command = [sys.executable, "-c", "from landed.cli.main import main; main()", *asked]
    known = {"Authorization": "Bearer t0ken", "Content_Type": "application/json"}

    def begun() -> tuple[subprocess.Popen[str], str]:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ})
        assert process.stdout is not None
        return process, process.stdout.readline().split(" serves ")[1].strip()

    first, base = begun()
    assert _called(base, "/v1/tools", None)[0] == 401
    status, plan = _called(base, "/v1/tools/note/dry-run", {"arguments": {"what": "x"}}, **known)
    assert status == 200
    body = {name: plan[name] for name in ("plan_id", "plan_token", "input_fingerprint")}
    first.kill()
    first.wait(20)

    second, base = begun()
    keyed = {**known, "Idempotency_Key": "k"}
    answers = [_called(base, "/v1/tools/note/commit", body, **keyed) for _ in range(2)]
    assert [(status, told["state"]) for status, told in answers] == [(200, "done")] * 2
    second.send_signal(signal.SIGTERM)
    said, _ = second.communicate(timeout=60)
    assert (second.returncode, said.splitlines()[-1]) == (0, "drained")
    assert first.stdout is not None
    first.stdout.close()
