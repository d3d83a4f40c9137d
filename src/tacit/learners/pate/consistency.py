"""A network that learns from few labelled and many unlabelled records, by FixMatch (Sohn et al. 2020).

The class that the network is sure of on a record is its target on a strongly changed copy of it. Pictures are shifted,
and strongly changed by turning, stretching and cutting out; of rows, entries are dropped.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute.progress import progress
from tacit.learners.common.augmentation import MOST_SHIFT, distorted, dropped, shifted
from tacit.learners.common.training import Training
from tacit.models.networks import Factory, as_tensor, device, network

if TYPE_CHECKING:
    from torch import Generator, Tensor, nn

SURE = 0.95  # least probability of a target
RATIO = 4  # unlabelled records in a step for each labelled one


def train_consistent(
    kind: str | Factory, X: Any, y: NDArray[Any], unlabelled: Any, n_classes: int, training: Training, *, seed: int = 0
) -> nn.Module:
    """Train one network by AdamW on the cross-entropy of labelled records and of sure targets.

    Parameters
    ----------
    kind, n_classes, seed
        As for `train`.
    X, y : arrays of shape (n, ...) and (n,)
        Labelled records and their class indices.
    unlabelled : array-like of shape (m, ...)
        More records.
    training : Training
        A step takes `batch_size` labelled records and 4 times as many of all; an epoch passes over all once.
        Augmentation is always on.

    Returns
    -------
    torch.nn.Module
        In evaluation mode.
    """
    import torch

    rng = np.random.default_rng(seed)
    generator = torch.Generator(device()).manual_seed(int(rng.integers(2**63)))
    labelled, labels = as_tensor(X).to(device()), torch.as_tensor(y, dtype=torch.int64, device=device())
    everything = torch.cat([labelled, as_tensor(unlabelled).to(device())])
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(int(rng.integers(2**63)))
        module = network(kind)(tuple(labelled.shape[1:]), n_classes)
    module = module.to(device=device(), memory_format=torch.channels_last)
    optimiser = torch.optim.AdamW(module.parameters(), weight_decay=training.weight_decay, fused=True)
    cross_entropy = torch.nn.functional.cross_entropy
    batch = training.batch_size
    steps = training.epochs * math.ceil(len(everything) / (RATIO * batch))
    for step in progress(range(steps), "training the student", steps):
        some = torch.randint(len(labelled), (batch,), generator=generator, device=device())
        more = everything[torch.randint(len(everything), (RATIO * batch,), generator=generator, device=device())]
        with torch.no_grad():
            sure, targets = module(_weak(more, generator)).softmax(dim=1).max(dim=1)
        scores = module(torch.cat([_weak(labelled[some], generator), _strong(more, generator)]))
        consistency = cross_entropy(scores[batch:], targets, reduction="none")[sure >= SURE].sum() / len(more)
        loss = cross_entropy(scores[:batch], labels[some]) + consistency
        optimiser.param_groups[0]["lr"] = training.learning_rate * (1 + math.cos(math.pi * step / steps)) / 2
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return module.eval()


def _weak(records: Tensor, generator: Generator) -> Tensor:
    """Pictures shifted and, in colour, perhaps mirrored; rows as they are."""
    import torch

    if records.ndim != 4:
        return records
    n, place = len(records), records.device
    shifts = torch.randint(-MOST_SHIFT, MOST_SHIFT + 1, (n, 2), generator=generator, device=place)
    flips = torch.rand(n, generator=generator, device=place) < (0.5 if records.shape[1] == 3 else 0.0)
    return shifted(records, shifts, flips)


def _strong(records: Tensor, generator: Generator) -> Tensor:
    return distorted(_weak(records, generator), generator) if records.ndim == 4 else dropped(records, generator)
