"""Datasets and batches."""

from collections import namedtuple
from itertools import chain

import numpy as np
import pytest

import jitgrad as torch
from jitgrad.utils.data import DataLoader, Dataset, Subset, TensorDataset, default_collate, random_split


class Squares(Dataset):
    def __len__(self):
        return 5

    def __getitem__(self, index):
        return torch.tensor([float(index)]), index * index


def numbers(count=5):
    return TensorDataset(torch.arange(count), torch.arange(count).float().reshape(count, 1) * 2)


def batches(loader):
    return [batch[0].tolist() for batch in loader]


def joined(lists):
    return list(chain.from_iterable(lists))


def test_tensor_dataset():
    data = numbers()
    assert len(data) == 5
    assert [value.tolist() for value in data[3]] == [3, [6]]
    assert [value.tolist() for value in data[1:3]] == [[1, 2], [[2], [4]]]
    with pytest.raises(AssertionError, match="Size mismatch between tensors"):
        TensorDataset(torch.ones(2), torch.ones(3))


def test_batches_in_order():
    loader = DataLoader(numbers(), batch_size=2)
    assert batches(loader) == [[0, 1], [2, 3], [4]]
    assert len(loader) == 3
    first = next(iter(loader))
    assert [tuple(part.shape) for part in first] == [(2,), (2, 1)]
    first[0].fill_(7)
    assert batches(loader) == [[0, 1], [2, 3], [4]]  # a batch is a copy
    assert batches(DataLoader(numbers(), 2, drop_last=True)) == [[0, 1], [2, 3]]
    assert len(DataLoader(numbers(), 2, drop_last=True)) == 2
    assert batches(DataLoader(numbers(0), 2)) == []


def test_shuffled_batches():
    loader = DataLoader(numbers(100), batch_size=30, shuffle=True, seed=3)
    epochs = [joined(batches(loader)) for _ in range(2)]
    assert all(sorted(epoch) == list(range(100)) for epoch in epochs)
    assert epochs[0] != epochs[1] != list(range(100))
    again = DataLoader(numbers(100), batch_size=30, shuffle=True, seed=3)
    assert [joined(batches(again)) for _ in range(2)] == epochs
    torch.manual_seed(1)
    first = batches(DataLoader(numbers(), 2, shuffle=True))
    torch.manual_seed(1)
    assert batches(DataLoader(numbers(), 2, shuffle=True)) == first
    generators = [torch.Generator() for _ in range(2)]
    for generator in generators:
        generator.manual_seed(9)
    one, two = (batches(DataLoader(numbers(), 2, shuffle=True, generator=g)) for g in generators)
    assert one == two


def test_rows_stay_together():
    for values, doubles in DataLoader(numbers(50), batch_size=7, shuffle=True):
        assert (values * 2).tolist() == doubles.reshape(-1).tolist()


def test_any_dataset():
    found = list(DataLoader(Squares(), batch_size=2))
    assert [b.tolist() for _, b in found] == [[0, 1], [4, 9], [16]]
    assert found[0][0].tolist() == [[0], [1]]
    assert found[0][1].dtype is torch.int64
    assert sorted(joined((b.tolist() for _, b in DataLoader(Squares(), 2, shuffle=True)))) == [0, 1, 4, 9, 16]
    assert list(DataLoader([1.5, 2.5], batch_size=None)) == [1.5, 2.5]
    assert [b.tolist() for b in DataLoader([1.5, 2.5, 3.5], batch_size=2)] == [[1.5, 2.5], [3.5]]


def test_samplers_and_collate():
    assert batches(DataLoader(numbers(), 2, sampler=[4, 2, 0])) == [[4, 2], [0]]
    assert batches(DataLoader(numbers(), 2, sampler=[4, 2, 0], drop_last=True)) == [[4, 2]]
    loader = DataLoader(numbers(), batch_sampler=[[0], [1, 1, 2]])
    assert batches(loader) == [[0], [1, 1, 2]]
    assert len(loader) == 2
    assert list(DataLoader([1, 2, 3], 2, collate_fn=sum)) == [3, 3]
    assert list(DataLoader(numbers(3), 2, collate_fn=len)) == [2, 1]


def test_many_samples_at_once():
    class Many(Squares):
        def __getitems__(self, indices):
            assert all(type(index) is int for index in indices)
            return [float(index) for index in indices]

    assert [b.tolist() for b in DataLoader(Many(), 4, shuffle=False)] == [[0, 1, 2, 3], [4]]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"batch_size": 0}, "batch_size should be a positive integer value, but got batch_size=0"),
        ({"batch_size": 1.5}, "batch_size should be a positive integer"),
        ({"batch_size": None, "drop_last": True}, "batch_size=None option disables auto-batching"),
        ({"sampler": [1], "shuffle": True}, "sampler option is mutually exclusive with shuffle"),
        ({"batch_sampler": [[1]], "batch_size": 2}, "batch_sampler option is mutually exclusive with batch_size"),
        ({"num_workers": -1}, "num_workers option should be non-negative"),
    ],
)
def test_options_refused(options, words):
    with pytest.raises(ValueError, match=words):
        DataLoader(numbers(), **options)


def test_splits():
    parts = random_split(numbers(10), [7, 3])
    assert [len(part) for part in parts] == [7, 3]
    assert sorted(int(part[k][0]) for part in parts for k in range(len(part))) == list(range(10))
    assert [len(part) for part in random_split(numbers(10), [0.5, 0.25, 0.25])] == [6, 2, 2]
    for part in parts:  # batches of a part are taken at once as well
        assert sorted(joined(batches(DataLoader(part, 4, shuffle=True)))) == sorted(part.indices)
    assert batches(DataLoader(Subset(parts[0], [0]), 1)) == [[parts[0].indices[0]]]
    one, two = (random_split(numbers(10), [7, 3], torch.Generator().manual_seed(4)) for _ in range(2))
    assert [part.indices for part in one] == [part.indices for part in two]
    for lengths, words in (([7, 2], "Sum of input lengths does not equal"), ([1.5, -0.5], "is not between 0 and 1")):
        with pytest.raises(ValueError, match=words):
            random_split(numbers(10), lengths)


def test_collate():
    pair = namedtuple("pair", "left right")
    samples = [{"a": 1, "b": (1.0, "x"), "c": pair(np.float32(k), np.ones(2) * k)} for k in range(2)]
    batch = default_collate(samples)
    assert batch["a"].tolist() == [1, 1]
    assert batch["b"][0].dtype is torch.float64
    assert batch["b"][1] == ["x", "x"]
    assert type(batch["c"]) is pair
    assert batch["c"].left.dtype is torch.float32
    assert batch["c"].right.tolist() == [[0, 0], [1, 1]]
    with pytest.raises(RuntimeError, match="each element in list of batch should be of equal size"):
        default_collate([[1], [1, 2]])
    with pytest.raises(TypeError, match="default_collate: batch must contain tensors"):
        default_collate([object()])


def test_a_dataset_without_items():
    with pytest.raises(NotImplementedError, match="should implement __getitem__"):
        Dataset()[0]
