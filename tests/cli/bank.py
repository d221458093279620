"""A payments service over real HTTP that keeps its promises or breaks one, and its tool."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from landed.tools.http import HttpTool
from landed.tools.reading import Reading

LATE_S = 60.0
REFUSED = {"cents": 0}


class Bank:
    """What the service holds; `breaks` is the promise that it does not keep, "" for none."""

    def __init__(self, breaks: str = "") -> None:
        self.breaks = breaks
        self.paid: list[int] = []
        self.keys: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
        self.closed: set[str] = set()
        self.lock = threading.Lock()

    def pay(self, key: str, sent_at: float, asked: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        refusals = {
            "close": key in self.closed,
            "payload": key in self.keys and self.keys[key][0] != asked,
            "late": time.time() - sent_at > LATE_S,
            "refusal": asked == REFUSED,
        }
        for promise, refused in refusals.items():
            if refused and self.breaks != promise:
                return 422, {"why": promise}
        if key in self.keys and self.breaks not in ("key", "payload"):
            return 200, self.keys[key][1]
        self.paid.append(int(asked["cents"]))
        made = {"id": f"P{len(self.paid)}"}
        self.keys.setdefault(key, (asked, made))
        if self.breaks == "answer":
            return 500, {"why": "a bug, after the payment"}
        return 201, made

    def look(self, key: str) -> tuple[int, dict[str, Any]]:
        known = self.keys.get(key)
        if self.breaks == "lookup":
            return 200, {"found": False}
        if self.breaks == "unused" and known is None:
            return 200, {"found": True, "result": {"id": "P0"}}
        return 200, {"found": known is not None, "result": known and known[1]}

    def close(self, key: str) -> tuple[int, dict[str, Any]]:
        self.closed.add(key)
        return self.look(key)


class _Desk(BaseHTTPRequestHandler):
    bank: Bank

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def _answer(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        parts = self.path.strip("/").split("/")
        with self.bank.lock:
            if parts[0] == "keys":
                told = self.bank.close if parts[-1] == "close" else self.bank.look
                status, answer = told(parts[1])
            else:
                sent_at = float(self.headers.get("x-sent-at", "0"))
                status, answer = self.bank.pay(self.headers["reference"], sent_at, body)
        said = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing on standard error."""


@contextmanager
def served(bank: Bank) -> Iterator[str]:
    """Serve a bank on a free port, and yield its URL."""
    desk = type("Desk", (_Desk,), {"bank": bank})
    with ThreadingHTTPServer(("127.0.0.1", 0), desk) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def paying(url: str) -> HttpTool:
    """The tool whose contract says what an honest bank keeps."""
    return HttpTool(
        name="pay",
        effect="irreversible",
        url=f"{url}/payments",
        arguments={"cents": int},
        service="bank",
        keyed="Reference",
        compares_payload=True,
        retention_s=3_600.0,
        refuses_after_s=LATE_S,
        sent_at_header="X-Sent-At",
        lookup=f"{url}/keys/{{key}}",
        close=f"{url}/keys/{{key}}/close",
        reading=Reading(requires=("id",)),
        deadline_s=20.0,
    )
