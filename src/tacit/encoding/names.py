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
from tacit.encoding.encoders.batches import encode_records, warn_of_cut
from tacit.encoding.sources.base import Source, stamp
from tacit.errors import InputError, quoted
from tacit.models.rows import Floats, unit_rows

TEMPLATE = "{}"

# candidates for the temperature; the first is used for too few public classes
TEMPERATURES = (0.05, 0.03, 0.07, 0.1, 0.15)

# public classes needed to choose a temperature, and the most by which one is judged
FEWEST_JUDGES = 4
MOST_JUDGES = 500

# share of the longest direction below which a direction is rounding error
LEAST = 1e-9


def load_text_side(encoder: str, **options: Any) -> Features:
    """Load the text side of an encoder by `load_encoder` with these options; InputError if it has
    none.
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
    """Make class names in every template a source of texts, one row for each class and template,
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
    class_values = class_list(classes)
    _check_templates(templates)
    if descriptions is None:
        words = [str(name).replace("_", " ") for name in class_values]
    else:
        words = list(descriptions)
    if len(words) != len(class_values):
        raise InputError(
            f"there are {len(words)} texts for {len(class_values)} classes; give one for each, in"
            " their order"
        )
    if not all(word.strip() for word in words):
        raise InputError("the text of a class is empty; give one for each class")

    texts = []
    for word in words:
        texts += [template.replace(TEMPLATE, word) for template in templates]
    facts = {"what": "rows of class names", "templates": list(templates)}
    return Source(
        "text",
        texts,
        lambda start: iter(texts[start:]),
        stamp(texts, class_values),
        labels=np.repeat(np.asarray(class_values), len(templates)),
        classes=class_values,
        classes_declared=True,
        facts={"names": facts},
    )


def _check_templates(templates: Sequence[str]) -> None:
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

    # (classes * templates, dim), the rows of a class one after another
    rows, n_cut = encode_records(list(source.names), features, batch)
    warn_of_cut(n_cut, "shorten them", stacklevel=2)
    return list(rows.reshape(-1, len(templates), rows.shape[1]))


def names_through(
    names: Sequence[ArrayLike],
    public_names: Sequence[ArrayLike],
    X: Any,
    y: ArrayLike,
    *,
    temperature: float | None = None,
) -> NDArray[np.float64]:
    """Compute rows of class names in the space of public rows whose classes have names too, for
    encoders without a text side.

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
    name_rows = _unit_means(names, "names")  # (C, t)
    public_name_rows = _unit_means(public_names, "public_names")  # (K, t)
    if name_rows.shape[1] != public_name_rows.shape[1]:
        fault = (
            f"names have {name_rows.shape[1]} columns and public_names {public_name_rows.shape[1]}"
        )
        raise InputError(f"{fault}; encode both by the same text encoder")

    # g, (d,), and mu_k - g, (K, d), of the public classes that have rows
    means, sizes = _class_means(X, np.asarray(y), len(public_name_rows))
    centre = sizes @ means / sizes.sum()
    has_rows = sizes > 0
    public_name_rows = public_name_rows[has_rows]
    sizes = sizes[has_rows]
    deviations = means[has_rows] - centre

    if temperature is None:
        temperature = _best_temperature(public_name_rows, deviations, sizes)
    directions = _weights(name_rows @ public_name_rows.T, temperature) @ deviations

    # weights that are all alike sum to 0 but for rounding errors, which have no direction
    longest = np.linalg.norm(deviations, axis=1).max()
    directions[np.linalg.norm(directions, axis=1) <= LEAST * longest] = 0.0
    return np.asarray(centre + _multiples_to_sphere(centre, directions) * directions)


def _weights(cosines: Floats, temperature: float) -> Floats:
    """Return the softmax over public classes, one row for each class."""
    from scipy.special import softmax

    return np.asarray(softmax(cosines / temperature, axis=1))


def _best_temperature(names: Floats, deviations: Floats, sizes: NDArray[np.int64]) -> float:
    """Return the temperature at which each public class's direction is best predicted from the
    other classes.

    Both directions are those from the mean of the other classes, g - r_k (mu_k - g), where r_k is
    the number of rows of class k over that of the others. `deviations`, (K, d), are mu_k - g.
    """
    if len(deviations) < FEWEST_JUDGES:
        return TEMPERATURES[0]

    # classes by which a temperature is judged, evenly spaced; none has a weight for itself
    judges = np.linspace(0, len(names) - 1, min(len(names), MOST_JUDGES), dtype=int)
    cosines = names[judges] @ names.T
    cosines[np.arange(len(judges)), judges] = -np.inf

    # seen from the mean of the others, g lies at r_k (mu_k - g) and mu_k in the same direction
    true_directions = deviations[judges]
    ratios = sizes[judges] / (sizes.sum() - sizes[judges])
    shifts = ratios[:, None] * true_directions

    def total_cosine(temperature: float) -> float:
        """Return the sum of the cosines of predicted and true directions."""
        predicted = _weights(cosines, temperature) @ deviations + shifts
        return float((unit_rows(predicted) * unit_rows(true_directions)).sum())

    return max(TEMPERATURES, key=total_cosine)


def _multiples_to_sphere(centre: Floats, directions: Floats) -> Floats:
    """Return the positive t for which centre + t * direction has length 1, (n, 1).

    The centre, (d,), lies in the unit ball. t solves |v|^2 t^2 + 2 (v.g) t + |g|^2 - 1 = 0 for
    the direction v and the centre g.
    """
    squares = (directions**2).sum(axis=1, keepdims=True)
    # a direction of zeros stays where it is, whatever t
    squares = np.maximum(squares, np.finfo(np.float64).tiny)
    products = directions @ centre[:, None]
    remaining_square = max(1 - centre @ centre, 0.0)
    roots = np.sqrt(products**2 + squares * remaining_square)
    return np.asarray((roots - products) / squares)


def _unit_means(names: Sequence[ArrayLike], name: str) -> Floats:
    """Return the mean of each class's unit rows, as a unit row; (classes, t)."""
    rows_of_classes = [
        as_rows(np.atleast_2d(np.asarray(rows, np.float64)), f"{name}[{c}]")
        for c, rows in enumerate(names)
    ]
    widths = {rows.shape[1] for rows in rows_of_classes}
    if len(widths) != 1:
        raise InputError(f"{name} has rows of {len(widths)} widths; encode all by one text encoder")
    return unit_rows(np.stack([unit_rows(rows).mean(axis=0) for rows in rows_of_classes]))


def _class_means(X: Any, y: NDArray[Any], n_classes: int) -> tuple[Floats, NDArray[np.int64]]:
    """Return the mean of the unit rows of each class, (n_classes, d), and its number of rows."""
    X = as_rows(X, "X")
    if y.shape != (len(X),) or y.dtype.kind not in "iu" or y.min() < 0 or y.max() >= n_classes:
        raise InputError(
            f"y must have the position in public_names, 0 to {n_classes - 1}, of each of {len(X)}"
            " rows"
        )
    sums = np.zeros((n_classes, X.shape[1]))
    start = 0
    for block in checked_blocks(X, dtype=np.dtype(np.float64), name="X"):
        classes_of_block = y[start : start + len(block)]
        np.add.at(sums, classes_of_block, unit_rows(block))
        start += len(block)
    sizes = np.bincount(y, minlength=n_classes)

    # a class without rows has a mean of zeros
    return sums / np.maximum(sizes, 1)[:, None], sizes
