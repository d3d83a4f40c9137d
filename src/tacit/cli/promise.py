"""`tacit promise`: the privacy cost of a fit, before any data."""

from pathlib import Path

from tacit.cli.common import read_classes, say
from tacit.cli.json_output import guarantee_facts, print_json
from tacit.cli.learner import check_options, known_method, make_learner
from tacit.cli.names import NONE
from tacit.cli.options import Budget, Json, Method, Unit


def promise(
    method: Method,
    /,
    *,
    budget: Budget = None,
    unit: Unit = None,
    classes: str | None = None,
    public: Path | None = None,
    allow_overlap: bool = False,
    names: str | None = None,
    delta: float | None = None,
    json: Json = False,
    **parameters: str,
) -> None:
    """State what a fit will cost, from public facts alone.

    Parameters
    ----------
    classes
        A number N for 0..N-1, a file with one class a line, or classes with commas between them.
    public
        As for `tacit fit`, so that its options can be tried here; public data cost nothing and are
        not read.
    allow_overlap
        As for `tacit fit`; it changes nothing that is stated.
    names
        The same for rows of class names.
    delta
        Where epsilon is stated; by default at the delta of the budget, or else at 1e-6. Of pate
        with --budgets, it is theirs too, as in `tacit fit`.
    parameters
        Further parameters of the method, such as --k 5; `tacit promise METHOD --help` lists them.
    """
    # a class list costs nothing; the statement depends only on whether it is declared
    declared = read_classes(classes) if classes is not None else 1
    method = known_method(method)
    check_options(promise, method, parameters)
    if delta is not None and "budgets" in parameters:
        parameters["delta"] = str(delta)
    learner = make_learner(
        method, parameters, budget=budget, unit=unit, classes=declared, public=public,
        allow_overlap=allow_overlap or None, names=None if names == NONE else names,
    )  # fmt: skip
    promised = learner.promise()
    if json:
        print_json({"method": method, **guarantee_facts(promised, delta)})
        return
    say(promised.statement(delta))
