"""Line numbers of the parts of a YAML file, so that an error names the line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.errors import InputError, TacitError, excerpt, quoted

DEEPEST = 50
LONGEST = 200  # characters of a value, since errors of learners quote it
MOST_BYTES = 1 << 17  # of a plan; the scanner takes a second for each 60 kB
MOST_PARTS = 10_000  # counted once for each alias that leads to them
NOT_PLAIN = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""Errors of the loader at values that are not plain."""
KeyPath = Sequence[str | int]
"""Keys and positions that lead to a part."""


class PlanError(InputError):
    """A plan cannot be used; `path` leads to the faulty part, and a `placed` message names the file
    and the line.
    """

    def __init__(self, message: str, path: KeyPath = (), *, placed: bool = False) -> None:
        super().__init__(message)
        self.path, self.placed = tuple(path), placed


@dataclass(frozen=True)
class Lines:
    """The line numbers of a YAML file's parts, by their paths."""

    file: Path
    numbers: Mapping[tuple[str | int, ...], int]

    def of(self, path: KeyPath) -> int:
        """The line of the part, or of what holds it."""
        parts = tuple(path)
        while parts not in self.numbers:
            parts = parts[:-1]
        return self.numbers[parts]

    @contextmanager
    def placing_errors(self, path: KeyPath = ()) -> Iterator[None]:
        """Add the file and the line to errors raised in this block; an error's path takes
        precedence over `path`.
        """
        try:
            yield
        except TacitError as error:
            if isinstance(error, PlanError) and error.placed:
                raise
            place = getattr(error, "path", ()) or path
            raise _placed(self.file, self.of(place), str(error), place) from error


def _placed(file: Path, line: int, message: str, path: KeyPath = ()) -> PlanError:
    return PlanError(f"plan {file}, line {line}: {message}", path, placed=True)


def parsed(text: str, file: Path) -> tuple[Lines, Any]:
    """The line numbers and the values of a YAML text; PlanError for a repeated key, or nesting
    without end.
    """
    import yaml

    numbers: dict[tuple[str | int, ...], int] = {(): 1}
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        for count, (path, line) in enumerate(_numbered(node, (), file) if node else ()):
            if count == MOST_PARTS:
                fault = (
                    f"has more than {MOST_PARTS} parts, counted once for each alias; write a"
                    " shorter one"
                )
                raise PlanError(f"plan {file} {fault}", placed=True)
            numbers[path] = line
        return Lines(file, numbers), loader.construct_document(node) if node else None
    except PlanError:
        raise
    except yaml.MarkedYAMLError as error:
        line = 1 if error.problem_mark is None else error.problem_mark.line + 1
        fault = excerpt(str(error.problem or error.context))
        raise _placed(file, line, f"this is not YAML ({fault}); correct it") from None
    except (yaml.YAMLError, *NOT_PLAIN) as error:
        fault = excerpt(str(error))
        raise PlanError(
            f"plan {file}: this is not YAML of plain values ({fault}); correct it", placed=True
        ) from None


def _numbered(
    node: Any, path: tuple[str | int, ...], file: Path
) -> Iterator[tuple[tuple[str | int, ...], int]]:
    """The paths and line numbers of a node and of all nodes in it."""
    import yaml

    line = node.start_mark.line + 1
    if len(path) > DEEPEST:
        raise _placed(file, line, "parts are nested without end; plans are not")
    yield path, line
    if isinstance(node, yaml.SequenceNode):
        for number, value in enumerate(node.value):
            yield from _numbered(value, (*path, number), file)
    elif isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            line = key.start_mark.line + 1
            if fault := _fault_of_key(key, seen):
                raise _placed(file, line, fault)
            seen.add(key.value)
            yield from _numbered(value, (*path, key.value), file)
            yield (*path, key.value), line
    elif len(node.value) > LONGEST and path[:1] not in (("about",), ("data",)):
        raise _placed(
            file, line, f"a value has {len(node.value)} letters, at most {LONGEST} can be"
        )


def _fault_of_key(key: Any, seen: set[str]) -> str | None:
    if not isinstance(key.value, str):
        return "a key is a list or a mapping; keys are plain words"
    if len(key.value) > LONGEST:
        return f"a key has {len(key.value)} letters, at most {LONGEST} can be"
    return f"{quoted(key.value)} is given twice; keep one" if key.value in seen else None
