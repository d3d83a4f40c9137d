"""Ids of persons from files: one per line, an array, or a column of a table. No error shows an id.

They are given as they are read; `person_ids` brings them into the form in which they are compared.
"""

from pathlib import Path
from typing import Any

from tacit.data.formats.npy import map_npy
from tacit.data.places import ROWS, Places
from tacit.data.tables import is_table, open_table
from tacit.errors import InputError

COLUMNS = (
    "person",
    "persons",
    "person_id",
    "patient",
    "patient_id",
    "subject",
    "subject_id",
    "user",
    "user_id",
)
"""Usual names of a column of ids, in letters of any case."""


def is_ids_file(persons: str) -> bool:
    """Tell whether this names a file, or FILE#COLUMN a table, rather than a column."""
    return _file_and_column(persons) is not None


def read_ids(persons: str) -> Any:
    """Read the ids in a file: each line of a text, an `.npy` array, or a column of a table, which
    FILE#COLUMN names.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> _ = Path(folder, "ids.txt").write_text("anna\\nbert\\nanna\\n")
    >>> read_ids(f"{folder}/ids.txt")
    ['anna', 'bert', 'anna']
    """
    file_and_column = _file_and_column(persons)
    if file_and_column is None:
        raise InputError(f"persons={persons} is not a file; give a file with one id per line")
    path, column = file_and_column

    if is_table(path):
        table = open_table(path)
        return table.column(_column(table.names, column, path))
    if column is not None:
        raise InputError(
            f"persons={persons} names a column, and {path} is not a table; leave #{column} out"
        )
    if path.suffix == ".npy":
        return map_npy(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"persons={persons} is not a readable text in UTF-8; give one id per line"
        ) from error
    return text.rstrip("\n").split("\n")


def places_of_ids(persons: str) -> Places:
    """Return the places of the ids in the file that `persons` names."""
    file_and_column = _file_and_column(persons)
    if file_and_column is None:
        return ROWS
    path, _ = file_and_column
    if is_table(path):
        return open_table(path).places
    return ROWS if path.suffix == ".npy" else Places((path,), counts_empty=True)


def _file_and_column(persons: str) -> tuple[Path, str | None] | None:
    """Return the file, and the column that FILE#COLUMN names; None if there is no such file."""
    if Path(persons).is_file() or ("/" in persons and _is_folder(persons)):
        return Path(persons), None
    file, mark, column = persons.rpartition("#")
    if mark and (Path(file).is_file() or _is_folder(file)):
        return Path(file), column
    return None


def _is_folder(path: str) -> bool:
    """Tell whether this is a folder of the parts of a table, or a saved one."""
    return Path(path).is_dir() and is_table(Path(path))


def _column(names: list[str], column: str | None, path: Path) -> str:
    """Choose the column of ids: by its name, else the only column, or the one with a usual name.

    Errors do not list the columns: those of a table without a header would be ids.
    """
    if column is not None:
        candidates = [name for name in names if name == column]
        description = repr(column)
    else:
        candidates = names
        if len(names) != 1:
            candidates = [name for name in names if name.lower() in COLUMNS]
        description = "whose name is a usual one"

    if len(candidates) != 1:
        fault = f"{path} has {len(candidates)} columns {description}"
        raise InputError(f"{fault}; name the one of ids: {path}#COLUMN")
    return candidates[0]
