"""Figures of accuracy: against the privacy cost, the public rows, the public set and the encoder.

A point holds results that differ in the seed alone, and a figure holds guarantees under one unit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from tacit.experiments.results import Result
from tacit.models.metrics import spread
from tacit.privacy.decimals import rounded_up
from tacit.report.captions import ABOUT_EPSILON, about_seeds, caption
from tacit.report.figure import Axis, Figure, Panel, Point, axis_for, log_axis, points_of
from tacit.report.groups import (
    NO_PRIVACY,
    PLACE,
    SweepResults,
    axis_cost,
    budget_of,
    budget_words,
    budgets,
    cost,
    currency,
    grouped,
    labels,
    median_cost,
    natural,
    not_private,
    parameters_of,
    rho_of_fits,
)
from tacit.report.words import imbalance_words, slug, unit_words

# measures: fields of a result, and their names on axes
BALANCED = "balanced_accuracy"
MINORITY = "minority_accuracy"
MEASURES = {BALANCED: "balanced accuracy", MINORITY: "minority accuracy"}

# for results of unpaid searches
ABOUT_UNPAID = (
    "An unpaid search stands at the budget of each of its fits, and has no bound: the search itself"
    " is not private."
)

# the end of the captions of `units`
ABOUT_UNITS = (
    "One budget promises more or less under different relations: the panels compare what each costs"
    " in accuracy, and rank no guarantee."
)


class Layout(NamedTuple):
    """How figures of accuracy against the cost divide results into figures and panels."""

    facts: tuple[str, ...]
    """Fields that the results of a figure share."""
    panel: Callable[[Result], str]
    """Title of the panel of a result."""
    words: str | None = None
    """What panels differ in, for titles that do not name it; there are then several panels."""


def _imbalance(result: Result) -> str:
    return imbalance_words(result.imbalance)


def _encoder(result: Result) -> str:
    return result.encoder


def _place(result: Result) -> str:
    return f"{result.data}, {result.encoder}"


BY_IMBALANCE = Layout(("data", "encoder"), _imbalance)
BY_ENCODER = Layout(("data", "imbalance"), _encoder, "by encoder")
BY_DATA = Layout(("imbalance",), _place, "by data set")


def accuracy(sweep: SweepResults) -> Iterator[Figure]:
    """Balanced accuracy of every learner against the papers' epsilon, or epsilon where there is no
    rho; a panel per imbalance.
    """
    return _against_cost(sweep, BALANCED, BY_IMBALANCE)


def minority(sweep: SweepResults) -> Iterator[Figure]:
    """Accuracy on the 25 % smallest classes, drawn as `accuracy` is."""
    return _against_cost(sweep, MINORITY, BY_IMBALANCE)


def accuracy_of_encoders(sweep: SweepResults) -> Iterator[Figure]:
    """Both measures against the cost, a panel per encoder, where a data set has several."""
    for measure in MEASURES:
        yield from _against_cost(sweep, measure, BY_ENCODER)


def accuracy_of_data_sets(sweep: SweepResults) -> Iterator[Figure]:
    """Both measures against the cost, a panel per data set, where there are several."""
    if len({result.data for result in sweep.done}) > 1:
        for measure in MEASURES:
            yield from _against_cost(sweep, measure, BY_DATA)


def _against_cost(sweep: SweepResults, measure: str, layout: Layout) -> Iterator[Figure]:
    """Yield a figure for each unit, currency and values of the layout's facts at which any result
    has the measure.
    """
    for (*values, unit), results in grouped(sweep.done, *layout.facts, "unit"):
        for kind, private, flat in _by_currency(sweep, results):
            panels = cost_panels(private, flat, sweep.label, measure, panel=layout.panel)
            if not panels or (layout.words and len(panels) < 2):
                continue

            place = _place_words(layout, values)
            only_cost = _only_cost(panels)
            where = _cost_words(kind, only_cost)
            about = _about_costs(measure, kind, panels)
            yield Figure(
                name=slug(MEASURES[measure], layout.words, *place, unit, kind),
                title=(
                    f"{', '.join(place)}: {MEASURES[measure]}"
                    f" {' '.join(filter(None, (layout.words, where)))} ({unit_words(unit)})"
                ),
                caption=caption(about, panels),
                legend="learner",
                series=sweep.series,
                panels=panels,
                x=cost_axis(private),
                y=Axis(MEASURES[measure], limits=(0, 1)),
                one_cost=only_cost is not None,
            )


def _place_words(layout: Layout, values: Sequence[Any]) -> list[str]:
    """Return the values of a layout's facts in words."""
    words = []
    for fact, value in zip(layout.facts, values, strict=True):
        words.append(imbalance_words(value) if fact == "imbalance" else str(value))
    return words


def _about_costs(measure: str, kind: str, panels: tuple[Panel, ...]) -> str:
    """Return the sentences on a figure of accuracy against the cost in a currency, `kind`."""
    only_cost = _only_cost(panels)
    where = _cost_words(kind, only_cost)
    sentences = [f"{MEASURES[measure].capitalize()} on the test set {where}."]
    if measure == MINORITY:
        sentences.append("The minority are the 25 % smallest training classes.")

    # At one cost a chart has rows of dots; over several costs it has lines with bands.
    mark_of_quantiles = "band"
    mark_without_privacy = "Thin dashes"
    if only_cost is not None:
        mark_of_quantiles = "line"
        mark_without_privacy = "Hollow marks"

    sentences.append(about_seeds(panels, mark_of_quantiles))
    if any(panel.flat for panel in panels):
        sentences.append(f"{mark_without_privacy}: the same learners without privacy.")
    if any(rho_of_fits(result) for panel in panels for result in panel.results):
        sentences.append(ABOUT_UNPAID)
    if kind == "rho" and only_cost is None:
        sentences.append(ABOUT_EPSILON)
    return " ".join(sentences)


def _only_cost(panels: Iterable[Panel]) -> float | None:
    """Return the cost of all private points, if they have only one."""
    costs = {float(point.x) for panel in panels for point in panel.points}
    return costs.pop() if len(costs) == 1 else None


def _cost_words(kind: str, only_cost: float | None) -> str:
    """Return "against epsilon e", or "at e = 1, rho = 0.5" where all points have one cost."""
    if only_cost is None:
        return "against epsilon e" if kind == "rho" else f"against {kind}"
    if kind == "rho":
        return f"at e = {rounded_up(only_cost, 3)}, rho = {rounded_up(only_cost**2 / 2, 3)}"
    return f"at {kind} = {rounded_up(only_cost, 3)}"


def _by_currency(
    sweep: SweepResults, results: Sequence[Result]
) -> list[tuple[str, list[Result], list[Result]]]:
    """Divide results into currencies: rho, and epsilon where there is no rho.

    Each is its name, the private results in it, and the results without privacy that are drawn
    beside them. These go with their learner; those of learners that have no private result go with
    the first currency.
    """
    # a result without a currency is not private, or states no cost
    private_results = [result for result in results if currency(result)]
    private_learners = {sweep.label(result) for result in private_results}
    learners_without_private = set(sweep.series) - private_learners

    currencies: list[tuple[str, list[Result], list[Result]]] = []
    for (kind,), private in grouped(private_results, currency):
        learners = {sweep.label(result) for result in private}
        is_first = not currencies
        if is_first:
            learners |= learners_without_private
        flat = [
            result for result in results if not_private(result) and sweep.label(result) in learners
        ]
        currencies.append((kind, private, flat))
    return currencies


def cost_panels(
    results: Iterable[Result],
    flat: Sequence[Result],
    series: Callable[[Result], str],
    measure: str,
    *,
    panel: Callable[[Result], str] = _imbalance,
    place: Callable[[Sequence[Result]], float] = axis_cost,
) -> tuple[Panel, ...]:
    """Return a panel for each title, by default each imbalance, at which any result has the
    measure.

    `flat` are the results without privacy, which are drawn across a panel; `place` is the place of
    a budget on the axis of costs.
    """
    panels = []
    for (title,), group in grouped(results, panel):
        # a point for each budget, at its median cost over seeds
        points = points_of(group, series, "budget", place, measure)
        if not points:
            continue

        # a point for each series, since `budget_of` has one name for all infinite budgets
        flat_group = [result for result in flat if panel(result) == title]
        flat_points = points_of(flat_group, series, budget_of, lambda _: NO_PRIVACY, measure)
        panels.append(Panel(title, points, flat_points))
    return tuple(panels)


def cost_axis(results: Sequence[Result]) -> Axis:
    """Return the axis of the papers' epsilon e where results have a rho, and of epsilon elsewhere.

    The results have one unit and currency.
    """
    kind = currency(results[0])
    unit = unit_words(results[0].unit)
    costs = [axis_cost([result]) for result in results]
    if kind != "rho":
        return log_axis(f"{kind} ({unit})", costs)
    return replace(log_axis(f"epsilon e (zCDP, {unit})", costs), rho_above=True)


def rho_axis(results: Sequence[Result]) -> Axis:
    """Return the axis of rho alone, for results that have one."""
    unit = unit_words(results[0].unit)
    return log_axis(f"rho (zCDP, {unit})", [cost(result) for result in results])


def result_of_fit(
    learner: str, rho: float, seed: int, balanced: float, minority: float | None
) -> Result:
    """Make a result of a fit outside of a sweep, to be drawn by `both_measures`.

    rho = inf is without privacy. Fields that `both_measures` does not read are empty.
    """
    return Result(
        key=f"{learner}, rho={rounded_up(rho)}, seed {seed}",
        plan="",
        data="",
        encoder="",
        learner=learner,
        method=learner,
        parameters="{}",
        public=None,
        public_rows=None,
        budget=f"rho={rounded_up(rho)}",
        imbalance=1.0,
        seed=seed,
        tuning="none",
        unit="add-remove",
        status="done",
        rho=rho,
        balanced_accuracy=balanced,
        minority_accuracy=minority,
    )


def both_measures(results: Sequence[Result], title: str, *, of_rho: bool = False) -> Figure:
    """Return balanced and minority accuracy beside each other, for results on one data set.

    They are drawn against the papers' epsilon, or against rho with `of_rho`.
    """
    private = [result for result in results if currency(result)]
    flat = [result for result in results if not_private(result)]
    titles = {BALANCED: "balanced accuracy", MINORITY: "minority accuracy: 25 % smallest classes"}

    place = axis_cost
    axis = cost_axis
    if of_rho:
        place = median_cost
        axis = rho_axis

    def learner(result: Result) -> str:
        return result.learner

    panels: list[Panel] = []
    for measure, panel_title in titles.items():
        for panel in cost_panels(private, flat, learner, measure, place=place):
            panels.append(replace(panel, title=panel_title))

    return Figure(
        name=slug(title),
        title=title,
        caption="",
        legend="method",
        series=tuple(dict.fromkeys(result.learner for result in results)),
        panels=tuple(panels),
        x=axis(private),
        y=Axis("accuracy", limits=(0, 1)),
    )


def best_parameter(sweep: SweepResults) -> Iterator[Figure]:
    """A line for each value of a method's only parameter that varies, and which value was best at
    each cost.
    """
    for method, name, results in _parameter_families(sweep):
        yield from _parameter_figure(method, name, results)


def best_values(sweep: SweepResults) -> Iterator[Figure]:
    """The best value of a method's only parameter that varies against the cost; a line for each
    imbalance.
    """
    for method, name, results in _parameter_families(sweep):
        yield from _best_figure(method, name, results)


def _parameter_families(sweep: SweepResults) -> Iterator[tuple[str, str, list[Result]]]:
    """Yield a method, its only parameter that varies, and results that agree in all but the
    parameter, the budget, imbalance and seed.
    """
    for (method,), family in grouped(sweep.done, "method"):
        varying = _varying(family)
        if len(varying) != 1:
            # lines over values of several parameters would not tell which one matters
            continue

        private = [result for result in family if currency(result)]
        for _, results in grouped(private, *PLACE, currency, "public", "public_rows", "names"):
            yield method, varying[0], results


def _parameter_panels(name: str, results: Sequence[Result]) -> tuple[Panel, ...]:
    """Return a panel for each imbalance with a line for each value, and rings around the best.

    There is none if all results have one value.
    """

    def value_of(result: Result) -> str:
        return str(parameters_of(result).get(name, "default"))

    panels = cost_panels(results, (), value_of, BALANCED)
    if len(_values(panels)) < 2:
        return ()
    return tuple(replace(panel, best=_best(panel.points)) for panel in panels)


def _values(panels: Iterable[Panel]) -> list[str]:
    """Return the values of a parameter that panels show."""
    return sorted({point.series for panel in panels for point in panel.points}, key=natural)


def _parameter_figure(method: str, name: str, results: Sequence[Result]) -> Iterator[Figure]:
    """Yield the figure of one parameter, unless all results have one value of it.

    The results agree in all that the title says: data, encoder, unit, currency and public facts.
    """
    panels = _parameter_panels(name, results)
    if not panels:
        return

    kind = str(currency(results[0]))
    only_cost = _only_cost(panels)
    yield Figure(
        name=_parameter_slug("best", method, name, results[0]),
        title=_parameter_title(f"accuracy by {name}", method, results[0], only_cost),
        caption=caption(_about_parameter(method, name, kind, panels), panels),
        legend=name,
        series=tuple(_values(panels)),
        panels=panels,
        x=cost_axis(results),
        y=Axis(MEASURES[BALANCED], limits=(0, 1)),
        one_cost=only_cost is not None,
    )


def _best_figure(method: str, name: str, results: Sequence[Result]) -> Iterator[Figure]:
    """Yield the figure of the best values of one parameter, if they are numbers and there are
    several costs.
    """
    panels = _parameter_panels(name, results)
    if _only_cost(panels) is not None or not all(map(_is_number, _values(panels))):
        return

    points = []
    for panel in panels:
        for point in panel.best:
            value = spread([float(point.series)])
            points.append(Point(panel.title, point.x, value, point.results))
    if not points:
        return

    only_panel = Panel("", tuple(points))
    about = (
        f"The {name} of {method} with the highest median of balanced accuracy over seeds, at each"
        f" cost. It is picked on the test set, which is tuning that nobody paid for."
    )
    if currency(results[0]) == "rho":
        about += f" {ABOUT_EPSILON}"
    yield Figure(
        name=_parameter_slug("best values of", method, name, results[0]),
        title=_parameter_title(f"best {name}", method, results[0], None),
        caption=caption(about, [only_panel]),
        legend="imbalance",
        series=tuple(dict.fromkeys(point.series for point in points)),
        panels=(only_panel,),
        x=cost_axis(results),
        y=axis_for(f"best {name}", [only_panel]),
    )


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _parameter_slug(words: str, method: str, name: str, first: Result) -> str:
    """Return the name of a figure of one parameter, by any of its results."""
    # a part of the file's name, left out if None
    names = "names" if first.names else None
    return slug(
        words,
        name,
        method,
        first.data,
        first.encoder,
        first.public,
        first.public_rows,
        names,
        first.unit,
        currency(first),
    )


def _parameter_title(words: str, method: str, first: Result, only_cost: float | None) -> str:
    """Return the title of a figure of one parameter, by any of its results."""
    where = _cost_words(str(currency(first)), only_cost)
    return (
        f"{first.data}, {first.encoder}: {words} of {method} {where}{_public_words(first)}"
        f" ({unit_words(first.unit)})"
    )


def _public_words(result: Result) -> str:
    """Return the public data of a learner, as a title appends them."""
    words = ""
    if result.public is not None:
        words += f", public set {result.public}"
        if result.public_rows is not None:
            words += f", {result.public_rows} rows"
    if result.names:
        words += ", class names"
    return words


def _about_parameter(method: str, name: str, kind: str, panels: tuple[Panel, ...]) -> str:
    """Return the sentences on a figure of one parameter against the cost in a currency, `kind`."""
    seeds = about_seeds(panels, "band")
    rings = "Rings, and the values named below: the best median at each cost."
    axis = f" {ABOUT_EPSILON}" if kind == "rho" else ""
    if _only_cost(panels) is not None:
        seeds = about_seeds(panels, "line")
        rings = "Ring: the best."
        axis = ""
    return (
        f"Balanced accuracy of {method} for each {name}. {seeds} {rings} It is picked on the test"
        f" set, which is tuning that nobody paid for.{axis}"
    )


def _best(points: Sequence[Point]) -> tuple[Point, ...]:
    """At each budget the point with the highest median; the smallest value of equals."""
    best: dict[str, Point] = {}
    for point in sorted(points, key=lambda point: natural(point.series)):
        budget = point.results[0].budget
        if budget not in best or point.y.median > best[budget].y.median:
            best[budget] = point
    return tuple(sorted(best.values(), key=lambda point: natural(point.x)))


def _varying(results: Sequence[Result]) -> list[str]:
    """Return the names of parameters that have more than one value."""
    assignments = [parameters_of(result) for result in results]
    names = {name for parameters in assignments for name in parameters}
    varying = []
    for name in names:
        # None where a result has the default
        values = {parameters.get(name) for parameters in assignments}
        if len(values) > 1:
            varying.append(name)
    return varying


def public_rows(sweep: SweepResults) -> Iterator[Figure]:
    """Accuracy against the number of public rows, for learners that had several; a panel per
    budget.
    """
    rows = [result.public_rows for result in sweep.done if result.public_rows]
    for figure in _against(sweep, "public_rows", "number of public rows", "band"):
        yield replace(figure, x=log_axis(figure.x.title, rows))


def public_sets(sweep: SweepResults) -> Iterator[Figure]:
    """Accuracy by public set, for learners that had several; a panel per budget."""
    return _against(sweep, "public", "public set", "bar")


def encoders(sweep: SweepResults) -> Iterator[Figure]:
    """Accuracy by encoder, where a data set has several; a panel per budget."""
    return _against(sweep, "encoder", "encoder", "bar")


def units(sweep: SweepResults) -> Iterator[Figure]:
    """Accuracy by neighbouring relation, for learners that had several; a panel per budget, and no
    axis of costs.
    """
    for figure in _against(sweep, "unit", "neighbouring relation", "bar"):
        yield replace(figure, caption=f"{figure.caption} {ABOUT_UNITS}")


def _against(sweep: SweepResults, field: str, words: str, mark: str) -> Iterator[Figure]:
    """Accuracy against a field other than the budget, for learners that have several values of
    it.
    """
    # Labels that do not name the field. Those that other figures lack follow the labels of other
    # figures, which so keep their colours.
    names = labels(sweep.done, without=field)
    new_labels = set(names.values()) - set(sweep.series)
    series = (*sweep.series, *sorted(new_labels, key=natural))

    # A figure holds one place, and guarantees of one unit, unless these are what it compares.
    place_fields = [name for name in ("data", "encoder") if name != field]
    unit_fields = [] if field == "unit" else ["unit"]

    for (*place, ratio), results_of_place in grouped(sweep.done, *place_fields, "imbalance"):
        imbalance = imbalance_words(ratio)
        # `unit` is a tuple with the unit, or an empty one where units are compared
        for unit, results in grouped(results_of_place, *unit_fields):
            panels = _budget_panels(results, names, field)
            if not panels:
                continue

            suffix = ""
            if unit:
                suffix = f" ({unit_words(unit[0])})"
            about = f"Balanced accuracy on the test set by {words}. {about_seeds(panels, mark)}"
            yield Figure(
                name=slug(words, *place, imbalance, *unit),
                title=f"{', '.join(place)}, {imbalance}: accuracy by {words}{suffix}",
                caption=caption(about, panels),
                legend="learner",
                series=series,
                panels=panels,
                x=Axis(f"{words}{suffix}"),
                y=Axis(MEASURES[BALANCED], limits=(0, 1)),
            )


def _budget_panels(
    results: Iterable[Result], names: Mapping[str, str], field: str
) -> tuple[Panel, ...]:
    """Return a panel for each budget, of the learners that have several values of the field
    there.
    """

    def label(result: Result) -> str:
        return names[result.key]

    # a result without public data has no place on an axis of public sets or rows
    with_value = [result for result in results if getattr(result, field)]

    panels = []
    for budget, group in budgets(with_value):
        compared: list[Result] = []
        for _, results_of_learner in grouped(group, label):
            values = {getattr(result, field) for result in results_of_learner}
            if len(values) > 1:
                compared += results_of_learner

        # results of one point have one value of the field
        points = points_of(
            compared,
            label,
            field,
            lambda results_of_point: _axis_value(results_of_point[0], field),
            BALANCED,
        )
        if points:
            panels.append(Panel(budget_words(budget), points))
    return tuple(panels)


def _axis_value(result: Result, field: str) -> Any:
    value = getattr(result, field)
    if field == "unit":
        return unit_words(value)
    return value
