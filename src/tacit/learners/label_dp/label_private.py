"""`tacit.LabelPrivate`: any classifier, learned from labels that were randomized once."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.validation import has_fit_parameter

from tacit.data.labels import class_list
from tacit.data.rows import one_line
from tacit.errors import BudgetError, InputError
from tacit.learners.base import PrivateClassifier
from tacit.learners.common.models import as_flat, check_kind, record_shape, shape_of, training_of
from tacit.learners.common.parameters import real, whole
from tacit.learners.label_dp import priors
from tacit.learners.label_dp.learning import CORRECTIONS, Evidence, Model, learn
from tacit.learners.label_dp.priors import Prior
from tacit.learners.label_dp.randomize import OF_VECTORS, UNPROTECTED, dry_run, of_classes
from tacit.learners.label_dp.randomizers import checked_prior
from tacit.mechanisms.noise import Integers, NoiseSource
from tacit.models.decisions import LinearHead, NetworkHead
from tacit.models.networks import weights
from tacit.models.released import Released
from tacit.models.rows import centre_array, normalisation, unit_rows, unit_rows_about
from tacit.privacy.budget import Budget
from tacit.privacy.events import Event, PureDP, RandomizedResponse, compose
from tacit.privacy.ledger import Ledger
from tacit.privacy.unit import Unit

CHOICES = ("rr-with-prior", "rr", *OF_VECTORS)
STREAM = 0x57A6E  # beside the seed: data that were shuffled by the same seed are dealt out in another order
FIRST_SHARE = 0.55  # of the labels, in the first of several stages


class LabelPrivate(PrivateClassifier):
    """Classify by a model that learned from randomized labels; features are public.

    Each label is asked once, in one of the stages, and randomized by itself. In later stages the prior of a label is
    what the model of the stages before says of its record. Everything learned from the answers is free.

    Parameters
    ----------
    base : None, scikit-learn classifier, str or callable
        By default multinomial logistic regression of unit rows about their mean, which is public. Else a classifier
        with `predict_proba` whose `fit` takes `sample_weight`, the name of a network (linear, mlp, cnn, vgg, resnet;
        they need torch) or a factory of networks.
    budget : Budget or str, default="epsilon=1"
        Pure, zCDP or approximate; for "gaussian" not pure. Infinite budgets keep the labels.
    classes : sequence or int, optional
        The public class list; N stands for 0..N-1. If omitted it is read off y, with a warning.
    randomizer : {"rr-with-prior", "rr", "symmetric-unary", "optimised-unary", "laplace", "gaussian"}
        See `tacit.label_dp.randomize`. Where labels have no prior, "rr-with-prior" is "rr".
    prior : {"uniform", "clusters"} or array of shape (classes,)
        "clusters" finds clusters of the features, and pays `prior_share` of the budget for their noisy histograms.
    n_clusters : int, optional
        For "clusters", of k-means; by default so many that one has about 4 times as many records as a noisy count has
        standard deviation, which follows from the number of records and the budget.
    n_components : int, default=50
        Of the principal components before k-means.
    prior_share : float, default=0.4
        Of epsilon, for the histograms.
    stages : int, default=1
        1 is LP-1ST, 2 is LP-2ST, more are LP-MST. The first has 55 % of the labels, the others share the rest.
    temperature : float, default=1.0
        Of a model's probabilities as prior; below 1 sharpens them.
    correction : {"forward", "backward"}
        See `tacit.learners.label_dp.learning`.
    training : Training or dict, optional
        How networks are trained: epochs, batch_size, learning_rate, weight_decay, augmentation.
    shape : tuple of int, optional
        Of one record, such as (1, 28, 28), where rows hold pictures.
    seed : int, default=0
        Public: of clusters, of the stages' parts and of training. Randomizing has noise of its own.
    noise, random_state, ledger
        As in `NoisySumPrototypes`. A ledger is charged before a label is asked; asking again costs again.
    unit : {"change-label"}

    Attributes
    ----------
    model_ : Model
    noisy_labels_ : ndarray of shape (n,), or (n, classes)
        Class indices, or vectors. They may be published.
    priors_ : list of Prior
        Of each stage.
    classes_ : ndarray of shape (C,)
    guarantee_ : Guarantee
        Equal to `promise()`.

    Notes
    -----
    Guarantee: under change of one label. Features and the number of records are not protected. Which labels a stage
    asks depends on positions alone, so stages compose in parallel. Source: Ghazi et al. 2021 (LP-1ST, LP-2ST, LP-MST,
    RRWithPrior, clusters); Malek et al. 2021 (ALIBI); Patrini et al. 2017 (corrections).

    Examples
    --------
    >>> import numpy as np, tacit
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 2000)
    >>> X = rng.normal(size=(2000, 3)) + 3 * y[:, None]
    >>> model = tacit.LabelPrivate(budget="epsilon=1", classes=2).fit(X, y)
    >>> model.predict([[3.0, 3.0, 3.0]]), model.guarantee_.epsilon()
    (array([1]), 1.0)
    """

    own_unit = Unit.CHANGE_LABEL
    no_release = "decides by a model that a release cannot hold; choose base='linear' or a network by name"
    _dtypes: ClassVar[list[Any]] = [*PrivateClassifier._dtypes, np.uint8]

    def __init__(
        self,
        base: Any = None,
        *,
        budget: Budget | str = "epsilon=1",
        classes: Any = None,
        randomizer: str = "rr-with-prior",
        prior: Any = "uniform",
        n_clusters: int | None = None,
        n_components: int = 50,
        prior_share: float = 0.4,
        stages: int = 1,
        temperature: float = 1.0,
        correction: str = "forward",
        training: Any = None,
        shape: tuple[int, ...] | None = None,
        seed: int = 0,
        noise: str = "secure",
        random_state: Any = None,
        unit: Unit | str = "change-label",
        ledger: Ledger | None = None,
    ) -> None:
        self.base = base
        self.budget = budget
        self.classes = classes
        self.randomizer = randomizer
        self.prior = prior
        self.n_clusters = n_clusters
        self.n_components = n_components
        self.prior_share = prior_share
        self.stages = stages
        self.temperature = temperature
        self.correction = correction
        self.training = training
        self.shape = shape
        self.seed = seed
        self.noise = noise
        self.random_state = random_state
        self.unit = unit
        self.ledger = ledger

    def _event(self) -> Event:
        if not isinstance(self.randomizer, str) or self.randomizer not in CHOICES:
            raise InputError(f"randomizer={self.randomizer!r} must be one of {', '.join(CHOICES)}; leave it out")
        of_prior, of_labels = self._budgets()
        answer = self._answer(of_labels)
        return answer if of_prior is None else compose([PureDP(of_prior), answer])

    def _answer(self, budget: Budget) -> Event:
        """What one answer for each label costs, from the parameters alone.

        Randomized response over fewer classes costs more, so 2 stands for a number that is not known before the fit:
        that of the classes where none are declared, or of those that a prior learned from answers leaves.
        """
        if self.randomizer == "rr-with-prior" and not budget.infinite and (self._clusters() or self.stages != 1):
            return RandomizedResponse(budget.largest_pure(), 2)
        size = 2 if self.classes is None else max(len(class_list(self.classes)), 2)
        if self.classes is None and not isinstance(self.prior, str):
            size = checked_prior(self.prior).shape[1]
        return of_classes(self.randomizer, budget, size, self._rows_of(size)).event

    def _budgets(self) -> tuple[float | None, Budget]:
        """Epsilon of the histograms, where there are any, and the budget of the answers."""
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

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from public features and private labels.

        Parameters
        ----------
        X : array-like of shape (n, d) or (n, channels, height, width)
            Public; finite. Pictures may be uint8.
        y : array-like of shape (n,)
            Labels, each in `classes`.

        Returns
        -------
        self

        Raises
        ------
        InputError, BudgetError
            If something is out of range; nothing is charged or asked then.
        LedgerError
            If the promise would overdraw the ledger; nothing is asked then.
        """
        if issparse(X):
            raise InputError("X is a sparse matrix; pass a dense array, X.toarray()")
        return self._learn(as_flat(X), y, **self._arguments(X))

    def _arguments(self, X: Any) -> dict[str, Any]:
        return {"_given": (len(as_flat(X)), shape_of(X, self.shape))}

    def _check(self, width: int) -> None:
        n, shape = self._given
        self.shape_ = record_shape(shape, width)
        if not self._plain():
            check_kind("base", self.base, self.shape_, len(self.classes_))
        if hasattr(self.base, "fit") and not has_fit_parameter(self.base, "sample_weight"):
            raise InputError(f"base={self.base!r:.60} takes no sample_weight in fit; choose a classifier that does")
        try:
            getattr(self.base, "_validate_params", bool)()
        except ValueError as error:
            raise InputError(
                f"base={self.base!r:.60} is refused by scikit-learn: {one_line(error)}; correct it"
            ) from error
        training_of(self.training)
        if self.correction not in CORRECTIONS:
            raise InputError(f"correction={self.correction!r} must be 'forward' or 'backward'; leave it out")
        real("temperature", self.temperature, 1e-3, 1e3)
        whole("seed", self.seed, 0, 2**32 - 1)
        stage_parts(n, whole("stages", self.stages, 1, 1000), self.seed)
        if self.n_clusters is not None:
            whole("n_clusters", self.n_clusters, 1, 2**31)
        whole("n_components", self.n_components, 1, 10**6)
        dry_run(of_classes(self.randomizer, self._budgets()[1], len(self.classes_), self._rows_of(len(self.classes_))))
        if self.correction == "backward" and self.randomizer == "rr-with-prior" and self._has_prior():
            raise InputError(
                "correction='backward' needs answers that tell all classes apart, which those of 'rr-with-prior' may "
                "not; use correction='forward', or randomizer='rr'"
            )
        if hasattr(self.base, "fit") and not hasattr(self.base, "predict_proba"):
            raise InputError(f"base={self.base!r:.60} has no predict_proba; choose a classifier that has")
        if self.correction == "backward" and hasattr(self.base, "fit"):
            raise InputError("correction='backward' has negative weights, which scikit-learn refuses; use 'forward'")

    def _check_data(self, X: NDArray[Any], labels: NDArray[np.int64]) -> None:
        """Whether something can be learned, and clusters found; features are public, so this costs nothing."""
        if not np.any(X):
            raise InputError("X has only rows of zeros, from which nothing can be learned; check its source")
        self._found = None
        of_prior, _ = self._budgets()
        if of_prior is not None:
            number = self.n_clusters or priors.cluster_count(len(X), of_prior)
            self._found = priors.clusters_of(X, min(number, len(X)), self.n_components, self.seed)

    def _plain(self) -> bool:
        """Whether the model is linear in unit rows."""
        return self.base is None or (isinstance(self.base, str) and self.base == "linear")

    def _rows_of(self, n_classes: int) -> NDArray[np.float64]:
        """The prior of the parameters, or a uniform one."""
        if not isinstance(self.prior, str):
            return priors.given(self.prior, None, 0, n_classes).rows
        if self.prior not in ("uniform", "clusters"):
            raise InputError(f"prior={self.prior!r} must be 'uniform', 'clusters' or an array; leave it out")
        return priors.uniform(0, n_classes).rows

    def _has_prior(self) -> bool:
        return self.stages > 1 or not (isinstance(self.prior, str) and self.prior == "uniform")

    def _fit(self, X: NDArray[Any], labels: NDArray[np.int64], noise: NoiseSource) -> None:
        self.bytes_ = X.dtype == np.uint8
        n_classes = len(self.classes_)
        parts = stage_parts(len(X), self.stages, self.seed)
        of_prior, budget = self._budgets()
        present = np.any(X != 0, axis=1)  # a row of zeros contributes nothing
        self.centre_ = unit_rows(X[present]).mean(axis=0) if self._plain() else None
        records = self._records(X)
        prior = self._first_prior(X, labels, of_prior, noise)
        self.priors_: list[Prior] = []
        outputs: list[NDArray[Any]] = []
        evidence: list[Evidence] = []
        for number, part in enumerate(parts):
            own = Prior(prior.rows, prior.which[part])
            if number > 0:
                own = priors.of_scores(self.model_.log_probabilities(records[part]), self.temperature)
            randomizer = of_classes(self.randomizer, budget, n_classes, own.rows)
            which = own.which if randomizer.n_priors > 1 else None
            outputs.append(randomizer.sample(labels[part], noise, which))
            known = Evidence.of(randomizer, outputs[-1], which, self.correction)
            informed = number == 0 and self.correction == "forward" and self._clusters()
            evidence.append(known.with_prior(own) if informed else known)
            self.priors_.append(own)
            asked = np.concatenate(parts[: number + 1])
            so_far = Evidence.joined(evidence)
            if self._plain():
                asked, so_far = asked[present[asked]], so_far.among(present[asked])
            base = None if self._plain() else self.base
            self.model_: Model = learn(base, records[asked], so_far, training_of(self.training), self.seed)
        self.noisy_labels_ = np.concatenate(outputs)[np.argsort(np.concatenate(parts))]

    def _first_prior(self, X: NDArray[Any], labels: Integers, epsilon: float | None, noise: NoiseSource) -> Prior:
        n_classes = len(self.classes_)
        if not isinstance(self.prior, str):
            return priors.given(self.prior, None, len(X), n_classes)
        if epsilon is None:
            return priors.uniform(len(X), n_classes)
        which, self._found = self._found, None
        assert which is not None
        return priors.cluster_prior(labels, which, n_classes, epsilon, noise)[0]

    def _records(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Rows as the model sees them."""
        if self._plain():
            return unit_rows_about(np.asarray(rows), self.centre_)
        rows = np.asarray(rows) / 255 if self.bytes_ and rows.dtype != np.uint8 else np.asarray(rows)
        return rows.reshape(-1, *self.shape_)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probability of each class, of shape (n, C)."""
        rows = self._rows(X)
        return np.asarray(np.exp(self.model_.log_probabilities(self._records(rows))))

    def predict(self, X: Any) -> NDArray[Any]:
        """Class of each record, of shape (n,)."""
        if getattr(self, "released_", X) is not None:
            return super().predict(X)
        return np.asarray(self.classes_[np.argmax(self.predict_proba(X), axis=1)])

    def _rows(self, X: Any) -> NDArray[Any]:
        return super()._rows(as_flat(X))

    def _release(self) -> Released | None:
        facts = {"randomizer": self.randomizer, "stages": self.stages, "correction": self.correction}
        if self.model_.linear is not None:
            self.coefficients_, self.intercepts_ = self.model_.linear
            arrays = {"coefficients": self.coefficients_, "intercepts": self.intercepts_}
            return Released(
                "linear classifier of randomized labels",
                arrays | centre_array(self.centre_),
                LinearHead(),
                facts | {"normalisation": normalisation(self.centre_)},
            )
        if not isinstance(self.base, str):
            return None
        decision = NetworkHead(self.base, self.shape_, 255.0 if self.bytes_ else 1.0)
        return Released("network that learned from randomized labels", weights(self.model_.fitted), decision, facts)


def stage_parts(n: int, stages: int, seed: int) -> list[Integers]:
    """Positions of the labels that each stage asks, by position and a public seed.

    Raises
    ------
    InputError
        If a stage would have no record.
    """
    order = np.random.default_rng([seed, STREAM]).permutation(n)
    if stages == 1:
        return [np.arange(n)]
    first = math.ceil(FIRST_SHARE * n)
    parts = [np.sort(part) for part in (order[:first], *np.array_split(order[first:], stages - 1))]
    if min(map(len, parts)) == 0:
        raise InputError(f"stages={stages} leaves a stage without records, of {n} in all; pass fewer stages")
    return parts
