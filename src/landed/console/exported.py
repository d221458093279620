"""Rows as a file to take along: JSON, or CSV that a spreadsheet does not take for formulas."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import Response

# What makes a spreadsheet compute a cell; a quote before it makes it text (OWASP, CSV Injection).
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def csv_file(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], *, name: str) -> Response:
    """Return rows as a CSV file with these columns; what could be a formula is text in it."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(columns)
    writer.writerows([[cell(row[column]) for column in columns] for row in rows])
    return _file(out.getvalue(), "text/csv", name)


def json_file(value: object, *, name: str) -> Response:
    """Return a value as a JSON file."""
    written = json.dumps(value, indent=2, ensure_ascii=True, default=str)
    return _file(written + "\n", "application/json", name)


def cell(value: object) -> str:
    """Return a value as the text of a cell."""
    text = value if isinstance(value, str) else "" if value is None else str(value)
    is_number = isinstance(value, int | float)
    return f"'{text}" if text.startswith(_FORMULA) and not is_number else text


def _file(text: str, type: str, name: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(text.encode("utf-8", "backslashreplace"), media_type=type, headers=headers)
