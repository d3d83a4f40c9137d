import numpy as np
import pytest

from tacit.learners.common.augmentation import shifted

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
