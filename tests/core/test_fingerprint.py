"""A fingerprint names a value for good: in any key order, process and language."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from landed.core.canonical import Json, canonical, digest, fingerprint, parse

leaves: st.SearchStrategy[Json] = st.none() | st.integers(-9, 9) | st.floats(-9, 9) | st.text()

ORDER: Mapping[str, Json] = {"invoice_id": "4412", "amount_cents": 48000, "ö": [1.5, None, "€"]}
ORDER_FINGERPRINT = "sha256:f2458086ebf49c13d5ea0f8cd88544032f4b5028a355bb89a47b94fe0229f36a"


@pytest.mark.req("S3-07")
@given(st.dictionaries(st.text(), leaves).flatmap(lambda d: st.permutations(list(d.items()))))
def test_shuffled_keys_have_the_same_fingerprint(pairs: list[tuple[str, Json]]) -> None:
    ordered = dict(sorted(pairs))
    assert fingerprint(dict(pairs), domain="plan") == fingerprint(ordered, domain="plan")


def test_a_fingerprint_is_what_its_docstring_says() -> None:
    line = b"landed/plan-basis/v1\n"
    expected = "sha256:" + hashlib.sha256(line + rfc8785.dumps(ORDER)).hexdigest()
    assert fingerprint(ORDER, domain="plan-basis") == expected


@pytest.mark.req("S4-17")
def test_the_digest_of_stored_bytes_is_the_fingerprint_of_what_was_authorised() -> None:
    authorised = fingerprint(ORDER, domain="arguments")
    stored = canonical(ORDER)
    assert digest(stored, domain="arguments") == authorised == ORDER_FINGERPRINT
    assert fingerprint(parse(stored), domain="arguments") == authorised
    reordered = json.dumps(dict(ORDER), separators=(",", ":"), ensure_ascii=False).encode()
    assert sorted(reordered) == sorted(stored)
    assert digest(reordered, domain="arguments") != authorised


def test_a_fingerprint_of_one_kind_is_none_of_another() -> None:
    assert fingerprint(ORDER, domain="plan") != fingerprint(ORDER, domain="fee")


@pytest.mark.parametrize("domain", ["", "Plan", "plan/v1", "plan\n", "plan2"])
def test_a_domain_is_letters_and_hyphens(domain: str) -> None:
    with pytest.raises(ValueError, match="letters a to z and hyphens"):
        fingerprint(ORDER, domain=domain)


@pytest.mark.fault("X72")
@pytest.mark.parametrize("seed", ["0", "1", "4412"])
def test_another_process_finds_the_same_fingerprint(seed: str) -> None:
    program = (
        "import sys; from landed.core.canonical import fingerprint, parse; "
        "print(fingerprint(parse(sys.stdin.buffer.read()), domain='arguments'))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
    finished = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps(dict(ORDER)).encode(),
        env=environment,
        capture_output=True,
        timeout=30,
        check=True,
    )
    assert finished.stdout.decode().strip() == ORDER_FINGERPRINT
