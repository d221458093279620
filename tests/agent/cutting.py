"""Where a test cuts a text off: at every byte where that is cheap, else where it may matter."""

from collections.abc import Callable, Sequence

import pytest

Places = Callable[[bytes], Sequence[int]]


def near_line_ends(body: bytes) -> list[int]:
    """Return each end of a line, a byte before it and behind it, and the middle of each line.

    What is read by lines is read alike wherever within a line it is cut.
    """
    ends = [at + 1 for at, byte in enumerate(body) if byte in b"\r\n"]
    middles = [(start + end) // 2 for start, end in zip([0, *ends], ends, strict=False)]
    near = {0, *middles, *(end + by for end in ends for by in (-1, 0, 1))}
    return sorted(at for at in near if at < len(body))


def every_byte(body: bytes) -> Sequence[int]:
    """Return each place in a text."""
    return range(len(body))


wherever_it_matters = pytest.mark.parametrize(
    "places", [near_line_ends, pytest.param(every_byte, marks=pytest.mark.services)]
)
"""Cut near the ends of lines in `make test`, and at every byte in `make test-services`."""
