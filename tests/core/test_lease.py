"""Leases end at a stated moment, and the later claim is always the larger number."""

import pytest

from landed.core.lease import Lease, fences, is_over


def test_a_lease_stands_for_its_length_from_each_renewal():
    assert Lease(lease_s=30.0).until(1_000.0) == 1_030.0
    assert Lease(lease_s=30.0).until(1_010.0) == 1_040.0


def test_a_lease_is_renewed_more_than_once_before_it_ends():
    assert Lease().beat_s * 2 < Lease().lease_s


@pytest.mark.parametrize(
    ("now", "over"), [(999.0, False), (1_029.999, False), (1_030.0, True), (1_031.0, True)]
)
def test_a_lease_is_over_from_the_moment_it_names(now, over):
    assert is_over(until=1_030.0, now=now) is over


@pytest.mark.parametrize(("held", "found", "fenced"), [(1, 2, True), (2, 2, False), (3, 2, False)])
def test_only_a_later_claim_takes_over(held, found, fenced):
    assert fences(held=held, found=found) is fenced
