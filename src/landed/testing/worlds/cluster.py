"""The cluster: a far side that keeps objects with versions, in the manner of Kubernetes.

It knows nothing of the runtime. Every change draws a new version from one counter of the whole
cluster, so that a version never comes back, and an update may say which version it is based on:

    POST   /objects                      {name, spec}: makes one, by hand
    GET    /objects/web                  {metadata: {name, resourceVersion, annotations}, spec}
    PATCH  /objects/web                  a JSON merge patch; refused with 409 where the
                                         resourceVersion in it, with 412 where If-Match is another
    DELETE /objects/web                  by hand
    GET    /replica/objects/web          the same, as it was `lag_s` ago
    GET    /objects/web/history          every version that it had, with the time of each
    GET    /log?after=0                  what it did, numbered

With `checks_epochs` the receiver enforces the fence: for each object it remembers the largest
X-Epoch that an update came with, and refuses an older one with 412, whatever else it says. Updates
without that header, such as those by hand, are let through.

An update with an Idempotency-Key leaves it in the annotation `updated-by`. While it is there, the
same key changes nothing, and is refused with 422 for another spec; older keys are not remembered.

`null` in a patch takes a field away. Versions are texts of digits, and the header ETag repeats
them. What is not there is said with 404, as such services do; `spec.replicas` is a number up to 20.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from landed.testing.worlds.far_side import (
    PAGE_MAX,
    Json,
    Ledger,
    ProblemError,
    count,
    far_side,
    integer,
    is_text,
    read_body,
)
from landed.testing.worlds.faults import Clock, Fault, Sleep

REPLICAS_MAX = 20
UPDATED_BY = "updated-by"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """How one cluster behaves; its replica shows what was there `lag_s` ago.

    `checks_epochs` has it refuse updates of an epoch that is older than one it has seen. Raises
    ValueError for a negative lag.
    """

    lag_s: float = 0.0
    checks_epochs: bool = False

    def __post_init__(self) -> None:
        if self.lag_s < 0:
            raise ValueError("lag_s must be 0 or more")


# Every version of every object is kept: that is what the replica reads.
_SCHEMA = """
CREATE TABLE IF NOT EXISTS object (
    version INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, at REAL NOT NULL, body TEXT
);
CREATE INDEX IF NOT EXISTS object_name ON object (name, version);
CREATE TABLE IF NOT EXISTS fence (name TEXT PRIMARY KEY, epoch INTEGER NOT NULL);
"""


class _Store:
    """The cluster's endpoints, over its ledger. All of them are async and none blocks long."""

    def __init__(self, path: str, clock: Clock, settings: Cluster) -> None:
        self._clock = clock
        self._settings = settings
        self.ledger = Ledger(path, clock, schema=_SCHEMA)

    async def make(self, request: Request) -> Response:
        asked = await read_body(request)
        name, spec = asked.get("name"), asked.get("spec")
        if not (name and is_text(name)) or not isinstance(spec, dict):
            raise ProblemError(400, "bad-object", "an object has a name and a spec")
        with self.ledger.unit():
            if self._latest(name) is not None:
                raise ProblemError(409, "already-there", f"there is {name} already")
            made = self._put(name, {"metadata": {"annotations": {}}, "spec": spec})
            self.ledger.note("made", f"made {name}")
        return _said(made, status=201)

    async def read(self, request: Request) -> Response:
        return _said(self._there(request, self._clock.now()))

    async def read_replica(self, request: Request) -> Response:
        return _said(self._there(request, self._clock.now() - self._settings.lag_s))

    async def read_history(self, request: Request) -> Response:
        rows = self.ledger.sql.execute(
            "SELECT at, body FROM object WHERE name = ? AND body IS NOT NULL"
            " ORDER BY version LIMIT ?",
            (request.path_params["name"], PAGE_MAX),
        )
        return JSONResponse({"versions": [{"at": at, **json.loads(body)} for at, body in rows]})

    async def patch(self, request: Request) -> Response:
        patch, condition = await read_body(request), request.headers.get("if-match", "")
        with self.ledger.unit():
            there = self._there(request, self._clock.now())
            self._fence(request)
            version = there["metadata"]["resourceVersion"]
            based_on = _metadata(patch).get("resourceVersion", version)
            if based_on != version:
                raise ProblemError(409, "conflict", f"it is at {version}, not at {based_on}")
            if condition.strip('"') not in ("", "*", version):
                raise ProblemError(412, "conflict", f"it is at {version}, not at {condition}")
            name = str(there["metadata"]["name"])
            key = request.headers.get("idempotency-key", "")
            wanted = _checked(merged(there, patch))
            if key and there["metadata"]["annotations"].get(UPDATED_BY) == key:
                return _said(_repeated(there, wanted))
            after = self._put(name, _marked(wanted, key))
            text = (
                f"{name} is at {after['metadata']['resourceVersion']}: {json.dumps(after['spec'])}"
            )
            self.ledger.note("changed", text)
        return _said(after)

    def _fence(self, request: Request) -> None:
        """Refuse what an older claim sends, and remember the newest."""
        if not self._settings.checks_epochs or "x-epoch" not in request.headers:
            return
        name = request.path_params["name"]
        epoch = count(integer(request.headers["x-epoch"]), "epoch")
        select = "SELECT epoch FROM fence WHERE name = ?"
        (seen,) = self.ledger.sql.execute(select, (name,)).fetchone() or (0,)
        if epoch < seen:
            detail = f"epoch {epoch} is older than {seen}"
            raise ProblemError(412, "stale-epoch", detail, refused="a late update")
        self.ledger.sql.execute("INSERT OR REPLACE INTO fence VALUES (?, ?)", (name, epoch))

    async def delete(self, request: Request) -> Response:
        with self.ledger.unit():
            name = self._there(request, self._clock.now())["metadata"]["name"]
            insert = "INSERT INTO object (name, at, body) VALUES (?, ?, NULL)"
            self.ledger.sql.execute(insert, (name, self._clock.now()))
            self.ledger.note("deleted", f"deleted {name}")
        return JSONResponse({})

    def set_by_hand(self, who: str, name: str, spec: Json) -> None:
        """Make an object, or set its whole spec, as a person would."""
        with self.ledger.unit():
            there = self._latest(name) or {"metadata": {"annotations": {}}}
            self._put(name, {**there, "spec": spec})
            self.ledger.note("changed", f"{who} sets {name}: {json.dumps(spec)}")

    def there(self, name: str) -> Json:
        """What an object is now; raises KeyError where there is none."""
        found = self._latest(name)
        if found is None:
            raise KeyError(name)
        return found

    def _put(self, name: str, body: Json) -> Json:
        insert = "INSERT INTO object (name, at, body) VALUES (?, ?, '') RETURNING version"
        version = self.ledger.sql.execute(insert, (name, self._clock.now())).fetchone()[0]
        known = {"name": name, "resourceVersion": str(version)}
        after: Json = {**body, "metadata": {**body["metadata"], **known}}
        update = "UPDATE object SET body = ? WHERE version = ?"
        self.ledger.sql.execute(update, (json.dumps(after), version))
        return after

    def _there(self, request: Request, at: float) -> Json:
        name = request.path_params["name"]
        found = self._latest(name, at)
        if found is None:
            raise ProblemError(404, "not-found", f"there is no {name}")
        return found

    def _latest(self, name: str, at: float = float("inf")) -> Json | None:
        row = self.ledger.sql.execute(
            "SELECT body FROM object WHERE name = ? AND at <= ? ORDER BY version DESC LIMIT 1",
            (name, at),
        ).fetchone()
        return None if row is None or row[0] is None else json.loads(row[0])


def merged(there: object, patch: object) -> object:
    """What a JSON merge patch (RFC 7396) makes of a value."""
    if not isinstance(patch, Mapping):
        return patch
    after = dict(cast("Mapping[str, object]", there)) if isinstance(there, Mapping) else {}
    for name, value in cast("Mapping[str, object]", patch).items():
        if value is None:
            after.pop(name, None)
        else:
            after[name] = merged(after.get(name), value)
    return after


def _checked(after: object) -> Json:
    """What is to be there, or a refusal of what is no object any more."""
    it = cast(Json, after) if isinstance(after, dict) else {}
    if not isinstance(it.get("metadata"), dict):
        raise ProblemError(400, "bad-object", "an object has metadata and a spec")
    spec = it.get("spec")
    replicas = cast(Json, spec).get("replicas", 0) if isinstance(spec, dict) else None
    if not isinstance(replicas, int) or not 0 <= replicas <= REPLICAS_MAX:
        raise ProblemError(422, "bad-spec", f"spec.replicas must be from 0 to {REPLICAS_MAX}")
    return it


def _marked(after: Json, key: str) -> Json:
    marks = {"metadata": {"annotations": {UPDATED_BY: key}}} if key else {}
    return cast(Json, merged(after, marks))


def _repeated(there: Json, wanted: Json) -> Json:
    if wanted["spec"] != there["spec"]:
        raise ProblemError(422, "key-mismatch", "the key was used with another spec")
    return there


def app(
    path: str,
    clock: Clock,
    faults: Sequence[Fault] = (),
    *,
    settings: Cluster | None = None,
    sleep: Sleep = asyncio.sleep,
) -> Starlette:
    """A cluster whose objects live in the SQLite file `path` (or ":memory:").

    Time comes from `clock` alone and delays go through `sleep`; no thread is started, so that it
    runs on a virtual event loop. Whoever is done with it closes `app.state.desk.ledger.sql`.
    """
    store = _Store(path, clock, settings or Cluster())
    routes = [
        Route("/objects", store.make, methods=["POST"]),
        Route("/objects/{name}", store.read, methods=["GET"]),
        Route("/objects/{name}", store.patch, methods=["PATCH"]),
        Route("/objects/{name}", store.delete, methods=["DELETE"]),
        Route("/objects/{name}/history", store.read_history, methods=["GET"]),
        Route("/replica/objects/{name}", store.read_replica, methods=["GET"]),
    ]
    cluster = far_side(store.ledger, routes, faults=faults, sleep=sleep)
    cluster.state.desk = store
    return cluster


def _metadata(patch: Json) -> Mapping[str, object]:
    metadata = patch.get("metadata", {})
    return cast("Mapping[str, object]", metadata) if isinstance(metadata, Mapping) else {}


def _said(body: Json, *, status: int = 200) -> Response:
    return JSONResponse(body, status, headers={"ETag": f'"{body["metadata"]["resourceVersion"]}"'})
