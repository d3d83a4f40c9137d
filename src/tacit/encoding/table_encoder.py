"""TableEncoder: rows of tables by a declared schema, in a pipeline that a release can carry."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from tacit.encoding.encoders import load_encoder
from tacit.encoding.encoders.base import Features
from tacit.encoding.encoders.batches import warn_of_cut
from tacit.encoding.encoders.estimator import encode_and_count
from tacit.models.table_columns import CUT_OFF, Embedded, Encode
from tacit.models.table_schema import TableSchema


class TableEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Turn records of a table into rows by a declared schema.

    Each column becomes a block of norm 1, so that every row has norm sqrt(number of columns):
    numbers become one-hot cells between declared bounds, categories one-hot levels, dates one-hot
    parts; a missing value is a level of its own. `fit` reads no data. Columns are matched by name;
    others are left out.

    Parameters
    ----------
    schema : str, Path, dict or TableSchema
        A YAML file, or its values; docs/tables.md has the form. It must be declared from public
        knowledge: bounds or levels that were read off private records are outside every guarantee.

    Notes
    -----
    Guarantee: nothing is spent, since the schema is public and a row follows from its record alone.
    A pipeline has the guarantee of the learner that follows.

    Examples
    --------
    >>> import numpy as np, tacit
    >>> from sklearn.pipeline import make_pipeline
    >>> schema = {
    ...     "columns": {
    ...         "age": {"kind": "number", "low": 0, "high": 100, "cells": 4},
    ...         "plan": {"kind": "category", "levels": ["free", "paid"]},
    ...     }
    ... }
    >>> table = {"plan": ["free", "paid", None] * 100, "age": [20, 70, 130] * 100}
    >>> y = ["stays", "leaves", "leaves"] * 100
    >>> tacit.TableEncoder(schema).transform(table)[:1]
    array([[1., 0., 0., 0., 0., 1., 0., 0., 0.]], dtype=float32)
    >>> learner = tacit.NoisySumPrototypes("rho=1", classes=["stays", "leaves"])
    >>> pipeline = make_pipeline(tacit.TableEncoder(schema), learner).fit(table, y)
    >>> release = tacit.Release.of(pipeline, name="churn")
    >>> release.predict({"age": [25], "plan": ["free"]})
    array(['stays'], dtype='<U6')
    """

    def __init__(self, schema: Any) -> None:
        self.schema = schema

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Do nothing; a schema is declared."""
        return self

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Return the rows of a table, of shape (n, width).

        Parameters
        ----------
        X : data frame, Arrow table or dict of columns
            With the columns of the schema, in any order.

        Raises
        ------
        InputError
            If a column is missing, or the schema is incomplete.

        Warns
        -----
        UserWarning
            If texts are longer than their encoder reads, with their number.
        """
        schema = self.loaded_schema()
        coded = schema.coded(X)
        n_cut = sum(faults.get(CUT_OFF, 0) for faults in coded.faults.values())
        warn_of_cut(n_cut, "shorten them", stacklevel=2)
        return schema.rows(coded.codes)

    def faults(self, X: Any) -> list[str]:
        """Return a line for each column with cells out of bounds, of no declared level, or longer
        than their encoder reads.

        The counts are exact, so those of private records are for their owner alone.
        """
        return self.loaded_schema().coded(X).lines()

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the name of each column of the rows, such as "sex = Female"."""
        return np.array(self.loaded_schema().feature_names(), dtype=object)

    def loaded_schema(self) -> TableSchema:
        """Return the schema, checked, with encoders of texts and pictures loaded."""
        cached_key, schema = getattr(self, "_loaded", (None, None))
        key = str(self.schema)
        if isinstance(self.schema, str | Path) or schema is None or cached_key != key:
            schema = with_encoders(TableSchema.of(self.schema))
            self._loaded = (key, schema)
        return schema

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.no_validation = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __getstate__(self) -> dict[str, Any]:
        # a copy in another process loads encoders again
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_loaded"}


def with_encoders(schema: TableSchema) -> TableSchema:
    """Load the encoders of columns of texts and pictures, each once."""
    loaded: dict[tuple[str, str], tuple[Encode, int]] = {}

    def load(column: Embedded) -> tuple[Encode, int]:
        key = (column.kind, column.encoder)
        if key not in loaded:
            loaded[key] = _load(column)
        return loaded[key]

    return schema.with_encoders(load)


def _load(column: Embedded) -> tuple[Encode, int]:
    """Load an encoder, and return it with the number of its features."""
    is_text = column.kind == "text"
    features: Features = load_encoder(column.encoder, kind="text" if is_text else "picture")

    def encoded(records: list[Any]) -> tuple[NDArray[np.float32], int]:
        return encode_and_count(records, lambda kind: features)

    # a picture of stripes: encoders refuse one of a single colour
    picture = np.resize(np.arange(0, 250, 7, dtype=np.uint8), (32, 32, 3))
    probe: list[Any] = ["text"] if is_text else [picture]
    rows, _ = encoded(probe)
    return encoded, rows.shape[1]
