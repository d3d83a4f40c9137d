"""Where the parts of a YAML file are, so that an error names the line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from tacit.errors import InputError, TacitError, excerpt, quoted

DEEPEST = 50
LONGEST = 200  # letters of a value: errors of learners quote it
MOST_BYTES = 1 << 17  # of a plan; the scanner takes a second for each 60 kB
MOST_PARTS = 10_000  # counted once for each alias that leads to them
PathOfPart = Sequence[str | int]
T = TypeVar("T")


class PlanError(InputError):
    """A plan cannot be read; `path` leads to the part at fault, and the message names its line once it is `placed`."""

    def __init__(self, message: str, path: PathOfPart = (), *, placed: bool = False) -> None:
        super().__init__(message)
        self.path, self.placed = tuple(path), placed


class Lines:
    """Where the parts of a YAML file are: from paths of keys and positions to line numbers."""

    def __init__(self, file: Path, numbers: Mapping[tuple[str | int, ...], int]) -> None:
        self.file, self.numbers = file, numbers

    def of(self, path: PathOfPart) -> int:
        """The line of the part, or of what holds it."""
        parts = tuple(path)
        while parts not in self.numbers:
            parts = parts[:-1]
        return self.numbers[parts]

    @contextmanager
    def placing_errors(self, path: PathOfPart = ()) -> Iterator[None]:
        """A context in which errors get the file and the line: of their own path, or of this one."""
        try:
            yield
        except PlanError as error:
            if error.placed:
                raise
            raise self.error(str(error), error.path or path) from error
        except TacitError as error:
            raise self.error(str(error), path) from error

    def error(self, message: str, path: PathOfPart) -> PlanError:
        """An error that names the file and the line."""
        return PlanError(f"plan {self.file}, line {self.of(path)}: {message}", path, placed=True)


def parsed(text: str, file: Path) -> tuple[Lines, Any]:
    """The values of a YAML text, and where they are.

    Raises
    ------
    PlanError
        If it is no YAML, or a mapping has a key twice.
    """
    import yaml

    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        numbers: dict[tuple[str | int, ...], int] = {(): 1}
        if node is not None:
            numbers |= dict(_counted(_numbered(node, ()), file))
        return Lines(file, numbers), None if node is None else loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        line = 1 if error.problem_mark is None else error.problem_mark.line + 1
        said = excerpt(str(error.problem or error.context))
        raise PlanError(f"plan {file}, line {line}: this is not YAML ({said}); correct it") from None
    except PlanError:
        raise
    except (
        yaml.YAMLError,
        ArithmeticError,
        AttributeError,
        LookupError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        said = excerpt(str(error))
        raise PlanError(f"plan {file}: this is not YAML of plain values ({said}); correct it") from None
    except _Fault as error:
        raise PlanError(f"plan {file}, line {error.line}: {error}") from None


def _counted(parts: Iterator[T], file: Path) -> Iterator[T]:
    """The parts, of which there are not too many."""
    for number, part in enumerate(parts):
        if number == MOST_PARTS:
            raise PlanError(
                f"plan {file} has more than {MOST_PARTS} parts, counted once for each alias; write a shorter one"
            )
        yield part


class _Fault(Exception):
    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


def _numbered(node: Any, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], int]]:
    import yaml

    if len(path) > DEEPEST:
        raise _Fault("parts are nested without end; plans are not", node.start_mark.line + 1)
    yield path, node.start_mark.line + 1
    if isinstance(node, yaml.ScalarNode) and len(node.value) > LONGEST and path[:1] not in (("about",), ("data",)):
        raise _Fault(f"a value has {len(node.value)} letters, at most {LONGEST} can be", node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        seen = set()
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                raise _Fault("a key is a list or a mapping; keys are plain words", line)
            if len(key.value) > LONGEST:
                raise _Fault(f"a key has {len(key.value)} letters, at most {LONGEST} can be", line)
            if key.value in seen:
                raise _Fault(f"{quoted(key.value)} is given twice; keep one", line)
            seen.add(key.value)
            yield from _numbered(value, (*path, key.value))
            yield (*path, key.value), line
    elif isinstance(node, yaml.SequenceNode):
        for number, value in enumerate(node.value):
            yield from _numbered(value, (*path, number))
