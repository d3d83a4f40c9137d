"""Training of small torch networks, one by one or many side by side.

The number of steps is fixed beforehand, and nothing is set by looking at how training goes: no
validation records, no early stopping. A model depends on its records, its number and public facts
alone. Pictures of type uint8 are divided by 255; other records are not changed.

The privacy of PATE rests on this: a changed record changes one teacher and no other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.libraries.torch import load_torch
from tacit.learners.common.augmentation import MOST_SHIFT, shifted
from tacit.learners.common.parameters import flag, real, value_of, whole
from tacit.learners.common.regressions import softmax_regressions
from tacit.models.networks import Factory, as_tensor, device, exactly, network

if TYPE_CHECKING:
    from tacit.compute.libraries.torch import Tensor, nn

Loss = Callable[["Tensor", "Tensor"], "Tensor"]


@dataclass(frozen=True)
class Training:
    """Settings of the training of a network, all of them public.

    AdamW on the cross-entropy; the learning rate falls to zero along half a cosine. The exception
    is "linear" without augmentation: `epochs` steps of accelerated gradient on all records at once
    (`softmax_regressions`), which use neither `batch_size` nor `learning_rate`.

    Parameters
    ----------
    epochs : int, default=40
        Passes over the records; over the largest of the parts that are trained side by side.
    batch_size : int, default=32
        Records in a step; all records, where there are fewer.
    learning_rate : float, default=0.003
    weight_decay : float, default=0.0001
    augmentation : bool, default=False
        Pictures are shifted by up to 2 pixels either way and, where they have three channels, half
        are mirrored.
    """

    epochs: int = 40
    batch_size: int = 32
    learning_rate: float = 3e-3
    weight_decay: float = 1e-4
    augmentation: bool = False

    def __post_init__(self) -> None:
        whole("epochs", self.epochs, 1, 10**6)
        whole("batch_size", self.batch_size, 1, 10**6)
        real("learning_rate", self.learning_rate, 1e-9, 1e3)
        real("weight_decay", self.weight_decay, 0, 1e3)
        flag("augmentation", self.augmentation)

    @classmethod
    def of(cls, settings: Any) -> Training:
        """Return the training that None, a `Training` or a dict of its fields stands for."""
        return value_of("training", settings, cls)

    def schedule(self, records: int) -> tuple[int, int]:
        """Return the number of steps, and the records in a step, for so many records."""
        batch = min(self.batch_size, records)
        return self.epochs * math.ceil(records / batch), batch


def train(
    kind: str | Factory,
    X: Any,
    y: NDArray[Any],
    n_classes: int,
    training: Training,
    *,
    seed: int = 0,
    loss: Loss | None = None,
) -> nn.Module:
    """Train one network; it is returned in evaluation mode.

    `y` holds class indices. With a `loss` it holds rows of any kind: `loss` takes scores of shape
    (b, n_classes) and b rows of `y`, and returns the sum of their losses.
    """
    if loss is None:
        return train_many(kind, [(X, y)], n_classes, training, seed=seed)[0]

    model = _Model(network(kind), X, y, n_classes, [seed, 0])
    _descend([model], training, len(y), loss)
    return model.module.eval()


def train_many(
    kind: str | Factory,
    parts: Sequence[tuple[Any, NDArray[Any]]],
    n_classes: int,
    training: Training,
    *,
    seed: int = 0,
    numbers: Sequence[int] | None = None,
    largest: int | None = None,
    batched: bool | None = None,
) -> list[nn.Module]:
    """Train one network on each part of the records; they are returned in evaluation mode.

    The random numbers of a model (first weights, batches, augmentation, dropout) depend on the
    seed, its number and sizes alone, and all models take the number of steps of the `largest` part.
    So a changed record changes the models whose parts hold it and no other: bit for bit one by one,
    and batched (by torch.func) as well on the CPUs and the CUDA device (an H100) that this was
    tested on.

    The size of a part changes the steps, the padding and the shapes of all others: where sizes are
    private, call this for one part at a time.
    """
    factory = network(kind)
    if numbers is None:
        numbers = range(len(parts))
    if largest is None:
        largest = max(len(y) for _, y in parts)
    if batched is None:
        batched = faster_batched(kind)

    models = [
        _Model(factory, X, y, n_classes, [seed, number])
        for number, (X, y) in zip(numbers, parts, strict=True)
    ]
    groups = [models] if batched else [[model] for model in models]
    for group in groups:
        if kind == "linear" and not training.augmentation:
            _regress(group, n_classes, training)
        else:
            _descend(group, training, largest)

    return [model.module.eval() for model in models]


def faster_batched(kind: str | Factory) -> bool:
    """Tell whether many such networks train faster together than in turn on this machine.

    benchmarks/teachers.py measures it.
    """
    return device() == "cuda" or kind in ("linear", "mlp")


class _Model:
    """A network before training, its records, and its stream of random numbers."""

    def __init__(self, factory: Factory, X: Any, y: Any, n_classes: int, seeds: list[int]) -> None:
        torch = load_torch()
        has_indices = np.ndim(y) == 1
        dtype = torch.int64 if has_indices else torch.float32
        self.x = as_tensor(X).to(device())
        self.y = torch.as_tensor(y, dtype=dtype, device=device())
        self.rng = np.random.default_rng(seeds)

        # Torch draws the first weights, and the seed of dropout, from the model's stream.
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(int(self.rng.integers(2**63)))
            self.module = factory(tuple(self.x.shape[1:]), n_classes).to(device())
            self.torch_seed = int(torch.randint(2**62, ()))

    @contextmanager
    def torch_stream(self) -> Iterator[None]:
        """Let torch draw from a stream of this model, as for dropout.

        How much other models drew plays no part.
        """
        torch = load_torch()
        with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
            torch.manual_seed(self.torch_seed)
            yield

    def batches(self, steps: int, batch: int) -> NDArray[np.int64]:
        """Return positions of records, (steps, batch): one shuffle of all records after another."""
        n_records = len(self.y)
        n_shuffles = math.ceil(steps * batch / n_records)
        shuffles = [self.rng.permutation(n_records) for _ in range(n_shuffles)]
        return np.concatenate(shuffles)[: steps * batch].reshape(steps, batch)

    def augmentations(self, steps: int, batch: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Draw shifts of shape (steps, batch, 2) and flips of shape (steps, batch)."""
        shifts = self.rng.integers(-MOST_SHIFT, MOST_SHIFT, (steps, batch, 2), endpoint=True)

        # Pictures of one channel are often digits or letters, which mirroring would spoil.
        has_colours = self.x.shape[1] == 3
        flip_rate = 0.5 if has_colours else 0.0
        flips = self.rng.random((steps, batch)) < flip_rate
        return shifts, flips


def _regress(models: list[_Model], n_classes: int, training: Training) -> None:
    """Set the weights of linear `models` in place."""
    torch = load_torch()
    heads = softmax_regressions(
        [(model.x.flatten(1), model.y) for model in models],
        n_classes,
        steps=training.epochs,
        weight_decay=training.weight_decay,
        rngs=[model.rng for model in models],
    )

    with torch.no_grad():
        for model, coefficients, intercepts in zip(models, *heads, strict=True):
            weight, bias = model.module.parameters()
            weight.copy_(coefficients)
            bias.copy_(intercepts)


def _descend(
    models: list[_Model], training: Training, largest: int, loss: Loss | None = None
) -> None:
    """Train the modules of `models` in place by AdamW.

    They take the number of steps of a part of `largest` records. A step holds a batch of each
    model. The sum of the losses of all models has the gradient of each model's loss in that model's
    parameters, so one step of the optimiser is a step of every model.
    """
    torch = load_torch()
    steps, batch = training.schedule(largest)
    if loss is None:
        loss = _cross_entropy

    # The records of all models in one tensor; `order` of shape (steps, models * batch) indexes it.
    x = torch.cat([model.x for model in models])
    y = torch.cat([model.y for model in models])
    order = _order_of_records(models, steps, batch)

    augmented = training.augmentation and x.ndim == 4
    if augmented:
        shifts, flips = _augmentations(models, steps, batch)

    stacked = len(models) > 1
    parameters, forward = _stacked_models(models) if stacked else _single_model(models[0])
    optimiser = torch.optim.AdamW(
        parameters.values(), weight_decay=training.weight_decay, fused=True
    )

    with models[0].torch_stream(), exactly():
        for step in range(steps):
            records = x[order[step]]
            if augmented:
                records = shifted(records, shifts[step], flips[step])
            mean_loss = loss(forward(records), y[order[step]]) / batch

            # half a cosine, from the learning rate to zero
            cosine = math.cos(math.pi * step / steps)
            optimiser.param_groups[0]["lr"] = training.learning_rate * (1 + cosine) / 2

            optimiser.zero_grad()
            mean_loss.backward()
            optimiser.step()

    if stacked:
        _unstack(parameters, models)


def _order_of_records(models: list[_Model], steps: int, batch: int) -> Tensor:
    """Return positions among the records of all models, (steps, models * batch)."""
    torch = load_torch()
    sizes = [len(model.y) for model in models]
    starts = np.cumsum([0, *sizes[:-1]])
    batches = [
        start + model.batches(steps, batch) for start, model in zip(starts, models, strict=True)
    ]
    return torch.from_numpy(np.concatenate(batches, axis=1)).to(models[0].x.device)


def _augmentations(models: list[_Model], steps: int, batch: int) -> tuple[Tensor, Tensor]:
    """Return the shifts and flips of all models, in the order of their batches."""
    torch = load_torch()
    augmentations = [model.augmentations(steps, batch) for model in models]
    shifts = np.concatenate([shifts for shifts, _ in augmentations], axis=1)
    flips = np.concatenate([flips for _, flips in augmentations], axis=1)
    target = models[0].x.device
    return torch.from_numpy(shifts).to(target), torch.from_numpy(flips).to(target)


def _cross_entropy(scores: Tensor, labels: Tensor) -> Tensor:
    torch = load_torch()
    return torch.nn.functional.cross_entropy(scores, labels, reduction="sum")


def _single_model(model: _Model) -> tuple[dict[str, Tensor], Callable[[Tensor], Tensor]]:
    """Return the parameters of one model, and the function that scores its records."""
    torch = load_torch()
    # On a CPU, convolutions are faster in this memory format.
    module = model.module.to(memory_format=torch.channels_last)
    return dict(module.named_parameters()), module


def _stacked_models(
    models: list[_Model],
) -> tuple[dict[str, Tensor], Callable[[Tensor], Tensor]]:
    """Return the stacked parameters of all models, and the function that scores their records.

    The function takes as many records of each model, in the order of models.
    """
    func = load_torch().func
    parameters, buffers = func.stack_module_state([model.module for model in models])
    architecture = models[0].module

    def forward_one(
        parameters: dict[str, Tensor], buffers: dict[str, Tensor], records: Tensor
    ) -> Tensor:
        return func.functional_call(architecture, (parameters, buffers), (records,))

    def forward(records: Tensor) -> Tensor:
        by_model = records.unflatten(0, (len(models), -1))
        scores = func.vmap(forward_one)(parameters, buffers, by_model)
        return scores.flatten(0, 1)

    return parameters, forward


def _unstack(parameters: dict[str, Tensor], models: list[_Model]) -> None:
    """Give each model its part of the stacked parameters; buffers are not among them."""
    for number, model in enumerate(models):
        weights = {name: stacked[number] for name, stacked in parameters.items()}
        model.module.load_state_dict(weights, strict=False)
