"""Compiled and eager side by side: values, gradients, random state, versions, buffers and optimizer state after every call."""

import copy
import math
import warnings

import numpy as np
import pytest

import jitgrad as torch
from jitgrad import nn, optim
from jitgrad.nn import functional as F
from tests.compiler.steps import assert_same


def part_writes(x, i):
    y = torch.zeros(6, 4)
    y[1:] = x[1:]
    y[0, 2] = 3.0
    z = x.clone()
    z[:, ::2] *= 2
    z[:, 1].add_(1)
    u = torch.zeros(4, 6)
    u.t().copy_(x)
    return y * 2 + z + u.t()


def writes_at_places(x, i):
    y = x * 2
    y[torch.arange(6), i] = 1.0
    y[i - 4, 0] = x[:, 3]
    z = x * 3
    z[z > 0] = 0.5
    return y + z


FAMILIES = {
    "extremes": [
        lambda x, i: x.argmax(1), lambda x, i: x.argmax(), lambda x, i: x.argmin(0, keepdim=True),
        lambda x, i: (x.argmax(1) == i).float().mean(),
        lambda x, i: x.max(1)[0], lambda x, i: x.max(dim=1, keepdim=True), lambda x, i: x.min(0), lambda x, i: x.amax((0, 1)),
        lambda x, i: x.min(),
    ],
    "order": [
        lambda x, i: x.sort(1)[0], lambda x, i: x.sort(0, descending=True), lambda x, i: x.argsort(1), lambda x, i: x.topk(2, 1),
        lambda x, i: x.topk(2, 0, largest=False)[0].sum(), lambda x, i: x.round().sort(1)[1],
    ],
    "places": [
        lambda x, i: x.gather(1, i[:, None]), lambda x, i: x.index_select(1, i), lambda x, i: x[i],
        lambda x, i: x[torch.arange(6), i],
        lambda x, i: x[:, i], lambda x, i: x[i - 4], lambda x, i: x[[0, 2]], lambda x, i: x[1:, [1, -1]],
        lambda x, i: F.embedding(i, x),
        lambda x, i: x.gather(1, x.argmax(1, keepdim=True)), lambda x, i: x[i.int()], lambda x, i: x[3 - i],
    ],
    "writes": [
        part_writes, writes_at_places, lambda x, i: torch.zeros(6, 4).scatter(1, i[:, None], 1.0) * x,
        lambda x, i: torch.zeros(4).scatter_add(0, i, x[:, 0]), lambda x, i: torch.ones(4, 4).index_add(0, i, x, alpha=2),
        lambda x, i: x.index_fill(1, torch.tensor([0, 2]), 0.5), lambda x, i: x.masked_fill(x > 0, 0.5),
        lambda x, i: x.scatter(1, i[:, None], x[:, :1] * 2), lambda x, i: torch.where(x > 0, x, x * 2),
    ],
    "random": [
        lambda x, i: x + torch.rand(6, 4), lambda x, i: x * torch.randn(5, 1, 1, dtype=torch.float64),
        lambda x, i: x + torch.randn_like(x),
        lambda x, i: torch.empty(3).normal_(1, 2), lambda x, i: torch.empty(3).uniform_(-1, 1),
        lambda x, i: torch.randint(0, 10, (3,)),
        lambda x, i: F.dropout(x, 0.3), lambda x, i: torch.rand(7, dtype=torch.float64),
        lambda x, i: torch.zeros(5).bernoulli_(0.3),
        lambda x, i: (torch.rand_like(x) < x.sigmoid()).float(), lambda x, i: x[torch.randint(0, 6, (3,))],
    ],
    "casts": [
        lambda x, i: (x * 10).to(torch.int32), lambda x, i: (x * 10).int().float() + 1, lambda x, i: (x * 10).long(),
        lambda x, i: x.double() * 2,
        lambda x, i: x.bool(), lambda x, i: (x.abs() * 10).to(torch.uint8), lambda x, i: (x * 10).to(torch.int8),
        lambda x, i: (x * 1000).to(torch.int16), lambda x, i: x * i[:, None], lambda x, i: (x * 10).int().long().sum(),
        lambda x, i: i.bool() & (i > 1),
    ],
    "scans_and_moves": [
        lambda x, i: x.cumsum(1), lambda x, i: x.cumprod(1), lambda x, i: x.prod(1), lambda x, i: x.prod(),
        lambda x, i: x.flip(0),
        lambda x, i: x.roll(1, 0), lambda x, i: x.tril(), lambda x, i: x.triu(1), lambda x, i: x[:4].diag(),
        lambda x, i: x.diagonal().sum(),
        lambda x, i: x.repeat(2, 1), lambda x, i: x.repeat_interleave(2, 0), lambda x, i: F.pad(x, (1, 1)),
        lambda x, i: sum(x.unbind(0)),
        lambda x, i: x.unfold(0, 3, 1).sum(-1), lambda x, i: x.reshape(2, 3, 4).movedim(0, 2).contiguous(),
    ],
    "reductions": [
        lambda x, i: x.norm(p=1), lambda x, i: x.norm(p=math.inf, dim=1), lambda x, i: (x > 0).any(),
        lambda x, i: (x > 0).all(1), lambda x, i: x.std(1),
        lambda x, i: torch.var_mean(x, 0), lambda x, i: x.logsumexp(1), lambda x, i: (x > 0).sum(),
        lambda x, i: F.normalize(x, dim=1),
        lambda x, i: x.softmax(0),
    ],
    "losses": [
        lambda x, i: F.cross_entropy(x, i, label_smoothing=0.1), lambda x, i: F.cross_entropy(x, x.softmax(1).detach()),
        lambda x, i: F.nll_loss(x.log_softmax(1), i),
        lambda x, i: F.smooth_l1_loss(x, x.detach() * 2), lambda x, i: F.huber_loss(x, x.detach() * 2),
        lambda x, i: F.l1_loss(x, x.detach() * 2),
        lambda x, i: F.binary_cross_entropy_with_logits(x, (x > 0).float()),
        lambda x, i: F.kl_div(x.log_softmax(1), x.softmax(1).detach(), reduction="batchmean"),
    ],
    "shapes": [
        lambda x, i: torch.einsum("ij,kj->ik", x, x), lambda x, i: x.reshape(2, 3, 4) @ x.reshape(2, 4, 3),
        lambda x, i: torch.outer(x[0], x[1]),
        lambda x, i: torch.stack([x, x * 2]), lambda x, i: torch.cat([x, x * 2], 1), lambda x, i: x.chunk(2, 1)[0] * 2,
        lambda x, i: torch.linspace(0, 1, 4) * x, lambda x, i: torch.eye(4) @ x.T,
        lambda x, i: torch.tensor([1.0, 2.0, 3.0, 4.0]) * x,
        lambda x, i: (x.shape, x.size(0), x.dtype, x.numel()), lambda x, i: {"a": x * 2, "b": [x.sum(), None, 2]},
    ],
}  # fmt: skip


def tensors_in(value):
    if isinstance(value, torch.Tensor):
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, (tuple, list)) else ()
    return [tensor for item in items for tensor in tensors_in(item)]


def detached(value):
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if isinstance(value, dict):
        return {key: detached(item) for key, item in value.items()}
    if type(value) in (tuple, list):
        return type(value)(detached(item) for item in value)
    return type(value)(*(detached(item) for item in value)) if hasattr(value, "_fields") else value


def assert_equal(a, b):
    """The same types, dtypes, shapes and strides; nearly the same numbers."""
    assert type(a) is type(b)
    if isinstance(a, torch.Tensor):
        assert (a.dtype, a.shape, a.stride(), a.requires_grad) == (b.dtype, b.shape, b.stride(), b.requires_grad)
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=2e-5, atol=2e-6)
    elif isinstance(a, (tuple, list, dict)):
        assert len(a) == len(b)
        for p, q in zip(*((x.values() if isinstance(x, dict) else x) for x in (a, b)), strict=True):
            assert_equal(p, q)
    else:
        assert a == b


def data(seed, dtype="f4"):
    rng = np.random.default_rng(seed)
    return torch.tensor(rng.standard_normal((6, 4)).astype(dtype), requires_grad=True), torch.tensor(rng.integers(0, 4, 6))


@pytest.mark.parametrize("family", FAMILIES)
def test_forms(family):
    def step(x, i):
        found = [form(x, i) for form in FAMILIES[family]]
        parts = [t for t in tensors_in(found) if t.requires_grad]
        total = sum((t * torch.arange(t.numel(), dtype=t.dtype).reshape(t.shape)).sum() for t in parts)
        (grad,) = torch.autograd.grad(total, x)
        return detached(found), grad

    compiled = torch.compile(step)
    for seed in (0, 0, 1, 2):
        state = torch.get_rng_state()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            a = compiled(*data(seed))
        after = torch.get_rng_state()
        torch.set_rng_state(state)
        b = step(*data(seed))
        assert torch.equal(after, torch.get_rng_state())
        assert_equal(a, b)
    assert compiled.history == []
    assert len(compiled.versions) == 1


# ---------------------------------------------------------------- steps that break
SHARED = torch.arange(3.0)
BREAKS = {
    "item": lambda x, i: x * x.sum().item(),
    "mask": lambda x, i: x[x > 0],
    "masked_select": lambda x, i: x.masked_select(x > 0),
    "number as an index": lambda x, i: x[i[0]],
    "slice by a tensor": lambda x, i: x[: i[0]],
    "nonzero": lambda x, i: (x > 0).nonzero(),
    "unique": lambda x, i: i.unique(),
    "float16": lambda x, i: x.half(),
    "randperm": lambda x, i: torch.randperm(6),
    "bernoulli": lambda x, i: torch.bernoulli(x.sigmoid()),
    "numpy index": lambda x, i: x[np.array([0, 1])],
    "seed": lambda x, i: (torch.manual_seed(0), torch.rand(3))[1],
    "view of an argument": lambda x, i: x[1:],
    "every other row": lambda x, i: (x * 2)[::2],
    "numpy array": lambda x, i: x * torch.tensor(np.ones(4, "f4")),
    "integers": lambda x, i: i // 2,
    "allclose": lambda x, i: x * torch.allclose(x, x.abs()),
    "equal": lambda x, i: x * torch.equal(x, x.abs()),
    "deepcopy": lambda x, i: x + copy.deepcopy(x),
    "number argument": lambda x, i: x + torch.full((4,), x[0, 0]),
    "tensor of tensors": lambda x, i: x + torch.tensor([[x[0, 0]]]),
    "range": lambda x, i: sum(x[k] for k in range(i[0] + 1)),
    "storage": lambda x, i: x * x.storage()[0],
    "solve": lambda x, i: torch.linalg.inv(x[:4].detach() + 3 * torch.eye(4)),
}


@pytest.mark.parametrize("name", BREAKS)
def test_breaks_warn_once_and_name_the_line(name):
    compiled = torch.compile(BREAKS[name])
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for seed in (0, 0, 1, 2):
            x, i = (t.detach() for t in data(seed))
            state = torch.get_rng_state()
            a = compiled(x, i)
            torch.set_rng_state(state)
            assert_equal(a, BREAKS[name](x, i))
    messages = [str(warning.message) for warning in seen]
    assert len(messages) == 1
    assert "runs eagerly" in messages[0]
    assert "test_differential.py:" in messages[0]
    assert len(compiled.versions) == 0


# ---------------------------------------------------------------- whole steps
OPTIMIZERS = {
    "sgd": lambda p: optim.SGD(p, lr=0.05),
    "momentum": lambda p: optim.SGD(p, lr=0.05, momentum=0.9, dampening=0.1, weight_decay=1e-2),
    "nesterov": lambda p: optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True),
    "adam": lambda p: optim.Adam(p, lr=1e-2, weight_decay=1e-2),
    "amsgrad": lambda p: optim.Adam(p, lr=1e-2, amsgrad=True),
    "adamw": lambda p: optim.AdamW(p, lr=1e-2),
    "rmsprop": lambda p: optim.RMSprop(p, lr=1e-2, momentum=0.5, centered=True),
    "adagrad": lambda p: optim.Adagrad(p, lr=1e-2, lr_decay=0.1),
}
SCHEDULERS = {
    "step": lambda o: optim.lr_scheduler.StepLR(o, 2, 0.5),
    "exponential": lambda o: optim.lr_scheduler.ExponentialLR(o, 0.9),
    "cosine": lambda o: optim.lr_scheduler.CosineAnnealingLR(o, 5),
    "one_cycle": lambda o: optim.lr_scheduler.OneCycleLR(o, 0.1, total_steps=10),
    "lambda": lambda o: optim.lr_scheduler.LambdaLR(o, lambda epoch: 1 / (epoch + 1)),
}


class Words(nn.Module):
    """An embedding, layer norm, a residual block, attention by hand."""

    def __init__(self):
        super().__init__()
        self.table, self.norm = nn.Embedding(5, 8, padding_idx=0), nn.LayerNorm(8)
        self.q, self.k, self.head = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 3)
        self.drop = nn.Dropout(0.2)

    def forward(self, x, i):
        h = self.table(i.reshape(3, 2))
        scores = (self.q(h) @ self.k(h).transpose(-2, -1)) / math.sqrt(8)
        h = self.norm(h + self.drop(scores.softmax(-1) @ h))
        return self.head(F.gelu(h)).mean(1)


class Net(nn.Module):
    """Layers on the floats alone."""

    def __init__(self, *layers):
        super().__init__()
        self.layers = nn.Sequential(*layers)

    def forward(self, x, i):
        return self.layers(x)


NETS = {
    "batch_norm": (lambda: Net(nn.Linear(4, 6, bias=False), nn.BatchNorm1d(6), nn.Dropout(0.3), nn.LeakyReLU(0.1), nn.Linear(6, 4)), F.cross_entropy),
    "words": (Words, lambda out, i: F.cross_entropy(out, torch.tensor([0, 1, 2]), label_smoothing=0.1)),
    "smooth": (lambda: Net(nn.Linear(4, 6), nn.SiLU(), nn.GroupNorm(2, 6), nn.Linear(6, 1)), lambda out, i: F.smooth_l1_loss(out[:, 0], i.float())),
    "clipped": (lambda: Net(nn.Linear(4, 6), nn.ELU(), nn.PReLU(), nn.Linear(6, 4)), F.cross_entropy),
    "several_losses": (lambda: Net(nn.Linear(4, 6), nn.Softplus(), nn.Linear(6, 4)), lambda out, i: (
        F.binary_cross_entropy_with_logits(out, (out.detach() > 0).float()) + F.mse_loss(out.sigmoid(), out.detach().tanh()) + out.abs().mean())),
}  # fmt: skip


def trainer(net, optimizer, scheduler, clip=None):
    make, loss = NETS[net]
    torch.manual_seed(0)
    model = make()
    chosen = OPTIMIZERS[optimizer](model.parameters())
    plan = SCHEDULERS[scheduler](chosen)

    def step(x, i):
        chosen.zero_grad()
        out = model(x, i)
        value = loss(out, i)
        value.backward()
        if clip == "norm":
            norm = nn.utils.clip_grad_norm_(model.parameters(), 0.05)
        elif clip == "value":
            nn.utils.clip_grad_value_(model.parameters(), 0.01)
        chosen.step()
        return value, out.detach(), (out.argmax(1) == i[: len(out)]).float().mean(), norm if clip == "norm" else None

    return model, chosen, plan, step


CASES = [("batch_norm", optimizer, scheduler, None) for optimizer, scheduler in zip(OPTIMIZERS, [*SCHEDULERS, *SCHEDULERS], strict=False)]
CASES += [(net, "adam", "step", None) for net in NETS if net != "batch_norm"]
CASES += [("clipped", "sgd", "step", "norm"), ("clipped", "sgd", "step", "value")]


@pytest.mark.parametrize("case", CASES, ids=["-".join(map(str, case)) for case in CASES])
def test_training_steps(case):
    (model, chosen, plan, inner), (other, reference, timetable, eager) = trainer(*case), trainer(*case)
    compiled = torch.compile(inner)
    torch.manual_seed(1)
    for call in range(4):
        x, i = (t.detach() for t in data(call))
        state = torch.get_rng_state()
        a = compiled(x, i)
        after = torch.get_rng_state()
        torch.set_rng_state(state)
        b = eager(x, i)
        assert torch.equal(after, torch.get_rng_state())
        np.testing.assert_allclose(a[0].item(), b[0].item(), rtol=5e-5)
        assert_equal(a[1:], b[1:])
        assert_same(model, other, 2e-5)
        for p, q in zip(model.buffers(), other.buffers(), strict=True):
            np.testing.assert_allclose(p.numpy(), q.numpy(), rtol=2e-5, atol=1e-6)
            assert p._version == q._version
        for p, q in zip(model.parameters(), other.parameters(), strict=True):
            for key, value in reference.state[q].items():
                held = chosen.state[p][key]
                np.testing.assert_allclose(np.asarray(held.numpy()), np.asarray(value.numpy()), rtol=2e-4, atol=2e-6)
                assert held._version == value._version
        plan.step(), timetable.step()
    assert compiled.history == []
    assert len(compiled.versions) == 1
