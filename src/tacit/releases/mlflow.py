"""Releases as models of MLflow, in its `pyfunc` flavour; needs the extra `mlflow`.

The model holds the folder of the release as it is, and nothing that is unpickled. MLflow loads it
by `_load_pyfunc`, which checks it. Its requirements leave tacit out, because on PyPI `tacit` is a
different project: the environment that loads it must have this one.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tacit.compute.libraries.mlflow import load_pyfunc
from tacit.errors import InputError
from tacit.releases.release import Release


def save_model(release: Release, path: Path | str, **options: Any) -> None:
    """Save a release, which is verified first, as a model of MLflow.

    Parameters
    ----------
    release : Release
        As `Release.load` or `Release.of` returns it.
    path : str or Path
        A new folder. `mlflow.pyfunc.load_model(path).predict(X)` then gives labels, for an array or
        a DataFrame X; of several labels a row, 0 and 1 of shape (n, K).
    options
        Further arguments of `mlflow.pyfunc.save_model`. Requirements leave tacit out, since on PyPI
        `tacit` is a different project; pass `pip_requirements=["PATH/TO/tacit.whl"]` to state where
        yours comes from.

    Raises
    ------
    ReleaseError
        If the release does not verify, or is stamped "NOT FOR RELEASE".
    InputError
        If MLflow is not installed.
    """
    _pass_on("save_model", release, options | {"path": str(path)})


def log_model(release: Release, name: str, **options: Any) -> Any:
    """Log a release, which is verified first, to the current run of MLflow; returns what MLflow
    says of the model.

    Parameters
    ----------
    release : Release
        As `Release.load` or `Release.of` returns it.
    name : str
        Of the model within the run.
    options
        Further arguments of `mlflow.pyfunc.log_model`, such as `registered_model_name`.
        Requirements are those of `save_model`.

    Raises
    ------
    ReleaseError
        If the release does not verify, or is stamped "NOT FOR RELEASE".
    InputError
        If MLflow is not installed.
    """
    return _pass_on("log_model", release, options | {"name": name})


def _pass_on(function: str, release: Release, options: dict[str, Any]) -> Any:
    """Call a function of MLflow with the verified files of a release and the caller's options."""
    if not isinstance(release, Release):
        fault = f"release={release!r:.60} must be a Release"
        raise InputError(f"{fault}; pass tacit.Release.load(folder)")
    pyfunc = load_pyfunc()

    # the caller may add metadata, and cannot replace the facts of the release
    facts = {
        "release": release.document.product.name,
        "sha256": release.sha256,
        "guarantee": release.document.accounting.statement,
    }
    metadata = dict(options.get("metadata") or {}) | facts
    defaults: dict[str, Any] = {"pip_requirements": []}  # on PyPI `tacit` is a different project
    arguments = defaults | options | {"metadata": metadata}
    with TemporaryDirectory() as temporary:
        folder = release.verify().save(Path(temporary, "release"))
        call = getattr(pyfunc, function)
        return call(loader_module=__name__, data_path=str(folder), **arguments)


def _load_pyfunc(path: str) -> Release:
    """Return the release, which has the `predict` that MLflow calls."""
    return Release.load(path).verify()
