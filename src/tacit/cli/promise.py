"""`tacit promise`: the price, before any data."""

from pathlib import Path

from tacit.cli.common import Method, known_method, make_learner, read_classes, stated_delta


def promise(
    method: Method,
    /,
    *,
    budget: str | None = None,
    unit: str | None = None,
    classes: str | None = None,
    public: Path | None = None,
    delta: float | None = None,
    **parameters: str,
) -> None:
    """State what a fit will cost, from public facts alone.

    Parameters
    ----------
    budget
        epsilon=1, rho=0.5 or epsilon=1,delta=1e-6. Methods with budget groups take --budgets a=1,b=2 instead.
    unit
        add-remove, replace or change-label: the unit in which the budget is read; by default the method's own.
    classes
        A number N for 0..N-1, or a file with one class a line.
    public
        As for `tacit fit`, so that its options can be tried here; public data cost nothing and are not read.
    delta
        Where epsilon is stated; by default at the delta of the budget, or else at 1e-6.
    parameters
        Further parameters of the method, such as --k 5.
    """
    # what the class list holds costs nothing; that it is declared is what the statement depends on
    declared = read_classes(classes) if classes is not None else 1
    learner = make_learner(known_method(method), parameters, budget=budget, unit=unit, classes=declared, public=public)
    print(learner.promise().statement(stated_delta(learner) if delta is None else delta))
