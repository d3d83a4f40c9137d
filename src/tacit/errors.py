"""Errors and warnings that tacit raises on purpose.

Each message is one line that names the value, the rule and the remedy. Errors are for the owner of
the data: they are outside the guarantee and never enter a release.
"""

from collections.abc import Collection
from difflib import get_close_matches

QUOTED = 200


def printable(text: str) -> str:
    """`text` on one line: white space as spaces, other characters that do not print as escapes."""
    if text.isprintable():
        return text
    shown = (" " if one.isspace() else one.encode("unicode_escape").decode("ascii") for one in text)
    return "".join(
        one if one.isprintable() else escaped for one, escaped in zip(text, shown, strict=True)
    )


def excerpt(text: str) -> str:
    """Shorten a text for a message: on one line, at most 200 characters."""
    shown = printable(text[:QUOTED])
    return shown if len(text) <= QUOTED and len(shown) <= QUOTED else shown[: QUOTED - 3] + "..."


def quoted(value: object) -> str:
    """A value as Python writes it, cut as by `excerpt`."""
    return excerpt(repr(value))


def nearest(word: str, known: Collection[str], *others: str) -> str:
    """A remedy: the word in `known` or `others` that comes close, or all of `known`."""
    close = get_close_matches(word, [*known, *others], n=1)
    return f"did you mean {close[0]!r}?" if close else f"choose from: {', '.join(known) or 'none'}"


class TacitError(ValueError):
    """The caller's input was wrong; the command line turns it into one line and exit status 2."""

    def __init__(self, message: str = "") -> None:
        super().__init__(printable(message))


class InputError(TacitError):
    """An array, file or label list does not have the required form."""


class RowError(InputError):
    """A row of data, whose number counts from 0, does not have the required form.

    The message is `before`, the place of the row, and `after`; the place is "row N" until a reader
    of text files names the line.
    """

    def __init__(self, before: str, row: int, after: str) -> None:
        super().__init__(f"{before}row {row}{after}")
        self.before = before
        self.row = row
        self.after = after

    def __reduce__(self) -> tuple[type["RowError"], tuple[str, int, str]]:
        # errors of other processes are copied by their arguments
        return RowError, (self.before, self.row, self.after)


class InputTypeError(InputError, TypeError):
    """An array holds objects that are no numbers; scikit-learn expects a TypeError then."""


class BudgetError(TacitError):
    """A budget cannot be read, or cannot be met by the mechanism asked for."""


class LedgerError(TacitError):
    """A ledger cannot be read, or the charge would overdraw its allowance."""


class StoreError(TacitError):
    """An embedding store is missing, truncated or inconsistent."""


class ReleaseError(TacitError):
    """A release is missing, altered, unsafe to read or not fit to be saved."""


class PartlyFailedError(Exception):
    """Some of the work failed, and the rest is kept; the command line turns it into one line and
    exit status 1.
    """


class NothingDoneError(Exception):
    """The input was right, and the answer is no: nothing should be written or handed out; the
    command line returns status 1.
    """


class PrivacyLeakWarning(UserWarning):
    """Something that should be public was read off the private data, or is a part of them."""
