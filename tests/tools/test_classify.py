"""What an exception or a status says about the effect, and that nothing else is believed."""

import socket
import urllib.error

import httpx2
import pytest

from landed.core.contract import REFUSALS, Contract, Effect
from landed.core.errors import NotSentError, RefusedError
from landed.core.outcome import Acknowledged, AnswerLost, NotSent, Refused
from landed.tools.classify import (
    REASON_MAX_CHARS,
    bounded,
    described,
    nothing_proven,
    of_error,
    of_status,
    one_request,
)

CONTRACT = Contract(effect=Effect.REVERSIBLE)
REQUEST = httpx2.Request("POST", "http://far.test/")


def status_error(
    status: int,
    *,
    history: list[httpx2.Response] | None = None,
    headers: dict[str, str] | None = None,
) -> Exception:
    reply = httpx2.Response(status, request=REQUEST, history=history, headers=headers)
    return httpx2.HTTPStatusError(f"status {status}", request=REQUEST, response=reply)


def foreign(module: str, name: str, **attributes: object) -> Exception:
    """An error of a library that is not installed here."""
    return type(name, (Exception,), {"__module__": module, **attributes})("of another library")


class Reply:
    def __init__(self, status_code: object, history: list[object]) -> None:
        self.status_code = status_code
        self.history = history


@pytest.mark.req("S4-01")
@pytest.mark.parametrize(
    "error",
    [
        httpx2.ConnectError("refused"),
        httpx2.ConnectTimeout("no connection"),
        httpx2.PoolTimeout("no free connection"),
        httpx2.ProxyError("407"),
        httpx2.UnsupportedProtocol("ftp"),
        httpx2.InvalidURL("http://["),
        ConnectionRefusedError(111, "refused"),
        socket.gaierror(-2, "no such name"),
        foreign("httpx", "ConnectError"),
        type("OwnError", (httpx2.ConnectError,), {})("a subclass"),
    ],
    ids=lambda error: f"{type(error).__module__}.{type(error).__name__}",
)
def test_what_never_left_is_not_sent(error: Exception) -> None:
    assert isinstance(one_request(error, CONTRACT), NotSent)


@pytest.mark.req("S4-01")
@pytest.mark.parametrize(
    "error",
    [
        httpx2.ReadTimeout("no answer"),
        httpx2.WriteTimeout("half a request"),
        httpx2.ReadError("reset"),
        httpx2.WriteError("broken pipe"),
        httpx2.RemoteProtocolError("no HTTP"),
        httpx2.LocalProtocolError("perhaps after the headers had left"),
        httpx2.DecodingError("no gzip"),
        httpx2.TooManyRedirects("round and round"),
        ConnectionResetError(104, "reset"),
        BrokenPipeError(32, "broken pipe"),
        TimeoutError("no answer"),
        # These libraries follow redirects: what was refused may be the hop after the effect.
        urllib.error.URLError(ConnectionRefusedError(111, "refused")),
        foreign("requests.exceptions", "ConnectTimeout"),
        foreign("requests.exceptions", "ConnectionError"),
        foreign("aiohttp.client_exceptions", "ClientConnectorError"),
        foreign("elsewhere", "ConnectError"),
        ValueError("a bug after the send"),
    ],
    ids=lambda error: f"{type(error).__module__}.{type(error).__name__}",
)
def test_what_may_have_left_is_an_answer_that_was_lost(error: Exception) -> None:
    outcome = one_request(error, CONTRACT)
    assert outcome == AnswerLost(reason=described(error))


@pytest.mark.req("S4-01")
@pytest.mark.parametrize("status", REFUSALS)
def test_a_refusal_of_the_contract_is_refused(status: int) -> None:
    assert isinstance(of_status(status, CONTRACT), Refused)
    assert isinstance(one_request(status_error(status), CONTRACT), Refused)


@pytest.mark.req("S4-01")
@pytest.mark.fault("X60")
@pytest.mark.parametrize("status", [300, 302, 304, 307, 402, 408, 409, 410, 418, 425, 451, 500])
def test_every_other_status_leaves_doubt(status: int) -> None:
    assert isinstance(of_status(status, CONTRACT), AnswerLost)
    assert isinstance(one_request(status_error(status), CONTRACT), AnswerLost)


@pytest.mark.req("S4-01")
def test_the_contract_may_say_that_a_5xx_comes_before_any_effect() -> None:
    contract = Contract(effect=Effect.REVERSIBLE, refusals=(503,))
    assert of_status(503, contract, says="closed") == Refused(reason="503 closed")
    assert isinstance(of_status(400, contract), AnswerLost)


@pytest.mark.fault("X66")
@pytest.mark.parametrize(
    ("headers", "wait_s"), [({}, 1.0), ({"retry-after": "30"}, 30.0), ({"retry-after": "x"}, 1.0)]
)
def test_a_429_is_not_now_and_says_how_long(headers: dict[str, str], wait_s: float) -> None:
    assert of_status(429, CONTRACT, says="slow", wait_s=wait_s) == NotSent(
        reason=f"429, asked to wait {wait_s:g} s: slow", wait_s=wait_s
    )
    outcome = one_request(status_error(429, headers=headers), CONTRACT)
    assert isinstance(outcome, NotSent)
    assert outcome.wait_s == wait_s
    final = Contract(effect=Effect.REVERSIBLE, refusals=(429,))
    assert isinstance(one_request(status_error(429, headers=headers), final), Refused)


@pytest.mark.fault("X66")
@pytest.mark.parametrize("headers", [None, {}, {"Retry-After": 30}, {"Retry-After": "2"}])
def test_a_429_of_another_library_is_one_too(headers: object) -> None:
    made = {"status": 429, "history": (), "headers": headers}
    error = foreign("aiohttp.client_exceptions", "ClientResponseError", **made)
    outcome = one_request(error, CONTRACT)
    assert isinstance(outcome, NotSent)
    assert outcome.wait_s == (2.0 if headers == {"Retry-After": "2"} else 1.0)


def test_a_429_after_a_redirect_says_nothing_of_the_first_request() -> None:
    redirected = status_error(429, history=[httpx2.Response(303, request=REQUEST)])
    assert isinstance(one_request(redirected, CONTRACT), AnswerLost)


@pytest.mark.fault("X65")
def test_a_refusal_after_a_redirect_says_nothing_of_the_first_request() -> None:
    redirected = status_error(404, history=[httpx2.Response(303, request=REQUEST)])
    assert isinstance(one_request(redirected, CONTRACT), AnswerLost)


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (Reply(404, []), Refused),
        (Reply(404, [object()]), AnswerLost),
        (Reply(500, []), AnswerLost),
        (Reply("404", []), AnswerLost),
        (None, AnswerLost),
    ],
    ids=["refused", "redirected", "5xx", "no number", "no reply"],
)
def test_the_status_errors_of_requests_are_known_by_name(reply: object, expected: type) -> None:
    error = foreign("requests.exceptions", "HTTPError", response=reply)
    assert isinstance(one_request(error, CONTRACT), expected)


def test_by_default_no_exception_proves_anything() -> None:
    for error in (httpx2.ConnectError("refused"), status_error(404), ValueError("a bug")):
        assert nothing_proven(error, CONTRACT) == AnswerLost(reason=described(error))


def test_the_author_of_a_tool_is_believed_before_any_classifier() -> None:
    assert of_error(RefusedError("full"), CONTRACT, nothing_proven) == Refused(reason="full")
    assert of_error(NotSentError("offline"), CONTRACT, nothing_proven) == NotSent(reason="offline")
    assert of_error(RefusedError(), CONTRACT, nothing_proven) == Refused(
        reason="no reason was given"
    )


def test_a_classifier_may_say_that_it_landed() -> None:
    known = Acknowledged(result="there already")
    assert of_error(KeyError("duplicate"), CONTRACT, lambda error, contract: known) == known


def test_a_classifier_that_fails_leaves_doubt() -> None:
    def fails(error: Exception, contract: Contract) -> Refused:
        raise ZeroDivisionError("a bug")

    outcome = of_error(KeyError("x"), CONTRACT, fails)
    assert isinstance(outcome, AnswerLost)
    assert "ZeroDivisionError" in outcome.reason


def test_reasons_are_one_bounded_line() -> None:
    assert bounded("a\n b\t\x00c\u202e\ud800") == "a b c"
    assert bounded("é" * REASON_MAX_CHARS) == "é" * REASON_MAX_CHARS
    for long in ("x" * 10_000, "x " * 400, "x" * (REASON_MAX_CHARS + 1)):
        assert len(bounded(long)) <= REASON_MAX_CHARS
        assert bounded(long).endswith("…")
    assert described(ValueError()) == "ValueError"
