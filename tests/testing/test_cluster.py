"""The cluster keeps its word: versions that never come back, conflicts, and a replica behind."""

from pathlib import Path
from typing import Any

import httpx2
import pytest

from landed.testing.worlds import cluster, serve
from landed.testing.worlds.cluster import Cluster, merged
from tests.testing.far_sides import FarSide, SetClock, Sleeps, code

pytestmark = pytest.mark.anyio
WEB: dict[str, Any] = {"name": "web", "spec": {"replicas": 3, "image": "v1"}}


class Far(FarSide):
    """A cluster in this process, with one object."""

    def __init__(self, **settings: Any) -> None:
        self.clock, sleeps = SetClock(), Sleeps()
        own = cluster.app(":memory:", self.clock, settings=Cluster(**settings), sleep=sleeps)
        super().__init__(own, sleeps, witness=None, before=None)

    async def __aenter__(self) -> "Far":
        assert (await self.client.post("/objects", json=WEB)).status_code == 201
        return self

    async def patch(self, body: Any, **headers: str) -> httpx2.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.client.patch("/objects/web", json=body, headers=named)

    async def there(self, where: str = "") -> Any:
        return (await self.client.get(f"{where}/objects/web")).raise_for_status().json()


def at(version: str) -> dict[str, Any]:
    return {"metadata": {"resourceVersion": version}}


async def test_every_change_draws_a_version_that_never_comes_back() -> None:
    async with Far() as far:
        versions = ["1"]
        for spec in ({"replicas": 4}, {"replicas": 4}, {"image": None}):
            answer = await far.patch({"spec": spec})
            versions.append(answer.json()["metadata"]["resourceVersion"])
            assert answer.headers["etag"] == f'"{versions[-1]}"'
        await far.client.delete("/objects/web")
        await far.client.post("/objects", json=WEB)
        versions.append((await far.there())["metadata"]["resourceVersion"])
        assert versions == ["1", "2", "3", "4", "6"]


@pytest.mark.req("S4-28")
async def test_an_update_on_another_version_is_refused_and_changes_nothing() -> None:
    async with Far() as far:
        await far.patch({"spec": {"replicas": 4}})
        five = {"spec": {"replicas": 5}}
        assert code(await far.patch(at("1") | five)) == (409, "conflict")
        assert code(await far.patch(five, If_Match='"1"')) == (412, "conflict")
        assert (await far.there())["spec"]["replicas"] == 4
        for body, headers in (({**at("2")} | five, {}), (five, {"If_Match": '"3"'})):
            assert (await far.patch(body, **headers)).status_code == 200
        assert (await far.patch(five, If_Match="*")).status_code == 200


async def test_a_patch_is_merged_and_null_takes_away() -> None:
    async with Far() as far:
        await far.patch({"metadata": {"annotations": {"a": "1", "b": "2"}}})
        await far.patch({"metadata": {"annotations": {"a": None}}, "spec": {"image": None}})
        there = await far.there()
        assert (there["metadata"]["annotations"], there["spec"]) == ({"b": "2"}, {"replicas": 3})
    assert merged({"a": [1]}, {"a": [2], "b": {"c": None}}) == {"a": [2], "b": {}}
    assert merged("text", {"a": 1}) == {"a": 1}


@pytest.mark.fault("X55")
async def test_the_replica_shows_what_was_there() -> None:
    async with Far(lag_s=10.0) as far:
        assert code(await far.client.get("/replica/objects/web")) == (404, "not-found")
        far.clock.at += 20.0
        await far.patch({"spec": {"replicas": 4}})
        assert (await far.there("/replica"))["spec"]["replicas"] == 3
        far.clock.at += 10.0
        assert await far.there("/replica") == await far.there()


@pytest.mark.parametrize(
    ("method", "path", "body", "expected"),
    [
        ("POST", "/objects", {"name": "", "spec": {}}, (400, "bad-object")),
        ("POST", "/objects", {"name": "a", "spec": []}, (400, "bad-object")),
        ("POST", "/objects", WEB, (409, "already-there")),
        ("PATCH", "/objects/web", {"spec": {"replicas": 21}}, (422, "bad-spec")),
        ("PATCH", "/objects/web", {"spec": {"replicas": "3"}}, (422, "bad-spec")),
        ("PATCH", "/objects/web", {"spec": None}, (422, "bad-spec")),
        ("PATCH", "/objects/web", {"metadata": {"resourceVersion": 1}}, (409, "conflict")),
        ("PATCH", "/objects/web", {"metadata": 7}, (400, "bad-object")),
        ("PATCH", "/objects/other", {}, (404, "not-found")),
        ("DELETE", "/objects/other", None, (404, "not-found")),
    ],
)
async def test_what_is_refused_changes_nothing(
    method: str, path: str, body: Any, expected: tuple[int, str]
) -> None:
    async with Far() as far:
        before = await far.there()
        assert code(await far.client.request(method, path, json=body)) == expected
        assert await far.there() == before


async def test_a_lag_below_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="0 or more"):
        Cluster(lag_s=-1.0)


async def test_it_is_served_as_a_process_of_its_own(tmp_path: Path) -> None:
    with serve.start("cluster", db=str(tmp_path / "cluster.db"), settings=Cluster()) as far:
        assert httpx2.post(f"{far.url}/objects", json=WEB).status_code == 201
        assert httpx2.get(f"{far.url}/objects/web").json()["spec"] == WEB["spec"]


# Fencing: the receiver enforces it.


@pytest.mark.req("S4-26")
@pytest.mark.field("F4")
async def test_an_update_of_an_older_epoch_is_refused_where_epochs_are_checked() -> None:
    async with Far(checks_epochs=True) as far:
        for epoch, status in (("3", 200), ("3", 200), ("2", 412), ("4", 200), ("3", 412)):
            answer = await far.patch({"spec": {"replicas": int(epoch)}}, X_Epoch=epoch)
            assert answer.status_code == status
        assert code(await far.patch({"spec": {}}, X_Epoch="1")) == (412, "stale-epoch")
        assert (await far.there())["spec"]["replicas"] == 4
        assert (await far.patch({"spec": {"replicas": 5}})).status_code == 200
        assert code(await far.patch({"spec": {}}, X_Epoch="last")) == (400, "bad-epoch")


@pytest.mark.req("S4-26")
async def test_an_epoch_stops_nobody_where_it_is_not_checked() -> None:
    async with Far() as far:
        for epoch in ("3", "2"):
            assert (await far.patch({"spec": {}}, X_Epoch=epoch)).status_code == 200


async def test_a_refused_update_leaves_the_largest_epoch_as_it_was() -> None:
    async with Far(checks_epochs=True) as far:
        assert (await far.patch(at("9"), X_Epoch="7")).status_code == 409
        assert (await far.patch({"spec": {}}, X_Epoch="6")).status_code == 200


async def test_every_version_is_in_its_history() -> None:
    async with Far() as far:
        await far.patch({"spec": {"replicas": 4}})
        found = (await far.client.get("/objects/web/history")).json()["versions"]
        assert [one["spec"]["replicas"] for one in found] == [3, 4]
