"""Text and JSON files from untrusted sources: bounded in size and depth, and valid Unicode."""

import json
import math
import re
from pathlib import Path
from typing import Any

MOST_BYTES = 32 << 20

# Items of a JSON text, counted by its commas: each takes up to 100 bytes of memory.
MOST_ITEMS = 2_000_000

# Levels of nested lists and objects.
DEEPEST = 100

# An escape of a half of a surrogate pair, such as \ud800.
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def read_text(path: Path, most: int = MOST_BYTES) -> str:
    """The text of a file; a ValueError if it has more than `most` bytes or is not UTF-8."""
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise ValueError(f"it has more than {most} bytes, the most that are read")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not UTF-8 at byte {error.start}") from error


def read_json(path: Path) -> Any:
    """The value in a JSON file; raises as `read_text` and `parse_json` do."""
    return parse_json(read_text(path))


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file; raises as `read_json`, and a ValueError where the file holds
    another value.
    """
    value = read_json(path)
    if not isinstance(value, dict):
        raise ValueError("it holds no JSON object")
    return value


def parse_json(text: str) -> Any:
    """The value of a JSON text.

    A ValueError if the text is not strict JSON, has more than two million items, is nested more
    than 100 deep, or holds a number or a character beyond the range.
    """
    if text.count(",") > MOST_ITEMS:
        raise ValueError(f"it has more than {MOST_ITEMS} items, the most that are read")
    try:
        value = json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except RecursionError as error:
        raise ValueError(f"it is nested more than {DEEPEST} deep") from error
    _check_depth(value)

    if _SURROGATE.search(text):
        try:
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError as error:
            raise ValueError("it holds half of a surrogate pair, which is not text") from error
    return value


def _check_depth(document: Any) -> None:
    """Refuse a JSON value that is nested deeper than DEEPEST levels."""
    level = [document]
    for _ in range(DEEPEST):
        next_level: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                next_level.extend(value.values())
            elif isinstance(value, list):
                next_level.extend(value)
        if not next_level:
            return
        level = next_level
    raise ValueError(f"it is nested more than {DEEPEST} deep")


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _finite(text: str) -> float:
    """A number with a fraction or an exponent, which may overflow."""
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"{text:.40} is beyond the range of numbers")
    return value
