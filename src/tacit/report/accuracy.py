"""Figures of accuracy: against the privacy cost, the public rows, the public set and the encoder.

A point holds results that differ in the seed alone, and a figure holds guarantees under one unit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tacit.experiments.results import Result
from tacit.report.captions import AXIS_ABOVE, about_seeds, caption
from tacit.report.figure import Axis, Figure, Panel, Point, log_axis, points_of
from tacit.report.groups import (
    NO_PRIVACY,
    PLACE,
    SweepResults,
    budget_of,
    budgets,
    cost,
    currency,
    grouped,
    labels,
    median_cost,
    natural,
    not_private,
    parameters_of,
)
from tacit.report.words import imbalance_words, slug, unit_words

BALANCED, MINORITY = "balanced_accuracy", "minority_accuracy"
OF_UNITS = (
    "One budget promises more or less under different relations: the panels compare what each costs"
    " in accuracy, and rank no guarantee."
)
MEASURES = {BALANCED: "balanced accuracy", MINORITY: "minority accuracy"}


def accuracy(sweep: SweepResults) -> Iterator[Figure]:
    """Balanced accuracy of every learner against rho, or epsilon where there is no rho; a panel per
    imbalance.
    """
    return _against_cost(sweep, BALANCED)


def minority(sweep: SweepResults) -> Iterator[Figure]:
    """Accuracy on the 25 % smallest classes, drawn as `accuracy` is."""
    return _against_cost(sweep, MINORITY)


def _against_cost(sweep: SweepResults, measure: str) -> Iterator[Figure]:
    for (data, encoder, unit), results in grouped(sweep.done, *PLACE):
        for kind, private, flat in _by_currency(sweep, results):
            panels = cost_panels(private, flat, sweep.label, measure)
            if not panels:
                continue
            alone = _only_cost(panels)
            where = f"against {kind}" if alone is None else f"at {kind} = {alone:.3g}"
            mark, apart = ("band", "Thin dashes") if alone is None else ("line", "Hollow marks")
            about = [f"{MEASURES[measure].capitalize()} on the test set {where}."]
            about += (
                ["The minority are the 25 % smallest training classes."]
                if measure == MINORITY
                else []
            )
            about += [about_seeds(panels, mark)]
            about += (
                [f"{apart}: the same learners without privacy."]
                if any(panel.flat for panel in panels)
                else []
            )
            about += [AXIS_ABOVE] if kind == "rho" and alone is None else []
            yield Figure(
                name=slug(MEASURES[measure], data, encoder, unit, kind),
                title=f"{data}, {encoder}: {MEASURES[measure]} {where} ({unit_words(unit)})",
                caption=caption(" ".join(about), panels),
                legend="learner",
                series=sweep.series,
                panels=panels,
                x=cost_axis(private),
                y=Axis(MEASURES[measure], limits=(0, 1)),
                one_cost=alone is not None,
            )


def _only_cost(panels: Iterable[Panel]) -> float | None:
    """The cost of all private points, if they have only one."""
    costs = {float(point.x) for panel in panels for point in panel.points}
    return costs.pop() if len(costs) == 1 else None


def _by_currency(
    sweep: SweepResults, results: Sequence[Result]
) -> list[tuple[str, list[Result], list[Result]]]:
    """For rho, and for epsilon where there is no rho: the private results, and those without
    privacy.

    Results without privacy go with their learner; those of learners that have no private result go
    with the first.
    """
    groups = grouped([one for one in results if currency(one)], currency)
    others = set(sweep.series) - {sweep.label(one) for _, private in groups for one in private}
    found = []
    for (kind,), private in groups:
        here, others = {sweep.label(one) for one in private} | others, set()
        found.append(
            (
                kind,
                private,
                [one for one in results if not_private(one) and sweep.label(one) in here],
            )
        )
    return found


def cost_panels(
    results: Iterable[Result], flat: Sequence[Result], series: Callable[[Result], str], measure: str
) -> tuple[Panel, ...]:
    """A panel for each imbalance at which any result has the measure."""
    panels = []
    for (ratio,), group in grouped(results, "imbalance"):
        beside = [one for one in flat if one.imbalance == ratio]
        points = points_of(group, series, "budget", median_cost, measure)
        across = points_of(beside, series, budget_of, lambda _: NO_PRIVACY, measure)
        panels += [Panel(imbalance_words(ratio), points, across)] if points else []
    return tuple(panels)


def cost_axis(results: Sequence[Result]) -> Axis:
    """The axis of rho or of epsilon, for results of one unit and currency."""
    kind, words = currency(results[0]), unit_words(results[0].unit)
    title = f"rho (zCDP, {words})" if kind == "rho" else f"{kind} ({words})"
    return replace(log_axis(title, [cost(one) for one in results]), rough=kind == "rho")


def result_of_fit(
    learner: str, rho: float, seed: int, balanced: float, minority: float | None
) -> Result:
    """The result of a fit outside of a sweep, to be drawn by `both_measures`; rho = inf is without
    privacy.
    """
    return Result(
        key=f"{learner}, rho={rho:g}, seed {seed}",
        plan="",
        data="",
        encoder="",
        learner=learner,
        method=learner,
        parameters="{}",
        public=None,
        public_rows=None,
        budget=f"rho={rho:g}",
        imbalance=1.0,
        seed=seed,
        tuning="none",
        unit="add-remove",
        status="done",
        rho=rho,
        balanced_accuracy=balanced,
        minority_accuracy=minority,
    )


def both_measures(results: Sequence[Result], title: str) -> Figure:
    """Balanced and minority accuracy against rho, beside each other, for results on one data
    set.
    """
    private = [one for one in results if currency(one)]
    flat = [one for one in results if not_private(one)]
    titles = {BALANCED: "balanced accuracy", MINORITY: "minority accuracy: 25 % smallest classes"}
    panels = tuple(
        replace(panel, title=words)
        for measure, words in titles.items()
        for panel in cost_panels(private, flat, lambda one: one.learner, measure)
    )
    series = tuple(dict.fromkeys(one.learner for one in results))
    return Figure(
        slug(title),
        title,
        "",
        "method",
        series,
        panels,
        cost_axis(private),
        Axis("accuracy", limits=(0, 1)),
    )


def best_parameter(sweep: SweepResults) -> Iterator[Figure]:
    """A line for each value of a method's only parameter that varies, and which value was best at
    each cost.
    """
    for (method,), family in grouped(sweep.done, "method"):
        varying, private = _varying(family), [one for one in family if currency(one)]
        if len(varying) == 1:
            for key, results in grouped(
                private, *PLACE, currency, "public", "public_rows", "names"
            ):
                yield from _of_parameter(method, varying[0], key, results)


def _of_parameter(
    method: str, name: str, key: tuple[Any, ...], results: Sequence[Result]
) -> Iterator[Figure]:
    data, encoder, unit, kind, public, rows, names = key
    panels = cost_panels(
        results, (), lambda one: str(parameters_of(one).get(name, "default")), BALANCED
    )
    series = sorted({point.series for panel in panels for point in panel.points}, key=natural)
    if len(series) < 2:
        return
    of_public = (
        ""
        if public is None
        else f", public set {public}" + ("" if rows is None else f", {rows} rows")
    )
    of_public += ", class names" if names else ""
    alone = _only_cost(panels)
    where = f"against {kind}" if alone is None else f"at {kind} = {alone:.3g}"
    rings = (
        "Rings, and the values named below: the best median at each cost."
        if alone is None
        else "Ring: the best."
    )
    about = (
        f"Balanced accuracy of {method} for each {name}."
        f" {about_seeds(panels, 'band' if alone is None else 'line')} {rings} It is picked on the"
        " test set, which is tuning that nobody paid for."
    )
    yield Figure(
        name=slug(
            "best",
            name,
            method,
            data,
            encoder,
            public,
            rows,
            "names" if names else None,
            unit,
            kind,
        ),
        title=f"{data}, {encoder}: best {name} of {method} {where}{of_public} ({unit_words(unit)})",
        caption=caption(
            about + (f" {AXIS_ABOVE}" if kind == "rho" and alone is None else ""), panels
        ),
        legend=name,
        series=tuple(series),
        panels=tuple(replace(panel, best=_best(panel.points)) for panel in panels),
        x=cost_axis(results),
        y=Axis(MEASURES[BALANCED], limits=(0, 1)),
        one_cost=alone is not None,
    )


def _best(points: Sequence[Point]) -> tuple[Point, ...]:
    """At each budget the point with the highest median; the first of equals."""
    best: dict[str, Point] = {}
    for point in sorted(points, key=lambda point: natural(point.series)):
        budget = point.results[0].budget
        if budget not in best or point.y.median > best[budget].y.median:
            best[budget] = point
    return tuple(sorted(best.values(), key=lambda point: natural(point.x)))


def _varying(results: Sequence[Result]) -> list[str]:
    """The names of parameters that have more than one value."""
    each = [parameters_of(one) for one in results]
    return [
        name
        for name in {name for one in each for name in one}
        if len({one.get(name) for one in each}) > 1
    ]


def public_rows(sweep: SweepResults) -> Iterator[Figure]:
    """Accuracy against the number of public rows, for learners that had several; a panel per
    budget.
    """
    rows = [one.public_rows for one in sweep.done if one.public_rows]
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
        yield replace(figure, caption=f"{figure.caption} {OF_UNITS}")


def _against(sweep: SweepResults, what: str, words: str, mark: str) -> Iterator[Figure]:
    """Accuracy against a field other than the budget, for learners that have several values of
    it.
    """
    names = labels(sweep.done, without=what)
    series = (*sweep.series, *sorted(set(names.values()) - set(sweep.series), key=natural))
    place = [name for name in ("data", "encoder") if name != what]
    under = [] if what == "unit" else ["unit"]
    for (*where, ratio), by_ratio in grouped(sweep.done, *place, "imbalance"):
        for unit, results in grouped(by_ratio, *under):
            panels = _budget_panels(results, names, what)
            if not panels:
                continue
            suffix = "".join(f" ({unit_words(one)})" for one in unit)
            yield Figure(
                name=slug(words, *where, imbalance_words(ratio), *unit),
                title=f"{', '.join(where)}, {imbalance_words(ratio)}: accuracy by {words}{suffix}",
                caption=caption(
                    f"Balanced accuracy on the test set by {words}. {about_seeds(panels, mark)}",
                    panels,
                ),
                legend="learner",
                series=series,
                panels=panels,
                x=Axis(f"{words}{suffix}"),
                y=Axis(MEASURES[BALANCED], limits=(0, 1)),
            )


def _budget_panels(
    results: Iterable[Result], names: Mapping[str, str], what: str
) -> tuple[Panel, ...]:
    """A panel for each budget, of the learners that have several values of the field there."""
    panels = []
    for budget, group in budgets([one for one in results if getattr(one, what)]):
        lines = [line for _, line in grouped(group, lambda one: names[one.key])]
        several = [
            one for line in lines if len({getattr(one, what) for one in line}) > 1 for one in line
        ]
        points = points_of(
            several, lambda one: names[one.key], what, lambda here: _shown(here[0], what), BALANCED
        )
        panels += [Panel(budget, points)] if points else []
    return tuple(panels)


def _shown(result: Result, what: str) -> Any:
    value = getattr(result, what)
    return unit_words(value) if what == "unit" else value
