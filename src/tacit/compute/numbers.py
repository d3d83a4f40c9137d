"""Numbers from text, as people write them.

Python also reads `1_0` as 10, and digits of other scripts. In a budget or a parameter either is
most likely a slip, and so both are refused.
"""

PLAIN = "write numbers in plain digits, such as 10 or 0.5"


def check_plain(text: str) -> None:
    """Refuse a number with underscores or with characters beyond ASCII, by a ValueError."""
    if "_" in text or not text.isascii():
        raise ValueError(f"{text!r} is not a plain number; {PLAIN}")


def read_number(text: str) -> float:
    """The number that a text states; ValueError if it states none, or not in plain digits."""
    check_plain(text)
    return float(text)
