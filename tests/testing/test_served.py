"""A far side as a process of its own: it starts, loses replies, keeps its file and ends."""

import contextlib
from pathlib import Path

import httpx2
import pytest

from landed.testing.worlds import serve
from landed.testing.worlds.faults import Fault
from landed.testing.worlds.restaurant import Restaurant
from landed.testing.worlds.texts import Texts
from landed.testing.worlds.weather import PATH, Weather
from tests.testing.far_sides import FRIDAY, WAIT_MAX_S, on_reserve


def reserve_at(url: str, key: str, timeout_s: float = WAIT_MAX_S) -> httpx2.Response:
    headers = {"Idempotency-Key": key}
    return httpx2.post(f"{url}/reservations", json=FRIDAY, headers=headers, timeout=timeout_s)


def test_a_served_restaurant_loses_replies_and_keeps_its_file(tmp_path: Path) -> None:
    path = str(tmp_path / "restaurant.db")
    lost = on_reserve("lose_reply"), on_reserve("drop", nth=2)
    hangs = on_reserve("lose_reply", nth=3, hang=True)
    with serve.start("restaurant", db=path, faults=[*lost, hangs]) as far:
        for key in ("k1", "k2"):
            with pytest.raises((httpx2.ReadError, httpx2.RemoteProtocolError)):
                reserve_at(far.url, key)
        with pytest.raises(httpx2.ReadTimeout):
            reserve_at(far.url, "k3", timeout_s=0.5)
        assert reserve_at(far.url, "k1").headers["idempotent-replayed"] == "true"
        assert httpx2.get(f"{far.url}/keys/k2").json()["found"] is False
        far.process.kill()
    with serve.start("restaurant", db=path, settings=Restaurant(full=("Fri",))) as far:
        held = httpx2.get(f"{far.url}/reservations").json()["reservations"]
        assert [one["key"] for one in held] == ["k1", "k3"]
        assert reserve_at(far.url, "k4").json()["code"] == "full"
        # The child ends when its parent does, which is when this stream ends.
        assert far.process.stdin is not None
        far.process.stdin.close()
        assert far.process.wait(WAIT_MAX_S) == 0


def test_a_served_text_service_delivers_and_keeps_what_went_out(tmp_path: Path) -> None:
    path, late = str(tmp_path / "texts.db"), Fault(path="/texts", kind="lose_reply")
    settings = Texts(unreachable=("nobody",))
    with serve.start("texts", db=path, faults=[late], settings=settings) as far:
        with pytest.raises((httpx2.ReadError, httpx2.RemoteProtocolError)):
            httpx2.post(f"{far.url}/texts", json={"to": "group", "text": "hello"})
        nobody = httpx2.post(f"{far.url}/texts", json={"to": "nobody", "text": "hello"})
        assert nobody.json()["code"] == "unreachable"
    with serve.start("texts", db=path) as far:
        sent = httpx2.get(f"{far.url}/texts").json()["texts"]
        assert [one["text"] for one in sent] == ["M1 group: hello"]


def test_a_world_that_can_not_start_is_an_error_and_leaves_no_process(tmp_path: Path) -> None:
    with pytest.raises(serve.WorldStartError, match="restaurant did not start"):
        serve.start("restaurant", db=str(tmp_path / "no" / "such" / "folder.db"))


def test_in_bad_weather_what_happens_to_requests_is_counted_until_it_is_called_off(
    tmp_path: Path,
) -> None:
    """What the ledger holds is what was let through, whatever their callers heard."""
    weather, path = Weather(share=0.7, late_s=0.0, seed=4), str(tmp_path / "restaurant.db")
    table = {"day": "Fri", "time": "19:00", "party": 4}
    with serve.start("restaurant", db=path, weather=weather) as far, httpx2.Client() as client:
        for n in range(60):
            with contextlib.suppress(httpx2.TransportError):
                key = {"Idempotency-Key": f"k{n}"}
                client.post(f"{far.url}/reservations", json=table, headers=key)
        told = client.post(f"{far.url}{PATH}", json={"share": 0}).json()
        held = client.get(f"{far.url}/reservations").json()["reservations"]
    happened = told["happened"]
    assert sum(happened.values()) == 60
    assert len(happened) == 9
    assert len(held) == 60 - happened["drop"] - happened["429"] - happened["503"]


UNREADABLE = [
    ["--weather", '{"share": 2}'],
    *(["--faults", text] for text in ("7", "[7]", '[{"kind": "explode", "path": "/"}]')),
    ["--faults", '[{"kind": "drop", "path": "/", "nth": 0}]'],
    ["--faults", '[{"kind": "drop", "path": "/", "seconds": -1}]'],
    *(["--settings", text] for text in ("{", '{"stars": 3}', '{"full": ["Someday"]}')),
    *(["--settings", text] for text in ('{"fee_cents": -1}', '{"retention_s": -1}')),
    *(["--settings", text] for text in ('{"fee_then_cents": 3}', '{"fee_after_s": -1}')),
]


def test_settings_of_another_world_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for settings in ('{"full": ["Fri"]}', '{"unreachable": [7]}'):
        with pytest.raises(SystemExit):
            serve.main(["texts", "--db", ":memory:", "--settings", settings])
        assert "bad --faults or --settings" in capsys.readouterr().err


@pytest.mark.parametrize("wrong", UNREADABLE)
def test_a_command_line_that_makes_no_sense_is_refused(
    wrong: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        serve.main(["restaurant", "--db", ":memory:", *wrong])
    assert stopped.value.code == 2
    assert "bad --faults or --settings" in capsys.readouterr().err
