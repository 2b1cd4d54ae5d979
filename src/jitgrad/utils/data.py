"""Datasets, and batches out of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, islice
from typing import Any, Generic, TypeVar

import numpy as np

from .._core.dtypes import float64, int64
from .._tensor import Tensor, _functions as T
from .._tensor.creation import arange, as_tensor, tensor
from .._tensor.random import Generator, randperm

__all__ = ["DataLoader", "Dataset", "Subset", "TensorDataset", "default_collate", "random_split"]

Sample = TypeVar("Sample")
Collate = Callable[[list[Any]], Any]


class Dataset(Generic[Sample]):
    """Samples by position: a subclass defines `__getitem__` and `__len__`.

    It may define `__getitems__(indices)`, which gives a list of samples at once.
    """

    def __getitem__(self, index: Any) -> Sample:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Tensors of one length: sample k is the tuple of their k-th rows. AssertionError if the lengths differ.

    A `DataLoader` takes a whole batch out of it by one look-up per tensor.

    >>> import jitgrad as torch
    >>> from jitgrad import utils
    >>> dataset = utils.data.TensorDataset(torch.ones(5, 2), torch.arange(5))
    >>> len(dataset), dataset[3][1]
    (5, tensor(3))
    """

    def __init__(self, *tensors: Tensor) -> None:
        if any(tensor.shape[0] != tensors[0].shape[0] for tensor in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return int(self.tensors[0].shape[0])

    def _batch(self, indices: Tensor) -> list[Tensor]:
        return [tensor.index_select(0, indices) for tensor in self.tensors]


class Subset(Dataset[Sample]):
    """The samples of `dataset` at `indices`."""

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> Sample:
        if isinstance(index, list):
            return self.dataset[[self.indices[k] for k in index]]  # type: ignore[no-any-return]
        return self.dataset[self.indices[index]]  # type: ignore[no-any-return]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(dataset: Any, lengths: Sequence[float], generator: Any = None) -> list[Subset[Any]]:
    """Split a dataset at random into parts of the given lengths, or of the given fractions, which add up to 1.

    Raises ValueError when the lengths don't add up to that of the dataset.

    >>> import jitgrad as torch
    >>> from jitgrad import utils
    >>> train, test = utils.data.random_split(utils.data.TensorDataset(torch.arange(10)), [0.7, 0.3])
    >>> len(train), len(test)
    (7, 3)
    """
    total = len(dataset)
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        for place, fraction in enumerate(lengths):
            if fraction < 0 or fraction > 1:
                raise ValueError(f"Fraction at index {place} is not between 0 and 1")
        counts = [math.floor(total * fraction) for fraction in lengths]
        for k in range(total - sum(counts)):  # what rounding left over goes round
            counts[k % len(counts)] += 1
    else:
        counts = [int(length) for length in lengths]
    if sum(counts) != total:
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    order = randperm(total, generator=generator).tolist()
    ends = list(accumulate(counts))
    return [Subset(dataset, order[end - count : end]) for count, end in zip(counts, ends, strict=True)]


def default_collate(batch: list[Any]) -> Any:
    """Samples joined to a batch: tensors, arrays and numbers stacked, containers joined item by item.

    Raises TypeError for samples of another type, RuntimeError for sequences of different lengths.
    """
    first = batch[0]
    if isinstance(first, Tensor):
        return T.stack(batch, 0)
    if isinstance(first, np.ndarray | np.generic):
        return T.stack([as_tensor(array) for array in batch], 0)
    if isinstance(first, float):
        return tensor(batch, dtype=float64)
    if isinstance(first, int):
        return tensor(batch)
    if isinstance(first, str | bytes):
        return batch
    if isinstance(first, Mapping):
        return {key: default_collate([sample[key] for sample in batch]) for key in first}
    if isinstance(first, Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        columns = [default_collate(list(column)) for column in zip(*batch, strict=True)]
        return type(first)(*columns) if hasattr(first, "_fields") else columns
    raise TypeError(
        "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found " + str(type(first))
    )


class DataLoader(Generic[Sample]):
    """Iterates over a dataset in batches.

    Args:
        dataset: what has `__getitem__` and `__len__`.
        batch_size: samples per batch; None gives single samples.
        shuffle: whether to go through the dataset in a new random order each time.
        sampler: the indices in order, instead of `shuffle`; batch_sampler: lists of indices, instead of all of these.
        collate_fn: makes a batch of a list of samples (`default_collate`).
        drop_last: whether to leave out a last batch that is smaller.
        generator: where the order comes from; seed: makes a generator of its own from this number.

    Everything happens in the calling thread: `num_workers`, `pin_memory` and the like are accepted and ignored.

    >>> import jitgrad as torch
    >>> from jitgrad import utils
    >>> loader = utils.data.DataLoader(utils.data.TensorDataset(torch.arange(5)), batch_size=2)
    >>> [batch.tolist() for (batch,) in loader]
    [[0, 1], [2, 3], [4]]
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[int] | None = None,
        batch_sampler: Iterable[Sequence[int]] | None = None,
        num_workers: int = 0,
        collate_fn: Collate | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Any = None,
        *,
        generator: Any = None,
        seed: int | None = None,
        **ignored: Any,
    ) -> None:
        _check_options(batch_size, shuffle, sampler, batch_sampler, drop_last)
        if num_workers < 0:
            raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
        if seed is not None:
            generator = Generator()
            generator.manual_seed(seed)
        self.dataset = dataset
        self.batch_size = None if batch_sampler is not None else batch_size
        self.shuffle = bool(shuffle)
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.num_workers = num_workers
        self.collate_fn = default_collate if collate_fn is None else collate_fn
        self.drop_last = drop_last
        self.generator = generator

    def __len__(self) -> int:
        """How many batches there are."""
        if self.batch_sampler is not None:
            return len(self.batch_sampler)  # type: ignore[arg-type]
        count = len(self.dataset if self.sampler is None else self.sampler)  # type: ignore[arg-type]
        if self.batch_size is None:
            return count
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)

    def __iter__(self) -> Iterator[Any]:
        if self.batch_size is None and self.batch_sampler is None:
            for index in self._order():
                yield self.dataset[index]
            return
        at_once = _batcher(self.dataset) if self.collate_fn is default_collate else None
        for indices in self._batches():
            if at_once is not None:
                yield at_once(indices if isinstance(indices, Tensor) else tensor(list(indices), dtype=int64))
            else:
                yield self.collate_fn(self._samples(indices.tolist() if isinstance(indices, Tensor) else indices))

    def _order(self) -> Iterable[int]:
        if self.sampler is not None:
            return self.sampler
        count = len(self.dataset)
        return randperm(count, generator=self.generator).tolist() if self.shuffle else range(count)

    def _batches(self) -> Iterator[Any]:
        """The indices of each batch: a tensor, or what a sampler gave."""
        if self.batch_sampler is not None:
            yield from self.batch_sampler
            return
        assert self.batch_size is not None
        if self.sampler is not None:
            rest = iter(self.sampler)
            while batch := list(islice(rest, self.batch_size)):
                if len(batch) == self.batch_size or not self.drop_last:
                    yield batch
            return
        count = len(self.dataset)
        order = randperm(count, generator=self.generator) if self.shuffle else arange(count)
        for start in range(0, len(self) * self.batch_size, self.batch_size):
            yield order[start : start + self.batch_size]

    def _samples(self, indices: Sequence[int]) -> list[Any]:
        several = getattr(self.dataset, "__getitems__", None)
        return [self.dataset[index] for index in indices] if several is None else several(indices)


def _check_options(batch_size: Any, shuffle: Any, sampler: Any, batch_sampler: Any, drop_last: bool) -> None:
    if sampler is not None and shuffle:
        raise ValueError("sampler option is mutually exclusive with shuffle")
    if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
        raise ValueError("batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last")
    if batch_size is None:
        if drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
    elif isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size <= 0:
        raise ValueError(f"batch_size should be a positive integer value, but got batch_size={batch_size}")


def _batcher(dataset: Any) -> Callable[[Tensor], list[Tensor]] | None:
    """How to take a batch out of a dataset at once; None if it is neither a TensorDataset nor a subset of one."""
    if type(dataset) is TensorDataset:
        return dataset._batch
    if type(dataset) is not Subset:
        return None
    inner = _batcher(dataset.dataset)
    if inner is None:
        return None
    places = tensor(list(dataset.indices), dtype=int64)
    return lambda indices: inner(places.index_select(0, indices))
