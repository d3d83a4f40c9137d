"""Training of small torch networks for a number of steps that is fixed beforehand: one, or many
side by side.

A model depends on its records, its number and public facts alone. Nothing is set by looking at how
training goes:
no validation records, no early stopping. Pictures of type uint8 are divided by 255; otherwise
records are taken as they are.
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
        """The training that None, a `Training` or a dict of its fields stands for."""
        return value_of("training", settings, cls)

    def schedule(self, records: int) -> tuple[int, int]:
        """Number of steps, and of records in a step, for so many records."""
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

    `y` holds class indices, or rows of what `loss` takes beside scores of shape (b, n_classes) to
    sum their losses.
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

    What a model draws (first weights, batches, augmentation, dropout) depends on the seed, its
    number and sizes alone, and all take the number of steps of the `largest` part. So a changed
    record changes the models whose parts hold it and no other: bit for bit one by one, and batched
    (by torch.func) as well on the CPUs and the CUDA device (an H100) that this was tested on. The
    size of a part changes the steps, the padding and the shapes of all others: where sizes are
    private, call this for one part at a time.
    """
    factory = network(kind)
    models = [
        _Model(factory, X, y, n_classes, [seed, number])
        for number, (X, y) in zip(numbers or range(len(parts)), parts, strict=True)
    ]
    largest = largest or max(len(y) for _, y in parts)
    together = faster_batched(kind) if batched is None else batched
    for group in [models] if together else [[model] for model in models]:
        if kind == "linear" and not training.augmentation:
            _regress(group, n_classes, training)
        else:
            _descend(group, training, largest)
    return [model.module.eval() for model in models]


def faster_batched(kind: str | Factory) -> bool:
    """Tell whether many such networks train faster together than in turn here, as
    benchmarks/teachers.py measures.
    """
    return device() == "cuda" or kind in ("linear", "mlp")


class _Model:
    """An untrained network, its records, and its stream of random numbers."""

    def __init__(self, factory: Factory, X: Any, y: Any, n_classes: int, seeds: list[int]) -> None:
        torch = load_torch()
        kind = torch.int64 if np.ndim(y) == 1 else torch.float32
        self.x, self.y = as_tensor(X).to(device()), torch.as_tensor(y, dtype=kind, device=device())
        self.rng = np.random.default_rng(seeds)
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(int(self.rng.integers(2**63)))
            self.module = factory(tuple(self.x.shape[1:]), n_classes).to(device())
            self.seed = int(torch.randint(2**62, ()))

    @contextmanager
    def drawing(self) -> Iterator[None]:
        """Let torch draw from a stream of this model alone, as for dropout; how much others drew
        plays no part.
        """
        torch = load_torch()
        with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
            torch.manual_seed(self.seed)
            yield

    def batches(self, steps: int, batch: int) -> NDArray[np.int64]:
        """Positions of records, of shape (steps, batch): one shuffle of all records after
        another.
        """
        shuffles = [
            self.rng.permutation(len(self.y)) for _ in range(math.ceil(steps * batch / len(self.y)))
        ]
        return np.concatenate(shuffles)[: steps * batch].reshape(steps, batch)

    def moves(self, steps: int, batch: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Shifts of shape (steps, batch, 2) and flips of shape (steps, batch)."""
        shifts = self.rng.integers(-MOST_SHIFT, MOST_SHIFT, (steps, batch, 2), endpoint=True)
        return shifts, self.rng.random((steps, batch)) < (0.5 if self.x.shape[1] == 3 else 0.0)


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
    """Train the modules of `models` in place by AdamW, for the steps of a part of `largest`
    records.
    """
    torch = load_torch()
    steps, batch = training.schedule(largest)
    x, y = torch.cat([model.x for model in models]), torch.cat([model.y for model in models])
    firsts = np.cumsum([0] + [len(model.y) for model in models[:-1]])
    batches = [
        model.batches(steps, batch) + first for model, first in zip(models, firsts, strict=True)
    ]
    order = torch.from_numpy(np.concatenate(batches, axis=1)).to(x.device)
    moving = training.augmentation and x.ndim == 4
    if moving:
        moves = zip(*(model.moves(steps, batch) for model in models), strict=True)
        shifts, flips = (
            torch.from_numpy(np.concatenate(each, axis=1)).to(x.device) for each in moves
        )
    parameters, forward = _together(models) if len(models) > 1 else _alone(models[0])
    optimiser = torch.optim.AdamW(
        parameters.values(), weight_decay=training.weight_decay, fused=True
    )
    with models[0].drawing(), exactly():
        for step in range(steps):
            records = (
                shifted(x[order[step]], shifts[step], flips[step]) if moving else x[order[step]]
            )
            total = (loss or _cross_entropy)(forward(records), y[order[step]]) / batch
            optimiser.param_groups[0]["lr"] = (
                training.learning_rate * (1 + math.cos(math.pi * step / steps)) / 2
            )
            optimiser.zero_grad()
            total.backward()
            optimiser.step()
    if len(models) > 1:
        for number, model in enumerate(models):
            model.module.load_state_dict(
                {name: stacked[number] for name, stacked in parameters.items()}, strict=False
            )


def _cross_entropy(scores: Tensor, labels: Tensor) -> Tensor:
    torch = load_torch()
    return torch.nn.functional.cross_entropy(scores, labels, reduction="sum")


def _alone(model: _Model) -> tuple[dict[str, Tensor], Callable[[Tensor], Tensor]]:
    """The parameters of one model, and its scores of its records."""
    torch = load_torch()
    # convolutions are faster so, on a CPU
    module = model.module.to(memory_format=torch.channels_last)
    return dict(module.named_parameters()), module


def _together(models: list[_Model]) -> tuple[dict[str, Tensor], Callable[[Tensor], Tensor]]:
    """The stacked parameters of all models, and the scores that each gives to its share of the
    records, in order.
    """
    func = load_torch().func
    parameters, buffers = func.stack_module_state([model.module for model in models])
    common = models[0].module

    def forward_one(
        parameters: dict[str, Tensor], buffers: dict[str, Tensor], records: Tensor
    ) -> Tensor:
        return func.functional_call(common, (parameters, buffers), (records,))

    def forward(records: Tensor) -> Tensor:
        return func.vmap(forward_one)(
            parameters, buffers, records.unflatten(0, (len(models), -1))
        ).flatten(0, 1)

    return parameters, forward
