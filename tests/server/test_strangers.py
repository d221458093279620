"""Who may what: a stranger and what there is not look the same, and an agent agrees to nothing."""

import asyncio
import os
from hashlib import sha256
from pathlib import Path

import pytest

from landed.core.errors import LandedError
from landed.server.app import NOBODY
from landed.server.auth import Identity, Role, Tokens
from tests.server.served import Office, kind_of
from tests.server.test_commits import run

REFUND = {"invoice": "4412", "amount_cents": 100}
NOTHING = "plan-06h2r4wkmhnpcphx9yvzfr1nfm"


@pytest.mark.req("S1-18", "S1-21", "S1-55", "K12")
@pytest.mark.fault("X82")
@pytest.mark.parametrize("who", ["bob", "eve"])
@pytest.mark.parametrize(
    "verb", ["", "approve", "decline", "commit", "abandon", "cancel", "retry", "undo", "events"]
)
def test_a_plan_of_somebody_else_is_one_that_there_is_not(who: str, verb: str) -> None:
    async def script(here: Office) -> None:
        plan = await here.dry_run()
        answers = []
        for id in (plan["plan_id"], NOTHING):
            path = f"/v1/plans/{id}{'/' if verb else ''}{verb}"
            token = {"plan_token": plan["plan_token"], "input_fingerprint": "sha256:x"}
            body = {"plan_id": id, **token} if verb == "commit" else {}
            method = "GET" if verb in ("", "events") else "POST"
            sent = body if method == "POST" else None
            answers.append(await here.call(method, path, sent, who=who, key="k", match="*"))
        assert {kind_of(answer) for answer in answers} == {(404, "absent")}
        assert answers[0].content == answers[1].content
        assert (await here.commit(plan)).json()["state"] == "done"

    run(script)


@pytest.mark.fault("X82")
def test_a_conversation_of_somebody_else_is_not_read_and_not_joined() -> None:
    async def script(here: Office) -> None:
        done = await here.commit(await here.dry_run())
        (operation,) = done.json()["operations"]
        turn = f"/v1/sessions/ana/turns/{done.json()['plan_id']}/report"
        assert (await here.get("/v1/sessions/ana/history")).json() != []
        assert (await here.get(turn)).status_code == 200
        said = {"text": "yes", "origin": "user"}
        asked = {"arguments": {"invoice": "1", "amount_cents": 1}, "session": "ana"}
        answers = [
            await here.get("/v1/sessions/ana/history", who="bob"),
            await here.get(turn, who="bob"),
            await here.get(turn, who="eve"),
            await here.get(f"/v1/operations/{operation}", who="bob"),
            await here.get(f"/v1/operations/{operation}", who="eve"),
            await here.post(f"/v1/operations/{operation}/resolve", who="bob"),
            await here.post("/v1/sessions/ana/inputs", said, who="bob", key="k"),
            await here.post("/v1/tools/refund/dry-run", asked, who="bob"),
        ]
        assert {kind_of(answer) for answer in answers} == {(404, "absent")}
        assert (await here.get("/v1/sessions/ana/history", who="eve")).json() == []

    run(script)


@pytest.mark.parametrize("token", ["", "nobody", "ana x", "x" * 5000])
def test_nobody_is_let_in_without_a_token_that_is_known(token: str) -> None:
    async def script(here: Office) -> None:
        for path in ("/v1/tools", f"/v1/plans/{NOTHING}", "/v1/cases"):
            answer = await here.get(path, who=token)
            assert kind_of(answer) == (401, "unauthenticated")
            assert answer.headers["www-authenticate"] == "Bearer"

    run(script)


@pytest.mark.req("K14")
def test_an_agent_can_neither_say_yes_nor_speak_as_the_user() -> None:
    async def script(here: Office) -> None:
        plan = await here.dry_run("big_refund", who="ana-agent")
        path = f"/v1/plans/{plan['plan_id']}"
        for verb in ("approve", "decline", "retry", "undo"):
            answer = await here.post(f"{path}/{verb}", who="ana-agent", match="*")
            assert kind_of(answer) == (403, "forbidden")
        said = {"text": "yes"}
        answer = await here.post("/v1/sessions/ana/inputs", said, who="ana-agent", key="k")
        assert kind_of(answer) == (403, "forbidden")
        assert (await here.get(path)).json()["agreed_by"] == ""
        for who in ("ana-agent", "ana"):
            assert kind_of(await here.get("/v1/cases", who=who)) == (403, "forbidden")

    run(script)


ROW = '[[token]]\nsha256 = "{digest}"\nprincipal = "ana"\ntenant = "acme"\nrole = "person"\n'


def test_a_token_that_was_revoked_lets_nobody_in(tmp_path: Path) -> None:
    file = tmp_path / "tokens.toml"
    file.write_text(ROW.format(digest=sha256(b"t0ken").hexdigest()))
    tokens = Tokens(file=file)

    async def script() -> None:
        who = await tokens("t0ken")
        assert who is not None
        assert (who.principal, who.tenant, who.role) == ("ana", "acme", Role.PERSON)
        assert await tokens("other") is None
        file.write_text("")
        os.utime(file, ns=(1, 1))
        assert await tokens("t0ken") is None
        file.write_text(ROW.format(digest=sha256(b"t0ken").hexdigest()))
        os.utime(file, ns=(2, 2))
        assert await tokens("t0ken") == who
        file.unlink()
        assert await tokens("t0ken") is None

    asyncio.run(script())


@pytest.mark.parametrize("text", ["[[token]]\n", "nonsense", ROW.format(digest="plain text")])
def test_a_file_of_tokens_that_makes_no_sense_is_refused_at_the_beginning(
    text: str, tmp_path: Path
) -> None:
    file = tmp_path / "tokens.toml"
    file.write_text(text)
    with pytest.raises(LandedError, match=r"tokens\.toml cannot be read"):
        Tokens(file=file)


@pytest.mark.parametrize("nobody", [NOBODY, Identity(principal="me", role=Role.ADMIN)])
def test_of_callers_that_nobody_knows_no_two_share_a_conversation(nobody: Identity) -> None:
    async def script(here: Office) -> None:
        looked = [await here.dry_run(who="") for _ in range(2)]
        begun = [
            await here.propose("refund", REFUND, who="", key=key) for key in ("k1", "k2", "k1")
        ]
        sessions = [plan["session"] for plan in (*looked, *(answer.json() for answer in begun))]
        assert len(set(sessions)) == 4
        assert sessions[2] == sessions[4]
        assert begun[2].headers["idempotent-replayed"] == "true"
        assert here.ledger.refunds == [100, 100]
        asked = {"arguments": REFUND, "session": "s1"}
        named = await here.post("/v1/tools/refund/dry-run", asked, who="")
        assert named.json()["session"] == "s1"

    run(script, authenticate=None, nobody=nobody)
