"""`tacit.LabelPrivate`: any classifier, learned from labels that were randomized once."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.labels import class_list
from tacit.data.persons import Persons
from tacit.errors import BudgetError, InputError
from tacit.learners.common.base import Prepared
from tacit.learners.common.models import Model, ModelClassifier, View, record_shape
from tacit.learners.common.parameters import real, whole
from tacit.learners.common.training import Training
from tacit.learners.label_dp import priors
from tacit.learners.label_dp.evidence import Evidence
from tacit.learners.label_dp.learning import check_base, is_linear, learn
from tacit.learners.label_dp.persons import by_size, event_of_person, share_of
from tacit.learners.label_dp.priors import Prior
from tacit.learners.label_dp.randomize import OF_VECTORS, UNITS, dry_run, of_classes
from tacit.learners.label_dp.structured import length_of_names
from tacit.mechanisms.noise import Integers, NoiseSource
from tacit.models.name_directions import name_directions
from tacit.models.released import Released
from tacit.models.rows import Floats, unit_rows, unit_rows_about
from tacit.privacy.budget import Budget
from tacit.privacy.events import Event, PureDP, RandomizedResponse, compose
from tacit.privacy.unit import Unit

CHOICES = ("blocks", "rr-with-prior", "rr", *OF_VECTORS)
# beside the seed: data that were shuffled by the same seed are dealt out in another order
STREAM = 0x57A6E
FIRST_SHARE = 0.55  # of the labels, in the first of several stages
TRIAL_SHARE = 0.03  # of the labels, whose outputs decide how far the others trust a public prior
POWERS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0)  # of that prior
PRIORS = {
    "uniform": "uniform",
    "clusters": "noisy histograms of clusters",
    "names": "public prior from class names",
    "given": "public prior, as given",
}


@dataclass(frozen=True, eq=False)
class Features(Prepared):
    """Public features and private labels, with what follows from the features.

    `stages` are the positions of the labels that each stage randomizes. `prior` is the one that was
    passed, or uniform. `centre` is the mean of unit rows, (d,), and `names` the directions of class
    names about it, (C, d). `clusters` is the cluster of each record, where clusters have priors.
    """

    shape: tuple[int, ...]
    stages: list[Integers]
    prior: Prior
    centre: Floats | None
    names: Floats | None
    clusters: Integers | None


@dataclass(kw_only=True, eq=False, repr=False)
class LabelPrivate(ModelClassifier):
    """Classify by a model that learned from randomized labels; features are public.

    Each label is randomized once, by itself, in one of the stages. Learning from the outputs has no
    further cost, and neither have public rows and class names. With several stages, the prior of a
    label in a later stage is the prediction of the earlier stages' model for its record.

    Parameters
    ----------
    budget : Budget or str, default="epsilon=1"
        Pure, zCDP or approximate; not pure for "gaussian". Infinite budgets keep the labels.
    base : None, scikit-learn classifier, str or callable
        By default a linear softmax of unit rows about their mean, which is public. It also learns
        from class names and from neighbours among the rows, see
        `tacit.learners.label_dp.structured`. Alternatives are a classifier with `predict_proba`
        whose `fit` takes `sample_weight`, the name of a network (linear, mlp, cnn, vgg, resnet;
        they need torch) or a factory of networks.
    classes
        As in `NoisySumPrototypes`.
    randomizer : {"blocks", "rr-with-prior", "rr", "symmetric-unary", "optimised-unary", "laplace",
    "gaussian"}
        How a label is randomized; see `tacit.label_dp.randomize`. If labels have no prior,
        "rr-with-prior" is "rr", and "blocks" divides the classes by public random numbers, in 256
        ways.
    prior : {"uniform", "clusters", "names"} or array of shape (classes,) or (n, classes), optional
        By default "names" if names are passed, otherwise "uniform". "names" is the softmax of 10
        times the cosine of a record to each name, about the public centre. "clusters" finds
        clusters of the features, and pays `prior_share` of the budget for their noisy histograms.
        An array must be public and have one row, or one row per record.
    names : array of shape (C, d), or sequence of C arrays of shape (k, d) or (d,), optional
        Public rows of the class names, one or several per class, in the order of the declared
        `classes`, from the encoder of the records. They give the prior, and the linear model starts
        from them, at no privacy cost. Names that do not fit the labels are dropped: the likelihood
        of randomized labels decides.
    n_clusters : int, optional
        Number of k-means clusters, for "clusters". By default it is chosen from the number of
        records and the budget so that the records of a cluster are about 4 times the standard
        deviation of a noisy count.
    n_components : int, default=50
        Number of principal components before k-means.
    prior_share : float, default=0.4
        Share of epsilon for the histograms.
    stages : int or "auto", default="auto"
        1 randomizes all labels under one prior (LP-1ST), 2 is LP-2ST, more are LP-MST: the first
        has 55 % of the labels, the others share the rest. "auto" is 1, except if answers depend on
        a public prior (names or an array). Then 3 % of the labels are randomized under this prior,
        and the others under the power of it, from 0 to 1 or 1/epsilon if that is more, that makes
        these randomized labels likeliest; with power 0 the prior is uniform. Names that these
        labels clearly contradict are left out of the model too.
    temperature : float, default=1.0
        Temperature of a model's probabilities as a prior; values below 1 sharpen them.
    correction : {"forward", "backward"}
        How the loss allows for randomized labels; see `tacit.learners.label_dp.learning`.
    training : Training or dict, optional
        How networks are trained: epochs, batch_size, learning_rate, weight_decay, augmentation.
    shape : tuple of int, optional
        Shape of one record, such as (1, 28, 28), if rows hold images.
    seed : int, default=0
        Public seed of clusters, of the stages' parts and of training. The randomized labels do not
        depend on it.
    noise, random_state, ledger
        As in `NoisySumPrototypes`. A ledger is charged before a label is randomized; a second fit
        is charged again.
    unit : {"change-label", "change-labels-of-person"}
        Under the latter a person's m labels share the budget: each is randomized at an m-th of it.

    Attributes
    ----------
    model_ : Model
    noisy_labels_ : ndarray of shape (n,), or (n, classes)
        Class indices, numbers of blocks, or vectors. They may be published.
    priors_ : list of Prior
        One per stage. `tacit.label_dp.Blocks(epsilon, prior.rows).partitions` are the blocks.
    names_used_ : bool
        Whether names were passed and not left out of the model.
    prior_power_ : float
        The power of the public prior that most labels were randomized under; see `stages`.
    classes_ : ndarray of shape (C,)
    guarantee_ : Guarantee
        Equal to `promise()`.

    Notes
    -----
    Guarantee: under change of one label, or of all labels of one person, each of which spends its
    share (`tacit.learners.label_dp.persons`). Features and the number of records are not protected.
    Which labels a stage randomizes depends only on positions, so stages compose in parallel. Priors
    follow from features, names and the randomized labels of earlier stages, never from the labels
    of their own stage. The exception is clusters, which are paid for.
    Source: Ghazi et al. 2021 (LP-1ST, LP-2ST, LP-MST, RRWithPrior, clusters); Malek et al. 2021
    (ALIBI); Patrini et al. 2017 (corrections). Asking by mutual information, priors from names and
    the linear model are tacit's.

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

    units = UNITS
    event_under_unit = True
    person_bound = "each of a person's m labels spends an m-th of the budget"
    budget_kinds = ("pure", "zcdp", "approx", "gdp")
    summary = "a classifier that learned from randomized labels, and these labels"
    public_use = "none: the features are public"
    tests_names = True
    one_label = (
        "randomizes one label per record, and a set of labels has no such randomizer; learn from"
        " several with GradientDescent, under unit='change-label'"
    )
    no_release = (
        "decides by a model that a release cannot hold; choose base='linear' or a network by name"
    )

    budget: Budget | str = field(default="epsilon=1", kw_only=False)
    base: Any = None
    randomizer: str = "blocks"
    prior: Any = None
    names: Any = None
    n_clusters: int | None = None
    n_components: int = 50
    prior_share: float = 0.4
    stages: int | str = "auto"
    temperature: float = 1.0
    correction: str = "forward"
    training: Training | dict[str, Any] | None = None
    shape: tuple[int, ...] | None = None
    seed: int = 0
    unit: Unit | str = "change-label"

    def _event(self) -> Event:
        if not isinstance(self.randomizer, str) or self.randomizer not in CHOICES:
            raise InputError(
                f"randomizer={self.randomizer!r} must be one of {', '.join(CHOICES)}; leave it out"
            )
        histogram_epsilon, budget = self._budgets()
        label_event = self._label_event(budget)
        if histogram_epsilon is None:
            return label_event
        return compose([PureDP(histogram_epsilon), label_event])

    def _label_event(self, budget: Budget) -> Event:
        """Privacy cost of randomizing each label once, from the parameters alone.

        Randomized response over fewer classes costs more, so 2 stands for a number that is not
        known before the fit: of classes that are not declared, of those that a prior leaves, and of
        blocks.
        """
        if Unit(self.unit).per_person:
            return event_of_person(budget, self.randomizer)
        if self._of_priors() and not budget.infinite:
            return RandomizedResponse(budget.largest_pure(), 2)
        size = 2
        if self.classes is not None:
            size = max(len(class_list(self.classes)), 2)
        return of_classes(self.randomizer, budget, size, priors.uniform(0, size).rows).event

    def _budgets(self) -> tuple[float | None, Budget]:
        """Epsilon of the histograms, where there are any, and the budget of the labels."""
        budget = Budget.parse(self.budget)
        if self._prior_kind() != "clusters" or budget.infinite:
            return None, budget
        share = real("prior_share", self.prior_share, 1e-6, 1 - 1e-6)
        if self.randomizer == "gaussian":
            raise BudgetError(
                "prior='clusters' is for answers with a pure epsilon, not 'gaussian'; choose"
                " another"
            )
        epsilon = budget.largest_pure()
        return share * epsilon, Budget.pure(math.nextafter(epsilon - share * epsilon, 0))

    def _prior_kind(self) -> str:
        """Where the prior is from: a key of PRIORS."""
        if self.prior is None:
            return "uniform" if self.names is None else "names"
        if not isinstance(self.prior, str):
            return "given"
        if self.prior not in ("uniform", "clusters", "names"):
            rule = "must be 'uniform', 'clusters', 'names' or an array"
            raise InputError(f"prior={self.prior!r} {rule}; leave it out")
        if self.prior == "names" and self.names is None:
            raise InputError(
                "prior='names' needs rows of class names; pass names=rows, or leave prior out"
            )
        return self.prior

    def _of_priors(self) -> bool:
        """Tell whether the answers to a label may depend on its record's prior."""
        if self.randomizer == "rr-with-prior":
            return self._prior_kind() != "uniform" or self.stages not in ("auto", 1)
        return self.randomizer == "blocks"

    def _trial(self) -> bool:
        """Tell whether a first part of the records decides how far the others trust the prior."""
        return (
            isinstance(self.stages, str)
            and self._of_priors()
            and self._prior_kind() in ("names", "given")
        )

    def _unprotected(self) -> tuple[str, ...]:
        return Unit(self.unit).public

    def _prepare(self, X: NDArray[Any], labels: Integers, *, shape: Any = None) -> Features:
        n = len(X)
        n_classes = len(self.classes_)
        if shape is None:
            shape = self.shape
        sides = record_shape(shape, X.shape[1])
        self._check_settings(sides)
        stages = self._stages(n)
        histogram_epsilon, budget = self._budgets()
        prior = priors.uniform(n, n_classes)
        dry_run(of_classes(self.randomizer, budget, n_classes, prior.rows))
        if self._prior_kind() == "given":
            prior = self._given_prior(n)
        if not np.any(X):
            raise InputError(
                "X has only rows of zeros, from which nothing can be learned; check its source"
            )

        centre = None
        if len(labels) and (self.names is not None or is_linear(self.base)):
            centre = unit_rows(X[np.any(X != 0, axis=1)]).mean(axis=0)
        names = name_directions(self.names, self.classes, X.shape[1], centre)

        clusters = None
        if histogram_epsilon is not None and len(labels):
            number = self.n_clusters or priors.cluster_count(n, histogram_epsilon)
            clusters = priors.clusters_of(X, min(number, n), self.n_components, self.seed)
        return Features(X, labels, sides, stages, prior, centre, names, clusters)

    def _check_settings(self, sides: tuple[int, ...]) -> None:
        """Refuse a model that cannot learn from records of this shape, and numbers out of range."""
        Training.of(self.training)
        check_base(self.base, self.correction, sides, len(self.classes_))
        if self.correction == "backward" and self._of_priors():
            fault = (
                "correction='backward' needs outputs that distinguish all classes, unlike"
                f" {self.randomizer!r}"
            )
            raise InputError(f"{fault}; use correction='forward', or randomizer='rr'")
        real("temperature", self.temperature, 1e-3, 1e3)
        whole("seed", self.seed, 0, 2**32 - 1)
        whole("n_components", self.n_components, 1, 10**6)
        if self.n_clusters is not None:
            whole("n_clusters", self.n_clusters, 1, 2**31)

    def _given_prior(self, n: int) -> Prior:
        """Return the prior of n records that was passed as an array."""
        if self.classes is None:
            raise InputError(
                "the columns of prior need a declared class list, in their order; pass"
                " classes=[...]"
            )
        return priors.prior_of(self.prior, None, n, len(self.classes_))

    def _check_persons(self, persons: Persons) -> None:
        share = share_of(self._budgets()[1], int(persons.sizes.max()), self.randomizer)
        n_classes = len(self.classes_)
        dry_run(of_classes(self.randomizer, share, n_classes, priors.uniform(0, n_classes).rows))

    def _stages(self, n: int) -> list[Integers]:
        """Positions of the labels that each stage randomizes, of n."""
        if isinstance(self.stages, str):
            if self.stages != "auto":
                raise InputError(
                    f"stages={self.stages!r} must be 'auto' or a whole number; leave it out"
                )
            number = 2 if self._trial() and n > 1 else 1
            return stage_parts(n, number, self.seed, TRIAL_SHARE)
        return stage_parts(n, whole("stages", self.stages, 1, 1000), self.seed, FIRST_SHARE)

    def _first_prior(self, features: Features, noise: NoiseSource) -> Prior:
        """The prior of all records before any label is randomized."""
        histogram_epsilon, _ = self._budgets()
        if histogram_epsilon is not None and features.clusters is not None:
            n_classes = len(self.classes_)
            sizes = None if features.persons is None else features.persons.of_same_person
            return priors.cluster_prior(
                features.labels, features.clusters, n_classes, histogram_epsilon, noise, sizes
            )
        if self._prior_kind() == "names" and features.names is not None:
            return priors.of_names(unit_rows_about(features.X, features.centre), features.names)
        return features.prior

    def _answers(
        self, labels: Integers, prior: Prior, sizes: Integers, noise: NoiseSource
    ) -> tuple[NDArray[Any], Evidence]:
        """Randomize each label once under its prior, by its person's share of the budget; and what
        the outputs tell.
        """
        outputs = []
        evidence = []
        positions = []
        _, budget = self._budgets()
        # Labels of persons with as many labels have the same share.
        for m, part in by_size(sizes):
            part_prior = prior
            if len(part) < len(labels):
                part_prior = prior.among(part).used()
            share = share_of(budget, m, self.randomizer)
            randomizer = of_classes(self.randomizer, share, len(self.classes_), part_prior.rows)
            which = part_prior.which if randomizer.n_priors > 1 else None
            part_outputs = randomizer.sample(labels[part], noise, which)
            outputs.append(part_outputs)
            evidence.append(Evidence.of(randomizer, part_outputs, which, self.correction))
            positions.append(part)

        order = np.argsort(np.concatenate(positions))
        return np.concatenate(outputs)[order], Evidence.joined(evidence).among(order)

    def _fit(self, features: Features, noise: NoiseSource) -> Released | Model:
        X = features.X
        labels = features.labels
        n_classes = len(self.classes_)
        _, budget = self._budgets()
        is_present = np.any(X != 0, axis=1)  # a row of zeros contributes nothing
        view = self._view(features)
        records = view(X)
        prior = self._first_prior(features, noise)
        trial = self._trial()
        names = features.names
        self.shape_ = features.shape
        self.centre_ = view.centre
        self.priors_: list[Prior] = []
        self.prior_power_ = 1.0

        outputs: list[NDArray[Any]] = []
        evidence: list[Evidence] = []
        for number, stage in enumerate(features.stages):
            of_stage = prior.raised(self.prior_power_).among(stage)
            if number > 0 and not trial:
                of_stage = priors.of_scores(
                    self.model_.log_probabilities(X[stage]), self.temperature
                )
            if self.randomizer == "blocks" and not budget.infinite:
                of_stage = of_stage.dealt()

            answers, known = self._answers(labels[stage], of_stage, _sizes(features)[stage], noise)
            outputs.append(answers)
            self.priors_.append(of_stage)
            # Clusters have histograms of all labels, which say more than the outputs.
            has_histograms = number == 0 and self._prior_kind() == "clusters"
            if has_histograms and self.correction == "forward":
                evidence.append(known.with_prior(of_stage))
            else:
                evidence.append(known)

            # A trial decides how far the other labels trust the prior, before any model is fitted.
            if trial and number == 0 and len(features.stages) > 1:
                asked = prior.among(stage)
                self.prior_power_ = likeliest_power(
                    asked, known, max(1.0, 1 / budget.largest_pure())
                )
                if names is not None and self._prior_kind() == "names":
                    rows = unit_rows_about(X[stage], features.centre)
                    if length_of_names(rows, known, names).contradicted:
                        names = None
                continue

            # The model learns from the records of all stages so far, in the order of the data.
            positions = np.concatenate(features.stages[: number + 1])
            in_order = np.argsort(positions)
            if view.unit:
                in_order = in_order[is_present[positions[in_order]]]
            positions = positions[in_order]
            so_far = Evidence.joined(evidence).among(in_order)
            base = None if view.unit else self.base
            fitted = learn(
                base, records[positions], so_far, Training.of(self.training), self.seed, names
            )
            self.model_: Model = Model(fitted, n_classes, view)

        self.noisy_labels_ = np.concatenate(outputs)[np.argsort(np.concatenate(features.stages))]
        self.names_used_ = names is not None
        return self._released(self.model_, self.base, "randomized labels", self._facts(features))

    def _view(self, features: Features) -> View:
        """Return how the model sees records: linear models see unit rows about their mean,
        networks see pixels of 8 bits divided by 255.
        """
        if is_linear(self.base):
            return View(features.shape, unit=True, centre=features.centre)
        is_network = not hasattr(self.base, "fit")
        scale = 1.0
        if features.X.dtype == np.uint8 and is_network:
            scale = 255.0
        return View(features.shape, scale=scale)

    def _facts(self, features: Features) -> dict[str, Any]:
        """Return what the card of a release says of the fit."""
        prior = PRIORS[self._prior_kind()]
        if self._trial():
            prior += f", to the power {self.prior_power_:g}"
        facts = {
            "randomizer": self.randomizer,
            "stages": len(features.stages),
            "correction": self.correction,
            "prior": prior,
        }
        if features.names is not None and not self.names_used_:
            facts["class names"] = "left out of the model, since the first outputs contradict them"
        return facts


def _sizes(features: Features) -> Integers:
    """The number of labels that share a budget with each label, itself included."""
    persons = features.persons
    return (
        np.ones(len(features.labels), dtype=np.int64) if persons is None else persons.of_same_person
    )


# A power of a prior is no temperature of names (`tacit.models.name_length`): users may pass priors,
# and a power above 0 must earn its place, since records under a wrong prior are asked about the
# wrong classes.
def likeliest_power(prior: Prior, evidence: Evidence, most: float) -> float:
    """The power of a prior, at most `most`, under which the outputs are likeliest; of equals, the
    nearest to 1.

    It is 0 unless the prior itself, at power 1, makes them likelier than the uniform prior does:
    some small power of a wrong prior often does, by chance.
    """
    powers = sorted((power for power in POWERS if power <= most), key=lambda power: abs(power - 1))
    likelihoods = {power: evidence.mean_likelihood(prior.raised(power).log()) for power in powers}
    return (
        max(powers, key=lambda power: likelihoods[power])
        if likelihoods[1.0] > likelihoods[0.0]
        else 0.0
    )


def stage_parts(n: int, stages: int, seed: int, first_share: float) -> list[Integers]:
    """Positions of the labels that each stage randomizes, by a public seed; the first has a share
    of them.
    """
    order = np.random.default_rng([seed, STREAM]).permutation(n)
    if stages == 1:
        return [np.arange(n)]
    first = math.ceil(first_share * n)
    parts = [np.sort(part) for part in (order[:first], *np.array_split(order[first:], stages - 1))]
    if min(map(len, parts)) == 0:
        raise InputError(
            f"stages={stages} leaves a stage without records, of {n} in all; pass fewer stages"
        )
    return parts
