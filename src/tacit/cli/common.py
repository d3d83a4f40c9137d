"""Shared parts of commands: class lists, labels and ledgers from paths, checks of outputs and of
public rows, and lines on the terminal.
"""

import math
import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.cli.loudness import quiet
from tacit.errors import InputError, LedgerError, excerpt

if TYPE_CHECKING:
    from tacit.data.imports import Data
    from tacit.data.labels import LabelKind
    from tacit.models.metrics import Scores
    from tacit.privacy.ledger import Ledger
    from tacit.releases.release import Release, Utility

STANDARD_OUTPUT = Path("-")


def say(text: str) -> None:
    """Print a result; on a terminal, lines are wrapped at its width, except in blocks of code and
    long words.
    """
    if quiet.get():
        return
    width = terminal_columns()
    in_code = False
    for line in text.split("\n"):
        is_fence = line.startswith("```")
        if width is not None and not is_fence and not in_code:
            line = _wrapped(line, width)
        print(line)
        if is_fence:
            in_code = not in_code


def tell_of_no_ledger(rows: Path) -> None:
    """Say that nothing counts what was spent of test rows, and how to have it counted."""
    say(
        "No ledger counts this run; to limit further ones, start one: tacit ledger"
        f" {rows} --allow BUDGET"
    )


def say_done(out: Path, text: str) -> None:
    """Say what was written to a file; if that was standard output, on stderr."""
    if out == STANDARD_OUTPUT and not quiet.get():
        print(f"tacit: standard output: {text}", file=sys.stderr)
    elif out != STANDARD_OUTPUT:
        say(f"{out}: {text}")


@contextmanager
def text_file(out: Path, *, force: bool) -> Iterator[Path]:
    """A file to be written, which appears as `out` once it is whole; `-` is standard output."""
    from tempfile import TemporaryDirectory

    from tacit.compute.atomic import atomic_file

    if out != STANDARD_OUTPUT:
        with atomic_file(out, force=force) as part:
            yield part
        return
    with TemporaryDirectory() as folder:
        part = Path(folder) / "output"
        yield part
        sys.stdout.write(part.read_text(encoding="utf-8"))


def terminal_columns() -> int | None:
    """Width of the terminal; None where results go elsewhere."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _wrapped(line: str, width: int) -> str:
    """A line cut at spaces; what follows the first part is indented by two more spaces than the
    line.
    """
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    return textwrap.fill(
        line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def read_classes(text: str | None) -> Any:
    """Return the class list of `--classes`: a number N for 0..N-1, a file with one class a line, or
    classes with commas between them.
    """
    if text is None:
        return None
    if _is_number(text):
        return int(text)
    if "," in text and not Path(text).is_file():
        names = unicodedata.normalize("NFC", text).split(",")
        return class_values([name.strip() for name in names])
    try:
        return class_values(read_lines(Path(text)))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"--classes {text} is neither a number nor a readable text file, nor classes with"
            " commas between them; give one of them"
        ) from error


def declared_classes(declared: Any, data: "Data") -> Any:
    """Return the class list of `--classes`, by default the one that the data declare, if any."""
    if declared is not None or not data.classes_declared:
        return declared
    return data.classes


def class_values(names: list[str]) -> list[str] | list[int]:
    """Return names of classes as whole numbers, if all are written as numbers are; 01 is a text."""
    from tacit.data.labels import WHOLE_NUMBER

    if all(WHOLE_NUMBER.fullmatch(name) for name in names):
        return [int(name) for name in names]
    return names


def read_lines(path: Path) -> list[str]:
    """Return the lines of a text file that are not empty, in Unicode NFC."""
    text = unicodedata.normalize("NFC", path.read_text(encoding="utf-8"))
    return [line.strip() for line in text.splitlines() if line.strip()]


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 20


def labels_of(data: "Data", path: Path | str) -> Any:
    """The labels, which must be there."""
    if data.labels is None:
        raise InputError(
            f"{path} holds no labels; name them with --y, put NAME_targets.npy beside NAME.npy, or"
            " import both together"
        )
    return data.labels


def class_labels(
    data: "Data", path: Path | str, classes: Any, kind: str = "value", *, needed: bool = True
) -> Any:
    """Return the labels as values of the class list, if one is declared, or the matrix of several
    labels a record in its order.

    `kind` is that of `--labels`: "index" if whole numbers are positions in the list.
    """
    from tacit.data.label_sets import Indicators
    from tacit.data.labels import class_list, values_of

    labels = labels_of(data, path) if needed else data.labels
    if labels is None or classes is None:
        return labels
    with data.places.in_errors():
        if data.several:
            sets = Indicators(labels, data.classes)
            return sets.recoded(class_list(classes), kind_of(data, classes, kind)).matrix
        return values_of(labels, classes, kind_of(data, classes, kind))


def one_label_each(data: "Data", path: Path | str, reason: str) -> Any:
    """Return the labels, which must be there and one a record; `reason` says why."""
    labels = labels_of(data, path)
    if data.several:
        raise InputError(f"{path} has several labels a record, and {reason}")
    return labels


def kind_of(data: "Data", classes: Any, kind: str) -> "LabelKind":
    """Return the meaning of whole numbers as labels, as `--labels` or the source of the data states
    it.
    """
    if kind != "index":
        return data.label_kind
    if classes is None:
        raise InputError("--labels index needs the class list; declare it with --classes")
    return "index"


def tell_of_columns(data: "Data", path: Path | str) -> None:
    """Tell the owner which columns of a table are no features, and why."""
    left_out = getattr(data, "left_out", ())
    if left_out:
        columns = excerpt(", ".join(left_out))
        print(f"tacit: {path}: columns left out: {columns}", file=sys.stderr)


def number_of_persons(persons: Any) -> str:
    """Say how many persons rows are of, for a line about them; empty without ids."""
    if persons is None:
        return ""
    return f" of {len(set(persons.tolist()))} persons"


def tell_of_case(persons: Any) -> None:
    """Tell the owner, on stderr alone, how many ids differ only by case."""
    from tacit.data.person_ids import case_message

    message = case_message(persons)
    if message is not None:
        print(f"tacit: {message}", file=sys.stderr)


def check_apart(option: str, path: Path, store: Path, why: str) -> None:
    """Refuse private data as the public rows of `--public` or `--names`."""
    if path.resolve() == store.resolve():
        raise InputError(f"--{option} {path} is the private data; {why}")


def check_outside(out: Path, release: Path) -> None:
    """Refuse an output within the folder of a release, which would then hold what is none of it."""
    if release.absolute().resolve() in out.absolute().resolve().parents:
        raise InputError(
            f"{out} is inside the release {release}, which would no longer load; choose another"
            " output"
        )


def check_encoder(release: "Release", data: "Data", path: Path, *, any_encoder: bool) -> None:
    """Refuse rows of another encoder than the release states, and warn about what cannot be
    compared.
    """
    from tacit.releases.provenance import compare_encoders

    if any_encoder:
        return
    compared = compare_encoders(release.document.public_inputs.encoder, data)
    if compared.different:
        fault = f"{path} is of another encoder: {'; '.join(compared.different)}"
        raise InputError(
            f"{fault}; encode it as the private rows were, or pass --any-encoder if it was"
        )
    if compared.uncompared:
        facts = ", ".join(compared.uncompared)
        reason = f"since only one of {release.source} and {path} states it"
        message = (
            f"the encoder's {facts} could not be compared, {reason}; check that both are of one"
            " encoder"
        )
        print(f"tacit: warning: {message}", file=sys.stderr)


def check_other_data(
    option: str, path: Path, rows: "Data", private: "Data", store: Path, why: str
) -> None:
    """Refuse a copy, a part or the whole of the private data as public rows, by their content."""
    from tacit.data.overlap import holds_private

    if holds_private(rows, private):
        raise InputError(f"--{option} {path} and {store} hold the same records; {why}")


def ledger_of(path: Path | None, store: Path, data: "Data") -> "Ledger | None":
    """The ledger at `path`, or that of the data, if there is one; see `Ledger.in_use`."""
    from tacit.privacy.ledger import Ledger

    return Ledger.in_use(path, store, data.identity)


def is_covered(store: Path, data: "Data") -> bool:
    """Tell whether a ledger counts what is spent on the data, be it lost or one of several."""
    try:
        return ledger_of(None, store, data) is not None
    except LedgerError:
        # several ledgers count it, or a lost one does
        return True


def check_declaration(path: Path, store: Path, data: "Data") -> None:
    """Refuse `--declare-public` for data that a ledger covers; `store` is where the data of `path`
    are.
    """
    ledger = ledger_of(None, store, data)
    if ledger is not None:
        fault = (
            f"--declare-public does not apply to {path}, whose rows are private: {ledger.path}"
            " counts their uses"
        )
        raise InputError(f"{fault}; leave it out")


def tell_of_ledger(path: Path, data: "Data", part: Path) -> None:
    """Say how fits on a part of the data are charged to the ledger of the data, if there is one,
    and note it there.
    """
    from tacit.data.locations import located
    from tacit.privacy.ledger_note import note

    try:
        ledger = ledger_of(None, located(path), data)
    # the part is written already; a fit on it is refused until the ledger is named
    except LedgerError as error:
        note(part)
        say(str(error))
        return

    if ledger is not None:
        note(part)
        say(f"A ledger counts what is spent on {path}; charge it by fit --ledger {ledger.path}")


def present_figures(figures: Mapping[Any, float]) -> dict[str, float]:
    """Select the figures of classes or labels that the test set holds; the others are nan."""
    return {str(label): figure for label, figure in figures.items() if not math.isnan(figure)}


def utility_of(scores: "Scores", identity: str, rows: int) -> "Utility":
    """Figures on a public test set, for the card."""
    from tacit.models import intervals
    from tacit.releases.provenance import one_line
    from tacit.releases.release import Utility
    from tacit.releases.schema import PUBLIC_TEST_SET

    by_person = scores.persons is not None
    how = f"persons, {intervals.BY_PERSON}" if by_person else "rows, Wilson's"

    return Utility(
        test_set=one_line(identity),
        rows=rows,
        accuracy=scores.accuracy,
        balanced_accuracy=scores.balanced,
        per_class=present_figures(scores.per_class),
        interval=scores.interval,
        interval_of="balanced accuracy over persons" if by_person else "balanced accuracy",
        minority_accuracy=scores.minority,
        protection=PUBLIC_TEST_SET,
        seeds=f"this one release; the interval is over test {how}",
    )
