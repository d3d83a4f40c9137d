"""`tacit.LabelPrivate`: any classifier, learned from labels that were randomized once."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.labels import class_list
from tacit.errors import BudgetError, InputError
from tacit.learners.base import Prepared
from tacit.learners.common.models import Model, ModelClassifier, View, record_shape
from tacit.learners.common.parameters import real, whole
from tacit.learners.common.training import Training
from tacit.learners.label_dp import priors
from tacit.learners.label_dp.learning import Evidence, check_base, is_linear, learn
from tacit.learners.label_dp.priors import Prior
from tacit.learners.label_dp.randomize import OF_VECTORS, UNPROTECTED, dry_run, of_classes
from tacit.mechanisms.noise import Integers, NoiseSource
from tacit.models.released import Released
from tacit.models.rows import unit_rows
from tacit.privacy.budget import Budget
from tacit.privacy.events import Event, PureDP, RandomizedResponse, compose
from tacit.privacy.unit import Unit

CHOICES = ("rr-with-prior", "rr", *OF_VECTORS)
STREAM = 0x57A6E  # beside the seed: data that were shuffled by the same seed are dealt out in another order
FIRST_SHARE = 0.55  # of the labels, in the first of several stages


@dataclass(frozen=True, eq=False)
class Features(Prepared):
    """Public features and private labels, with what follows from the features.

    `stages` are the positions of the labels that each stage randomizes; `clusters` is the cluster of each record, where
    clusters have priors.
    """

    shape: tuple[int, ...]
    stages: list[Integers]
    clusters: Integers | None


@dataclass(kw_only=True, eq=False, repr=False)
class LabelPrivate(ModelClassifier):
    """Classify by a model that learned from randomized labels; features are public.

    Each label is randomized once, by itself, in one of the stages. In later stages the prior of a label is the
    prediction of the earlier stages' model for its record. Everything learned from the outputs is free.

    Parameters
    ----------
    budget : Budget or str, default="epsilon=1"
        Pure, zCDP or approximate; for "gaussian" not pure. Infinite budgets keep the labels.
    base : None, scikit-learn classifier, str or callable
        By default multinomial logistic regression of unit rows about their mean, which is public. Else a classifier
        with `predict_proba` whose `fit` takes `sample_weight`, the name of a network (linear, mlp, cnn, vgg, resnet;
        they need torch) or a factory of networks.
    classes
        As in `NoisySumPrototypes`.
    randomizer : {"rr-with-prior", "rr", "symmetric-unary", "optimised-unary", "laplace", "gaussian"}
        See `tacit.label_dp.randomize`. Where labels have no prior, "rr-with-prior" is "rr".
    prior : {"uniform", "clusters"} or array of shape (classes,)
        "clusters" finds clusters of the features, and pays `prior_share` of the budget for their noisy histograms.
    n_clusters : int, optional
        Number of k-means clusters, for "clusters"; by default so many that a cluster has about 4 times as many records
        as a noisy count has standard deviation, which follows from the number of records and the budget.
    n_components : int, default=50
        Number of principal components before k-means.
    prior_share : float, default=0.4
        Share of epsilon for the histograms.
    stages : int, default=1
        1 is LP-1ST, 2 is LP-2ST, more are LP-MST. The first has 55 % of the labels, the others share the rest.
    temperature : float, default=1.0
        Temperature of a model's probabilities as prior; below 1 sharpens them.
    correction : {"forward", "backward"}
        See `tacit.learners.label_dp.learning`.
    training : Training or dict, optional
        How networks are trained: epochs, batch_size, learning_rate, weight_decay, augmentation.
    shape : tuple of int, optional
        Shape of one record, such as (1, 28, 28), where rows hold pictures.
    seed : int, default=0
        Public seed of clusters, of the stages' parts and of training. Randomizing draws other noise.
    noise, random_state, ledger
        As in `NoisySumPrototypes`. A ledger is charged before a label is randomized; a second fit costs again.
    unit : {"change-label"}

    Attributes
    ----------
    model_ : Model
    noisy_labels_ : ndarray of shape (n,), or (n, classes)
        Class indices, or vectors. They may be published.
    priors_ : list of Prior
        One for each stage.
    classes_ : ndarray of shape (C,)
    guarantee_ : Guarantee
        Equal to `promise()`.

    Notes
    -----
    Guarantee: under change of one label. Features and the number of records are not protected. Which labels a stage
    randomizes depends on positions alone, so stages compose in parallel.
    Source: Ghazi et al. 2021 (LP-1ST, LP-2ST, LP-MST, RRWithPrior, clusters); Malek et al. 2021 (ALIBI); Patrini et al.
    2017 (corrections).

    Examples
    --------
    >>> import numpy as np, tacit
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 2000)
    >>> X = rng.normal(size=(2000, 3)) + 3 * y[:, None]
    >>> model = tacit.LabelPrivate("epsilon=1", classes=2).fit(X, y)
    >>> model.predict([[3.0, 3.0, 3.0]]), model.guarantee_.epsilon()
    (array([1]), 1.0)
    """

    units = (Unit.CHANGE_LABEL,)
    budget_kinds = ("pure", "zcdp", "approx")
    summary = "a classifier that learned from randomized labels, and these labels"
    public_use = "none: the features are public"
    no_release = "decides by a model that a release cannot hold; choose base='linear' or a network by name"

    budget: Budget | str = field(default="epsilon=1", kw_only=False)
    base: Any = None
    randomizer: str = "rr-with-prior"
    prior: Any = "uniform"
    n_clusters: int | None = None
    n_components: int = 50
    prior_share: float = 0.4
    stages: int = 1
    temperature: float = 1.0
    correction: str = "forward"
    training: Training | dict[str, Any] | None = None
    shape: tuple[int, ...] | None = None
    seed: int = 0
    unit: Unit | str = "change-label"

    def _event(self) -> Event:
        if not isinstance(self.randomizer, str) or self.randomizer not in CHOICES:
            raise InputError(f"randomizer={self.randomizer!r} must be one of {', '.join(CHOICES)}; leave it out")
        of_prior, of_labels = self._budgets()
        answer = self._label_event(of_labels)
        return answer if of_prior is None else compose([PureDP(of_prior), answer])

    def _label_event(self, budget: Budget) -> Event:
        """Privacy cost of randomizing each label once, from the parameters alone.

        Randomized response over fewer classes costs more, so 2 stands for a number that is not known before the fit: of
        classes that are not declared, or of those that a learned prior leaves.
        """
        if self.randomizer == "rr-with-prior" and not budget.infinite and (self._clusters() or self.stages != 1):
            return RandomizedResponse(budget.largest_pure(), 2)
        size = 2 if self.classes is None else max(len(class_list(self.classes)), 2)
        if self.classes is None and not isinstance(self.prior, str):
            size = priors.checked_prior(self.prior).shape[1]
        return of_classes(self.randomizer, budget, size, self._prior(0, size).rows).event

    def _budgets(self) -> tuple[float | None, Budget]:
        """Epsilon of the histograms, where there are any, and the budget of the labels."""
        budget = Budget.parse(self.budget)
        if not self._clusters() or budget.infinite:
            return None, budget
        share = real("prior_share", self.prior_share, 1e-6, 1 - 1e-6)
        if self.randomizer == "gaussian":
            raise BudgetError("prior='clusters' is for answers with a pure epsilon, not 'gaussian'; choose another")
        epsilon = budget.largest_pure()
        return share * epsilon, Budget.pure(math.nextafter(epsilon - share * epsilon, 0))

    def _clusters(self) -> bool:
        return isinstance(self.prior, str) and self.prior == "clusters"

    def _unprotected(self) -> tuple[str, ...]:
        return UNPROTECTED

    def _prepare(self, X: NDArray[Any], labels: Integers, *, shape: Any = None) -> Features:
        n, n_classes = len(X), len(self.classes_)
        sides = record_shape(self.shape if shape is None else shape, X.shape[1])
        Training.of(self.training)
        check_base(self.base, self.correction, sides, n_classes)
        has_prior = self.stages > 1 or not (isinstance(self.prior, str) and self.prior == "uniform")
        if self.correction == "backward" and self.randomizer == "rr-with-prior" and has_prior:
            fault = "correction='backward' needs outputs that tell all classes apart, unlike 'rr-with-prior'"
            raise InputError(f"{fault}; use correction='forward', or randomizer='rr'")
        real("temperature", self.temperature, 1e-3, 1e3)
        whole("seed", self.seed, 0, 2**32 - 1)
        whole("n_components", self.n_components, 1, 10**6)
        if self.n_clusters is not None:
            whole("n_clusters", self.n_clusters, 1, 2**31)
        stages = stage_parts(n, whole("stages", self.stages, 1, 1000), self.seed)
        of_prior, budget = self._budgets()
        dry_run(of_classes(self.randomizer, budget, n_classes, self._prior(0, n_classes).rows))
        if not np.any(X):
            raise InputError("X has only rows of zeros, from which nothing can be learned; check its source")
        clusters = None
        if of_prior is not None and len(labels):
            number = self.n_clusters or priors.cluster_count(n, of_prior)
            clusters = priors.clusters_of(X, min(number, n), self.n_components, self.seed)
        return Features(X, labels, sides, stages, clusters)

    def _prior(self, n: int, n_classes: int) -> Prior:
        """The prior of the parameters, or a uniform prior, of n records."""
        if not isinstance(self.prior, str):
            return priors.prior_of(self.prior, None, n, n_classes)
        if self.prior not in ("uniform", "clusters"):
            raise InputError(f"prior={self.prior!r} must be 'uniform', 'clusters' or an array; leave it out")
        return priors.uniform(n, n_classes)

    def _fit(self, features: Features, noise: NoiseSource) -> Released | Model:
        X, labels, n_classes = features.X, features.labels, len(self.classes_)
        of_prior, budget = self._budgets()
        present = np.any(X != 0, axis=1)  # a row of zeros contributes nothing
        view = View(features.shape, scale=255.0 if X.dtype == np.uint8 and not hasattr(self.base, "fit") else 1.0)
        if is_linear(self.base):
            view = View(features.shape, unit=True, centre=unit_rows(X[present]).mean(axis=0))
        records = view(X)
        prior = self._prior(len(X), n_classes)
        if of_prior is not None and features.clusters is not None:
            prior = priors.cluster_prior(labels, features.clusters, n_classes, of_prior, noise)
        self.shape_, self.centre_ = features.shape, view.centre
        self.priors_: list[Prior] = []
        outputs: list[NDArray[Any]] = []
        evidence: list[Evidence] = []
        for number, stage in enumerate(features.stages):
            of_stage = Prior(prior.rows, prior.which[stage])
            if number > 0:
                of_stage = priors.of_scores(self.model_.log_probabilities(X[stage]), self.temperature)
            randomizer = of_classes(self.randomizer, budget, n_classes, of_stage.rows)
            which = of_stage.which if randomizer.n_priors > 1 else None
            outputs.append(randomizer.sample(labels[stage], noise, which))
            known = Evidence.of(randomizer, outputs[-1], which, self.correction)
            informed = number == 0 and self.correction == "forward" and self._clusters()
            evidence.append(known.with_prior(of_stage) if informed else known)
            self.priors_.append(of_stage)
            positions = np.concatenate(features.stages[: number + 1])
            so_far = Evidence.joined(evidence)
            if view.unit:
                positions, so_far = positions[present[positions]], so_far.among(present[positions])
            base = None if view.unit else self.base
            fitted = learn(base, records[positions], so_far, Training.of(self.training), self.seed)
            self.model_: Model = Model(fitted, n_classes, view)
        self.noisy_labels_ = np.concatenate(outputs)[np.argsort(np.concatenate(features.stages))]
        facts = {"randomizer": self.randomizer, "stages": self.stages, "correction": self.correction}
        return self._released(self.model_, self.base, "randomized labels", facts)


def stage_parts(n: int, stages: int, seed: int) -> list[Integers]:
    """Positions of the labels that each stage randomizes, by a public seed."""
    order = np.random.default_rng([seed, STREAM]).permutation(n)
    if stages == 1:
        return [np.arange(n)]
    first = math.ceil(FIRST_SHARE * n)
    parts = [np.sort(part) for part in (order[:first], *np.array_split(order[first:], stages - 1))]
    if min(map(len, parts)) == 0:
        raise InputError(f"stages={stages} leaves a stage without records, of {n} in all; pass fewer stages")
    return parts
