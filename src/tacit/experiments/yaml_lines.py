"""Line numbers of the parts of a YAML file, so that an error names the line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.errors import InputError, TacitError, excerpt, quoted

# levels of lists and mappings in each other
DEEPEST = 50

# characters of a value, since errors of learners quote it
LONGEST = 200

# bytes of a plan; the scanner takes a second for each 60 kB
MOST_BYTES = 1 << 17

# parts of a plan, counted once for each alias that leads to them
MOST_PARTS = 10_000

# errors of the loader at values that are not plain
NOT_PLAIN = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)

# sections in which a value may be longer than LONGEST, since no learner reads them
LONG_SECTIONS = ("about", "data")

# keys and positions that lead to a part
KeyPath = Sequence[str | int]


class PlanError(InputError):
    """A plan cannot be used.

    Parameters
    ----------
    path : sequence of str or int
        Leads to the faulty part.
    placed : bool
        The message names the file and the line already.
    """

    def __init__(self, message: str, path: KeyPath = (), *, placed: bool = False) -> None:
        super().__init__(message)
        self.path = tuple(path)
        self.placed = placed


@dataclass(frozen=True)
class Lines:
    """The line numbers of a YAML file's parts, by their paths."""

    file: Path
    numbers: Mapping[tuple[str | int, ...], int]

    def of(self, path: KeyPath) -> int:
        """Return the line of a part, or of the smallest part around it whose line is known."""
        parts = tuple(path)
        while parts not in self.numbers:
            parts = parts[:-1]
        return self.numbers[parts]

    @contextmanager
    def placing_errors(self, path: KeyPath = ()) -> Iterator[None]:
        """Add the file and the line to errors raised in this block.

        The path of an error takes precedence over `path`.
        """
        try:
            yield
        except TacitError as error:
            if isinstance(error, PlanError) and error.placed:
                raise
            place = getattr(error, "path", ()) or path
            raise _placed(self.file, self.of(place), str(error), place) from error


def _placed(file: Path, line: int, message: str, path: KeyPath = ()) -> PlanError:
    """Return an error that names the file and the line."""
    return PlanError(f"plan {file}, line {line}: {message}", path, placed=True)


def parse(text: str, file: Path) -> tuple[Lines, Any]:
    """Return the line numbers and the values of a YAML text.

    Raises PlanError for text that is not YAML, a repeated key, nesting without end, and values that
    are too long or not plain.
    """
    import yaml

    try:
        loader = yaml.SafeLoader(text)
        root = loader.get_single_node()
        if root is None:
            # a text without values, such as comments alone
            return Lines(file, {(): 1}), None
        lines = Lines(file, _line_numbers(root, file))
        return lines, loader.construct_document(root)
    except PlanError:
        # a PlanError is a ValueError too, which NOT_PLAIN below would take for the loader's
        raise
    except yaml.MarkedYAMLError as error:
        line = 1
        if error.problem_mark is not None:
            # the mark counts lines from 0
            line = error.problem_mark.line + 1
        fault = excerpt(str(error.problem or error.context))
        raise _placed(file, line, f"this is not YAML ({fault}); correct it") from None
    except (yaml.YAMLError, *NOT_PLAIN) as error:
        fault = excerpt(str(error))
        raise PlanError(
            f"plan {file}: this is not YAML of plain values ({fault}); correct it", placed=True
        ) from None


def _line_numbers(root: Any, file: Path) -> dict[tuple[str | int, ...], int]:
    """Return the line number of each part of a YAML document, by its path."""
    numbers: dict[tuple[str | int, ...], int] = {(): 1}
    for count, (path, line) in enumerate(_parts(root, (), file)):
        if count == MOST_PARTS:
            raise PlanError(
                f"plan {file} has more than {MOST_PARTS} parts, counted once for each alias; write"
                " a shorter one",
                placed=True,
            )
        numbers[path] = line
    return numbers


def _parts(
    node: Any, path: tuple[str | int, ...], file: Path
) -> Iterator[tuple[tuple[str | int, ...], int]]:
    """Yield the paths and line numbers of a node and of all nodes in it."""
    import yaml

    line = node.start_mark.line + 1
    if len(path) > DEEPEST:
        raise _placed(file, line, "parts are nested without end; plans are not")
    yield path, line

    if isinstance(node, yaml.SequenceNode):
        for position, item in enumerate(node.value):
            yield from _parts(item, (*path, position), file)
    elif isinstance(node, yaml.MappingNode):
        earlier_keys: set[str] = set()
        for key, value in node.value:
            key_line = key.start_mark.line + 1
            fault = _fault_of_key(key, earlier_keys)
            if fault is not None:
                raise _placed(file, key_line, fault)
            earlier_keys.add(key.value)

            yield from _parts(value, (*path, key.value), file)
            # last, so that the line of a value is that of its key
            yield (*path, key.value), key_line
    else:
        section = path[0] if path else None
        if len(node.value) > LONGEST and section not in LONG_SECTIONS:
            raise _placed(
                file, line, f"a value has {len(node.value)} letters, at most {LONGEST} can be"
            )


def _fault_of_key(key: Any, earlier_keys: set[str]) -> str | None:
    """Return what is wrong with a key of a mapping; None if nothing is."""
    if not isinstance(key.value, str):
        return "a key is a list or a mapping; keys are plain words"
    if len(key.value) > LONGEST:
        return f"a key has {len(key.value)} letters, at most {LONGEST} can be"
    if key.value in earlier_keys:
        return f"{quoted(key.value)} is given twice; keep one"
    return None
