import numpy as np

from tacit.data.digits import load_digits_split
from tacit.data.rows import check_rows


def test_the_parts_are_disjoint_whole_and_always_the_same():
    from sklearn.datasets import load_digits

    split, again = load_digits_split(), load_digits_split()
    parts = (split.private_x, split.public_x, split.test_x)
    assert [part.shape for part in parts] == [(1000, 64), (397, 64), (400, 64)]
    everything = load_digits().data
    assert np.array_equal(np.sort(np.concatenate(parts), axis=0), np.sort(everything, axis=0))
    assert np.array_equal(split.private_x, again.private_x)
    assert np.array_equal(split.test_y, again.test_y)


def test_every_part_has_every_class_and_proper_rows():
    split = load_digits_split()
    for y in (split.private_y, split.test_y):
        assert set(y) == set(range(10))
    for x in (split.private_x, split.public_x, split.test_x):
        check_rows(x)
        assert x.dtype == np.float64
        assert (x.min(), x.max()) == (0, 16)


def test_labels_belong_to_their_rows():
    split = load_digits_split()
    means = np.array(
        [split.private_x[split.private_y == label].mean(axis=0) for label in range(10)]
    )
    distances = ((split.test_x[:, None] - means) ** 2).sum(axis=2)
    assert (distances.argmin(axis=1) == split.test_y).mean() > 0.85
