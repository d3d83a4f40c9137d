"""`tacit summarise`: noisy class sums of one part of the records, to be added to other owners'."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.cli.common import (
    class_labels,
    declared_classes,
    ledger_of,
    one_label_each,
    read_classes,
    say,
    tell_of_columns,
)
from tacit.cli.fit import check_persons, check_public_apart, set_public, tell_of_cost
from tacit.cli.json_output import guarantee_facts, print_json
from tacit.cli.learner import check_protects
from tacit.cli.options import (
    Budget,
    Features,
    Force,
    Json,
    LabelMeaning,
    Labels,
    Noise,
    Out,
    Persons,
    Split,
    Unit,
)
from tacit.compute.progress_display import shown_progress
from tacit.errors import InputError

if TYPE_CHECKING:
    from tacit.data.imports import Data
    from tacit.learners.prototypes.class_summary import ClassSummary
    from tacit.releases.agreement import Agreement
    from tacit.releases.combination import Source


def summarise(
    store: Path,
    /,
    *,
    part: str,
    out: Out,
    budget: Budget = None,
    public: Path | None = None,
    allow_overlap: bool = False,
    classes: str | None = None,
    class_list_name: str | None = None,
    moments: bool = False,
    like: Path | None = None,
    source: tuple[str, ...] = (),
    labels: LabelMeaning = "value",
    unit: Unit = None,
    ledger: Path | None = None,
    noise: Noise = "secure",
    seed: int | None = None,
    x: Features = None,
    y: Labels = None,
    persons: Persons = None,
    split: Split = None,
    public_split: str | None = None,
    name: str | None = None,
    curator: str | None = None,
    description: str | None = None,
    date: str | None = None,
    allow_research: bool = False,
    json: Json = False,
    force: Force = False,
) -> None:
    """Sum the rows of each class, with noise, to add up with the sums of other owners.

    The summary may be handed out: whatever is computed from it costs nothing more. tacit combine
    makes a classifier of the summaries of one or many owners, who agree on the encoder, the public
    rows and the meaning of the classes.

    Parameters
    ----------
    store
        The private data: a store's folder, or any file that `tacit import` reads.
    part
        Declared name of these records, such as "hospital A". Parts of different names are declared
        to share no record, nor a person under a unit per person. A ledger is charged for the part.
    out
        Folder of the summary.
    public
        Public rows, the same for all owners, whose mean is subtracted.
    allow_overlap
        Let public rows be private records: without it, a warning states how many there are.
    classes
        A number N for 0..N-1, a file with one class a line, or classes with commas between them.
        By default those declared in the store. A class is listed because it may occur, not because
        it does; the lists of several owners unite.
    class_list_name
        A name of what the labels mean, such as "ICD-10 chapters". Summaries that name another list
        do not add up.
    moments
        Sum the products of columns too, for 30 % of the budget, so that tacit combine --method
        least-squares can solve for a classifier.
    like
        A summary that was agreed on, or its summary.json: its class list, the name of that and its
        sources are taken over, and data, public rows and classes that do not fit are refused. With
        --classes the list of this part is another one, and lists unite.
    source
        What of the recipe was computed from an earlier release, and the folder of that summary or
        release, such as "centre=FOLDER": centre, classes, budget or parts (their choice). The
        summary then states which parts its recipe has seen. Give it once for each.
    ledger
        The ledger to charge; by default the one beside the store, if there is one.
    seed
        Seed for research noise.
    public_split
        The same as --split, for the public rows.
    name
        Name of the summary, for its card; by default it names the part.
    curator
        Who publishes it, for the card.
    description
        What it is, for the card.
    date
        Day of publication as YYYY-MM-DD; by default today.
    allow_research
        Save a summary that is not for release, stamped so.
    """
    from tacit.compute.atomic import check_writable
    from tacit.data.imports import read_data
    from tacit.data.locations import located
    from tacit.data.synthetic import check_not_synthetic
    from tacit.privacy.parts import part_name
    from tacit.privacy.unit import Unit as KnownUnit
    from tacit.releases.agreement import Agreement
    from tacit.releases.fitted import product
    from tacit.releases.summary import Summary
    from tacit.releases.summary_files import holds_summary

    check_writable(out, force=force, ours=holds_summary)
    part = part_name(part)
    learner = _learner(budget, part, noise, seed, unit, allow_overlap=allow_overlap)
    learner.set_params(moments=moments)
    facts: dict[str, Any] = {"name": name, "curator": curator, "description": description}
    product("ClassSummary", facts | {"intended_use": None}, date)
    declared = read_classes(classes)
    agreement = None if like is None else Agreement.read(like)
    sources = _sources(source, agreement)
    if public is not None and not (allow_overlap or KnownUnit(learner.unit).rows_public):
        check_public_apart(public, public_split, store, split, named=x is not None or y is not None)

    with shown_progress():
        data = read_data(store, x=x, y=y, persons=persons, split=split, role="train")
        check_not_synthetic(data.card, store)
        tell_of_columns(data, store)
        one_label_each(data, store, "a summary sums the rows of one class each")
        class_list = _class_list(declared, data, store, agreement)
        learner.set_params(classes=class_list)
        check_protects(learner, allow_research)

        y_of_class = class_labels(data, store, class_list, labels)
        check_persons(learner, data, store)
        public_data = set_public(learner, public, public_split, data)

        stated = _stated(data, public_data, class_list_name, sources, agreement)
        # before anything is charged
        _check_recipe(data, class_list, public_data, stated, agreement, store)
        learner.set_params(ledger=ledger_of(ledger, located(store, split), data))
        arguments = {} if data.persons is None else {"persons": data.persons}
        learner.fit(data.x, y_of_class, **arguments)
        summary = Summary.of(learner, **facts, **stated, date=date)
        summary.save(out, force=force, allow_research=allow_research)

    if json:
        print_json({"summary": str(out), "part": part, **guarantee_facts(learner.guarantee_)})
        return
    about = "" if public is None else f", about the mean of {public}"
    say(
        f"{out}: summary of {part!r} over {len(summary.classes)} classes of width"
        f" {summary.recipe.width}{about}"
    )
    say(learner.guarantee_.statement())
    if learner.ledger is None:
        tell_of_cost(learner, store)


def _class_list(declared: Any, data: "Data", store: Path, agreement: "Agreement | None") -> Any:
    """Return the class list of `--classes`, else the one that was agreed on, else that of the
    data.
    """
    from tacit.data.labels import listed_classes

    if agreement is None:
        class_list = declared_classes(declared, data)
        if class_list is None:
            raise InputError(
                f"{store} declares no class list, and it is not read off private labels; declare it"
                " with --classes FILE"
            )
        return class_list
    if declared is not None:
        agreement.check_classes(tuple(listed_classes(declared).tolist()), "--classes")
        return declared
    if data.classes_declared and data.classes is not None:
        agreement.check_within(tuple(listed_classes(data.classes).tolist()), str(store))
    return list(agreement.classes)


def _stated(
    data: "Data",
    public_data: "Data | None",
    class_list_name: str | None,
    sources: tuple["Source", ...],
    agreement: "Agreement | None",
) -> dict[str, Any]:
    """Return what the recipe states beside its numbers, as arguments of `Summary.of`."""
    from tacit.releases.provenance import encoder_facts, public_facts
    from tacit.releases.sources import sources_of_centre

    if agreement is not None and class_list_name is None:
        class_list_name = agreement.class_list
    has_source_of_centre = any(source.what == "centre" for source in sources)
    if public_data is not None and not has_source_of_centre:
        sources += sources_of_centre(public_data.card)
    return {
        "encoder": encoder_facts(data),
        "public": None if public_data is None else public_facts(public_data),
        "class_list": class_list_name,
        "sources": sources,
    }


def _check_recipe(
    data: "Data",
    class_list: Any,
    public_data: "Data | None",
    stated: dict[str, Any],
    agreement: "Agreement | None",
    store: Path,
) -> None:
    """Refuse what no card can state, and another recipe than the one that was agreed on."""
    from tacit.data.labels import listed_classes
    from tacit.models.public_rows import public_centre
    from tacit.releases.summary_document import recipe_of

    width = data.x.shape[1]
    classes = tuple(listed_classes(class_list).tolist())
    if agreement is None:
        recipe_of(width, classes, None, **stated)
        return
    centre = None if public_data is None else public_centre(public_data.x, width)
    recipe = recipe_of(width, classes, centre, **stated)
    agreement.check(recipe, centre, str(store))


def _sources(options: Sequence[str], agreement: "Agreement | None") -> tuple["Source", ...]:
    """Return the sources of `--source`, and those that are agreed on."""
    from tacit.releases.sources import sources_of

    sources: list[Source] = []
    if agreement is not None:
        sources += agreement.recipe.sources
    for option in options:
        what, equals, folder = option.partition("=")
        if not equals or not folder:
            raise InputError(
                f"--source {option} must say what was computed from which release; give for example"
                " --source centre=FOLDER"
            )
        sources += sources_of(what.strip(), Path(folder))
    return tuple(dict.fromkeys(sources))


def _learner(
    budget: str | None,
    part: str,
    noise: str,
    seed: int | None,
    unit: Any,
    *,
    allow_overlap: bool,
) -> "ClassSummary":
    """Return a `ClassSummary` without class list, public rows and ledger, which the data decide."""
    from tacit.learners.prototypes.class_summary import ClassSummary
    from tacit.privacy.budget import Budget as PrivacyBudget

    if budget is None:
        raise InputError("--budget is missing; give --budget rho=0.5, or epsilon=1,delta=1e-6")
    # of which the learner says more once it knows the classes
    PrivacyBudget.parse(budget)
    if noise == "research" and seed is None:
        raise InputError("--noise research needs a seed; add --seed 0")
    if noise != "research" and seed is not None:
        warnings.warn(f"--seed {seed} is ignored: {noise} noise has no seed", stacklevel=2)
        seed = None
    parameters: dict[str, Any] = {} if unit is None else {"unit": unit}
    return ClassSummary(
        budget,
        part=part,
        noise=noise,
        random_state=seed,
        allow_overlap=allow_overlap,
        **parameters,
    )
