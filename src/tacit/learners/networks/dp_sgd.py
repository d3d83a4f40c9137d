"""DPSGD: a network trained by clipped noisy gradients of Poisson samples, for comparison.

It needs Opacus.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.extras import check_installed
from tacit.compute.libraries.torch import load_torch
from tacit.compute.progress import progress
from tacit.data.persons import Persons
from tacit.errors import InputError
from tacit.learners.common.base import Prepared
from tacit.learners.common.models import Model, ModelClassifier, View, check_kind, record_shape
from tacit.learners.common.parameters import real, whole
from tacit.mechanisms.noise import Integers, NoiseSource
from tacit.models.networks import as_tensor, device, network
from tacit.privacy.budget import Budget
from tacit.privacy.events import Event, SampledGaussian
from tacit.privacy.unit import Unit

if TYPE_CHECKING:
    from tacit.compute.libraries.torch import Tensor, nn

# A clip norm that shortens no gradient. It is finite, since Opacus multiplies it by the noise
# multiplier 0.
UNCLIPPED = 1e30

# under a unit per person: records whose gradients are in memory at once, before they are added up
RECORDS_AT_ONCE = 256


@dataclass(frozen=True, eq=False)
class Records(Prepared):
    """Private records, and the form in which the network reads them."""

    view: View


@dataclass(kw_only=True, eq=False, repr=False)
class DPSGD(ModelClassifier):
    """Classify by a network that learned from noisy sums of clipped gradients (DP-SGD, with Adam).

    For comparison only: gradients and noise are Opacus's, in floating point, from a seeded
    generator. The noise is therefore `research` noise, and there is no release.

    Parameters
    ----------
    budget : Budget or str, default="epsilon=1,delta=1e-5"
        Approximate, since amplification by sampling has no rho. "epsilon=inf,delta=1e-5" uses no
        noise and no clipping.
    base : str or callable, default="mlp"
        The name of a network (linear, mlp, cnn, vgg, resnet) or a factory of networks without
        BatchNorm.
    classes
        As in `NoisySumPrototypes`.
    sampling_rate : float, default=1/240
        Probability that a record (a person under a unit per person) is in a step's sample. It is
        rounded up to a multiple of 2^-32.
    epochs : float, default=3.0
        Average number of samples that contain a record or person: there are epochs/sampling_rate
        steps, rounded.
    clip : float, default=1.5
        Bound on the L2 norm of a record's gradient; of the sum over a person's records under a unit
        per person.
    learning_rate : float, default=0.001
    shape
        As in `LabelPrivate`.
    seed : int, default=0
        Public seed of the first weights.
    noise : {"research"}
    random_state, ledger
        As in `NoisySumPrototypes`; samples and noise depend on `random_state`.
    n_persons : int, optional
        Under a unit per person: a public number of persons, about the actual number. The sum of
        gradients is divided by `sampling_rate` times this number. Needed under "add-remove-person",
        which hides the number of persons; under the other units the default is the actual number.
        Unused under a unit per record.
    unit : str, default="add-remove"
        As in `NoisySumPrototypes`. A change of labels costs as much as a replacement: whole records
        are protected, so an epsilon here is not comparable to an epsilon of `LabelPrivate`.

    Attributes
    ----------
    module_ : torch.nn.Module
    noise_multiplier_ : float
        Standard deviation of the noise over `clip`.
    classes_ : ndarray of shape (C,)
    guarantee_ : Guarantee
        Equal to `promise()`.

    Notes
    -----
    Guarantee: one `SampledGaussian` event for each step, of sensitivity `clip` under add/remove,
    composed by privacy loss distributions. Samples are Poisson, as that event assumes. The number
    of records scales the steps and is not protected. Under a unit per person, persons are sampled,
    each with all their records, and the sum of a person's gradients is clipped. The events are
    therefore the same, for one person added or removed. (A mean would be shorter, under the same
    noise.) Under replacement and change of labels, the privacy cost of two changes is proven for
    one step, and checked numerically for several. Floating point is not covered.
    Source: Abadi et al. 2016; McMahan et al. 2018 for persons. Samples are not batches of shuffled
    records: a published notebook (docs/label-privacy-notebook.md) shuffles and accounts for Poisson
    samples. It states epsilon 1; the tight epsilon is 0.585 if its samples were Poisson, and 8.2
    for its batches.

    Examples
    --------
    >>> import numpy as np, tacit
    >>> X = np.repeat([[1.0, 0.0], [0.0, 1.0]], 500, axis=0)
    >>> y = np.repeat([0, 1], 500)
    >>> model = tacit.DPSGD("epsilon=2,delta=1e-5", classes=2, noise="research", random_state=0)
    >>> print(model.promise().unit)
    add-remove
    """

    no_release = (
        "is for comparison only: its noise is drawn in floating point from a seeded generator, so"
        " it has no release; choose another learner"
    )

    budget: Budget | str = field(default="epsilon=1,delta=1e-5", kw_only=False)
    base: Any = "mlp"
    sampling_rate: float = 1 / 240
    epochs: float = 3.0
    clip: float = 1.5
    learning_rate: float = 1e-3
    n_persons: int | None = None
    shape: tuple[int, ...] | None = None
    seed: int = 0
    noise: str = "research"

    def _steps(self) -> int:
        rate = real("sampling_rate", self.sampling_rate, 1e-9, 1.0)
        epochs = real("epochs", self.epochs, 1e-9, 1e6)
        steps = max(round(epochs / rate), 1)
        return whole("number of steps, epochs/sampling_rate,", steps, 1, 10**6)

    def _rate(self) -> float:
        """Return the rate at which `poisson_sample` draws: a multiple of 2^-32, rounded up."""
        return math.ceil(self.sampling_rate * 2**32) / 2**32

    def _event(self) -> Event:
        # checked here, so that `promise` refuses them too
        if self.noise != "research":
            fault = (
                f"noise={self.noise!r} is not offered: DPSGD is for comparison, its noise is"
                " floating point"
            )
            raise InputError(
                f"{fault}; pass noise='research', or choose a learner whose result may be released"
            )

        if self.n_persons is not None:
            whole("n_persons", self.n_persons, 1, 2**31)
        elif Unit(self.unit) is Unit.ADD_REMOVE_PERSON:
            rule = "which hides the number of persons, needs a public one in its place"
            raise InputError(
                f"unit={self.unit}, {rule}; pass n_persons=..., about the actual number"
            )

        return self._steps() * SampledGaussian(self._noise_multiplier(), self._rate())

    def _noise_multiplier(self) -> float:
        """Return the least noise at which all steps keep the budget under `unit`."""
        rate = self._rate()
        steps = self._steps()
        budget = Budget.parse(self.budget)
        if Unit(self.unit) in (Unit.ADD_REMOVE, Unit.ADD_REMOVE_PERSON):
            return _multiplier(budget, rate, steps)

        # A replacement, or a change of labels, is a removal and an addition. The event of two
        # changes has half the noise multiplier and a higher rate. So the noise multiplier is twice
        # the one that keeps the budget at that rate. The rate is read from an event of any noise.
        rate_for_two = SampledGaussian(1.0, rate).for_group(2).sampling_rate
        return 2 * _multiplier(budget, rate_for_two, steps)

    def _unprotected(self) -> tuple[str, ...]:
        if not Unit(self.unit).per_person:
            return ("number of records",)
        if self.n_persons is not None:
            return ("number of persons (declared)",)
        return ("number of persons",)

    def _prepare(self, X: NDArray[Any], labels: Integers, *, shape: Any = None) -> Records:
        """Check parameters and network; `shape` is that of pictures, where `fit` was passed any."""
        check_installed("opacus")
        real("clip", self.clip, 1e-6, 1e6)
        real("learning_rate", self.learning_rate, 1e-9, 1e3)
        whole("seed", self.seed, 0, 2**32 - 1)

        if shape is None:
            shape = self.shape
        sides = record_shape(shape, X.shape[1])

        # The network divides bytes by 255. The view then divides other rows by 255, at prediction.
        scale = 1.0
        if X.dtype == np.uint8:
            scale = 255.0
        view = View(sides, scale=scale)

        # a scikit-learn classifier has no gradients of single records
        if hasattr(self.base, "fit"):
            raise InputError(
                f"base={self.base!r:.60} is not a network; pass a name, such as 'mlp', or a factory"
            )
        check_kind("base", self.base, view.shape, len(self.classes_))
        # on a network of the same form as the one that `_fit` trains
        _check_module(self._module(view.shape), view.shape)
        return Records(X, labels, view)

    def _module(self, shape: tuple[int, ...]) -> nn.Module:
        """Return the network before training; its weights follow from `seed`."""
        torch = load_torch()
        # the caller's generator is as it was afterwards; weights are drawn on the CPU alone
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(self.seed)
            return network(self.base)(shape, len(self.classes_))

    def _fit(self, records: Records, noise: NoiseSource) -> Model:
        torch = load_torch()
        from opacus import GradSampleModule

        view = records.view
        persons = records.persons
        self.shape_ = view.shape
        self.noise_multiplier_ = self._noise_multiplier()
        steps = self._steps()
        rate = self._rate()

        # Records are sampled, or persons. Their number scales the steps; a declared number of
        # persons does so in place of the actual one, which may be protected.
        members = len(records.labels)
        if persons is not None:
            members = persons.number
        n_for_scale = members
        if persons is not None and self.n_persons is not None:
            n_for_scale = self.n_persons
        expected_sample_size = rate * n_for_scale

        x = as_tensor(view(records.X)).to(device())
        y = torch.from_numpy(records.labels).to(device())
        network_at_start = self._module(view.shape).to(device()).train()
        module = GradSampleModule(network_at_start, loss_reduction="sum")
        optimiser = self._optimiser(module, expected_sample_size, noise)

        # an empty sample is a step too: of noise alone
        for _ in progress(range(steps), "DP-SGD", steps):
            sample = poisson_sample(members, rate, noise)
            optimiser.zero_grad()
            if persons is None:
                _set_gradients(module, x, y, sample)
            else:
                rows, owners = _records_of(persons, sample)
                set_gradients_of_persons(module, x, y, rows, owners, len(sample))
            _drop_overflows(list(module.parameters()))
            # clips each gradient, adds them up, and adds noise
            optimiser.step()

        # the network within the wrapper of Opacus
        self.module_ = module._module.eval()
        return Model(self.module_, len(self.classes_), view)

    def _optimiser(self, module: Any, batch_size: float, noise: NoiseSource) -> Any:
        """Return Adam on noisy sums of clipped gradients, divided by the batch size."""
        torch = load_torch()
        from opacus.optimizers import DPOptimizer

        # without noise nothing is bounded
        clip = self.clip
        if self.noise_multiplier_ == 0:
            clip = UNCLIPPED

        # a seed of 63 bits, which fits the signed 64 bits that torch takes
        generator = torch.Generator(device=device())
        generator.manual_seed(int(noise.words(1)[0] >> np.uint64(1)))
        return DPOptimizer(
            torch.optim.Adam(module.parameters(), self.learning_rate),
            noise_multiplier=self.noise_multiplier_,
            max_grad_norm=clip,
            expected_batch_size=batch_size,
            generator=generator,
        )


def poisson_sample(n: int, rate: float, noise: NoiseSource) -> NDArray[np.int64]:
    """Draw positions of a Poisson sample: each of n records or persons with probability `rate`.

    `rate` is a multiple of 2^-32. Each record or person takes 32 random bits, half of a word.
    """
    n_words = (n + 1) // 2
    halves = noise.words(n_words).view(np.uint32)[:n]
    return np.flatnonzero(halves < rate * 2**32)


def _records_of(persons: Persons, sample: Integers) -> tuple[Integers, Integers]:
    """Return the positions of all records of the persons of a sample, and their owners.

    An owner is the place of a person in the sample.
    """
    # place of each person in the sample, -1 for others
    places = np.full(persons.number, -1)
    places[sample] = np.arange(len(sample))
    owners = places[persons.codes]
    rows = np.flatnonzero(owners >= 0)
    return rows, owners[rows]


def _set_gradients(module: Any, x: Tensor, y: Tensor, rows: Integers) -> None:
    """Set `grad_sample`, where Opacus looks for it, to the gradients of these records, (rows, ...).

    Each parameter of the network has one.
    """
    torch = load_torch()
    positions = torch.from_numpy(rows).to(x.device)
    scores = module(x[positions])
    loss = torch.nn.functional.cross_entropy(scores, y[positions], reduction="sum")
    with warnings.catch_warnings():
        # torch warns of Opacus's hook on the first layer, whose input needs no gradient
        warnings.filterwarnings("ignore", message="Full backward hook")
        loss.backward()


def set_gradients_of_persons(
    module: Any, x: Tensor, y: Tensor, rows: Integers, owners: Integers, n_persons: int
) -> None:
    """Set `grad_sample` of each parameter to each person's sum, (n_persons, ...).

    So Opacus clips the sum of the gradients of a person as it clips the gradient of a record.
    """
    torch = load_torch()
    parameters = list(module.parameters())
    sums = [parameter.new_zeros((n_persons, *parameter.shape)) for parameter in parameters]
    for start in range(0, len(rows), RECORDS_AT_ONCE):
        part = slice(start, start + RECORDS_AT_ONCE)
        _set_gradients(module, x, y, rows[part])
        owners_of_part = torch.from_numpy(owners[part]).to(x.device)
        for parameter, total in zip(parameters, sums, strict=True):
            total.index_add_(0, owners_of_part, parameter.grad_sample)
            # Opacus would append the gradients of the next part to these
            parameter.grad_sample = None

    for parameter, total in zip(parameters, sums, strict=True):
        parameter.grad_sample = total


@lru_cache(maxsize=256)
def _multiplier(budget: Budget, rate: float, steps: int) -> float:
    """Calibrate the noise multiplier; cached, since each trial composes loss distributions."""
    return budget.sampled_gaussian(rate, steps)


def _drop_overflows(parameters: Sequence[Any]) -> None:
    """Set gradients to zero, of records or persons for whom an entry is not finite.

    No clipping bounds such a gradient.
    """
    torch = load_torch()
    # For each parameter a truth value for each record or person: all its entries are finite.
    finite_by_parameter = [
        # (members, entries)
        parameter.grad_sample.flatten(1).isfinite().all(dim=1)
        for parameter in parameters
    ]
    finite = torch.stack(finite_by_parameter).all(dim=0)
    if not finite.all():
        for parameter in parameters:
            parameter.grad_sample[~finite] = 0


def _check_module(module: Any, shape: tuple[int, ...]) -> None:
    """Refuse a network whose gradients are not sums of gradients of single records.

    It mixes records, keeps statistics of records, or has layers that Opacus does not know.
    """
    torch = load_torch()
    from opacus import GradSampleModule
    from opacus.validators import ModuleValidator

    errors = ModuleValidator.validate(module, strict=False)
    if errors:
        raise InputError(
            f"base mixes records in a batch ({type(errors[0]).__name__}); use GroupNorm for"
            " BatchNorm"
        )
    if next(module.buffers(), None) is not None:
        raise InputError(
            "base has buffers, which may store record values without noise; use layers without them"
        )

    # A trial on two records of zeros. Warnings would come again in the fit.
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wrapped = GradSampleModule(module, loss_reduction="sum")
            wrapped(torch.zeros(2, *shape)).sum().backward()
        if any(parameter.grad_sample is None for parameter in module.parameters()):
            raise InputError(
                "base has parameters that its output does not depend on; leave them out"
            )
    except RuntimeError as error:
        message = " ".join(str(error).split())[:200]
        raise InputError(
            f"base gives no gradients of single records ({message}); use layers that Opacus knows"
        ) from error
