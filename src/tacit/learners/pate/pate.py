"""PATE: teachers on disjoint parts of the private records vote on public ones, and a student learns from the labels."""

from __future__ import annotations

import math
import secrets
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from tacit.errors import BudgetError, InputError
from tacit.learners.base import DEFAULT_BUDGET, PrivateClassifier, Released, class_indices
from tacit.learners.common.decision import LinearHead, NetworkHead
from tacit.learners.common.models import as_flat, check_kind, finite_rows, record_shape, shape_of, training_of
from tacit.learners.common.parameters import flag, public_centre, real, whole
from tacit.learners.common.rows import centre_array, normalisation, unit_rows_about
from tacit.learners.common.training import Training, weights
from tacit.learners.pate.aggregators import (
    AGGREGATORS,
    Aggregator,
    Confident,
    GNMax,
    Interactive,
    Plurality,
    aggregator_of,
)
from tacit.learners.pate.allocation import Allocation, allocate
from tacit.learners.pate.calibrate import best, simulated_counts
from tacit.learners.pate.collectors import COLLECTORS, PlainCollector
from tacit.learners.pate.filter import ZCDPFilter, allowances, promised
from tacit.learners.pate.scheme import ALL, OF_GROUPS, UNPROTECTED, Scheme, checked_budgets, scheme
from tacit.learners.pate.stages import Kept, Stages, hash_of, run_hash
from tacit.learners.pate.student import Student, fit_student
from tacit.learners.pate.teachers import Teachers
from tacit.learners.pate.voting import Voting, check_stopping
from tacit.mechanisms.noise import NoiseSource
from tacit.privacy.budget import Budget
from tacit.privacy.events import ZCDP, Event, compose
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.ledger import Ledger
from tacit.privacy.unit import Unit

RECORDS = 20  # of a teacher, by default, and not more teachers than MOST_TEACHERS
MOST_TEACHERS = 250
LEAST_ACCURACY = 0.6  # of labels, by simulation, below which a fit warns
SIMULATED = 400  # queries, to calibrate on


@dataclass
class _Run:
    """One fit: what it is given beside records and labels, and what is decided before anything is charged."""

    n: int
    groups: NDArray[Any] | None
    public: Any
    test: tuple[Any, NDArray[Any]] | None
    shape: tuple[int, ...] | None
    training: tuple[Training, ...] = ()
    allocation: Allocation | None = None
    voting: Voting | None = None
    stages: Stages | None = None
    teachers: Teachers | None = None
    hash: str = ""
    kept: Kept | None = None


class PATE(PrivateClassifier):
    """Classify by a student that learns from the noisy votes of teachers on public records.

    The private records are dealt out to teachers, each a classifier of its own. Public records are asked in order; the
    noisy votes answer some of them, until a limit or a budget is reached. The student learns from these labels alone.

    Parameters
    ----------
    budget : Budget or str, default="rho=0.5"
        Of every record: zCDP or approximate; a pure budget is refused. "rho=inf" is plurality without noise.
    classes : sequence or int, optional
        The public class list; N stands for 0..N-1. If omitted it is read off y, with a warning.
    public : array of shape (m, d) or (m, channels, height, width), optional
        The records to ask about, alike to the private ones. They may be passed to `fit` instead.
    budgets : dict of str to float, optional
        Instead of `budget`: epsilon of each budget group at `delta`. `fit` then takes `groups`.
    delta : float, default=1e-5
        Where budgets are read that name no delta.
    n_teachers : int, optional
        By default one for 20 records, 250 at most. Upsampling trains as many more as it copies records.
    teacher, student : scikit-learn classifier, str or callable, optional
        A classifier to clone, the name of a network (linear, mlp, cnn, vgg, resnet; they need torch) or a factory of
        networks. By default a logistic regression. A linear student is fitted to unit rows about the mean of the unit
        public rows.
    teacher_training, student_training : Training or dict, optional
        How networks are trained: epochs, batch_size, learning_rate, weight_decay, augmentation.
    shape : tuple of int, optional
        Of one record, such as (1, 28, 28), where rows hold pictures.
    aggregator : {"confident", "gnmax", "interactive", "laplace"}
        See `tacit.learners.pate.aggregators`.
    collector : {"weighting", "vanishing", "upsampling", "gnmax"}
        How budget groups vote together; see `tacit.learners.pate.collectors`. Without groups it makes no difference.
    sigma, sigma1, threshold, gamma, confidence : float, optional
        Parameters of the aggregator, as in `tacit.pate.aggregate`. For confident and gnmax they may be left out: then
        `tacit.pate.calibrate` chooses them on simulated votes.
    expected_accuracy : float, default=0.8
        Of a teacher, for the simulated votes: a public guess.
    bootstrap : float, default=0.5
        For interactive: the share of the queries that confident voting answers first, to fit a first student.
    n_queries, n_labels : int, optional
        Limits: ask the first `n_queries` public records only, and stop after `n_labels` bought labels. Without groups
        the promise counts on `n_queries`.
    stopping : {"filter", "data-dependent"}
        See `tacit.pate.aggregate`.
    semi_supervised : bool, default=False
        Whether the student uses public records without an answer too.
    validation : float, default=0.0
        Share of the labels that is kept aside to measure the student by.
    seed : int, default=0
        Public: of dealing out records and of training. Voting has noise of its own.
    folder : path, optional
        Keeps teachers, votes, labels and tables (teachers.csv, votings.csv, students.csv), so that an interrupted fit
        can go on. All of it is private; only its owner can read it. A fit from labels that are kept here is not charged
        again to a ledger that has paid for them.
    n_jobs : int, default=1
        Processes that train teachers.
    noise, random_state, ledger
        As in `NoisySumPrototypes`.
    unit : {"replace", "change-label"}
        The unit in which the guarantee is stated; budgets are always read under "replace".

    Attributes
    ----------
    answers_ : Answers
        Labels of the public records, which may be published, and what is known of their price.
    student_ : Student
    votes_ : Votes
        Private, as are `answers_.internal_` and everything in the folder.
    aggregator_ : Aggregator
        As used, in votes of plain PATE.
    shape_ : tuple of int
        Of one record.
    classes_ : ndarray of shape (C,)
    guarantee_ : Guarantee
        Equal to `promise()`: the budget of each group, or, without groups, what the limits allow at worst where noise
        and limits are given and that is less.
    spent_ : Guarantee
        What was asked and answered cost. A report, not a guarantee.

    Notes
    -----
    Guarantee: under replacement of one record of a group, the group's budget. A record reaches one teacher only (d_g
    under upsampling), by its position, its group and public facts; see `tacit.mechanisms.votes` for the price of a
    query and `tacit.learners.pate.filter` for why stopping is private. The number of records, groups and budgets are
    not protected.
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

    own_unit = Unit.REPLACE
    no_release = (
        "decides by a model that a release cannot hold; choose student='linear', a LogisticRegression or a network by "
        "name, or publish answers_.labels alone"
    )
    _dtypes: ClassVar[list[Any]] = [*PrivateClassifier._dtypes, np.uint8]
    _run: _Run

    def __init__(
        self,
        budget: Budget | str = DEFAULT_BUDGET,
        *,
        classes: Any = None,
        public: Any = None,
        budgets: Mapping[str, float] | None = None,
        delta: float = 1e-5,
        n_teachers: int | None = None,
        teacher: Any = None,
        student: Any = None,
        teacher_training: Any = None,
        student_training: Any = None,
        shape: tuple[int, ...] | None = None,
        aggregator: str = "confident",
        collector: str = "weighting",
        sigma: float | None = None,
        sigma1: float | None = None,
        threshold: float | None = None,
        gamma: float | None = None,
        confidence: float | None = None,
        expected_accuracy: float = 0.8,
        bootstrap: float = 0.5,
        n_queries: int | None = None,
        n_labels: int | None = None,
        stopping: str = "filter",
        semi_supervised: bool = False,
        validation: float = 0.0,
        seed: int = 0,
        folder: Any = None,
        n_jobs: int = 1,
        noise: str = "secure",
        random_state: Any = None,
        unit: Unit | str = "replace",
        ledger: Ledger | None = None,
    ) -> None:
        self.budget = budget
        self.classes = classes
        self.public = public
        self.budgets = budgets
        self.delta = delta
        self.n_teachers = n_teachers
        self.teacher = teacher
        self.student = student
        self.teacher_training = teacher_training
        self.student_training = student_training
        self.shape = shape
        self.aggregator = aggregator
        self.collector = collector
        self.sigma = sigma
        self.sigma1 = sigma1
        self.threshold = threshold
        self.gamma = gamma
        self.confidence = confidence
        self.expected_accuracy = expected_accuracy
        self.bootstrap = bootstrap
        self.n_queries = n_queries
        self.n_labels = n_labels
        self.stopping = stopping
        self.semi_supervised = semi_supervised
        self.validation = validation
        self.seed = seed
        self.folder = folder
        self.n_jobs = n_jobs
        self.noise = noise
        self.random_state = random_state
        self.unit = unit
        self.ledger = ledger

    def _event(self) -> Event:
        if Budget.parse(self.budget).infinite:  # plurality without noise, whatever noise is given
            return ZCDP(math.inf)
        rho = self._allowances()[ALL] if self.stopping == "filter" else math.inf
        noise, limits = self._given_noise(), self._limits()
        if noise is None or limits is None:
            return ZCDP(rho)
        members = PlainCollector({ALL: math.inf}, np.ones((1, 1), dtype=bool))
        return promised(members, noise, {ALL: rho}, *limits)[ALL]

    def _unprotected(self) -> tuple[str, ...]:
        return UNPROTECTED if self.budgets is None else UNPROTECTED + OF_GROUPS

    def _guarantee(self) -> Guarantee:
        check_stopping(self.stopping, self.noise)
        if self.budgets is None:
            return super()._guarantee()
        kept = self.stopping == "filter"
        groups = tuple((group, ZCDP(rho if kept else math.inf)) for group, rho in self._allowances().items())
        return Guarantee(self.own_unit, compose([]), self._unprotected(), groups)

    def _allowances(self) -> dict[str, float]:
        """The largest rho of each group within its budget."""
        if self.budgets is not None:
            if self.budget != DEFAULT_BUDGET:
                raise BudgetError(f"budget={self.budget} and budgets={self.budgets} are both given; pass one of them")
            return allowances(checked_budgets(self.budgets), real("delta", self.delta, 1e-30, 1 - 1e-9))
        budget = Budget.parse(self.budget)
        if budget.infinite:
            return {ALL: math.inf}
        if budget.kind == "pure":
            raise BudgetError(
                f"budget {budget} is pure and noisy votes have no pure epsilon; "
                f"pass rho=... or epsilon={budget.epsilon:g},delta=1e-5"
            )
        return {ALL: budget.rho} if budget.rho else allowances({ALL: budget.epsilon or 0.0}, budget.delta or 0.0)

    def _limits(self) -> tuple[int, int] | None:
        """The most queries and labels, where the parameters tell."""
        if self.n_queries is None:
            return None
        queries = self._queries(2**53)
        return queries, queries if self.n_labels is None else min(queries, whole("n_labels", self.n_labels, 1, 2**53))

    def _queries(self, public: int) -> int:
        """How many of so many public records are asked about."""
        return public if self.n_queries is None else min(public, whole("n_queries", self.n_queries, 1, 2**53))

    def _given_noise(self) -> Aggregator | None:
        """The aggregator, where its noise is given and not to be calibrated."""
        given = self._noise_parameters()
        calibrates = self.aggregator in ("confident", "gnmax") and all(value is None for value in given.values())
        return None if calibrates else aggregator_of(self.aggregator, **given)

    def _noise_parameters(self) -> dict[str, float | None]:
        return {name: getattr(self, name) for name in ("sigma", "sigma1", "threshold", "gamma", "confidence")}

    def fit(self, X: Any, y: Any, groups: Any = None, public: Any = None, test: Any = None) -> Self:
        """Learn from private records and public ones.

        Parameters
        ----------
        X : array-like of shape (n, d) or (n, channels, height, width)
            Private records; finite. Pictures may be uint8.
        y : array-like of shape (n,)
            Labels, each in `classes`.
        groups : sequence of str of length n, optional
            Budget group of each record; public.
        public : array-like of shape (m, ...), optional
            Public records to ask about, in this order; by default the parameter of that name.
        test : (array-like of shape (t, ...), array-like of shape (t,)), optional
            Records and labels to measure teachers and student by.

        Returns
        -------
        self

        Raises
        ------
        InputError, BudgetError
            If something is out of range, or not even one query fits a budget; nothing is charged or learned then.
        LedgerError
            If the promise would overdraw the ledger; nothing is learned then.
        """
        return self._learn(as_flat(X), y, **self._arguments(X, groups, public, test))

    def _arguments(self, X: Any, groups: Any = None, public: Any = None, test: Any = None) -> dict[str, Any]:
        public = self.public if public is None else public
        if public is None:
            raise InputError("PATE needs public records to ask about; pass public=... of shape (m, d)")
        run = _Run(
            n=len(as_flat(X)),
            groups=None if groups is None else _array(groups, "groups"),
            public=as_flat(public),
            test=None if test is None else _pair(test),
            shape=shape_of(X, self.shape),
        )
        return {"_run": run}

    def _check(self, width: int) -> None:
        run = self._run
        self.shape_ = record_shape(run.shape, width)
        run.public = finite_rows(run.public, "public", width)
        for role, kind in (("teacher", self.teacher), ("student", self.student)):
            check_kind(role, self._kind(kind), self.shape_, len(self.classes_))
        run.training = training_of(self.teacher_training), training_of(self.student_training)
        real("validation", self.validation, 0, 0.99)
        real("bootstrap", self.bootstrap, 0.01, 0.99)
        whole("seed", self.seed, 0, 2**63 - 1)
        if self.n_jobs != -1:
            whole("n_jobs", self.n_jobs, 1, 10**4)
        flag("semi_supervised", self.semi_supervised)
        real("expected_accuracy", self.expected_accuracy, 0.01, 0.99)
        real("delta", self.delta, 1e-30, 1 - 1e-9)
        if self.collector not in COLLECTORS:
            raise InputError(f"collector={self.collector!r} must be one of {', '.join(COLLECTORS)}; leave it out")
        student = self._kind(self.student)
        if self.aggregator == "interactive" and hasattr(student, "fit") and not hasattr(student, "predict_proba"):
            raise InputError(
                f"student={student!r:.60} has no predict_proba, which interactive voting needs; choose another"
            )
        if run.test is not None:
            rows = finite_rows(run.test[0], "test", width)
            if run.test[1].shape != (len(rows),):
                raise InputError(f"test has {len(rows)} records and labels {run.test[1].shape}; pass one for each")
            run.test = (rows, class_indices(run.test[1], self.classes_))
        run.allocation = self._allocation(run)
        plan = self._plan(run.allocation, self._queries(len(run.public)))
        run.voting = Voting(plan, np.arange(len(self.classes_)), self.stopping)
        run.stages = Stages(self.folder)
        self.aggregator_ = plan.aggregator
        self.centre_ = public_centre(run.public, width) if self._linear() else None

    def _check_data(self, X: NDArray[Any], labels: NDArray[np.int64]) -> None:
        """Whether records are of one kind, and what an earlier fit left in the folder is of these records."""
        run = self._run
        run.teachers = self._teachers(X, labels)
        assert run.stages is not None
        assert run.voting is not None
        run.hash = run_hash(run.voting.plan, run.teachers.hashes, self._settings())
        run.kept = run.stages.read_answers(run.hash, len(self.classes_))

    def _settings(self) -> list[object]:
        """What decides the answers beside the scheme, the records and the votes."""
        settings = [self.noise, self.random_state, self.stopping, self.classes_.tolist()]
        if self.aggregator != "interactive":
            return settings
        student = self._kind(self.student)
        name = getattr(student, "__qualname__", repr(student))
        return [*settings, self.bootstrap, name, self._run.training[1], self.semi_supervised, self.validation]

    def _charge(self, promise: Guarantee, ledger: Ledger) -> None:
        """Only check that the promise fits: voting is charged when teachers are trained, right before its noise."""
        if not self._paid(promise, ledger):
            ledger.check(promise, what="PATE fit")

    def _paid(self, promise: Guarantee, ledger: Ledger) -> bool:
        """Whether a charge of this promise to this ledger has paid for the labels that are kept."""
        kept = self._run.kept
        if kept is None or kept.charge is None or kept.promise != hash_of(promise):
            return False
        return any(charge.what == _charged_as(kept.charge) for charge in ledger.account().charges)

    def _pay(self) -> str | None:
        """Charge the promise to the ledger, unless it is paid; the name of the charge, if one is made."""
        promise = self.promise()
        if self.ledger is None or self._paid(promise, self.ledger):
            return None
        name = secrets.token_hex(8)
        self.ledger.charge(promise, what=_charged_as(name))
        return name

    def _teachers(self, X: NDArray[Any], labels: NDArray[np.int64]) -> Teachers:
        run = self._run
        assert run.allocation is not None
        assert run.voting is not None
        return Teachers(
            self._kind(self.teacher),
            run.allocation.parts,
            self._records(X),
            labels,
            self._records(run.public[: run.voting.plan.n_queries]),
            n_classes=len(self.classes_),
            training=run.training[0],
            seed=self.seed,
            test=None if run.test is None else (self._records(run.test[0]), run.test[1]),
            folder=self.folder,
        )

    def _allocation(self, run: _Run) -> Allocation:
        if (self.budgets is None) != (run.groups is None):
            raise InputError("budget groups need budgets= of each and, at fit, groups= of each record; pass both")
        if run.groups is not None and run.groups.shape != (run.n,):
            raise InputError(f"groups has shape {run.groups.shape}; pass one group for each of {run.n} records")
        n_teachers = max(1, min(run.n // RECORDS, MOST_TEACHERS)) if self.n_teachers is None else self.n_teachers
        whole("n_teachers", n_teachers, 1, 10**6)
        if run.groups is None:
            return allocate(np.full(run.n, ALL), {ALL: math.inf}, n_teachers, "gnmax", self.seed)
        return allocate(run.groups.astype(str), checked_budgets(self.budgets), n_teachers, self.collector, self.seed)

    def _plan(self, allocation: Allocation, n_queries: int) -> Scheme:
        """Everything about the voting that is public."""
        noise = self._given_noise()
        allowed = self._allowances()
        if self.budgets is None:
            labels = n_queries if self.n_labels is None else whole("n_labels", self.n_labels, 1, n_queries)
            budget = Budget.parse(self.budget)
            if self.stopping != "filter" and budget.kind == "zcdp":
                raise BudgetError(f"stopping={self.stopping!r} needs a budget epsilon=...,delta=..., not {budget}")
            epsilons = {ALL: math.inf if budget.epsilon is None else budget.epsilon}
            own: Aggregator = Plurality() if budget.infinite else noise or GNMax(1.0)
            members = PlainCollector(epsilons, np.ones((1, len(allocation.parts)), dtype=bool))
            plan = Scheme(members, own, epsilons, budget.delta or self.delta, allowed, n_queries, labels)
        else:
            given: dict[str, Any] = {"aggregator": self.aggregator} | self._noise_parameters()
            plan = scheme(
                n_queries,
                len(allocation.parts),
                collector=self.collector,
                budgets=self.budgets,
                shares=None if allocation.teacher_groups else allocation.shares,
                teacher_groups=allocation.teacher_groups,
                copies=allocation.copies,
                delta=self.delta,
                n_labels=self.n_labels,
                **({"aggregator": "gnmax", "sigma": 1.0} if noise is None else given),
            )
        if noise is not None or isinstance(plan.aggregator, Plurality):
            return plan
        return replace(plan, aggregator=self._calibrated(plan))

    def _calibrated(self, plan: Scheme) -> Aggregator:
        """The noise that answers most simulated queries within every allowance."""
        squares = plan.collector.sensitivities(slice(0, plan.n_queries)) ** 2
        allowance = ZCDPFilter(plan.collector, plan.aggregator, plan.rhos).allowance
        n_teachers = round(plan.collector.n_teachers / plan.collector.scale)
        accuracy = real("expected_accuracy", self.expected_accuracy, 0.01, 0.99)
        counts = simulated_counts(SIMULATED, n_teachers, max(len(self.classes_), 2), accuracy)
        for of_a_query in (squares.mean(axis=1), squares.max(axis=1)):  # the mean may not leave enough for one query
            found = best(float(np.min(allowance / of_a_query)), counts, plan.n_queries, self.aggregator)
            if found is None:
                break
            names = [field.name for field in fields(AGGREGATORS[found.aggregator])]
            noise = aggregator_of(found.aggregator, **{name: getattr(found, name) for name in names})
            if replace(plan, aggregator=noise).affordable():
                if found.accuracy < LEAST_ACCURACY:
                    warnings.warn(
                        f"{n_teachers} teachers within this budget buy labels of which about {found.accuracy:.0%} are "
                        "right, by simulation; pass more records or a larger budget, or choose another method",
                        stacklevel=7,
                    )
                return noise
        raise BudgetError(
            f"budget {self.budget if self.budgets is None else dict(self.budgets)} allows no query of {n_teachers} "
            "teachers at any noise tried; pass a larger one"
        )

    def _fit(self, X: NDArray[Any], labels: NDArray[np.int64], noise: NoiseSource) -> None:
        run = self._run
        assert run.allocation is not None
        assert run.voting is not None
        assert run.stages is not None
        assert run.teachers is not None
        self.bytes_ = X.dtype == np.uint8
        queries = run.public[: run.voting.plan.n_queries]
        self.votes_ = run.teachers.votes(self.n_jobs)
        if run.kept is not None:
            run.stages.resume(run.kept, run.voting, self.votes_.votes)
        charge = self._pay()
        if run.kept is None:
            self._vote(run, queries, noise)
        if run.kept is None or charge is not None:
            run.stages.keep_answers(run.hash, run.voting, self.votes_.votes, charge, self.promise())
        self.answers_ = replace(run.voting.answers(), guarantee_=self.promise())
        self.student_ = self._student(run, queries)
        accuracy = None
        if run.test is not None:
            accuracy = float(np.mean(self.student_.predict(self._student_records(run.test[0])) == run.test[1]))
        run.stages.keep_tables(run.allocation, self.votes_, run.voting.plan, self.answers_, self.student_, accuracy)

    def _vote(self, run: _Run, queries: NDArray[Any], noise: NoiseSource) -> None:
        voting, votes = run.voting, self.votes_.votes
        assert voting is not None
        own = voting.plan.aggregator
        if not isinstance(own, Interactive):
            voting.ask(votes, noise)
            return
        first = math.ceil(self.bootstrap * len(votes))
        voting.ask(votes[:first], noise, aggregator=Confident(own.sigma, own.sigma1, own.threshold))
        if first == len(votes):
            return
        student = self._student(run, queries)
        voting.ask(votes[first:], noise, student.scores(self._student_records(queries[first:])))

    def _spent(self, promise: Guarantee) -> Guarantee:
        return self.answers_.spent_

    def _student(self, run: _Run, queries: NDArray[Any]) -> Student:
        """The student of the labels so far."""
        assert run.voting is not None
        labels = run.voting.labels[: run.voting.asked]
        known = np.flatnonzero(labels >= 0)
        others = np.delete(run.public, known, axis=0) if self.semi_supervised else run.public[:0]
        if len(known) == 0:
            warnings.warn(
                "no query was answered, so the student knows no class but the first; pass a lower threshold, or a "
                "larger budget",
                stacklevel=4,
            )
            known, labels = np.array([0]), np.zeros(len(labels), dtype=np.int64)
        return fit_student(
            self._kind(self.student),
            self._student_records(queries[known]),
            labels[known],
            n_classes=len(self.classes_),
            training=run.training[1],
            validation=self.validation,
            unlabelled=self._student_records(others) if len(others) else None,
            seed=self.seed,
        )

    def _records(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Rows in the shape of a record."""
        return np.asarray(rows).reshape(-1, *self.shape_)

    def _student_records(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Rows as the student sees them."""
        return unit_rows_about(np.asarray(rows), self.centre_) if self._linear() else self._records(rows)

    def _linear(self) -> bool:
        from sklearn.linear_model import LogisticRegression

        return self.student in (None, "linear") or isinstance(self.student, LogisticRegression)

    def _kind(self, given: Any) -> Any:
        """A teacher or student as given, or the default."""
        from sklearn.linear_model import LogisticRegression

        return LogisticRegression(C=30.0, max_iter=300) if given is None else given

    def predict(self, X: Any) -> NDArray[Any]:
        """Class of each record.

        Parameters
        ----------
        X : array-like of shape (n, d) or (n, channels, height, width)

        Returns
        -------
        ndarray of shape (n,)
        """
        if getattr(self, "released_", X) is not None:
            return super().predict(X)
        return np.asarray(self.classes_[self.student_.predict(self._student_records(self._rows(X)))])

    def _rows(self, X: Any) -> NDArray[Any]:
        return super()._rows(as_flat(X))

    def _release(self) -> Released | None:
        facts = {
            "teachers": self.votes_.votes.shape[1],
            "aggregator": str(self.aggregator_),
            "public records asked about": self.answers_.asked,
            "answered": self.answers_.answered,
        }
        head = self.student_.head()
        if head is not None:
            self.coefficients_, self.intercepts_ = head
            arrays = {"coefficients": head[0], "intercepts": head[1]} | centre_array(self.centre_)
            return Released(
                "linear student of noisy votes",
                arrays,
                LinearHead(),
                facts | {"normalisation": normalisation(self.centre_)},
            )
        if not isinstance(self.student, str):
            return None
        scale = 255.0 if self.bytes_ else 1.0
        decision = NetworkHead(self.student, self.shape_, scale)
        return Released("network that learned from noisy votes", weights(self.student_.model), decision, facts)


def _charged_as(name: str) -> str:
    """What the ledger says of a charge; the name tells it from charges for other labels."""
    return f"PATE fit {name}"


def _array(given: Any, name: str) -> NDArray[Any]:
    try:
        return np.asarray(given)
    except ValueError as error:
        raise InputError(f"{name} has entries of different lengths; pass one for each record") from error


def _pair(test: Any) -> tuple[Any, NDArray[Any]]:
    """Test records and their labels."""
    if not isinstance(test, tuple | list) or len(test) != 2:
        raise InputError(f"test is a {type(test).__name__} and not a pair; pass test=(records, labels)")
    return as_flat(test[0]), _array(test[1], "labels of test")
