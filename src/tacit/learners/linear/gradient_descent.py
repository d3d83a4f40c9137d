"""GradientDescent: logistic regression by noisy full-batch gradients (the linear probe)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tacit.compute.timing import SET_UP, SOLVING, phase
from tacit.data.labels import MOST_CLASSES
from tacit.errors import InputError
from tacit.learners.common import sigmoid
from tacit.learners.common.balance import ClassCounts, n_records
from tacit.learners.common.budget_split import Part
from tacit.learners.common.descent import descend, learning_rate
from tacit.learners.common.label_sets import LabelCounts, SetCounts
from tacit.learners.common.nodes import Nodes
from tacit.learners.common.parameters import check_optional, real, whole
from tacit.learners.common.sigmoid import SigmoidResiduals
from tacit.learners.common.softmax import (
    Blocks,
    ResidualKind,
    clip_norm_under,
    gradient_sensitivity,
    noisy_gradient,
)
from tacit.learners.common.unit_rows import UnitRowClassifier, UnitRows
from tacit.learners.linear.label_slopes import LabelSlopes
from tacit.learners.linear.name_centre import Gradient, NameCentre
from tacit.mechanisms import outer_products
from tacit.mechanisms.noise import NoiseSource
from tacit.models.public_rows import public_rows
from tacit.models.reference_scale import PUBLIC_ROWS
from tacit.models.released import Released
from tacit.models.rows import Floats
from tacit.models.spectra import spaced
from tacit.privacy.events import Event
from tacit.privacy.unit import Unit

# the name of this part of the budget
GRADIENTS = "gradients"

# longest learning rate of labels, times the curvature of their loss: of rows about a public mean,
# which have no direction in common, and of others
LONGEST_CENTRED = 10.0
LONGEST = 2.0


@dataclass(kw_only=True, eq=False, repr=False)
class GradientDescent(UnitRowClassifier):
    """Classify by logistic regression, learned by gradient descent with noise in every step.

    Rows are divided by their norm, at fit and at predict. Every step uses every record: it clips
    the gradient of each record's softmax cross-entropy, adds noise to the sum, and uses Nesterov's
    momentum. The steps are as long as stability allows, or shorter, so that noise does not dominate
    the logits; no step depends on a private loss. By default small classes are at no disadvantage:
    the log of each class's noisy share of the records is added to its logit in training and left
    out of predictions.

    Parameters
    ----------
    budget, classes, public, allow_overlap, noise, random_state, unit, ledger
        As in `NoisySumPrototypes`; "rho=inf" is the same descent without noise and clipping. With
        public rows, steps can be four times as long.
    most_labels : int, optional
        Declares that a record may have any set of labels, none included, and how many a record has
        at most. Each label then has a sigmoid head, and the loss is summed over the labels.
        Records with more labels weigh less in the noisy numbers of records with each label, and
        are used in full otherwise. By default each record has one label.
    tree : Tree or dict, optional
        A public tree of which the classes are the leaves, `{class: parent}`. A record may then be
        labelled with an inner node: its loss is that of being in any class below (see
        `tacit.learners.common.nodes`). `classes` may hold inner nodes, which are no classes of the
        fit. The release carries the tree.
    steps : int, optional
        Number of steps; by default 60 with public rows and 80 without, or 200 under an infinite
        budget.
    learning_rate : float, optional
        Factor of the mean gradient. By default C, or 4 C with public rows, but at most 1.2 * 3
        n/(steps^2 z clip), at which noise adds about 1.2 to a logit; z is the noise multiplier of
        all steps together. Few records per class reduce it like noise
        (`tacit.learners.common.descent.learning_rate`). With `most_labels` it is at most 2/v, or
        10/v with public rows, in place of C and 4 C, where v is the largest s (1 - s) of a label
        that a share s of the records have.
    clip : float, default=1.0
        Bound on the norm of a record's gradient, which is at most sqrt(2). With `most_labels` it
        bounds the gradients of all labels together, and they are longer: sqrt(C) at most.
    counts : int or sequence of int, optional
        Declared number of records per class, one for all or one per class, which are then listed as
        unprotected. They scale the steps and balance the classes. If omitted, noisy counts are
        released for 1 % of the budget. With `most_labels`, this share is spent in either case,
        since the number of records does not follow from those of the labels.
    balanced : bool, default=True
        Learn for equally frequent classes (logit adjustment). False is plain logistic regression.
        It does not apply with `most_labels`.
    ridge : float, default=0.3
        Penalty ridge/2 |theta|^2 added to the summed loss, as 1/C in scikit-learn's
        LogisticRegression.
    intercept : float, default=0.0
        Value of a constant column that is appended to the unit row and counts in its norm: the row
        becomes (x, intercept)/sqrt(1 + intercept^2). 0 appends none. With `most_labels` it lets
        heads correct how often they predict each label.
    names : array of shape (C, d), or sequence of C arrays of shape (k, d) or (d,), optional
        Public rows of the class names, one or several per class, in the order of the declared
        classes. The head then starts at s T, and the penalty is ridge/2 |theta - s T|^2. T holds
        the names' directions about the public centre, and s follows from the first noisy gradients
        at no privacy cost. s is zero if the records contradict the names, and near zero if the
        records outweigh the noise (`tacit.learners.linear.name_centre`).

    Attributes
    ----------
    coefficients_ : ndarray of shape (C, d), float64
    intercepts_ : ndarray of shape (C,), float64
    learning_rate_ : float
        As used; a function of the noisy or declared counts.
    name_scale_ : float
        s; 0 without names.
    centre_, classes_, guarantee_, spent_
        As in `NoisySumPrototypes`.

    Notes
    -----
    Guarantee: one Gaussian event per step with multiplier z sqrt(steps), sensitivity `clip` in
    Frobenius norm under add/remove, and one per class for the counts. Under change-label the sum
    moves by min(2 clip, sqrt(2)), so a clip norm of sqrt(1/2) or more becomes sqrt(2), which costs
    nothing and shortens no gradient. The gradient of a record is the outer product of its residual
    and its row, so clipping needs only their two norms, however many labels a record has. With
    `most_labels` a record's set of labels moves the sum by min(2 clip, sqrt(C)) under change-label,
    and the numbers of records with each label are one event for all labels. Logits are exact: rows
    are whole numbers, and so is the head after scaling by a power of two, so that no bit of a
    record's gradient depends on the other records. Under a unit per person the sum of a person's
    clipped gradients is scaled down to norm `clip`, and counts are one event for all classes. See
    `tacit.mechanisms.outer_products`.
    Source: Abadi et al. 2016 with the full batch, so that no assumption on sampling is needed;
    Menon et al. 2021 for the logit adjustment.

    Examples
    --------
    >>> import numpy as np, tacit
    >>> X, y = np.repeat(np.eye(2), 500, axis=0), np.repeat([0, 1], 500)
    >>> model = tacit.GradientDescent(budget="rho=0.5", classes=2, counts=500).fit(X, y)
    >>> model.predict([[2.0, 0.1]]), round(model.guarantee_.rho, 9)
    (array([0]), 0.5)
    """

    trains_logits = True
    takes_several_labels = True
    summary = "one linear score per class, by noisy logistic regression"

    steps: int | None = None
    learning_rate: float | None = None
    clip: float = 1.0
    counts: int | Sequence[int] | None = None
    balanced: bool = True
    ridge: float = 0.3
    intercept: float = 0.0
    names: Any = None
    most_labels: int | None = None
    tree: Any = None

    def _declared_counts(self) -> ClassCounts:
        return ClassCounts(self.counts, balanced=self.balanced)

    def _label_counts(self) -> LabelCounts:
        """Return the numbers of records with each label, where a record may have several."""
        most_labels = whole("most_labels", self.most_labels, 1, MOST_CLASSES)
        if not self.balanced:
            raise InputError(
                "balanced=False would be unused with most_labels, since labels are not weighed"
                " against each other; leave one of them out"
            )
        return LabelCounts(self.counts, most_labels)

    def _steps(self) -> int:
        if self.steps is not None:
            return whole("steps", self.steps, 1, 10**4)
        if self._infinite():
            return 200
        return 80 if self.public is None else 60

    def _parts(self) -> dict[str, Part]:
        counts: ClassCounts | LabelCounts = self._declared_counts()
        if self.most_labels is not None:
            counts = self._label_counts()
        gradients = Part(1 - counts.share, outer_products.PRODUCTS, releases=self._steps())
        return {GRADIENTS: gradients} | counts.parts

    def _clip(self) -> float:
        """Return the clip norm in use."""
        clip = real("clip", self.clip, 1e-6, 10)
        if self.most_labels is not None:
            return clip
        return clip_norm_under(Unit(self.unit), clip)

    def _gradient_sensitivity(self) -> float:
        """Return the sensitivity of a sum of clipped gradients, in clip norms."""
        n_classes = len(self.classes_)
        if self.most_labels is not None:
            return sigmoid.gradient_sensitivity(Unit(self.unit), self._clip(), n_classes)
        return gradient_sensitivity(Unit(self.unit), self._clip(), n_classes)

    def _step_noise(self) -> float:
        """Return the standard deviation of the noise on an entry of a gradient, in clip norms."""
        return self._split().noise(GRADIENTS, self._gradient_sensitivity())

    def _event(self) -> Event:
        self._intercept()
        self._clip()
        real("ridge", self.ridge, 0, 1e9)
        check_optional(self, learning_rate=(1e-9, 1e9))
        return super()._event()

    def _fit(self, prepared: UnitRows, noise: NoiseSource) -> Released:
        if self.most_labels is not None:
            return self._fit_label_sets(prepared, noise)

        with phase(SET_UP):
            blocks = prepared.block_list(exact=self._step_noise() == 0)
            counts = self._numbers_of_records(blocks, prepared.nodes, noise)
        n = n_records(counts)
        self.learning_rate_ = self._learning_rate(n)

        gradient = self._gradient(blocks, counts, noise, prepared.residual_kind)
        name_centre = self._name_centre(prepared, counts, self._counts().noise)
        theta = self._descended(gradient, prepared.width, n, name_centre)
        facts = self._counts().facts() | self._facts(name_centre)
        title = "one linear score per class, by noisy gradient descent"
        return self._head(prepared, title, theta, facts)

    def _fit_label_sets(self, prepared: UnitRows, noise: NoiseSource) -> Released:
        """Learn one sigmoid head per label."""
        label_counts = self._label_counts().with_noise(self._split())
        with phase(SET_UP):
            blocks = prepared.block_list(exact=self._step_noise() == 0)
            counts = label_counts.draw(blocks, len(self.classes_), noise)
        self.learning_rate_ = self._learning_rate_of_label_sets(counts)

        clip = math.inf if self._infinite() else self._clip()
        slopes = LabelSlopes(counts, self._step_noise() * self._clip(), clip)
        gradient = slopes.follow(self._label_gradient(blocks, counts, noise))
        name_centre = self._name_centre(prepared, counts.expected, counts.noise)
        theta = self._descended(gradient, prepared.width, counts.records, name_centre)

        label_sets = slopes.label_sets(theta, self._public_scores(prepared, theta))
        facts = label_counts.facts() | self._facts(name_centre)
        title = "one linear score per label, by noisy gradient descent"
        # scores are multiplied by the scale, with their offsets
        offsets = counts.logits / label_sets.scale
        released = self._head(prepared, title, theta, facts, offsets)
        return replace(released, label_sets=label_sets)

    def _descended(
        self, gradient: Gradient, width: int, n: float, name_centre: NameCentre | None
    ) -> Floats:
        """Return the head that the steps learn, of shape (C, width); n is the number of records."""
        if name_centre is not None:
            gradient = name_centre.follow(gradient)
        with phase(SOLVING):
            # With names, theta is what is added to their head.
            theta = descend(
                lambda head: gradient(head) + self.ridge * head,
                np.zeros((len(self.classes_), width)),
                rate=self.learning_rate_ / n,
                steps=self._steps(),
            )

        self.name_scale_ = 0.0
        if name_centre is not None:
            self.name_scale_ = name_centre.scale
            theta = theta + name_centre.head
        return theta

    def _facts(self, name_centre: NameCentre | None) -> dict[str, Any]:
        """Return facts of the steps for the card."""
        facts = {
            "gradient clip norm": self._clip(),
            "noise multiplier of a step": self._step_noise(),
            "steps": self._steps(),
            "sampling": "none; every record is used in every step",
        }
        if name_centre is not None:
            facts = facts | name_centre.facts()
        return facts

    def _name_centre(
        self, prepared: UnitRows, counts: Floats, counts_noise: float
    ) -> NameCentre | None:
        """Return the start and centre of the ridge, if there are names."""
        if prepared.names is None:
            return None
        return NameCentre(
            prepared.names,
            counts,
            counts_noise=counts_noise,
            noise=self._step_noise() * self._clip(),
            steps=self._steps(),
            shrinkage=self._shrinkage(),
            intercept=prepared.intercept,
        )

    def _shrinkage(self) -> float:
        """Return the factor by which a gradient of norm 1 is shortened."""
        if self._infinite():
            return 1.0
        return min(self._clip(), 1.0)

    def _numbers_of_records(
        self, blocks: Blocks, nodes: Nodes | None, noise: NoiseSource
    ) -> Floats:
        """Return declared or noisy numbers of records of each class, (C,).

        Those of an inner node of a tree are divided among its leaves.
        """
        counts = self._counts()
        if nodes is None or counts.declared is not None:
            return counts.draw(blocks, len(self.classes_), noise)
        return nodes.counts_of_leaves(
            counts.draw(blocks, len(nodes), noise), uncertainty=counts.uncertainty
        )

    def _gradient(
        self, blocks: Blocks, counts: Floats, noise: NoiseSource, kind: ResidualKind
    ) -> Gradient:
        """Return the gradient to descend; without noise and clipping under an infinite budget."""
        return self._gradient_about(self._counts().log_shares(counts), blocks, noise, kind)

    def _label_gradient(self, blocks: Blocks, counts: SetCounts, noise: NoiseSource) -> Gradient:
        """Return the gradient of one sigmoid head per label."""
        return self._gradient_about(counts.logits, blocks, noise, SigmoidResiduals)

    def _gradient_about(
        self, offsets: Floats, blocks: Blocks, noise: NoiseSource, kind: ResidualKind
    ) -> Gradient:
        """Return the gradient of heads whose logits have these offsets added, (C,)."""
        z = self._step_noise()
        clip = self._clip()
        return lambda head: noisy_gradient(
            head, offsets, blocks, clip=clip, multiplier=z, noise=noise, kind=kind
        )

    def _public_scores(self, records: UnitRows, theta: Floats) -> Floats | None:
        """Return the scores of some public rows by a head, of shape (m, C); None without them."""
        if self.public is None:
            return None
        rows = np.asarray(spaced(public_rows(self.public, records.X.shape[1]), PUBLIC_ROWS))
        unlabelled = np.zeros(len(rows), dtype=np.int64)
        public = replace(records, X=rows, labels=unlabelled, persons=None)
        return np.concatenate([block.rows @ theta.T for block in public.blocks("public rows")])

    def _learning_rate(self, n: float) -> float:
        """Return the factor of the mean gradient of n records."""
        if self.learning_rate is not None:
            return float(self.learning_rate)

        # Rows about a public mean have no direction in common, so longer steps are stable.
        n_classes = len(self.classes_)
        longest = 4.0 * n_classes
        if self.public is None:
            longest = 1.0 * n_classes
        noise = self._step_noise() * self._clip()
        return learning_rate(
            longest, records=n, n_classes=n_classes, noise=noise, steps=self._steps()
        )

    def _learning_rate_of_label_sets(self, counts: SetCounts) -> float:
        """Return the factor of the mean gradient where a record may have several labels."""
        if self.learning_rate is not None:
            return float(self.learning_rate)

        # the loss of a label curves most where most records are of it and not of it
        longest = LONGEST_CENTRED if self.public is not None else LONGEST
        curvature = float((counts.shares * (1 - counts.shares)).max())
        noise = self._step_noise() * self._clip()
        return learning_rate(
            longest / curvature,
            records=counts.records,
            n_classes=len(self.classes_),
            noise=noise,
            steps=self._steps(),
        )
