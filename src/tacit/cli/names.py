"""`--names` of several commands: rows of class names from a store or file, in the order of the
class list.
"""

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.cli.common import check_apart, check_other_data
from tacit.errors import InputError

if TYPE_CHECKING:
    from tacit.data.imports import Data
    from tacit.data.names import ClassNames

NONE, TEXTS = "none", (".txt", ".csv", ".tsv")
WHY = "rows of class names must be public"


def names_for(option: str | None, data: "Data", classes: Any, store: Path) -> "ClassNames | None":
    """The rows of class names of `--names`, by default those that the data carry; None for `none`
    or without any.

    Parameters
    ----------
    option : str or None
        A store, a file that `tacit import` reads, or `none`.
    data : EmbeddingStore or Arrays
        The records, which were read from `store`.
    classes : list, int or None
        The declared class list.
    store : path

    Raises
    ------
    InputError
        If names are the records themselves, no class list is declared, or the names do not have its
        classes.
    """
    from tacit.data.imports import read_data
    from tacit.data.labels import class_list
    from tacit.data.locations import located
    from tacit.data.names import carried_names, check_through, names_of
    from tacit.data.overlap import encoded_alike

    if option == NONE or (option is None and data.names is None):
        return None
    if classes is None:
        shown = f"the names of {store}" if option is None else f"--names {option}"
        raise InputError(
            f"{shown} need a declared class list, which orders them; declare it with --classes FILE"
        )
    listed = class_list(classes)
    if option is None:
        carried = carried_names(data, listed, f"{store}, by the names that it carries,")
        if carried is not None:
            check_through(carried, data, f"the names that {store} carries")
        return carried
    if not option.strip():
        raise InputError(f"--names {option!r} names no data; give a store, a file, or {NONE}")
    path = Path(option)
    if path.suffix in TEXTS and path.is_file():
        made = f"tacit encode --texts {path} --encoder ENCODER --out STORE"
        raise InputError(
            f"--names {path} holds words, and --names takes rows; make them with {made}"
        )
    check_apart("names", located(path), store, WHY)
    names = read_data(path, width=data.x.shape[1])
    check_other_data("names", path, names, data, store, WHY)
    if not encoded_alike(names, data):
        said = f"--names {path} and {store} state encoders with other weights"
        warnings.warn(f"{said}; names help only in the space of the private rows", stacklevel=2)
    found = names_of(names, listed, f"--names {path}")
    check_through(found, data, f"--names {path}")
    return found
