"""Ways to damage a file: bytes, numbers, names and nesting, drawn by hypothesis."""

import re

from hypothesis import strategies as st

NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
STRING = re.compile(rb'"[^"\\\n]{0,80}"')
NUMBERS = (
    *(
        b"-1",
        b"0",
        b"1",
        b"2",
        b"-0.0",
        b"0.5",
        b"1e-300",
        b"1e300",
        b"1e999",
        b"-1e999",
        b"NaN",
        b"Infinity",
        b"inf",
    ),
    *(
        b"1000000",
        b"2147483648",
        b"9223372036854775807",
        b"18446744073709551616",
        b"9" * 400,
        b"true",
        b"null",
        b'"1"',
    ),
)
TEXTS = (
    *(
        b'""',
        b'"\\ud800"',
        b'"\\u0000"',
        b'"\\u001b[31m"',
        b'"\xff\xfe"',
        b'"../../etc/passwd"',
        b'"a\\nb"',
        b"'",
    ),
    *(
        b'"' + b"A" * 3000 + b'"',
        b"[" * 3000,
        b'{"a":' * 2000,
        b"[" * 90 + b"]" * 90,
        b"{}",
        b"[]",
        b"null",
        b"1",
    ),
)
WORDS = tuple(
    number.to_bytes(size, "little")
    for size in (2, 4, 8)
    for number in (0, 1, 2 ** (8 * size - 1) - 1)
)
BYTES = (
    b"\x00",
    b"\xff",
    b"\n",
    b"\r",
    b'"',
    b"\x80",
    b"\xed\xa0\x80",
    b"\x1b[2J",
    b",",
    b"&a [*a]",
    b"\x00" * 64,
)


def flip(data: bytes, at: int, salt: int) -> bytes:
    return (
        data[:at] + bytes([data[at] ^ (1 << salt % 8)]) + data[at + 1 :] if at < len(data) else data
    )


def insert(data: bytes, at: int, salt: int) -> bytes:
    return data[:at] + BYTES[salt % len(BYTES)] + data[at:]


def delete(data: bytes, at: int, salt: int) -> bytes:
    return data[:at] + data[at + 1 + salt % 40 :]


def truncate(data: bytes, at: int, salt: int) -> bytes:
    return data[:at]


def splice(data: bytes, at: int, salt: int) -> bytes:
    start = salt * 7 % max(len(data), 1)
    return data[:at] + data[start : start + 1 + salt % 200] + data[at:]


def word(data: bytes, at: int, salt: int) -> bytes:
    new = WORDS[salt % len(WORDS)]
    return data[:at] + new + data[at + len(new) :]


def number(data: bytes, at: int, salt: int) -> bytes:
    return _replaced(NUMBER, data, at, NUMBERS[salt % len(NUMBERS)])


def text(data: bytes, at: int, salt: int) -> bytes:
    return _replaced(STRING, data, at, TEXTS[salt % len(TEXTS)])


def value(data: bytes, at: int, salt: int) -> bytes:
    return _replaced(NUMBER, data, at, TEXTS[salt % len(TEXTS)])


def twice(data: bytes, at: int, salt: int) -> bytes:
    """One string in place of another: keys and names that are given twice."""
    found = STRING.findall(data)
    return _replaced(STRING, data, at, found[salt % len(found)]) if found else data


def _replaced(pattern: re.Pattern[bytes], data: bytes, at: int, new: bytes) -> bytes:
    found = list(pattern.finditer(data))
    if not found:
        return data
    one = found[at * len(found) // max(len(data), 1) % len(found)]
    return data[: one.start()] + new + data[one.end() :]


KINDS = (flip, insert, delete, truncate, splice, word, number, text, value, twice)


def damaged(data: bytes, steps: list[tuple[int, float, int]], textual: bool) -> bytes:
    """The file after some steps; those that need names and numbers take bytes where the file has
    none.
    """
    for kind, place, salt in steps:
        change = KINDS[kind] if textual else KINDS[kind % 6 if kind != 6 else 6]
        data = change(data, int(place * len(data)), salt)
    return data


steps = st.lists(
    st.tuples(
        st.integers(0, len(KINDS) - 1),
        st.floats(0, 1, exclude_max=True, allow_subnormal=False),
        st.integers(0, 10_000),
    ),
    min_size=1,
    max_size=3,
)
