import subprocess
import sys

import numpy as np
import pytest

from messages import stating
from tacit.errors import InputError
from tacit.models.networks import NETWORKS, network, weight_shapes, weights

torch = pytest.importorskip("torch", reason="networks need torch")

PICTURES = ("cnn", "vgg", "resnet")


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 32, 32), (1, 9, 13)])
def test_networks_score_pictures(name, shape):
    module = network(name)(shape, 7)
    scores = module(torch.zeros(2, *shape))
    assert scores.shape == (2, 7)


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize(
    ("shape", "n_classes"), [((1, 28, 28), 10), ((3, 33, 31), 2), ((1, 9, 13), 7), ((2, 8, 8), 100)]
)
def test_shapes_of_weights_are_known_without_the_network(name, shape, n_classes):
    made = {key: array.shape for key, array in weights(network(name)(shape, n_classes)).items()}
    assert weight_shapes(name, shape, n_classes) == made


@pytest.mark.parametrize("name", ["linear", "mlp"])
def test_networks_score_rows(name):
    assert network(name)((5,), 3)(torch.zeros(2, 5)).shape == (2, 3)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_score_depends_on_its_own_record_in_training_too(name):
    """No statistics of a batch, nothing random, nothing remembered: what batching over models
    needs.
    """
    torch.manual_seed(0)
    module = network(name)((1, 8, 8), 3).train()
    assert not list(module.buffers())
    pictures = torch.rand(4, 1, 8, 8)
    others = torch.cat([pictures[:1], torch.rand(3, 1, 8, 8)])
    torch.testing.assert_close(module(pictures)[0], module(others)[0])
    torch.testing.assert_close(module(pictures)[0], module.eval()(pictures)[0])


@pytest.mark.parametrize("name", PICTURES)
@pytest.mark.parametrize("shape", [(784,), (1, 7, 28), (28, 28)])
def test_pictures_are_asked_for(name, shape):
    with pytest.raises(InputError, match=stating("'linear'", "'mlp'", "pictures")):
        network(name)(shape, 10)


def test_a_factory_is_its_own():
    def factory(shape, n_classes):
        return torch.nn.Linear(*shape, n_classes)

    assert network(factory) is factory


def test_unknown_names_are_refused():
    with pytest.raises(InputError, match=stating("'transformer'", "linear, mlp, cnn")):
        network("transformer")


def test_without_torch_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(InputError, match=stating("torch", "pip install", "'.[torch]'")):
        network("cnn")


def test_torch_is_imported_on_first_use():
    code = (
        "import sys, tacit.learners.pate.teachers, tacit.learners.pate.student,"
        " tacit.learners.common.training as t; t.Training(); sys.exit('torch' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_sizes_are_small():
    sizes = {
        name: sum(p.numel() for p in network(name)((1, 28, 28), 10).parameters())
        for name in NETWORKS
    }
    assert sizes["linear"] == 7850
    assert np.max(list(sizes.values())) < 200_000
