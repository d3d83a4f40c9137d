"""PATE: teachers on disjoint parts of the private records vote on public records, and a student
learns the labels.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tacit.compute.engines import Engine, engine_from
from tacit.data.persons import Persons
from tacit.data.rows import as_rows
from tacit.errors import BudgetError, InputError
from tacit.learners.common.base import DEFAULT_BUDGET
from tacit.learners.common.models import (
    TRIED,
    Model,
    ModelClassifier,
    View,
    as_flat,
    check_kind,
    check_learns,
    finite_rows,
    has_release,
    record_shape,
    shape_of,
)
from tacit.learners.common.parameters import array_of, one_of, real, value_of, whole
from tacit.learners.pate.aggregators import AGGREGATORS, Aggregator, GNMax, Plurality, voting_of
from tacit.learners.pate.calibrate import Calibration
from tacit.learners.pate.collectors import COLLECTORS, PlainCollector
from tacit.learners.pate.data_dependent import consensus
from tacit.learners.pate.election import Election, check_test, check_truth, student_view
from tacit.learners.pate.filter import allowance_of, cap, promised
from tacit.learners.pate.grouped import (
    FLAT_NAMES,
    GROUPS,
    KINDS,
    Queries,
    Run,
    fields_of,
    with_fields,
)
from tacit.learners.pate.readings import limits_of, readings
from tacit.learners.pate.run_folder import RunFolder, charge_for, run_hash
from tacit.learners.pate.scheme import (
    ALL,
    UNLIMITED,
    Scheme,
    checked_budgets,
    plain_scheme,
    scheme,
    unprotected,
)
from tacit.learners.pate.student import Student
from tacit.learners.pate.tables import (
    Row,
    accuracies,
    label_accuracies,
    query_rows,
    reading_row,
    record_rows,
    teacher_rows,
    voting_row,
)
from tacit.learners.pate.teachers import Allocation, Teachers, allocate, model_of
from tacit.learners.pate.voting import Voting, check_stopping
from tacit.mechanisms.noise import SAMPLERS, Integers, NoiseSource, noise_source
from tacit.models.name_directions import name_directions
from tacit.models.released import Released
from tacit.models.rows import Floats
from tacit.privacy.allowance import Allowance
from tacit.privacy.budget import Budget
from tacit.privacy.decimals import rounded_up
from tacit.privacy.events import ZCDP, Event, compose
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.ledger import Ledger
from tacit.privacy.unit import Unit

# Fewer teachers are enough if their labels tell this share of what those of the most teachers tell.
NEARLY_MOST = 0.9

# Bits of information for each class, by simulation, below which a fit warns.
LEAST_BITS = 10


class _Candidate(NamedTuple):
    """A voting of some number of teachers, planned from public facts.

    `calibration` has the expected labels; it is None if noise is given, or there is none.
    """

    allocation: Allocation
    scheme: Scheme
    calibration: Calibration | None


@dataclass(kw_only=True, eq=False, repr=False)
class PATE(ModelClassifier):
    """Classify by a student that learns from the noisy votes of teachers on public records.

    The private records are split among teachers, classifiers that learn from disjoint parts. Public
    records are queried in order; the noisy votes answer some of them, until a limit or a budget is
    reached. The student learns only from these labels.

    Parameters
    ----------
    budget : Budget or str, default="rho=0.5"
        Budget of every record, or of every person under "replace-person": zCDP, approximate, or mu.
        A pure budget is refused. "rho=inf" is plurality without noise.
    classes
        As in `NoisySumPrototypes`.
    public : array of shape (m, d) or (m, channels, height, width), optional
        The records to query, of the same kind as the private records. They may be passed to `fit`
        instead.
    allow_overlap
        As in `NoisySumPrototypes`.
    budgets : dict of str to float, optional
        Instead of `budget`: epsilon of each budget group at `delta`. `fit` then takes `groups`.
    delta : float, default=1e-5
        Delta of budgets that state none.
    teachers : Teachers or dict, optional
        Who votes: number, model, training, expected_accuracy. See `tacit.pate.Teachers`.
    voting : {"confident", "gnmax"}, aggregator or dict, default="confident"
        With a name, noise is calibrated on simulated votes. Otherwise pass
        `tacit.pate.GNMax(sigma)`, `Confident(sigma, sigma1, threshold)`, `Interactive(sigma,
        sigma1, threshold, confidence, bootstrap)` or `LaplaceMax(gamma)`, all in votes; or a dict
        of these with the name as `kind`.
    label_accuracy : float, optional
        Share of right labels at which calibrated noise aims, as `accuracy` of
        `tacit.pate.calibrate`, for teachers of their `expected_accuracy`. By default the noise
        whose labels carry most information is chosen.
    student : Student or dict, optional
        What learns from the labels: model, training, semi_supervised, validation. See
        `tacit.pate.Student`.
    collector : {"weighting", "vanishing", "upsampling", "gnmax"}
        How budget groups vote together; see `tacit.learners.pate.collectors`. Without groups it
        makes no difference.
    names : array of shape (C, d), or sequence of C arrays of shape (k, d) or (d,), optional
        Public rows of the class names, one or several per class, in the order of the declared
        classes. A logistic-regression student is then penalised by its distance from them, unless
        the released labels contradict them (`tacit.models.name_length`). Votes do not depend on
        names, except in interactive voting, which uses the student.
    queries : Queries or dict, optional
        Which public records are queried, when voting ends, and the smaller budgets at which it is
        also read: n_queries, n_labels, limits, stopping. See `tacit.pate.Queries`.
    shape
        As in `LabelPrivate`.
    seed : int, default=0
        Public seed of assigning records and of training. The noise of the votes does not depend on
        it.
    run : Run or dict, optional
        Where teachers are trained, what is kept of the fit, and which voting of the teachers it
        is: folder, engine, jobs, voting_seed. See `tacit.pate.Run`.
    noise, random_state, ledger
        As in `NoisySumPrototypes`.
    unit : {"replace", "change-label", "replace-person"}
        Unit in which the guarantee is stated. Budgets refer to "replace", or to "replace-person" if
        that is the unit. Persons are then assigned to teachers, each with all their records.

    Attributes
    ----------
    answers_ : Answers
        Labels of the public records, which may be published, and their privacy cost.
    student_ : Model
    readings_ : list of Reading
        What votings with the smaller budgets in `queries.limits` would have released, and the
        accuracy of their students.
    validation_accuracy_ : float or None
        Share of the validation labels that the student predicts.
    parts_ : list of ndarray
        Positions of the private records that each teacher learned from. Private, for the owner, and
        part of no release; records.csv in `run.folder` has the same by record.
    votes_ : Votes
        Private, as are `consensus_`, `answers_.internal_` and everything in `run.folder`.
    consensus_ : ndarray of shape (20,)
        How many public records have each share of teachers for their top class: up to 5 %, up to 10
        %, and so on.
    aggregator_ : Aggregator
        The aggregator with its noise, in votes of plain PATE.
    shape_ : tuple of int
    classes_ : ndarray of shape (C,)
    guarantee_ : Guarantee
        Equal to `promise()`. With groups, the budget of each group. Without groups, the budget, or
        the worst-case cost of the limits if noise and `n_queries` are given and that cost is
        smaller.
    spent_ : Guarantee
        Cost of the queries and labels. A report, not a guarantee.

    Notes
    -----
    Guarantee: under replacement of one record of a group, the group's budget. Each record goes to
    one teacher, or to d_g teachers under upsampling (d_g is the number of copies in group g). The
    assignment depends only on its position, its group and public facts. See
    `tacit.mechanisms.votes` for the cost of a query and `tacit.learners.pate.filter` for why
    stopping is private. The number of records, groups and budgets are not protected. Under
    "replace-person" the same holds for persons: the data are a list of persons, in the order of
    their first records, and a replaced person keeps their place in it. All records of a person go
    to the same teachers, and no teacher depends on another teacher's number of records. If the
    order of the first records reveals something private, sort the records by person first, in an
    order that is public.
    Source: Papernot et al. 2017 and 2018; Boenisch et al. 2022.

    Examples
    --------
    >>> import numpy as np, tacit
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 2000)
    >>> X = rng.normal(size=(2000, 3)) + 3 * y[:, None]
    >>> public = rng.normal(size=(200, 3)) + 3 * rng.integers(0, 2, (200, 1))
    >>> model = tacit.PATE("epsilon=2,delta=1e-5", classes=2, public=public).fit(X, y)
    >>> model.predict([[3.0, 3.0, 3.0]]), round(model.guarantee_.epsilon(1e-5), 4)
    (array([1]), 2.0)
    """

    units = (Unit.REPLACE, Unit.CHANGE_LABEL, Unit.REPLACE_PERSON)
    budget_kinds = ("zcdp", "approx", "gdp")
    person_bound = "all records of a person go to the same teachers"
    needs_public = True
    summary = "labels of public records by noisy votes, and a student (PATE, personalized PATE)"
    public_use = "needed, of the private kind"
    has_votes = True
    stops_early = True
    one_label = (
        "votes for one class of a query, and sets of labels have no such vote; learn from several"
        " with GradientDescent"
    )
    no_release = (
        "decides by a model that a release cannot hold; choose student={'model': 'linear'}, a"
        " LogisticRegression or a network by name, or publish answers_.labels alone"
    )
    flat_names: ClassVar[Mapping[str, str]] = FLAT_NAMES

    public: Any = None
    allow_overlap: bool = False
    budgets: Mapping[str, float] | None = None
    delta: float = 1e-5
    teachers: Teachers | Mapping[str, Any] | None = None
    voting: Aggregator | str | Mapping[str, Any] = "confident"
    label_accuracy: float | None = None
    student: Student | Mapping[str, Any] | None = None
    collector: str = "weighting"
    names: Any = None
    queries: Queries | Mapping[str, Any] | None = None
    shape: tuple[int, ...] | None = None
    seed: int = 0
    run: Run | Mapping[str, Any] | None = None
    unit: Unit | str = "replace"

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name; `deep` adds the fields of grouped parameters, such as
        `voting__sigma`.
        """
        parameters: dict[str, Any] = super().get_params(deep=False)
        if not deep:
            return parameters
        for group in GROUPS:
            # `promise` and `fit` refuse a value that is none of the group's
            with suppress(InputError):
                fields = fields_of(group, parameters[group])
                parameters |= {f"{group}__{name}": value for name, value in fields.items()}
        return parameters

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters; `voting__sigma=40` replaces the value of `voting` by a copy with that
        field.
        """
        changes: dict[str, dict[str, Any]] = {}
        for name in list(parameters):
            group, _, field = name.partition("__")
            if field and group in GROUPS:
                changes.setdefault(group, {})[field] = parameters.pop(name)
        super().set_params(**parameters)
        for group, fields in changes.items():
            setattr(self, group, with_fields(group, getattr(self, group), fields))
        return self

    @classmethod
    def documented(cls, name: str) -> tuple[type, str]:
        group, _, field = FLAT_NAMES.get(name, "").partition("__")
        if not group:
            return cls, name
        if group != "voting":
            return KINDS[group], field
        for aggregator in AGGREGATORS.values():
            if field in vars(aggregator)["__annotations__"]:
                return aggregator, field
        return cls, group

    def _budget_text(self) -> str:
        if self.budgets is None:
            return super()._budget_text()
        return str(self.budgets)

    def _event(self) -> Event:
        # An infinite budget is plurality without noise, whatever noise is passed.
        if Budget.parse(self.budget).infinite:
            return ZCDP(math.inf)

        allowances = {ALL: UNLIMITED}
        if self._queries().stopping == "filter":
            allowances = self._allowances()
        _, aggregator = voting_of(self.voting)
        limits = self._limits()
        if aggregator is None or limits is None:
            return cap(allowances[ALL])
        collector = PlainCollector({ALL: math.inf}, np.ones((1, 1), dtype=bool))
        return promised(collector, aggregator, allowances, *limits)[ALL]

    def _flat_public(self, public: Any) -> Any:
        return as_rows(as_flat(public, "public"), "public")

    def _unprotected(self) -> tuple[str, ...]:
        return unprotected(self._dealt_unit(), groups=self.budgets is not None)

    def _dealt_unit(self) -> Unit:
        """The unit in which budgets are read: what is dealt out to teachers may be replaced."""
        return Unit.REPLACE_PERSON if Unit(self.unit).per_person else Unit.REPLACE

    def _guarantee(self) -> Guarantee:
        stopping = self._queries().stopping
        check_stopping(stopping, self.noise)
        unit = self._dealt_unit()
        if self.budgets is None:
            return Guarantee(unit, self._event(), self._unprotected())

        filtered = stopping == "filter"
        groups = tuple(
            (group, cap(allowance if filtered else UNLIMITED))
            for group, allowance in self._allowances().items()
        )
        return Guarantee(unit, compose([]), self._unprotected(), groups, delta=self.delta)

    def _allowances(self) -> dict[str, Allowance]:
        """Return what the budget of each group allows, in the currency of the filter."""
        _, aggregator = voting_of(self.voting)
        if self.budgets is None:
            return {ALL: allowance_of(self._impure_budget(), aggregator)}

        if self.budget != DEFAULT_BUDGET:
            raise BudgetError(
                f"budget={self.budget} and budgets={self.budgets} are both given; pass one of them"
            )
        delta = real("delta", self.delta, 1e-30, 1 - 1e-9)
        return {
            group: allowance_of(Budget.approx(epsilon, delta), aggregator)
            for group, epsilon in checked_budgets(self.budgets).items()
        }

    def _impure_budget(self) -> Budget:
        """Return the budget of plain PATE; a pure one is refused."""
        budget = Budget.parse(self.budget)
        if budget.kind == "pure" and not budget.infinite:
            fault = f"budget {budget} is pure and noisy votes have no pure epsilon"
            hint = budget.hint("approx")
            remedy = f"pass {hint} (the same epsilon, but approximate: a weaker guarantee)"
            raise BudgetError(f"{fault}; {remedy}")
        return budget

    def _queries(self) -> Queries:
        return value_of("queries", self.queries, Queries)

    def _run(self) -> Run:
        return value_of("run", self.run, Run)

    def checkpoint_folder(self) -> Any:
        return self._run().folder

    def _limits(self) -> tuple[int, int] | None:
        """Upper bounds on the numbers of queries and labels; None if `n_queries` is not set."""
        queries = self._queries()
        if queries.n_queries is None:
            return None
        n_queries = self._query_count(2**53)
        n_labels = n_queries
        if queries.n_labels is not None:
            n_labels = min(n_queries, whole("n_labels", queries.n_labels, 1, 2**53))
        return n_queries, n_labels

    def _query_count(self, n_public: int) -> int:
        """Return how many of the public records are queried."""
        n_queries = self._queries().n_queries
        if n_queries is None:
            return n_public
        return min(n_public, whole("n_queries", n_queries, 1, 2**53))

    def fit(
        self,
        X: Any,
        y: Any,
        persons: Any = None,
        groups: Any = None,
        public: Any = None,
        test: Any = None,
        truth: Any = None,
        **others: Any,
    ) -> Self:
        """Learn from private and public records.

        Parameters
        ----------
        X, y
            As in `LabelPrivate.fit`.
        persons : array-like of shape (n,), optional
            As in `tacit.NoisySumPrototypes.fit`.
        groups : sequence of str of length n, optional
            Budget group of each record; public. Under "replace-person" all records of a person have
            the same group.
        public : array-like of shape (m, ...), optional
            Public records to query, in this order; by default the parameter of that name. Data
            frames and torch tensors are taken too.
        test : (array-like of shape (t, ...), array-like of shape (t,)), optional
            Records and labels to measure teachers and student by, of the same kinds.
        truth : array-like of shape (m,), optional
            True labels of the public records, to measure the released labels by for the tables in
            `folder`.
        others
            Refused, as in `tacit.NoisySumPrototypes.fit`.

        Returns
        -------
        self

        Raises
        ------
        InputError, BudgetError
            If something is out of range, or no query fits a budget; nothing is charged or learned
            then.
        LedgerError
            If the promise would overdraw the ledger; nothing is learned then.
        """
        arguments = {
            "groups": groups,
            "public": public,
            "test": test,
            "truth": truth,
            "ids": persons,
        }
        return self._learn(
            as_flat(X), y, persons, others, shape=shape_of(X, self.shape), **arguments
        )

    def _prepare(
        self,
        X: NDArray[Any],
        labels: Integers,
        *,
        shape: Any = None,
        groups: Any = None,
        public: Any = None,
        test: Any = None,
        truth: Any = None,
        ids: Any = None,
    ) -> Election:
        n, width = X.shape
        public_records = self._public_records(public, width)
        sides = record_shape(self.shape if shape is None else shape, width)

        teachers = value_of("teachers", self.teachers, Teachers)
        student = value_of("student", self.student, Student)
        self._check_settings(teachers, student, sides)
        view_of_student = student_view(student, sides, public_records, X.dtype)
        check_learns(model_of(student.model), view_of_student(public_records[:TRIED]))
        names = self._names(student, width, view_of_student)

        persons = self._persons(ids, n)
        n_queries = self._query_count(len(public_records))
        allocation, plan, warning = self._choose_teachers(teachers, n, groups, persons, n_queries)
        queries = self._queries()
        if queries.limits is not None:
            limits_of(queries.limits, plan, queries.stopping)

        run = self._run()
        folder = RunFolder(run.folder, run.voting_seed)
        n_classes = len(self.classes_)
        election = Election(
            X,
            labels,
            public=public_records,
            test=check_test(test, width, self.classes_),
            allocation=allocation,
            voting=Voting(plan, np.arange(n_classes), queries.stopping),
            teachers=teachers,
            student=student,
            n_classes=n_classes,
            seed=self.seed,
            folder=folder,
            engine=self._engine(folder),
            view_of_teachers=View(sides),
            view_of_student=view_of_student,
            names=names,
            truth=check_truth(truth, len(public_records), self.classes_),
        )
        if warning:
            warnings.warn(warning, stacklevel=4)  # where `fit` was called
        return election

    def _public_records(self, public: Any, width: int) -> Any:
        """Return the records to query, from the argument of `fit` or from the parameter."""
        if public is None:
            public = self.public
        if public is None:
            raise InputError("PATE needs public records to query; pass public=... of shape (m, d)")
        return finite_rows(public, "public", width)

    def _persons(self, ids: Any, n: int) -> Persons | None:
        """Return the persons of the records; None under a unit per record."""
        if Unit(self.unit).per_person and ids is not None:
            return Persons.of(ids, n)
        return None

    def _check_settings(self, teachers: Teachers, student: Student, sides: tuple[int, ...]) -> None:
        """Refuse models that cannot learn from records of this shape, and numbers out of range."""
        model = model_of(student.model)
        check_kind("teacher", model_of(teachers.model), sides, len(self.classes_))
        check_kind("student", model, sides, len(self.classes_))
        whole("seed", self.seed, 0, 2**63 - 1)
        run = self._run()
        whole("jobs", run.jobs, 1, 1024)
        whole("voting_seed", run.voting_seed, 0, 2**53)
        real("delta", self.delta, 1e-30, 1 - 1e-9)
        if self.label_accuracy is not None:
            real("label_accuracy", self.label_accuracy, 0.01, 1)
        one_of("collector", self.collector, COLLECTORS)

        kind, _ = voting_of(self.voting)
        lacks_probabilities = hasattr(model, "fit") and not hasattr(model, "predict_proba")
        if kind == "interactive" and lacks_probabilities:
            raise InputError(
                f"student={model!r:.60} has no predict_proba for interactive voting; choose another"
            )

    def _names(self, student: Student, width: int, view: View) -> Floats | None:
        """Return the directions of the class names as the student sees them, of shape (C, d)."""
        from sklearn.linear_model import LogisticRegression

        names = name_directions(self.names, self.classes, width, view.centre)
        model = model_of(student.model)
        if names is not None and not isinstance(model, LogisticRegression):
            raise InputError(
                f"names need a logistic regression as student, not {model!r:.60}; leave one of"
                " them out"
            )
        return names

    def _engine(self, folder: RunFolder) -> Engine | None:
        """Return where teachers are trained: by default in this process, or by joblib if jobs are
        to run at the same time.
        """
        run = self._run()
        engine = run.engine
        if engine is None and run.jobs > 1:
            engine = "joblib"
        return engine_from(engine, run.jobs, folder.path)

    def _choose_teachers(
        self, teachers: Teachers, n: int, groups: Any, persons: Persons | None, n_queries: int
    ) -> tuple[Allocation, Scheme, str]:
        """Choose the fewest teachers whose labels carry nearly most information, by simulation.

        Returns whose records each teacher has, the voting, and a warning if its labels are too few,
        else empty text.
        """
        # numbers of records are private under a unit per person
        n_members = n
        if persons is not None:
            n_members = persons.number
        *smaller_numbers, most = teachers.numbers_for(n_members)

        def candidate_of(number: int) -> _Candidate:
            allocation = self._allocation(number, n, groups, persons)
            scheme, calibration = self._scheme(allocation, n_queries, teachers.expected_accuracy)
            return _Candidate(allocation, scheme, calibration)

        largest = candidate_of(most)
        if largest.calibration is None:
            return largest.allocation, largest.scheme, ""

        n_classes = max(2, len(self.classes_))
        most_bits = largest.calibration.bits(n_classes)
        for number in smaller_numbers:
            # fewer teachers may not be able to answer at all
            with suppress(BudgetError):
                smaller = candidate_of(number)
                calibration = smaller.calibration
                if calibration is None:
                    continue
                if calibration.bits(n_classes) >= NEARLY_MOST * most_bits:
                    return smaller.allocation, smaller.scheme, ""

        warning = ""
        if most_bits < LEAST_BITS * n_classes:
            warning = _too_few_labels(most, largest.calibration, n_classes)
        return largest.allocation, largest.scheme, warning

    def _allocation(
        self, n_teachers: int, n: int, groups: Any, persons: Persons | None
    ) -> Allocation:
        """Deal the records out to teachers, by their budget groups if there are any."""
        if (self.budgets is None) != (groups is None):
            raise InputError(
                "budget groups need budgets= of each and, at fit, groups= of each record; pass both"
            )
        if groups is None:
            return allocate(
                np.full(n, ALL), {ALL: math.inf}, n_teachers, "gnmax", self.seed, persons
            )

        record_groups = array_of(groups, "groups")
        if record_groups.shape != (n,):
            raise InputError(
                f"groups has shape {record_groups.shape}; pass one group for each of {n} records"
            )
        budgets = checked_budgets(self.budgets)
        return allocate(
            record_groups.astype(str), budgets, n_teachers, self.collector, self.seed, persons
        )

    def _scheme(
        self, allocation: Allocation, n_queries: int, accuracy: float
    ) -> tuple[Scheme, Calibration | None]:
        """Return everything about the voting that is public.

        Missing noise is calibrated for teachers of this accuracy; then the calibration is returned
        too.
        """
        name, aggregator = voting_of(self.voting)
        if self.budgets is None:
            plan = self._plain_scheme(allocation, n_queries, aggregator)
        else:
            plan = self._group_scheme(allocation, n_queries, name, aggregator)
        if aggregator is not None or isinstance(plan.aggregator, Plurality):
            return plan, None
        return plan.calibrated(name, len(self.classes_), accuracy, self.label_accuracy)

    def _plain_scheme(
        self, allocation: Allocation, n_queries: int, aggregator: Aggregator | None
    ) -> Scheme:
        """Return the scheme without groups; noise that is not chosen yet is 1 vote."""
        budget = Budget.parse(self.budget)
        queries = self._queries()
        if queries.stopping != "filter" and budget.kind == "zcdp":
            fault = f"stopping={queries.stopping!r} needs an approximate budget, not {budget}"
            raise BudgetError(
                f"{fault}; pass {budget.hint('approx')} (approximate: a weaker guarantee)"
            )
        return plain_scheme(
            n_queries,
            len(allocation.parts),
            budget,
            self._allowances()[ALL],
            self.delta,
            queries.n_labels,
            aggregator or GNMax(1.0),
            self._dealt_unit(),
        )

    def _group_scheme(
        self, allocation: Allocation, n_queries: int, name: str, aggregator: Aggregator | None
    ) -> Scheme:
        """Return the scheme of budget groups; noise that is not chosen yet is 1 vote."""
        voting: dict[str, Any] = {"aggregator": "gnmax", "sigma": 1.0}
        if aggregator is not None:
            voting = {"aggregator": name, **vars(aggregator)}
        plan = scheme(
            n_queries,
            len(allocation.parts),
            collector=self.collector,
            budgets=self.budgets,
            shares=None if allocation.teacher_groups else allocation.shares,
            teacher_groups=allocation.teacher_groups,
            copies=allocation.copies,
            delta=self.delta,
            n_labels=self._queries().n_labels,
            unit=self._dealt_unit(),
            **voting,
        )
        # the allowances of `promise`, which may not know the noise
        return replace(plan, allowances=self._allowances())

    def _charge(self, promise: Guarantee, ledger: Ledger) -> None:
        """Charge nothing here: `_fit` charges when the teachers are trained, right before the noise
        of the votes.
        """

    def _fit(self, election: Election, noise: NoiseSource) -> Released | Model:
        promise = self.promise()
        self.aggregator_ = election.voting.plan.aggregator
        self.parts_ = election.allocation.parts
        self.shape_ = election.view_of_teachers.shape
        self.centre_ = election.view_of_student.centre
        with election.folder.held():
            self._vote(election, noise, promise)

        self.answers_ = replace(election.voting.answers(), guarantee_=promise)
        self.student_, self.validation_accuracy_ = election.fitted_student()
        self.readings_ = []
        limits = self._queries().limits
        if limits is not None:
            self.readings_ = [
                replace(reading, test_accuracy=election.accuracy_of_first(reading.asked))
                for reading in readings(self.answers_, limits)
            ]
        if election.folder.path is not None:
            election.folder.write_tables(self._tables(election))

        facts = {
            "teachers": self.votes_.votes.shape[1],
            "aggregator": str(self.aggregator_),
            "public records asked about": self.answers_.asked,
            "answered": self.answers_.answered,
        }
        return self._released(self.student_, model_of(election.student.model), "noisy votes", facts)

    def _vote(self, election: Election, noise: NoiseSource, promise: Guarantee) -> None:
        """Train the teachers and buy labels, or take those in the folder; charge the ledger unless
        it has paid.
        """
        folder = election.folder
        voting = election.voting
        ensemble = election.ensemble()
        settings = [
            SAMPLERS[self.noise],
            self.random_state,
            self._queries().stopping,
            self.classes_.tolist(),
            *election.settings(),
        ]
        voting_seed = self._run().voting_seed
        if voting_seed:
            settings.append(voting_seed)
        run = run_hash(voting.plan, ensemble.hashes, settings)
        stored = folder.read_answers(run, len(self.classes_))

        # A ledger that paid for the stored labels is not charged again.
        unpaid = self.ledger
        if unpaid is not None and stored is not None and stored.paid_by(unpaid, promise):
            unpaid = None
        # Training may take hours, so an overdrawn ledger is refused before it.
        if unpaid is not None:
            unpaid.check(promise, what="PATE fit")

        self.votes_ = ensemble.votes(election.engine)
        self.consensus_ = consensus(self.votes_.votes)
        if stored is not None:
            folder.check_votes(stored, self.votes_.votes)
            voting.replay(self.votes_.votes, stored.labels, stored.paid)

        # The charge comes before the noise: an interrupted fit may have paid for nothing, never the
        # other way round.
        charged: dict[str, str] = {}
        if unpaid is not None:
            charged = charge_for(unpaid, promise)
        if stored is None:
            election.vote(self.votes_.votes, self._noise_of_voting(noise))
        if stored is None or charged:
            before = {} if stored is None else stored.charges
            folder.write_answers(run, self.votes_.votes, *voting.released(), before | charged)

    def _noise_of_voting(self, noise: NoiseSource) -> NoiseSource:
        """Return the source of the noise of the votes: seeded noise depends on the voting too."""
        voting_seed = self._run().voting_seed
        is_seeded = self.noise == "research" and isinstance(self.random_state, int | np.integer)
        if voting_seed and is_seeded:
            seeds = [int(self.random_state), voting_seed]
            return noise_source(self.noise, np.random.default_rng(seeds))
        return noise

    def _tables(self, election: Election) -> dict[str, list[Row]]:
        """Return the rows of each table for the owner of the data."""
        class_names = dict(enumerate(self.classes_.tolist()))
        labels = self.answers_.labels

        budget = str(self.budget)
        if self.budgets:
            budget = " ".join(
                f"{group}={rounded_up(epsilon)}" for group, epsilon in self.budgets.items()
            )
        settings = {
            "budget": budget,
            "collector": self.collector,
            "stopping": self._queries().stopping,
            "seed": self.seed,
            "voting_seed": self._run().voting_seed,
            "noise": self.noise,
            "random_state": self.random_state,
        }

        label_row: Row = {}
        if election.truth is not None:
            label_row = label_accuracies(labels, election.truth[: len(labels)], class_names)

        student_row: Row = {
            "labels": int(np.sum(labels >= 0)),
            "validation_accuracy": self.validation_accuracy_,
            "test_accuracy": None,
        }
        if election.test is not None:
            rows, truth = election.test
            is_right = self.student_.nearest(rows) == truth
            student_row |= accuracies("test_accuracy", is_right, truth, class_names)

        return {
            "teachers": teacher_rows(election.allocation, self.votes_),
            "records": record_rows(election.allocation),
            "votings": [voting_row(self.answers_, settings, label_row)],
            "queries": query_rows(self.answers_, class_names),
            "readings": [reading_row(reading) for reading in self.readings_],
            "students": [student_row],
        }

    def releasable(self) -> bool:
        """Return whether a release can hold the student."""
        return has_release(model_of(value_of("student", self.student, Student).model))

    def _spent(self, promise: Guarantee) -> Guarantee:
        return self.answers_.spent_


def _too_few_labels(n_teachers: int, calibration: Calibration, n_classes: int) -> str:
    """Return the warning that so many teachers buy too few labels."""
    labels = f"about {calibration.labels:.0f} labels of which {calibration.accuracy:.0%} are right"
    remedy = "pass more records, or choose another method"
    return (
        f"{n_teachers} teachers within this budget buy {labels}, by simulation, too few for"
        f" {n_classes} classes; {remedy}"
    )
