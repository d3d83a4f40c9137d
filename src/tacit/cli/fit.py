"""`tacit fit`: from private embeddings to a release."""

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any

from tacit.cli.common import (
    check_apart,
    class_labels,
    declared_classes,
    ledger_of,
    read_classes,
    read_lines,
    say,
    tell_of_columns,
)
from tacit.cli.drawing import check_drawing, draw_for_owner
from tacit.cli.json_output import guarantee_facts, print_json
from tacit.cli.learner import (
    check_folder,
    check_most_labels,
    check_options,
    check_public,
    check_releasable,
    known_method,
    make_learner,
)
from tacit.cli.least_records import check_least_records
from tacit.cli.names import NONE, names_for
from tacit.cli.options import (
    Budget,
    CardFacts,
    Features,
    Force,
    Json,
    LabelMeaning,
    Labels,
    LabelSeparator,
    Method,
    Noise,
    Out,
    Persons,
    Split,
    Unit,
)
from tacit.cli.table_rows import columns_of_card
from tacit.compute.progress_display import shown_progress
from tacit.compute.remote import RemotePath
from tacit.errors import InputError

if TYPE_CHECKING:
    from tacit.data.imports import Data
    from tacit.data.names import ClassNames
    from tacit.data.trees import Tree

UNPROTECTED = "the guarantee does not cover public rows"


def fit(
    method: Method,
    store: Path,
    /,
    *,
    out: Out,
    budget: Budget = None,
    public: Path | None = None,
    allow_overlap: bool = False,
    names: str | None = None,
    classes: str | None = None,
    labels: LabelMeaning = "value",
    label_separator: LabelSeparator = None,
    groups: Path | None = None,
    test: Path | None = None,
    figures: Path | None = None,
    tree: str | None = None,
    unit: Unit = None,
    ledger: Path | None = None,
    noise: Noise = "secure",
    seed: int | None = None,
    x: Features = None,
    y: Labels = None,
    persons: Persons = None,
    split: Split = None,
    public_split: str | None = None,
    card: CardFacts | None = None,
    least_records: int | None = None,
    allow_research: bool = False,
    json: Json = False,
    force: Force = False,
    **parameters: str,
) -> None:
    """Learn a private classifier and save it as a release.

    Parameters
    ----------
    store
        The private data: a store's folder, or any file that `tacit import` reads.
    out
        Folder of the release.
    public
        Public data, for methods that use some.
    allow_overlap
        Let public rows and names be private records: without it, such a row is refused where public
        rows are released, and a warning states how many there are elsewhere.
    names
        Rows of class names, for methods that use some: a store or file with rows labelled by class,
        or with one row for each class in their order. By default those that the private store
        carries; `none` leaves them out.
    classes
        A number N for 0..N-1, a file with one class a line, or classes with commas between them.
        By default those declared in the store.
    groups
        A file with the budget group of each record, one per line, for methods with --budgets.
    test
        Labelled test data, by which pate measures teachers and student for the tables in its
        --folder.
    figures
        For pate: a private folder for figures of what labels cost and of how far teachers agree.
    tree
        A public tree of the classes, for answers that fall back to a node above: a CSV file with
        the columns class and parent, or prefix:3,4 or prefix:. for codes whose beginnings are their
        parents, by length or up to a text.
    ledger
        The ledger to charge; by default the one beside the store, if there is one.
    seed
        Seed for research noise and for public random choices, where the method has any.
    public_split
        The same for the public data.
    least_records
        Declare that each class has at least so many records, which the card then states as
        unprotected; refused, before anything is charged, where a class has fewer.
    allow_research
        Save a release that is not for release, stamped so.
    parameters
        Further parameters of the method, such as --k 5; `tacit fit METHOD --help` lists them.
    """
    from tacit.compute.atomic import check_writable
    from tacit.data.imports import read_data
    from tacit.data.locations import located
    from tacit.data.synthetic import check_not_synthetic
    from tacit.privacy.unit import Unit as KnownUnit
    from tacit.releases.provenance import encoder_facts, names_facts, public_facts
    from tacit.releases.reading import is_release
    from tacit.releases.release import Release

    method = known_method(method)
    check_options(fit, method, parameters)
    check_public(method, public)
    check_writable(out, force=force, ours=is_release)

    names_option = None if names == NONE else names
    learner = make_learner(
        method,
        parameters,
        budget=budget,
        noise=noise,
        unit=unit,
        public=public,
        names=names_option,
        seed=seed,
        allow_overlap=allow_overlap or None,
    )
    check_releasable(learner, allow_research)
    names_path = None if names_option is None else Path(names_option)
    check_folder(learner.checkpoint_folder(), out, store, public, names_path)
    if test is not None:
        _check_test(test, learner)
    if figures is not None:
        _check_figures(figures, learner, out, store)
    facts = _card_facts(card, out)
    declared = read_classes(classes)

    private = located(store, split)
    if public is not None and not (allow_overlap or KnownUnit(learner.unit).rows_public):
        check_public_apart(public, public_split, store, split, named=x is not None or y is not None)

    with shown_progress(), _resumable(learner, out):
        data = read_data(
            store,
            x=x,
            y=y,
            persons=persons,
            label_separator=label_separator,
            split=split,
            role="train",
        )
        check_not_synthetic(data.card, store)
        tell_of_columns(data, store)
        class_list = declared_classes(declared, data)
        check_most_labels(learner, method, data, store, class_list)
        y_of_class = class_labels(data, store, class_list, labels, needed=learner.uses_records)
        class_tree = _set_tree(learner, tree, class_list, y_of_class)
        check_least_records(least_records, y_of_class, class_list, class_tree)
        learner.set_params(classes=class_list, ledger=ledger_of(ledger, private, data))
        _set_shape(learner, data)
        class_names = _set_names(learner, names, data, class_list, private)
        public_data = set_public(learner, public, public_split, data)
        check_persons(learner, data, store)

        arguments = _fit_arguments(learner, data, groups, test, public_data, class_list)
        learner.fit(data.x, y_of_class, **arguments)

        release = Release.of(
            learner,
            **facts,
            public=None if public_data is None else public_facts(public_data),
            names=None if class_names is None else names_facts(class_names),
            encoder=encoder_facts(data),
            columns=columns_of_card(data),
            tree=class_tree,
            least_records=least_records,
        )
        release.save(out, force=force, allow_research=allow_research)
        if figures is not None:
            draw_for_owner(figures, learner.answers_, learner.consensus_)

    if json:
        print_json({"release": str(out), "method": method, **guarantee_facts(learner.guarantee_)})
        return
    _print_fit(method, learner, store, out)
    if class_names is not None:
        source = f"the names that {store} carries" if names is None else names
        _print_names(learner, class_names.count, source)


def check_public_apart(
    public: Path, public_split: str | None, store: Path, split: str | None, *, named: bool
) -> None:
    """Refuse the private data as public rows, by their place; `named` tells that arrays of the
    private data are named.
    """
    from tacit.data.imports import split_within
    from tacit.data.locations import located

    # two splits of one file are different arrays, whose rows are compared at the fit
    private_part = None if named else split_within(store, split, "train")
    public_part = split_within(public, public_split, "train")
    are_splits = private_part is not None and public_part is not None
    if not are_splits or private_part == public_part:
        check_apart("public", located(public, public_split), located(store, split), UNPROTECTED)


def _card_facts(card: CardFacts | str | None, out: Path) -> dict[str, Any]:
    """Return the facts of the card, checked; by default its name is that of the output."""
    from tacit.releases.fitted import check_facts

    if isinstance(card, str):
        # an option that no method has: its text arrives under this name
        raise InputError(
            f"--card {card} is for tacit import; declare the class list with --classes, or import"
            " the data first"
        )
    facts = asdict(card or CardFacts())
    facts["name"] = facts["name"] or out.name
    check_facts(facts)
    return facts


def _set_tree(learner: Any, option: str | None, classes: Any, labels: Any) -> "Tree | None":
    """Return the tree of `--tree`, checked against the classes before anything is charged.

    If the class list holds inner nodes, records may be labelled with them, which the learner must
    know.
    """
    if option is None:
        return None
    import numpy as np

    from tacit.data.trees import tree_of_option

    class_tree = tree_of_option(option, classes)
    if classes is None:
        classes = np.unique(labels).tolist()
    leaves, inner_nodes = class_tree.divided(classes)
    if inner_nodes and "tree" in learner.flat_parameters():
        learner.set_params(tree=class_tree)
        return class_tree.over(leaves)
    return class_tree.over(classes)


def _set_shape(learner: Any, data: "Data") -> None:
    """Set the shape of pictures that the store states, unless an option states another."""
    has_shape = "shape" in data.card and "shape" in learner.flat_parameters()
    if has_shape and learner.shape is None:
        learner.set_params(shape=data.card["shape"])


def _set_names(
    learner: Any, names: str | None, data: "Data", classes: Any, private: Path
) -> "ClassNames | None":
    """Set the rows of class names, for methods that use some, and return them."""
    if "names" not in learner.flat_parameters():
        return None
    class_names = names_for(names, data, classes, private)
    if class_names is not None:
        learner.set_params(names=class_names.rows)
    return class_names


def set_public(
    learner: Any, public: Path | None, split: str | None, private: "Data"
) -> "Data | None":
    """Set the public rows, which are as wide as the private ones, and return their data."""
    from tacit.data.imports import read_data
    from tacit.data.synthetic import warn_of_synthetic

    if public is None:
        return None
    # A learner whose scores are public checks rows as it uses them.
    check = not learner.scores_public
    public_data = read_data(
        public, split=split, width=private.x.shape[1], check=check, role="train"
    )
    warn_of_synthetic(public_data.card, public, stacklevel=1)
    learner.set_params(public=public_data.x)
    return public_data


def check_persons(learner: Any, data: "Data", store: Path) -> None:
    """Refuse a unit of persons for data without person ids."""
    from tacit.privacy.unit import Unit as KnownUnit

    if KnownUnit(learner.unit).per_person and data.persons is None:
        fault = f"--unit {learner.unit} needs person ids, and {store} has none"
        raise InputError(
            f"{fault}; name them with --persons FILE or COLUMN, or import them into the store"
        )


def _fit_arguments(
    learner: Any,
    data: "Data",
    groups: Path | None,
    test: Path | None,
    public_data: "Data | None",
    classes: Any,
) -> dict[str, Any]:
    """Return what `learner.fit` takes beside rows and labels: groups, test data, persons, truth."""
    from tacit.data.imports import read_data

    arguments: dict[str, Any] = {}
    if groups is not None:
        arguments["groups"] = _groups(groups, learner)

    if test is not None:
        test_data = read_data(test, width=data.x.shape[1], role="test")
        arguments["test"] = (test_data.x, class_labels(test_data, test, classes))

    # Under a unit of records the learner does not use ids, and says so.
    if data.persons is not None:
        arguments["persons"] = data.persons

    if public_data is not None and "truth" in inspect.signature(learner.fit).parameters:
        arguments["truth"] = _truth(public_data, classes)
    return arguments


@contextmanager
def _resumable(learner: Any, out: Path) -> Iterator[None]:
    """Keep scores beside the release until it is saved, so that the same command resumes from them
    after a kill.
    """
    if not learner.scores_public or learner.checkpoint_folder() is not None:
        yield
        return
    scores = out.absolute().parent / f".{out.name}.scores"
    learner.set_params(folder=scores)
    try:
        yield
    except BaseException as stop:
        nothing_to_resume = not any(scores.glob("*/*/*.npy"))
        if nothing_to_resume:
            rmtree(scores, ignore_errors=True)
        elif isinstance(stop, KeyboardInterrupt):
            raise KeyboardInterrupt(
                f"interrupted; finished scores, which are private, are kept in {scores}: the same"
                " command goes on from them (a ledger is charged again), or remove them"
            ) from None
        raise
    rmtree(scores, ignore_errors=True)


def _check_test(path: Path, learner: Any) -> None:
    """Refuse test data for methods without tables, or without the folder that holds them."""
    if "test" not in inspect.signature(learner.fit).parameters:
        raise InputError(
            f"--test does not apply to {type(learner).__name__}; leave it out, and see tacit"
            " evaluate"
        )
    if learner.checkpoint_folder() is None:
        raise InputError(f"--test {path} is for the tables in a folder; name one with --folder")


def _check_figures(figures: Path, learner: Any, out: Path, store: Path) -> None:
    """Refuse figures for methods without votes, without the libraries that draw, or within the
    release or the data.
    """
    if not learner.has_votes:
        raise InputError(f"--figures does not apply to {type(learner).__name__}; leave it out")
    check_drawing()
    check_folder(figures, out, store, option="figures")


def _truth(public: "Data", classes: Any) -> Any:
    """Return the labels of the public rows, if all of them are declared private classes."""
    from tacit.data.labels import class_list

    if public.labels is None or public.several or classes is None:
        return None
    if not set(public.labels.tolist()) <= set(class_list(classes)):
        return None
    return public.labels


def _groups(path: Path, learner: Any) -> list[str]:
    """Names of groups, one per line."""
    if "groups" not in inspect.signature(learner.fit).parameters:
        raise InputError(f"--groups does not apply to {type(learner).__name__}; leave it out")
    try:
        return read_lines(path)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"--groups {path} is not a readable text file; give one group per line"
        ) from error


def _print_fit(method: str, learner: Any, store: Path, out: Path) -> None:
    say(f"{out}: {method} over {len(learner.classes_)} classes of width {learner.n_features_in_}")
    if learner.has_votes:
        answers = learner.answers_
        say(f"{answers.answered} labels bought, by the first {answers.asked} public records")
    say(learner.guarantee_.statement())

    if learner.ledger is None:
        tell_of_cost(learner, store)


def tell_of_cost(learner: Any, store: Path) -> None:
    """Say that no ledger counts a fit, and which allowance would cover it."""
    limit = _cost_as_limit(learner)
    advice = ""
    if limit is not None:
        advice = f"; to limit further runs, start one: tacit ledger {store} --allow {limit}"
        if isinstance(store, RemotePath):
            advice += " --new --file FILE"
    say(f"No ledger counts this run{advice}")


def _print_names(learner: Any, n_rows: int, source: str) -> None:
    use = "used"
    if learner.tests_names and not learner.names_used_:
        use = "left out (the card says why)"
    say(f"Class names {use}, which cost nothing: {n_rows} rows, of {source}")


def _cost_as_limit(learner: Any) -> str | None:
    """Return the cost of this fit as text for `--allow`, in the kind of its budget; None if it has
    no finite cost.
    """
    from tacit.privacy.allowance import free
    from tacit.privacy.budget import Budget as PrivacyBudget
    from tacit.privacy.decimals import rounded_down

    guarantee = learner.guarantee_
    if guarantee.groups or free(guarantee) or not guarantee.bounded:
        return None

    budget = PrivacyBudget.parse(learner.budget)
    if budget.kind == "zcdp":
        name = "rho"
        allowance = budget.rho
        cost = guarantee.rho
    elif budget.kind == "gdp":
        name = "mu"
        allowance = budget.mu
        cost = guarantee.mu
    else:
        name = "epsilon"
        allowance = budget.epsilon
        cost = guarantee.epsilon(budget.delta or 0.0)
    if cost is None or allowance is None:
        return None

    limit = str(budget)
    # A limit above the cost of this fit would propose to spend more.
    if cost < allowance * (1 - 1e-9):
        delta = "" if budget.delta is None else f",delta={budget.delta!r}"
        limit = f"{name}={rounded_down(cost)}{delta}"

    # Ledgers count under add-remove unless --unit says otherwise.
    if guarantee.unit != "add-remove":
        limit += f" --unit {guarantee.unit}"
    return limit
