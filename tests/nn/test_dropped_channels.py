"""Dropout of channels: which axes count them, and what is said to others."""

import warnings

import pytest

from tests.libraries import lib

__all__ = ["lib"]


LAYERS = [
    ("Dropout1d", (9, 4), 1),
    ("Dropout1d", (5, 9, 4), 2),
    ("Dropout2d", (5, 9, 2, 3), 2),
    ("Dropout3d", (9, 2, 3, 4), 1),
    ("Dropout3d", (5, 9, 1, 2, 3), 2),
]


@pytest.mark.parametrize(("name", "shape", "lead"), LAYERS)
def test_a_channel_is_dropped_as_a_whole(lib, name, shape, lead):
    lib.manual_seed(1)
    for inplace in (False, True):
        layer = getattr(lib.nn, name)(0.5, inplace)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            dropped = layer(lib.ones(shape)).flatten(lead)
        assert {tuple(set(row)) for row in dropped.view(-1, dropped.shape[-1]).tolist()} == {(0.0,), (2.0,)}


@pytest.mark.parametrize("count", [1, 4])
def test_one_dimension_refuses_others(lib, count):
    for training in (True, False):
        with pytest.raises(RuntimeError, match=rf"^dropout1d: Expected 2D or 3D input, but received a {count}D input\. Note that dropout1d exists"):
            lib.nn.functional.dropout1d(lib.ones((2,) * count), 0.5, training)


SAID = [
    ("dropout2d", 2, "Received a 2-D input to dropout2d, which is deprecated", r"2 spatial dimensions.*\(i\.e\. 3D or 4D inputs\)\.$"),
    ("dropout2d", 5, "Received a 5-D input to dropout2d, which is deprecated", r"2 spatial dimensions.*\(i\.e\. 3D or 4D inputs\)\.$"),
    ("dropout2d", 3, "assuming that channel-wise 1D dropout behavior is desired", r"please switch to using dropout1d instead\.$"),
    ("dropout3d", 3, "Received a 3-D input to dropout3d, which is deprecated", r"3 spatial dimensions.*\(i\.e\. 4D or 5D inputs\)\.$"),
    ("dropout3d", 6, "Received a 6-D input to dropout3d, which is deprecated", r"3 spatial dimensions.*\(i\.e\. 4D or 5D inputs\)\.$"),
]


@pytest.mark.parametrize(("name", "count", "words", "end"), SAID)
def test_more_dimensions_warn(lib, name, count, words, end):
    with pytest.warns(UserWarning, match=f"^{name}: .*{words}.*{end}") as seen:
        getattr(lib.nn.functional, name)(lib.ones((1,) * count))
    assert [warning.filename for warning in seen] == [__file__]


def test_a_number_has_no_channels(lib):
    for name in ("dropout2d", "dropout3d"):
        with pytest.warns(UserWarning, match="Received a 0-D"), pytest.raises(RuntimeError, match="at least 2 dimensions"):
            getattr(lib.nn.functional, name)(lib.tensor(1.0))
