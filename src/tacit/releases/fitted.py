"""From a fitted learner to a document: only what its guarantee covers, and public facts."""

from __future__ import annotations

import platform
import warnings
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from importlib.metadata import version
from ssl import OPENSSL_VERSION
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from tacit.errors import PrivacyLeakWarning, ReleaseError
from tacit.models.released import Publishable, Released
from tacit.models.scaling import Scaling
from tacit.privacy.account import Account, balance
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.ledger import Ledger
from tacit.releases.columns import ColumnNames, TableColumns, stated_columns
from tacit.releases.fields import NOT_STATED, DType, Recorded
from tacit.releases.reading import read_only, refusal
from tacit.releases.schema import (
    COVERS_ONE_FIT,
    VERSION,
    Array,
    Audit,
    CompleteContents,
    DataDependentBounds,
    Document,
    EncoderProvenance,
    Implementation,
    LearnerMechanisms,
    LedgerPattern,
    Names,
    PostProcessing,
    Product,
    PublicData,
    PublicInputs,
    RecordedLearner,
    Task,
    Trust,
    declared_least_records,
)
from tacit.releases.statement import accounting_item, privacy_items, stamp
from tacit.version import __version__

if TYPE_CHECKING:
    from tacit.models.public_scaler import PublicScaler

# of the time of a line of a ledger: YYYY-MM-DD
_LETTERS_OF_DAY = 10

# letters of all names of columns together; wider tables are matched by position
MOST_LETTERS = 2**20

_WHO_SEES_WHAT = (
    "the curator sees the records and draws the noise; all others see only this release"
)

# Statements by the noise of a fit.
_SEED = {
    "secure": "there is none",
    "opendp": "there is none",
    "research": "secret: it is no part of the release",
}
_RANDOMNESS = {
    "secure": "random bits that the operating system makes, or with which it seeds OpenSSL",
    "opendp": "OpenDP samplers on operating-system randomness",
    "research": "seeded numpy: research only",
}
_FLOAT_DEFENCES = {
    "secure": (
        "sums, scores and probabilities are whole numbers; Gaussian and Laplace noise, where there"
        " is any, is exact real noise, rounded to whole numbers; random bits decide, never floats"
    ),
    "opendp": (
        "sums, scores and probabilities are whole numbers; Gaussian and Laplace noise, where there"
        " is any, is drawn on whole numbers by OpenDP's exact samplers"
    ),
    "research": "sums and scores are whole numbers; noise is drawn in floating point",
}


def steps_of(clf: Any) -> tuple[Any, Scaling | None, TableColumns | None]:
    """Return the learner at the end of a pipeline, the scaling of rows before it, and the columns
    of the table that the first step takes, if they are known.

    A learner cannot see what the steps before it were fitted on. So a `TableEncoder`, whose schema
    is declared, a `PublicScaler`, of which the release can carry what its public rows say, and
    steps that do nothing are accepted, and all others are refused.
    """
    from sklearn.pipeline import Pipeline

    from tacit.encoding.table_encoder import TableEncoder
    from tacit.models.public_scaler import PublicScaler

    scaling: Scaling | None = None
    columns: TableColumns | None = None
    while isinstance(clf, Pipeline):
        for name, step in clf.steps[:-1]:
            if step is None or step == "passthrough":
                continue

            # The release carries one scaling, and one schema before it. A subclass could transform
            # by something else.
            if type(step) is PublicScaler and scaling is None:
                scaling = _scaling_of(name, step)
                columns = columns or _names_of(step)
                continue
            if type(step) is TableEncoder and scaling is None and columns is None:
                columns = step.loaded_schema()
                continue
            fault = (
                f"step {name!r:.60} of the pipeline ({type(step).__name__}) may have been fitted on"
                " private rows"
            )
            remedy = (
                "scale by one tacit.PublicScaler(public=...), or fit it on public rows, transform"
                " private and new rows by it, and fit and pass the learner alone"
            )
            raise ReleaseError(f"{fault}, and a release cannot carry it; {remedy}")

        # the last step may be a pipeline again
        clf = clf.steps[-1][1]
    return clf, scaling, columns or _names_of(clf)


def _names_of(estimator: Any) -> ColumnNames | None:
    """Return the names of the columns that an estimator was fitted on, if a card can state them.

    scikit-learn sets `feature_names_in_` where all names are text.
    """
    names = tuple(map(str, getattr(estimator, "feature_names_in_", ())))
    n_letters = sum(map(len, names))
    if not names or n_letters > MOST_LETTERS:
        return None
    if len(set(names)) < len(names):
        return None
    if not all(name.isprintable() and name for name in names):
        return None
    return ColumnNames(names)


def _scaling_of(name: str, step: PublicScaler) -> Scaling:
    """Compute the scaling from a scaler's public rows, which must be the one that it used.

    Its attributes could have been set from private rows, so nothing is taken from them.
    """
    scaling = step.scaling()
    # `fit` computes the same from the same rows, so not a bit differs; an attribute may be missing
    same_mean = np.array_equal(getattr(step, "mean_", None), scaling.mean)  # type: ignore[arg-type]
    same_scale = np.array_equal(getattr(step, "scale_", None), scaling.scale)  # type: ignore[arg-type]
    if not same_mean or not same_scale:
        fault = (
            f"step {name!r:.60} of the pipeline did not scale by its public rows, or was changed"
            " since"
        )
        raise ReleaseError(f"{fault}; fit the pipeline again")
    return scaling


def _with_overlap_unprotected(guarantee: Guarantee) -> Guarantee:
    """List as unprotected whether the public rows of a scaler are among the private ones.

    A learner that uses public rows lists it already. Where all rows are public, it is no secret.
    """
    from tacit.data.overlap import OVERLAP

    if guarantee.unit.rows_public or OVERLAP in guarantee.unprotected:
        return guarantee
    return replace(guarantee, unprotected=(*guarantee.unprotected, OVERLAP))


def _with_least_records(guarantee: Guarantee, number: int) -> Guarantee:
    """List as unprotected that each class has at least this many records, which is declared."""
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        fault = f"least_records={number!r:.60} must be a whole number, 1 or more"
        raise ReleaseError(f"{fault}; correct it, or leave it out")
    unprotected = (*guarantee.unprotected, declared_least_records(number))
    return replace(guarantee, unprotected=unprotected)


def with_scaling(released: Released, scaling: Scaling) -> Released:
    """Add a scaling of rows, which comes before the decision, to what is released."""
    carried = released.carried | scaling.arrays()
    scaled_by = "by the mean and standard deviation of each column of public rows, before all else"
    mechanism = released.mechanism | {"scaling of rows": scaled_by}
    return replace(released, carried=carried, mechanism=mechanism)


def with_tree(released: Released, tree: Any, classes: NDArray[Any]) -> Released:
    """Add a tree, of which the classes must be the leaves, to what is released."""
    from tacit.data.trees import Tree

    if released.label_sets is not None:
        raise ReleaseError(
            "a tree is of exclusive classes, and this fit gives a record several labels; leave tree"
            " out"
        )
    return replace(released, tree=Tree.of(tree).over(classes.tolist()).as_texts())


def released_of(clf: Any) -> Released:
    """Return what a fitted learner releases, or refuse a learner without publishable guarantee."""
    check_publishable(clf)
    if clf.released_ is None:
        raise ReleaseError(f"{type(clf).__name__} {clf.no_release}")
    check_promise(clf)
    released: Released = clf.released_
    return released


def check_publishable(clf: Any) -> None:
    """Refuse what is no fitted learner of this version, or states no `Guarantee`."""
    kind = type(clf).__name__
    if not isinstance(clf, Publishable):
        raise ReleaseError(f"clf={kind} is not a tacit learner; pass the fitted learner itself")
    if not clf.__sklearn_is_fitted__():
        raise ReleaseError(f"{kind} is not fitted, so it has nothing to release; call fit first")
    if not clf.has_present_samplers():
        fault = f"{kind} drew its noise by other samplers than this version has"
        raise ReleaseError(f"{fault}; make the release with the version of tacit that fitted it")
    guarantee = clf.guarantee_
    # nor a subclass, which could state other numbers
    if type(guarantee) is not Guarantee:
        fault = f"guarantee_ of {kind} is a {type(guarantee).__name__}"
        raise ReleaseError(f"{fault}, which may depend on private data; use a Guarantee")


def check_promise(clf: Publishable) -> None:
    """Refuse a learner whose parameters were changed after its fit."""
    if clf.guarantee_ != clf.promise():
        fault = (
            f"parameters of {type(clf).__name__} were changed after fit, so its guarantee is not"
            " theirs"
        )
        raise ReleaseError(f"{fault}; fit again")


def release_arrays(released: Released) -> dict[str, NDArray[Any]]:
    """Return the arrays as they are stored, read-only.

    They keep the types that a release may hold: int64, float16, float32 and float64. Others become
    float64.
    """
    arrays = released.arrays | released.carried
    if released.label_sets is not None:
        arrays = arrays | released.label_sets.arrays()
    elif released.probabilities is not None:
        arrays = arrays | released.probabilities.arrays()

    storable = {}
    for name, array in arrays.items():
        values = np.asarray(array)
        if values.dtype.name not in get_args(DType):
            values = values.astype(np.float64)
        storable[name] = read_only(values)
    return storable


def of_learner(
    clf: Publishable,
    released: Released,
    arrays: Mapping[str, NDArray[Any]],
    sha256: str,
    *,
    facts: Mapping[str, str | None],
    public: Mapping[str, Any] | None,
    names: Mapping[str, Any] | None,
    encoder: Mapping[str, str] | None,
    ledger: Ledger | None,
    day: date | str | None,
    scaled: bool,
    columns: TableColumns | None,
    least_records: int | None,
) -> Document:
    """Fill in all 17 items.

    `facts` are name, curator, description and intended use; `public`, `names`, `encoder`, `ledger`,
    `day` and `least_records` are as in `Release.of`. `scaled` is true if rows are scaled before the
    decision, and `columns` are those of the table that the rows were made of.
    """
    guarantee = with_other_fits(clf)
    if scaled:
        guarantee = _with_overlap_unprotected(guarantee)
    if least_records is not None:
        guarantee = _with_least_records(guarantee, least_records)
    items = privacy_items(guarantee)  # 2, and 4 to 7, by their names in the document
    account = None
    if ledger is not None:
        account = ledger.account()

    # a document always states a recipe
    encoder_facts = {"recipe": NOT_STATED, **dict(encoder or {})}
    try:
        contents = _contents(clf, released, arrays, sha256, columns, least_records)
        return Document(
            version=VERSION,
            stamp=stamp(guarantee, clf.noise_),  # type: ignore[arg-type]  # pydantic checks
            # read from JSON, since strict types take lists for tuples only there
            guarantee=Recorded.of(guarantee),
            product=product(type(clf).__name__, facts, day),
            trust=Trust(setting="central", who_sees_what=_WHO_SEES_WHAT),
            contents=contents,
            accounting=accounting_item(
                guarantee,
                items["parameters"],  # type: ignore[arg-type]
                items["profile"],  # type: ignore[arg-type]
                clf.noise_,
            ),
            mechanisms=_mechanisms(clf, released),
            data_dependent_bounds=DataDependentBounds(
                bounds="none: every stated bound follows from public facts"
            ),
            pattern=_pattern(account),
            post_processing=PostProcessing(
                post_processing="predictions and any other use of the arrays cost nothing more"
            ),
            implementation=_implementation(clf.noise_),
            utility="not stated",
            public_inputs=PublicInputs(
                public_data=PublicData(**dict(public or {})),
                class_names=_names(clf, names),
                encoder=EncoderProvenance(**encoder_facts),
            ),
            audit=Audit(),
            **items,  # type: ignore[arg-type]  # pydantic checks
        )
    except ValidationError as error:
        remedy = "give one line of text, or a value that the card can state"
        raise refusal("release", error, remedy) from error


def _mechanisms(clf: Publishable, released: Released) -> LearnerMechanisms:
    """Item 10."""
    facts = clf.learner_facts()
    return LearnerMechanisms(
        noise=clf.noise_,  # type: ignore[arg-type]  # pydantic checks
        seed=_SEED[clf.noise_],
        facts={name: _plain(value) for name, value in released.mechanism.items()},
        learner=RecordedLearner(
            method=facts.method or NOT_STATED,
            parameters=dict(facts.parameters),
            left_out=facts.left_out,
            inputs=facts.inputs,  # type: ignore[arg-type]  # pydantic checks
        ),
    )


def _implementation(noise: str) -> Implementation:
    """Item 14."""
    versions = {"tacit": __version__, "python": platform.python_version()}
    for package in ("numpy", "numba", "dp-accounting"):
        versions[package] = version(package)
    if noise == "secure":
        versions["openssl"] = OPENSSL_VERSION
    if noise == "opendp":
        versions["opendp"] = version("opendp")
    return Implementation(
        versions=versions,
        commit=NOT_STATED,
        float_defences=_FLOAT_DEFENCES[noise],
        randomness=_RANDOMNESS[noise],
    )


def with_other_fits(clf: Publishable) -> Guarantee:
    """Say in the scope of the guarantee, and warn, if there were more fits than it covers.

    A release that is stamped states no guarantee that other fits could break.
    """
    guarantee = clf.guarantee_
    fits = clf.other_fits() + 1
    if fits == 1 or stamp(guarantee, clf.noise_):
        return guarantee

    uncovered = f"up to {fits} fits by clones of this learner; {COVERS_ONE_FIT}"
    choice = "pay for the choice by tacit.GridSearch or tacit.RandomSearch"
    remedy = f"{choice}, or charge each fit to a ledger"
    # level 4 is the line that called Release.of
    warnings.warn(f"{uncovered}: {remedy}", PrivacyLeakWarning, stacklevel=4)
    counted = "each fit seen in this process, and one for each clone that was not seen to fit"
    return replace(guarantee, scope=f"{guarantee.scope}; {uncovered} (counted: {counted})")


def product(kind: str, facts: Mapping[str, str | None], day: date | str | None) -> Product:
    """Item 1; a fact that is not one line of printable text is refused."""
    for name, value in facts.items():
        if isinstance(value, str) and not value.strip():
            fault = f"{name}={value!r:.60} is empty"
            raise ReleaseError(f"{fault}; give one line of text, or leave it out")

    texts = {}
    for name, value in facts.items():
        if value is not None:
            texts[name] = value
        elif name == "name":
            texts[name] = f"{kind} release"
        else:
            texts[name] = NOT_STATED
    if day is None:
        day = datetime.now(UTC).date()
    try:
        return Product(**texts, date=str(day))
    except ValidationError as error:
        raise refusal("release", error, "give one line of text") from error


def check_facts(facts: Mapping[str, str | None]) -> None:
    """Check name, curator, description and intended use before anything is spent."""
    product("learner", facts, None)


def _names(clf: Publishable, facts: Mapping[str, Any] | None) -> Names | Literal["none"]:
    """Count the rows of class names that the learner, or the learner within a search, was given.

    `facts` are further facts of these rows.
    """
    rows_by_class = clf.name_rows()
    if rows_by_class is None:
        return "none"

    # a class has several rows (k, d), or one (d,)
    n_rows = sum(len(np.atleast_2d(rows)) for rows in rows_by_class)
    return Names(rows=n_rows, **dict(facts or {}))


def _pattern(account: Account | None) -> LedgerPattern:
    """Item 12."""
    if account is None:
        return LedgerPattern(
            pattern="published once; it does not know of other releases from the same data",
            ledger="no ledger: this run only",
            ledger_since=NOT_STATED,
            ledger_head=NOT_STATED,
        )

    n_charges = len(account.charges)
    pattern = "published once; the ledger states all other recorded uses of the data"
    if n_charges > 1:
        pattern = f"the data are used repeatedly: the ledger has {n_charges} charges"
    return LedgerPattern(
        pattern=pattern,
        ledger=balance(account),
        ledger_since=account.since[:_LETTERS_OF_DAY] or NOT_STATED,
        ledger_head=account.head or NOT_STATED,
    )


def _contents(
    clf: Publishable,
    released: Released,
    arrays: Mapping[str, NDArray[Any]],
    sha256: str,
    columns: TableColumns | None,
    least_records: int | None,
) -> CompleteContents:
    """Item 8."""
    labels = tuple(np.asarray(clf.classes_).tolist())
    for label in labels:
        # a bool is an int
        if not isinstance(label, int | float | str):
            fault = f"class {label!r} is a {type(label).__name__}"
            raise ReleaseError(f"{fault}; use ints, floats, strings or bools")

    stated: dict[str, Any] = {"columns": ()}
    if columns is not None:
        stated = stated_columns(columns)

    return CompleteContents(
        what=released.what,
        classes=labels,
        width=int(clf.n_features_in_),
        decision=released.decision,
        arrays=tuple(
            Array(name=name, dtype=array.dtype.name, shape=array.shape)  # type: ignore[arg-type]  # pydantic checks
            for name, array in sorted(arrays.items())
        ),
        sha256=sha256,
        **stated,
        task=_task(released),
        sets="none",
        least_records="not stated" if least_records is None else least_records,
    )


def _task(released: Released) -> Task:
    """Return how many of the classes a record has, and the tree of which they are the leaves."""
    labels: Literal["one", "several"] = "one" if released.label_sets is None else "several"
    return Task(labels=labels, tree=dict(released.tree or {}))


def _plain(value: Any) -> Any:
    """Return a fact as JSON can state it: without types of numpy and without infinity."""
    if isinstance(value, list | tuple):
        return tuple(_plain(part) for part in value)
    if isinstance(value, np.generic):
        value = value.item()
    if value == float("inf"):
        return "inf"
    return value
