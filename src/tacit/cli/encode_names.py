"""`tacit encode --texts` and `--template`: rows of class names, as a store or carried by a store of
records.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.cli.common import class_values, read_lines, say
from tacit.cli.options import Out
from tacit.errors import InputError

if TYPE_CHECKING:
    from tacit.data.imports import Data
    from tacit.data.names import ClassNames
    from tacit.encoding.encoders.base import Features
    from tacit.encoding.sources.base import Source


def check_alone(texts: Path | None, options: Mapping[str, object]) -> None:
    """Without a source, refuse options for one; class names must be there."""
    if texts is None:
        raise InputError(
            "there is nothing to encode; give a source, or class names by --texts FILE"
        )
    for name, value in options.items():
        if value not in (None, False):
            shown = f"--{name}" if value is True else f"--{name} {value}"
            raise InputError(
                f"{shown} is for a source of records, and --texts {texts} is encoded; leave it out"
            )


def class_texts(texts: Path | None, classes: Any) -> tuple[Any, list[str] | None]:
    """The class list of `--texts`, or that of `classes` with the texts of `--texts` for it, if
    there are any.
    """
    if texts is None:
        return classes, None
    lines = _texts("texts", texts)
    return (class_values(lines), None) if classes is None else (classes, lines)


def _texts(option: str, path: Path) -> list[str]:
    try:
        lines = read_lines(path)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"--{option} {path} is not a readable text file; give one class name per line"
        ) from error
    if not lines:
        raise InputError(f"--{option} {path} holds no class names; give one per line")
    return lines


def names_to_carry(
    sources: Iterable["Source"],
    classes: Any,
    texts: Path | None,
    templates: Sequence[str],
    features: "Features",
) -> "ClassNames":
    """Rows of the names of the classes that `--classes` or all sources declare."""
    from tacit.data.labels import class_list
    from tacit.data.names import ClassNames
    from tacit.encoding.names import encode_names

    lists = [source.classes if source.classes_declared else None for source in sources]
    listed = lists[0] if classes is None else class_list(classes)
    if listed is None or (classes is None and any(other != listed for other in lists)):
        raise InputError(
            "class names follow a declared class list, one for all splits; declare it with"
            " --classes FILE"
        )
    _, descriptions = class_texts(texts, listed)
    rows = encode_names(listed, features, templates=templates, descriptions=descriptions)
    facts = {"name": "class names", "encoder": features.card, "templates": list(templates)}
    return ClassNames(list(rows), facts)


@dataclass(frozen=True, eq=False)
class PublicClasses:
    """Labelled public rows, their classes and the words for these, through which names of other
    classes are placed.
    """

    data: "Data"
    labels: Any
    classes: list[Any]
    words: list[str] | None

    @classmethod
    def read(cls, through: Path, through_texts: Path | None) -> "PublicClasses":
        """Read the store of `--through`, and the words of `--through-texts` or else of its card."""
        import numpy as np

        from tacit.data.imports import read_data

        public = read_data(through, check=False)
        labels = public.labels
        if labels is None:
            raise InputError(
                f"--through {through} holds no labels; give public rows with their class names"
            )
        if public.several:
            raise InputError(
                f"--through {through} has several labels a record, and each public row stands for"
                " one class; give rows of one class each"
            )
        known = list(public.classes or np.unique(labels).tolist())
        stated = (
            public.card.get("class_words")
            if through_texts is None
            else _texts("through-texts", through_texts)
        )
        words = [str(text) for text in stated] if isinstance(stated, list) else None
        if words is None and not isinstance(known[0], str):
            raise InputError(
                f"--through {through} has classes without names; give one text for each by"
                " --through-texts FILE"
            )
        return cls(public, labels, known, words)


def write_through(
    out: Out,
    public: PublicClasses,
    classes: Any,
    descriptions: Sequence[str] | None,
    templates: Sequence[str],
    features: "Features",
    **options: Any,
) -> None:
    """Write a store of class names in the space of public labelled rows, and say so; options are
    those of `write`.
    """
    import numpy as np

    from tacit.data.embeddings import EmbeddingStore
    from tacit.data.labels import class_list, encode_labels
    from tacit.encoding.names import encode_names, names_through

    data, known, listed = public.data, public.classes, class_list(classes)
    names = encode_names(listed, features, templates=templates, descriptions=descriptions)
    public_names = encode_names(known, features, templates=templates, descriptions=public.words)
    rows = names_through(names, public_names, data.x, encode_labels(public.labels, known))
    source = {"name": data.identity, "hash": data.content_hash}
    facts = {
        "what": "rows of class names",
        "encoder": features.card,
        "templates": list(templates),
        "through": source,
    }
    card = {"names": facts} | ({"encoder": data.card["encoder"]} if "encoder" in data.card else {})
    store = EmbeddingStore.write(
        out, rows, np.asarray(listed), classes=listed, card=card, **options
    )
    say(
        f"{out}: {store.rows} rows of class names of width {store.dim}, through {len(known)} public"
        " classes"
    )
