"""The shipped digits are the published ones, and their split is fair and repeatable."""

from importlib import resources

import numpy as np
import pytest

from jitgrad.cli.digits import load_digits, split_digits


def test_shapes_dtypes_and_range():
    images, labels = load_digits()
    assert (images.shape, images.dtype, images.min(), images.max()) == ((1797, 64), np.float32, 0.0, 1.0)
    assert (labels.shape, labels.dtype) == ((1797,), np.int64)


def test_class_counts_are_those_of_the_publication():
    assert np.bincount(load_digits().labels).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]


def test_values_are_the_published_integers():
    images = load_digits().images * 16
    assert np.array_equal(images, images.round())
    assert int(images.astype(np.int64).sum()) == 561718
    assert images[0, :8].tolist() == [0, 0, 5, 13, 9, 1, 0, 0]


def test_equal_to_scikit_learn():
    theirs = pytest.importorskip("sklearn.datasets").load_digits()
    images, labels = load_digits()
    assert np.array_equal(images * 16, theirs.data)
    assert np.array_equal(labels, theirs.target)


def test_source_and_licence_lie_beside_them():
    text = resources.files("jitgrad").joinpath("data", "DIGITS.md").read_text(encoding="utf-8")
    for word in ("Alpaydin", "Kaynak", "UCI Machine Learning Repository", "1998", "10.24432/C50P49", "CC BY 4.0"):
        assert word in text


def test_split_is_a_partition():
    train, test = split_digits()
    assert (len(train.labels), len(test.labels)) == (1438, 359)
    both = np.concatenate([np.c_[train.images, train.labels], np.c_[test.images, test.labels]])
    everything = np.c_[load_digits()]
    assert np.array_equal(both[np.lexsort(both.T)], everything[np.lexsort(everything.T)])
    assert np.bincount(test.labels).min() >= 25


def test_split_is_repeatable_and_depends_on_its_seed():
    first, again, other = split_digits().test.labels, split_digits().test.labels, split_digits(seed=1).test.labels
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("held_out", [0.0, 1.0, -0.1, 1.5, 1e-9])
def test_a_split_with_an_empty_side_is_refused(held_out):
    with pytest.raises(ValueError, match="held_out"):
        split_digits(held_out)
