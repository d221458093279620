"""`landed serve` with its console: who gets in by which link, and what there is without it."""

import re
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
from click.testing import CliRunner

from landed.cli.main import landed
from landed.cli.serve import NO_CONSOLE

APP = """
import landed
from landed.core.preview import Preview


def see(asked):
    return Preview(summary=f"Note {asked.arguments['what']}")


@landed.tool(effect="irreversible", risk="confirm", preview=see)
async def note(what: str) -> dict[str, str]:
    return {"id": what}


tools = [note]
"""
MAIN = "from landed.cli.main import main; main()"
WITHOUT = "import sys; sys.modules['jinja2'] = None; "


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "noting.py").write_text(APP)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}", prepend=":")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "noting", raising=False)
    return "noting:tools"


@contextmanager
def served(app: str, *options: str, before: str = "") -> Generator[list[str]]:
    """Serve an application, and yield what is printed at the start; it drains at the end."""
    command = [sys.executable, "-c", before + MAIN, "serve", "--app", app, "--port", "0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield [process.stdout.readline().strip() for _ in range(2)]
        finally:
            process.send_signal(signal.SIGTERM)
            rest, _ = process.communicate(timeout=60)
    assert (process.returncode, rest.splitlines()[-1]) == (0, "drained")


@pytest.mark.services
@pytest.mark.fault("X90")
def test_on_this_machine_a_link_lets_its_owner_in_and_the_api_is_an_agent_of_theirs(
    app: str,
) -> None:
    with served(app, "--as", "ana") as (serves, console), httpx2.Client() as http:
        base = serves.split(" serves ")[1]
        link = re.search(r"http\S+", console)
        assert link is not None
        assert link[0].startswith(f"{base}/console/sign-in?key=")
        body = {"calls": [{"tool": "note", "arguments": {"what": "x"}}]}
        plan = http.post(f"{base}/v1/plans", json=body, headers={"Idempotency-Key": "k"}).json()
        assert (plan["state"], plan["principal"]) == ("proposed", "ana")
        agent = {"If-Match": "*"}
        goal = f"/plans/{plan['plan_id']}/approve"
        assert http.post(f"{base}/v1{goal}", json={}, headers=agent).status_code == 403
        assert http.get(f"{base}/console/waiting").status_code == 303
        assert http.get(link[0]).headers["location"] == "/console/waiting"
        page = http.get(f"{base}/console/waiting")
        assert "Note x" in page.text
        form = dict(re.findall(r'name="(csrf|fingerprint)" value="([^"]+)"', page.text))
        evil = {"Origin": "http://evil.test"}
        assert http.post(f"{base}/console{goal}", data=form, headers=evil).status_code == 403
        done = http.post(f"{base}/console{goal}", data=form, headers={"Origin": base})
        assert done.status_code == 303
        assert http.get(f"{base}/v1/plans/{plan['plan_id']}").json()["state"] == "done"
        other = http.get(f"{base}/console/waiting", headers={"Host": "evil.test"})
        assert other.status_code == 403


@pytest.mark.services
@pytest.mark.parametrize(
    ("options", "before", "says"),
    [(["--no-console"], "", "without the console"), ([], WITHOUT, NO_CONSOLE)],
)
def test_without_the_console_the_api_is_there_and_says_so(
    app: str, options: list[str], before: str, says: str
) -> None:
    with served(app, *options, before=before) as (serves, told), httpx2.Client() as http:
        base = serves.split(" serves ")[1]
        assert told == says
        assert http.get(f"{base}/v1/tools").status_code == 200
        assert http.get(f"{base}/console/waiting").status_code == 404


def test_a_secret_that_can_be_guessed_is_refused(app: str) -> None:
    Path("secret").write_text("short\n")
    ran = CliRunner().invoke(landed, ["serve", "--app", app, "--secret-file", "secret"])
    assert ran.exit_code == 2
    assert "--secret-file: at least 16 bytes" in ran.output
