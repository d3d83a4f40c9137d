import numpy as np
import pytest

from tacit.learners.common.augmentation import distorted, dropped, shifted

torch = pytest.importorskip("torch", reason="augmentation needs torch")


@pytest.mark.parametrize(("down", "right"), [(0, 0), (2, -1), (-2, 2)])
@pytest.mark.parametrize("flip", [False, True])
def test_shifts_are_by_whole_pixels_with_zeros_at_the_border(down, right, flip):
    pictures = torch.arange(1, 61, dtype=torch.float32).reshape(1, 3, 4, 5).repeat(2, 1, 1, 1)
    moved = shifted(pictures, torch.tensor([[down, right], [0, 0]]), torch.tensor([flip, False]))
    expected = np.zeros((3, 4, 5))
    source = pictures[0].numpy()
    for i in range(4):
        for j in range(5):
            if 0 <= i - down < 4 and 0 <= j - right < 5:
                expected[:, i, j] = source[:, i - down, j - right]
    np.testing.assert_array_equal(moved[0].numpy(), expected[:, :, ::-1] if flip else expected)
    np.testing.assert_array_equal(moved[1].numpy(), source)


def test_distortions_keep_most_of_a_picture_and_repeat_with_the_generator():
    pictures = torch.zeros(200, 1, 28, 28)
    pictures[:, :, 8:20, 8:20] = 1
    first, again = (distorted(pictures, torch.Generator().manual_seed(3)) for _ in range(2))
    torch.testing.assert_close(first, again, rtol=0, atol=0)
    assert first.shape == pictures.shape
    assert not torch.equal(first[0], first[1])
    kept = first.sum(dim=(1, 2, 3)) / pictures[0].sum()
    assert 0.6 < kept.mean() < 1.1
    assert kept.min() > 0.2


def test_a_fifth_of_the_entries_is_dropped():
    rows = dropped(torch.ones(1000, 50), torch.Generator().manual_seed(0))
    assert set(rows.unique().tolist()) == {0.0, 1.0}
    assert abs(rows.mean().item() - 0.8) < 0.01
