"""Exported models need NumPy alone and give the same numbers."""

import subprocess
import sys

import numpy as np
import pytest

import jitgrad as torch
from jitgrad import nn
from jitgrad.nn import functional as F

MODELS = {
    "mlp": lambda: nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3), nn.Softmax(-1)),
    "smooth": lambda: nn.Sequential(
        nn.Linear(4, 8), nn.GELU(), nn.LayerNorm(8), nn.SiLU(), nn.Linear(8, 1), nn.Sigmoid()
    ),
    "batch_norm": lambda: nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Dropout(0.5)).eval(),
}


def run(path, x):
    """Call `predict` in an interpreter that has neither jitgrad nor numba loaded."""
    np.save(path.with_name("x.npy"), x)
    code = ("import sys, numpy as np, importlib.util as u\n"
            "s = u.spec_from_file_location('model', sys.argv[1]); m = u.module_from_spec(s); s.loader.exec_module(m)\n"
            "np.save(sys.argv[2] + '/y.npy', m.predict(np.load(sys.argv[2] + '/x.npy')))\n"
            "assert not {'jitgrad', 'numba'} & set(sys.modules)")  # fmt: skip
    subprocess.run([sys.executable, "-c", code, str(path), str(path.parent)], check=True)
    return np.load(path.with_name("y.npy"))


@pytest.mark.parametrize("name", MODELS)
def test_models(name, tmp_path):
    torch.manual_seed(0)
    model = MODELS[name]()
    x = torch.randn(5, 4)
    path = torch.export(model, x, tmp_path / "model.py")
    other = torch.randn(5, 4)
    np.testing.assert_allclose(run(path, other.numpy()), model(other).detach().numpy(), rtol=1e-6, atol=1e-6)


def test_embedding(tmp_path):
    table = nn.Embedding(5, 3)
    index = torch.tensor([[0, 4], [2, 2]])
    path = torch.export(lambda i: F.relu(table(i)).sum(1), index, tmp_path / "model.py")
    np.testing.assert_allclose(run(path, index.numpy()), F.relu(table(index)).sum(1).detach().numpy(), rtol=1e-6)


def test_a_convolutional_net(tmp_path):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 3, 3, padding=1), nn.BatchNorm2d(3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(27, 4)).eval()
    x = torch.randn(5, 1, 6, 6)
    path = torch.export(model, x, tmp_path / "model.py")
    np.testing.assert_allclose(run(path, x.numpy()), model(x).detach().numpy(), rtol=1e-5, atol=1e-6)


ROWS = {
    "argmax": lambda x: x.argmax(1),
    "argmin": lambda x: x.argmin(0),
    "sort": lambda x: x.sort(1).values,
    "argsort descending": lambda x: x.argsort(1, descending=True, stable=True),
    "topk": lambda x: x.topk(3, 1).values,
    "cumsum": lambda x: x.cumsum(1),
    "cumprod": lambda x: x.cumprod(1),
}


@pytest.mark.parametrize("name", ROWS)
def test_functions_of_rows(name, tmp_path):
    x = torch.tensor(np.round(np.random.default_rng(0).standard_normal((4, 7)), 1).astype("f4"))  # with ties
    x[1, 2] = float("nan")
    path = torch.export(ROWS[name], x, tmp_path / "model.py")
    np.testing.assert_allclose(run(path, x.numpy()), ROWS[name](x).numpy(), rtol=1e-6)


def test_what_cannot_be_exported_is_named(tmp_path):
    with pytest.raises(NotImplementedError, match="item"):
        torch.export(lambda x: x * x.sum().item(), torch.ones(2), tmp_path / "model.py")
    with pytest.raises(NotImplementedError, match="eval"):
        torch.export(nn.BatchNorm1d(3), torch.ones(2, 3), tmp_path / "model.py")
    with pytest.raises(NotImplementedError, match="running_index"):
        torch.export(lambda x: x.cummax(0).values, torch.ones(2, 3), tmp_path / "model.py")
