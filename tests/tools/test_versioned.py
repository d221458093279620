"""Updates of objects with versions: applied once, never over another's, and told which."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

import landed
from landed.core.canonical import Json
from landed.core.errors import ContractError, ProposalError
from landed.core.key import Ask
from landed.core.outcome import (
    Absent,
    Acknowledged,
    AnswerLost,
    Found,
    NoAnswer,
    NotSent,
    NotYet,
    Prepared,
    Refused,
)
from landed.core.tool import Call
from landed.core.value import Confirmed, Failed, Undecided, Unknown, Withdrawn
from landed.runtime.runtime import Runtime
from landed.testing.check_tool import Verdict, check_tool
from landed.testing.faults import FaultyTool, Points, parse_point
from landed.testing.sim import World, current_process
from landed.testing.worlds import cluster, serve
from landed.testing.worlds.cluster import Cluster
from landed.testing.worlds.faults import Fault
from landed.testing.worlds.transport import WorldTransport
from landed.tools.versioned import Layout, VersionedTool
from tests.runtime.rig import SELDOM, Rig
from tests.testing.far_sides import FarSide, SetClock, Sleeps
from tests.tools.calls import call_of, run

URL = "http://far.test/objects/{name}"
SCALE: dict[str, Json] = {"name": "web", "replicas": 5}
WEB = "http://far.test/objects/web"
DONE: Json = {"object": WEB, "based_on": "1"}
BASED_ON_2: Json = {"object": WEB, "based_on": "2"}
IF_MATCH = Layout(if_match=True)


def scaling(transport: Any, **given: Any) -> VersionedTool:
    told: dict[str, Any] = {
        "name": "scale",
        "effect": "irreversible",
        "url": URL,
        "arguments": {"name": str, "replicas": int},
        "transport": transport,
    }
    return VersionedTool(**(told | given))


class Far(FarSide):
    """A cluster in this process with one object, and the tool that reaches it."""

    def __init__(self, *faults: Fault, lag_s: float = 0.0, **promises: Any) -> None:
        self.clock, sleeps = SetClock(), Sleeps()
        kept = Cluster(lag_s=lag_s)
        own = cluster.app(":memory:", self.clock, faults, settings=kept, sleep=sleeps)
        super().__init__(own, sleeps, witness=None, before=None)
        self.tool = scaling(self.transport, **promises)

    async def __aenter__(self) -> "Far":
        made = {"name": "web", "spec": {"replicas": 3, "image": "v1"}}
        (await self.client.post("/objects", json=made)).raise_for_status()
        return self

    async def prepared(self, arguments: Any = SCALE, key: str = "op-1") -> Call:
        call = call_of(self.tool.check(arguments), key=key)
        ready = await self.tool.prepare(call)
        assert isinstance(ready, Prepared), ready
        return replace(call, prepared=ready.value)

    async def by_hand(self, **spec: Any) -> None:
        (await self.client.patch("/objects/web", json={"spec": spec})).raise_for_status()

    async def there(self) -> Any:
        return (await self.client.get("/objects/web")).raise_for_status().json()

    async def spec(self) -> Any:
        return (await self.there())["spec"]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


both = pytest.mark.parametrize("layout", [Layout(), IF_MATCH], ids=["in the patch", "If-Match"])


@pytest.mark.anyio
@pytest.mark.req("S4-28")
@both
async def test_an_update_is_applied_once_and_leaves_its_mark(layout: Layout) -> None:
    async with Far(layout=layout) as far:
        call = await far.prepared()
        assert isinstance(call.prepared, Mapping)
        assert call.prepared["was"] == {"replicas": 3}
        first = await far.tool.send(call)
        assert isinstance(first, Acknowledged)
        assert await far.spec() == {"replicas": 5, "image": "v1"}
        assert (await far.there())["metadata"]["annotations"]["landed-operation"].startswith("op-1")
        before = await far.log()
        assert await far.tool.send(call) == first
        assert isinstance(await far.tool.lookup(call), Found)
        assert [one for one in await far.log() if "refused" not in one] == before


@pytest.mark.anyio
@pytest.mark.req("S4-28")
@both
async def test_what_somebody_else_changed_is_refused_and_said(layout: Layout) -> None:
    async with Far(layout=layout) as far:
        call = await far.prepared()
        await far.by_hand(replicas=9)
        outcome = await far.tool.send(call)
        assert isinstance(outcome, Refused)
        assert outcome.reason.replace('"', "") == (
            "it is at 2 now, not at 1: replicas was 3 and is 9"
        )
        assert (await far.spec())["replicas"] == 9


@pytest.mark.anyio
async def test_a_version_that_is_given_is_the_one_it_is_based_on() -> None:
    async with Far() as far:
        await far.by_hand(image="v2")
        outcome = await far.tool.send(await far.prepared({**SCALE, "version": "1"}))
        assert isinstance(outcome, Refused)
        assert "but none of the fields" in outcome.reason
        yes = await far.tool.send(await far.prepared({**SCALE, "version": "2"}, key="op-2"))
        assert yes == Acknowledged(result=BASED_ON_2, position=3)


@pytest.mark.anyio
async def test_a_landed_update_that_others_built_upon_is_still_found() -> None:
    async with Far() as far:
        call = await far.prepared()
        await far.tool.send(call)
        await far.by_hand(replicas=7)
        assert await far.tool.send(call) == Acknowledged(result=DONE, position=3)
        assert await far.tool.lookup(call) == Found(result=DONE, position=3)
        assert (await far.spec())["replicas"] == 7


@pytest.mark.anyio
async def test_one_key_never_stands_for_two_updates() -> None:
    async with Far() as far:
        call = await far.prepared()
        await far.tool.send(call)
        other = replace(call, arguments=far.tool.check({**SCALE, "replicas": 6}))
        assert isinstance(await far.tool.send(other), Refused)
        assert (await far.spec())["replicas"] == 5


@pytest.mark.anyio
async def test_what_the_cluster_will_not_take_is_refused() -> None:
    async with Far() as far:
        assert isinstance(
            await far.tool.send(await far.prepared({**SCALE, "replicas": 99})), Refused
        )


# What a read proves.


@pytest.mark.anyio
@pytest.mark.req("S4-35")
@pytest.mark.fault("X55")
async def test_a_replica_says_yes_no_or_too_early_by_its_version() -> None:
    replica = "http://far.test/replica/objects/{name}"
    async with Far(lag_s=10.0, read_from=replica) as far:
        far.clock.at += 20.0
        await far.by_hand(image="v2")
        call = await far.prepared()
        assert await far.tool.lookup(call) == NotYet(reason="it was read at 1, before 2")
        far.clock.at += 20.0
        assert await far.tool.lookup(call) == Absent(position=2)
        await far.tool.send(call)
        assert await far.tool.lookup(call) == Absent(position=2)
        far.clock.at += 20.0
        assert await far.tool.lookup(call) == Found(result=BASED_ON_2, position=3)


@pytest.mark.anyio
@pytest.mark.req("S4-34")
async def test_a_close_asks_the_object_itself_and_not_the_replica() -> None:
    replica = "http://far.test/replica/objects/{name}"
    async with Far(lag_s=10.0, read_from=replica) as far:
        far.clock.at += 20.0
        call = await far.prepared()
        await far.tool.send(call)
        assert await far.tool.lookup(call) == Absent(position=1)
        assert await far.tool.close(call) == Found(result=DONE, position=2)


@pytest.mark.anyio
@both
async def test_a_close_moves_the_version_and_what_comes_late_is_refused(layout: Layout) -> None:
    async with Far(layout=layout) as far:
        call = await far.prepared()
        assert isinstance(await far.tool.close(call), Absent)
        moved = await far.there()
        assert moved["metadata"]["resourceVersion"] == "2"
        assert moved["metadata"]["annotations"] == {"landed-operation-closed": "op-1"}
        assert isinstance(await far.tool.close(call), Absent)
        assert await far.there() == moved
        assert isinstance(await far.tool.send(call), Refused)
        assert await far.spec() == {"replicas": 3, "image": "v1"}


@pytest.mark.anyio
async def test_a_close_that_does_not_get_through_proves_nothing() -> None:
    async with Far(Fault(path="/objects/*", method="PATCH", kind="drop")) as far:
        assert isinstance(await far.tool.close(await far.prepared()), NotYet)


@pytest.mark.anyio
async def test_an_object_that_is_gone_says_nothing_of_what_landed() -> None:
    async with Far() as far:
        call = await far.prepared()
        await far.client.delete("/objects/web")
        assert isinstance(await far.tool.lookup(call), NoAnswer)
        assert isinstance(await far.tool.close(call), NoAnswer)
        assert isinstance(await far.tool.send(call), Refused)
        assert isinstance(await far.tool.prepare(call), NoAnswer)


@pytest.mark.anyio
async def test_without_a_basis_nothing_is_sent_or_asked() -> None:
    async with Far() as far:
        call = call_of(far.tool.check(SCALE))
        before = await far.log()
        assert isinstance(await far.tool.send(call), NotSent)
        assert isinstance(await far.tool.lookup(call), NoAnswer)
        assert isinstance(await far.tool.close(call), NoAnswer)
        assert isinstance(await far.tool.read_back(call, None), NoAnswer)
        assert isinstance(await far.tool.list_effects(0.0), NoAnswer)
        assert await far.log() == before
        await far.tool.aclose()


BASIS: Json = {"version": "1", "was": {"replicas": 3}}
AT_1 = b'{"metadata": {"resourceVersion": "1"}, "spec": {"replicas": 3}}'


@pytest.mark.anyio
@pytest.mark.req("S4-01")
@pytest.mark.fault("X63")
@pytest.mark.parametrize(
    ("change", "read"),
    [
        ((200, b"no JSON"), (200, AT_1)),
        ((200, b"{}"), (200, AT_1)),
        ((200, AT_1), (200, AT_1)),
        ((200, b'{"metadata": {"resourceVersion": 2}}'), (200, AT_1)),
        ((503, b"{}"), (200, AT_1)),
        ((409, b"{}"), (200, AT_1)),
        ((409, b"{}"), (503, b"{}")),
        ((412, b"{}"), (200, b"<html>")),
    ],
)
async def test_an_answer_that_does_not_say_it_leaves_doubt(
    change: tuple[int, bytes], read: tuple[int, bytes]
) -> None:
    class Odd(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            status, body = change if request.method == "PATCH" else read
            return httpx2.Response(status, content=body)

    tool = scaling(Odd())
    call = replace(call_of(tool.check(SCALE)), prepared=BASIS)
    assert isinstance(await tool.send(call), AnswerLost)


@pytest.mark.anyio
@pytest.mark.parametrize("fields", ["spec", "", "spec.template.spec"])
async def test_what_is_sent_is_a_patch_on_that_version_and_nothing_else(fields: str) -> None:
    seen: list[httpx2.Request] = []

    class Watching(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            seen.append(request)
            return httpx2.Response(503)

    layout = Layout(fields=fields, marks="marks", mark="mine")
    tool = scaling(Watching(), layout=layout, headers={"Authorization": "Bearer x"})
    call = replace(call_of(tool.check(SCALE)), prepared=BASIS)
    await tool.send(call)
    (request,) = seen
    assert (request.method, str(request.url)) == ("PATCH", WEB)
    assert request.headers["content-type"] == "application/merge-patch+json"
    assert request.headers["authorization"] == "Bearer x"
    body = json.loads(request.content)
    assert body.pop("metadata") == {"resourceVersion": "1"}
    assert list(body.pop("marks")) == ["mine"]
    for name in filter(None, fields.split(".")):
        body = body[name]
    assert body == {"replicas": 5}


@pytest.mark.anyio
@both
async def test_it_keeps_its_promises(layout: Layout) -> None:
    async with Far(layout=layout) as far:
        found = await check_tool(
            far.tool,
            SCALE,
            changed={**SCALE, "replicas": 6},
            refused={**SCALE, "replicas": 99},
            holds=far.spec,
        )
        assert found.ok, found
        assert found.of(Verdict.SKIPPED) == frozenset()


@pytest.mark.parametrize("name", ["", "..", None, 1.5])
def test_an_object_that_has_no_address_is_refused_before_it_is_recorded(name: Json) -> None:
    with pytest.raises(ProposalError):
        scaling(None).check({**SCALE, "name": name})


def test_an_address_may_name_arguments_only() -> None:
    with pytest.raises(ContractError, match=r"names \{other\}"):
        scaling(None, url="http://far.test/{other}")


def test_the_version_is_no_argument_of_ones_own() -> None:
    with pytest.raises(ContractError, match="version is its own"):
        scaling(None, arguments={"name": str, "version": int})


# Through the runtime.


@pytest.fixture
def rig() -> Any:
    with World() as world:
        yield Rig(world, lease=SELDOM)


class Wired:
    """A cluster of the rig's world, with one object."""

    def __init__(self, rig: Rig, *faults: Fault) -> None:
        self.app = cluster.app(":memory:", rig.world.clock, faults)
        self.store = self.app.state.desk
        body = {"metadata": {"annotations": {}}, "spec": {"replicas": 3}}
        self.store._put("web", body)
        self.transport = WorldTransport(self.app, rig.world.spawn)

    def tool(self, **promises: Any) -> VersionedTool:
        return scaling(self.transport, **{"deadline_s": 5.0, **promises})

    @property
    def spec(self) -> Any:
        return self.store._latest("web")["spec"]

    @property
    def changes(self) -> list[str]:
        return [one["text"] for one in self.store.ledger.log(after=0) if one["kind"] == "changed"]

    def by_hand(self, replicas: int) -> None:
        there = self.store._latest("web")
        self.store._put("web", {**there, "spec": {"replicas": replicas}})


async def scale(rt: Runtime) -> Any:
    ask = Ask(input="in-1", call_id="1")
    return await rt.perform("scale", SCALE, ask=ask, patience_s=3_600.0)


def patch(kind: Any, **more: Any) -> Fault:
    return Fault(path="/objects/*", method="PATCH", kind=kind, **more)


@pytest.mark.req("S4-28", "S4-40")
@pytest.mark.parametrize(
    "faults",
    [
        (),
        (patch("lose_reply"),),
        (patch("drop"),),
        (patch("error_after"),),
        (patch("duplicate", seconds=2.0),),
        (patch("delay_request", seconds=20.0),),
        (patch("delay_request", seconds=20.0), patch("lose_reply", nth=2)),
    ],
    ids=["fine", "lost", "dropped", "500", "duplicate", "late", "late and lost"],
)
def test_whatever_is_lost_the_update_is_applied_once(rig: Rig, faults: Any) -> None:
    wired = Wired(rig, *faults)
    assert isinstance(rig.run(scale, wired.tool()), Confirmed)
    rig.world.settle()
    assert wired.spec == {"replicas": 5}
    assert len(wired.changes) == 1


@pytest.mark.req("S4-28", "S4-29")
def test_what_was_changed_by_another_in_between_is_not_overwritten(rig: Rig) -> None:
    """It never arrived, and somebody else scaled meanwhile: the resend must not undo that."""
    wired = Wired(rig, patch("drop", hang=True))

    async def meanwhile(rt: Runtime) -> Any:
        first = await rt.perform("scale", SCALE, ask=Ask(call_id="1"), patience_s=1.0)
        assert isinstance(first, Unknown)
        wired.by_hand(9)
        return await rt.perform("scale", SCALE, ask=Ask(call_id="1"), patience_s=9_000.0)

    value = rig.run(meanwhile, wired.tool())
    assert isinstance(value, Failed), value
    assert wired.spec == {"replicas": 9}


@pytest.mark.req("S4-28")
def test_a_conflict_is_failed_and_says_what_has_moved(rig: Rig) -> None:
    wired = Wired(rig)
    wired.by_hand(4)

    async def stale(rt: Runtime) -> Any:
        return await rt.perform("scale", {**SCALE, "version": "1"})

    value = rig.run(stale, wired.tool())
    assert isinstance(value, Failed)
    assert "it is at 2 now, not at 1" in value.reason


@pytest.mark.req("S4-40")
@pytest.mark.parametrize("point", ["after:prepared", "before:send", "after:send"])
def test_a_process_that_dies_leaves_the_version_that_it_was_based_on(rig: Rig, point: str) -> None:
    wired = Wired(rig)
    points = Points(die=lambda at: current_process().crash(at), kill=parse_point(point))
    rig.kill_at = parse_point(point)
    first = rig.start(scale, FaultyTool(wired.tool(), points))
    rig.world.wait(first)
    assert first.ended().crashed_at == point
    rig.kill(first)
    rig.kill_at = None
    landed = point == "after:send"
    if not landed:
        wired.by_hand(9)
    value = rig.run(scale, wired.tool())
    assert isinstance(value, Confirmed if landed else Failed), value
    assert wired.spec == {"replicas": 5 if landed else 9}


def test_an_object_that_is_not_there_is_not_updated(rig: Rig) -> None:
    wired = Wired(rig)

    async def nowhere(rt: Runtime) -> Any:
        return await rt.perform("scale", {**SCALE, "name": "other"})

    assert isinstance(rig.run(nowhere, wired.tool()), Withdrawn)


def test_where_nobody_can_be_asked_a_person_is(rig: Rig) -> None:
    wired = Wired(
        rig, patch("drop", nth=None), Fault(path="/objects/*", method="GET", nth=2, kind="drop")
    )
    value = rig.run(scale, wired.tool(max_tries=2))
    assert isinstance(value, Undecided)
    assert wired.spec == {"replicas": 3}


def test_over_real_sockets_a_lost_reply_is_found_at_the_object(tmp_path: Path) -> None:
    async def scaled(url: str) -> Any:
        tool = scaling(None, url=f"{url}/objects/{{name}}", deadline_s=10.0)
        async with landed.open("sqlite://:memory:", tools=[tool]) as rt:
            value = await rt.perform("scale", SCALE, patience_s=30.0)
        await tool.aclose()
        return value

    lost = patch("lose_reply")
    with serve.start("cluster", db=str(tmp_path / "cluster.db"), faults=[lost]) as far:
        made = {"name": "web", "spec": {"replicas": 3}}
        httpx2.post(f"{far.url}/objects", json=made).raise_for_status()
        assert isinstance(run(scaled(far.url)), Confirmed)
        assert httpx2.get(f"{far.url}/objects/web").json()["spec"] == {"replicas": 5}
