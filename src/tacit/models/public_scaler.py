"""PublicScaler: scale rows by public rows before a learner, in a pipeline that a release can
carry.
"""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from tacit.compute.frames import reordered, text_names
from tacit.data.overlap import private_rows
from tacit.data.rows import as_rows
from tacit.errors import InputError, PrivacyLeakWarning
from tacit.models.rows import check_finite
from tacit.models.scaling import Floats, Scaling


class PublicScaler(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Scale columns to mean 0 and standard deviation 1 of public rows.

    In a pipeline before a learner it has no privacy cost, and `Release.of(pipeline)` carries it:
    the release then takes rows as the pipeline does. `fit` looks at the width of the private rows,
    and compares them with the public ones to warn the owner of rows that are in both. A learner's
    own `public` rows are not scaled for it: pass `scaler.fit_transform(public)`.

    Parameters
    ----------
    public : array of shape (m, d)
        Public rows, finite.
    allow_overlap : bool, default=False
        Whether rows of `public` that are among the private ones are meant, as under a unit that
        leaves rows public.

    Attributes
    ----------
    mean_, scale_ : ndarray of shape (d,), float64
        The mean and the standard deviation of each column of `public`; 1 where a column is
        constant.

    Notes
    -----
    Guarantee: nothing is spent, since only public rows decide.

    Examples
    --------
    >>> import numpy as np, tacit
    >>> from sklearn.pipeline import make_pipeline
    >>> public = np.random.default_rng(0).normal(5, [1, 100], size=(200, 2))
    >>> X, y = np.repeat([[7.0, 0.0], [3.0, 0.0]], 500, axis=0), np.repeat([0, 1], 500)
    >>> learner = tacit.NoisySumPrototypes("rho=0.5", classes=2)
    >>> pipeline = make_pipeline(tacit.PublicScaler(public=public), learner).fit(X, y)
    >>> tacit.Release.of(pipeline, name="scaled").predict([[6.5, 10.0]])
    array([0])
    """

    def __init__(self, public: Any = None, *, allow_overlap: bool = False) -> None:
        self.public = public
        self.allow_overlap = allow_overlap

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from `public`; of the private rows X (n, d) only the width counts.

        Raises
        ------
        InputError
            If `public` is missing, not finite, or of another width than X.
        """
        scaling = self.scaling()
        rows = as_rows(X, "X")
        if rows.shape[1] != len(scaling.mean):
            rule = f"must have the {len(scaling.mean)} columns of public"
            raise InputError(f"X has {rows.shape[1]} columns and {rule}; encode both the same way")

        # fit_transform(public) scales the public rows themselves
        if X is not self.public and not self.allow_overlap:
            self._warn_of_overlap(rows)
        self.mean_ = scaling.mean
        self.scale_ = scaling.scale
        self.n_features_in_ = len(scaling.mean)
        names = text_names(X)
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return self

    def transform(self, X: Any) -> Floats:
        """Rows of shape (n, d) after scaling."""
        check_is_fitted(self)
        names = text_names(X)
        stated = getattr(self, "feature_names_in_", None)
        if names is not None and stated is not None and set(stated) <= set(names):
            X = reordered(X, stated.tolist())
        rows = as_rows(X, "X")
        if rows.shape[1] != len(self.mean_):
            raise InputError(
                f"X has {rows.shape[1]} columns and must have {len(self.mean_)}; encode both the"
                " same way"
            )
        return Scaling(self.mean_, self.scale_).scaled(rows)

    def _warn_of_overlap(self, rows: Any) -> None:
        """Warn of public rows that are among the private ones."""
        public = np.asarray(as_rows(self.public, "public"))
        number = private_rows(public, rows)
        if number:
            fault = (
                f"{number} of {len(public)} rows of public are rows of X, which the guarantee does"
                " not cover there"
            )
            remedy = (
                "leave them out of public, or pass allow_overlap=True only if they need no"
                " protection"
            )
            warnings.warn(
                f"{fault}; {remedy}. The number is for the owner alone",
                PrivacyLeakWarning,
                stacklevel=3,
            )

    def scaling(self) -> Scaling:
        """Compute the scaling from `public`, whether this is fitted or not."""
        if self.public is None:
            raise InputError(
                "public=None must be public rows to scale by; pass PublicScaler(public=X_public)"
            )
        rows = np.asarray(as_rows(self.public, "public"), dtype=np.float64)
        check_finite(rows, "public")

        deviations = rows.std(axis=0)
        # of a constant column, rounding leaves a little
        constant = deviations <= 1e-12 * np.abs(rows).max(axis=0)
        return Scaling(rows.mean(axis=0), np.where(constant, 1.0, deviations))
