"""Rows of class names: by the text side of an encoder, or through public rows that have class names
too.

Class names are public, and so is all that is computed here.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.data.labels import class_list
from tacit.data.rows import as_rows, checked_blocks
from tacit.encoding.encoders import load_encoder
from tacit.encoding.encoders.base import Features, OtherKindError
from tacit.encoding.encoders.batches import encode_records
from tacit.encoding.sources.base import Source, stamp
from tacit.errors import InputError, quoted
from tacit.models.rows import Floats, unit_rows

TEMPLATE = "{}"
# candidates; the first is used for too few public classes
TEMPERATURES = (0.05, 0.03, 0.07, 0.1, 0.15)
TOLD = 500  # public classes, at most, by which a temperature is judged
LEAST = 1e-9  # of the longest direction, below which a direction is rounding error


def load_text_side(encoder: str, **options: Any) -> Features:
    """The text side of an encoder, loaded by `load_encoder` with these options; InputError if it
    has none.
    """
    try:
        return load_encoder(encoder, kind="text", **options)
    except OtherKindError as error:
        raise InputError(
            f"{encoder} has no text side that encodes class names; take sentence-transformers:NAME"
            " with --through STORE, a store of public labelled rows of this encoder"
        ) from error


def names_source(
    classes: Any, templates: Sequence[str] = (TEMPLATE,), descriptions: Sequence[str] | None = None
) -> Source:
    """Class names in every template as a source of texts, one row for each class and template,
    labelled by class.

    Parameters
    ----------
    classes : list or int
        The class list. Its names are the texts, with spaces for underscores.
    templates : sequence of str
        Such as "a photo of a {}"; the name replaces "{}".
    descriptions : sequence of str, optional
        What to encode for each class instead of its name, in the order of `classes`.

    Raises
    ------
    InputError
        If there is no class or no template, a class or template is named twice, a template lacks
        "{}", or a description is empty.
    """
    listed = class_list(classes)
    if not templates:
        raise InputError('templates are empty; give one at least, such as "{}"')
    for template in templates:
        if TEMPLATE not in template:
            raise InputError(
                f'template {quoted(template)} lacks {{}}, which the name replaces; write "a photo'
                ' of a {}"'
            )
        if list(templates).count(template) > 1:
            raise InputError(f"template {quoted(template)} is given twice; remove one")
    words = (
        [str(name).replace("_", " ") for name in listed]
        if descriptions is None
        else list(descriptions)
    )
    if len(words) != len(listed):
        raise InputError(
            f"there are {len(words)} texts for {len(listed)} classes; give one for each, in their"
            " order"
        )
    if not all(word.strip() for word in words):
        raise InputError("the text of a class is empty; give one for each class")
    texts = [template.replace(TEMPLATE, word) for word in words for template in templates]
    facts = {"what": "rows of class names", "templates": list(templates)}
    labels = np.repeat(np.asarray(listed), len(templates))
    return Source(
        "text",
        texts,
        lambda first: iter(texts[first:]),
        stamp(texts, listed),
        labels,
        listed,
        True,
        facts={"names": facts},
    )


def encode_names(
    classes: Any,
    encoder: str | Features,
    *,
    templates: Sequence[str] = (TEMPLATE,),
    descriptions: Sequence[str] | None = None,
    batch: int | None = None,
    **options: Any,
) -> list[NDArray[np.float32]]:
    """Encode the name of each class in every template by the text side of an encoder.

    Parameters
    ----------
    classes : list or int
        The class list; underscores in names become spaces in texts.
    encoder : str or Features
        "FAMILY:NAME" of a family that takes texts (sentence-transformers, open_clip, CLIP and
        SigLIP of transformers), or what `load_text_side` returned.
    templates : sequence of str
        Such as "a photo of a {}"; the name replaces "{}".
    descriptions : sequence of str, optional
        What to encode for each class instead of its name, in the order of `classes`.
    batch : int, optional
        Texts at a time.
    **options
        Of `load_encoder`.

    Returns
    -------
    list of arrays of shape (templates, dim)
        In the order of `classes`, as learners take them in `names=`.

    Raises
    ------
    InputError
        If the encoder has no text side, or as for `names_source`.
    """
    source = names_source(classes, templates, descriptions)
    features = load_text_side(encoder, **options) if isinstance(encoder, str) else encoder
    rows = encode_records(list(source.names), features, batch)
    return list(rows.reshape(-1, len(templates), rows.shape[1]))


def names_through(
    names: Sequence[ArrayLike],
    public_names: Sequence[ArrayLike],
    X: Any,
    y: ArrayLike,
    *,
    temperature: float | None = None,
) -> NDArray[np.float64]:
    """Rows of class names in the space of public rows whose classes have names too, for encoders
    without a text side.

    The direction of class c from g, the mean of the unit public rows, is sum_k w_ck (mu_k - g):
    mu_k is the mean of the unit public rows of class k, and w_c the softmax over k of cos(name c,
    public name k) / temperature. The row of class c is the unit row in this direction from g (g
    itself where the sum is 0): a mean is shorter than a row, and would change its direction where a
    learner scales rows to norm 1 before it subtracts g. Public classes without rows have no part in
    it.

    Parameters
    ----------
    names : sequence of C arrays of shape (t,) or (templates, t)
        The class names by any text encoder, such as `encode_names` returns; templates are averaged
        as unit rows.
    public_names : sequence of K arrays of shape (t,) or (templates, t)
        The names of the public classes by the same text encoder.
    X : array of shape (n, d)
        Public rows by the encoder of the private rows.
    y : array of shape (n,)
        The position of each row's class in `public_names`.
    temperature : float, optional
        Of the softmax; by default the one of `TEMPERATURES` at which each public class's direction
        is best predicted from the other classes.

    Returns
    -------
    ndarray of shape (C, d)

    Raises
    ------
    InputError
        If widths of names differ, a label is not a position in `public_names`, or `temperature` is
        not above 0.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.encoding.names import names_through
    >>> X, y = np.array([[2.0, 0.0], [0.0, 3.0]]), [0, 1]
    >>> names_through([[1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]], X, y).round(3)
    array([[1., 0.]])
    """
    if temperature is not None and not temperature > 0:
        raise InputError(
            f"temperature={temperature} must be above 0; leave it out and public names choose it"
        )
    private, public = _directions(names, "names"), _directions(public_names, "public_names")
    if private.shape[1] != public.shape[1]:
        fault = f"names have {private.shape[1]} columns and public_names {public.shape[1]}"
        raise InputError(f"{fault}; encode both by the same text encoder")
    means, sizes = _class_means(X, np.asarray(y), len(public))
    known = sizes > 0
    public, sizes, centre = public[known], sizes[known], sizes @ means / sizes.sum()
    spread = means[known] - centre
    towards = (
        _weights(private @ public.T, temperature or _best_temperature(public, spread, sizes))
        @ spread
    )
    towards[np.linalg.norm(towards, axis=1) <= LEAST * np.linalg.norm(spread, axis=1).max()] = 0.0
    return np.asarray(centre + _distance(centre, towards) * towards)


def _weights(cosines: Floats, temperature: float) -> Floats:
    from scipy.special import softmax

    return np.asarray(softmax(cosines / temperature, axis=1))


def _best_temperature(names: Floats, spread: Floats, sizes: NDArray[np.int64]) -> float:
    """The temperature at which each public class's direction is best predicted from the other
    classes.

    Both directions are those from the mean row of the other classes: `spread` (K, d) is about the
    mean of all.
    """
    if len(spread) < 4:
        return TEMPERATURES[0]
    told = np.linspace(0, len(names) - 1, min(len(names), TOLD), dtype=int)
    cosines = names[told] @ names.T
    cosines[np.arange(len(told)), told] = -np.inf
    own = spread[told]
    moved = (sizes[told] / (sizes.sum() - sizes[told]))[:, None] * own

    def likeness(temperature: float) -> float:
        return float(
            (unit_rows(_weights(cosines, temperature) @ spread + moved) * unit_rows(own)).sum()
        )

    return max(TEMPERATURES, key=likeness)


def _distance(centre: Floats, towards: Floats) -> Floats:
    """Compute how many times `towards` (n, d) leads from the centre (d,), which is inside the unit
    ball, to its surface.
    """
    squares = np.maximum((towards**2).sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    along = towards @ centre[:, None]
    return np.asarray(
        (np.sqrt(along**2 + squares * max(1 - centre @ centre, 0.0)) - along) / squares
    )


def _directions(names: Sequence[ArrayLike], name: str) -> Floats:
    """The mean of each class's unit rows, as a unit row."""
    rows = [
        as_rows(np.atleast_2d(np.asarray(of_class, np.float64)), f"{name}[{c}]")
        for c, of_class in enumerate(names)
    ]
    widths = {of_class.shape[1] for of_class in rows}
    if len(widths) != 1:
        raise InputError(f"{name} has rows of {len(widths)} widths; encode all by one text encoder")
    return unit_rows(np.stack([unit_rows(of_class).mean(axis=0) for of_class in rows]))


def _class_means(X: Any, y: NDArray[Any], n_classes: int) -> tuple[Floats, NDArray[np.int64]]:
    """The mean of the unit rows of each class, (n_classes, d), and how many rows each has."""
    X = as_rows(X, "X")
    if y.shape != (len(X),) or y.dtype.kind not in "iu" or y.min() < 0 or y.max() >= n_classes:
        raise InputError(
            f"y must have the position in public_names, 0 to {n_classes - 1}, of each of {len(X)}"
            " rows"
        )
    sums, first = np.zeros((n_classes, X.shape[1])), 0
    for block in checked_blocks(X, dtype=np.dtype(np.float64), name="X"):
        of_block = y[first : first + len(block)]
        np.add.at(sums, of_block, unit_rows(block))
        first += len(block)
    sizes = np.bincount(y, minlength=n_classes)
    return sums / np.maximum(sizes, 1)[:, None], sizes
