"""Saving the state of a module, and loading it."""

import pytest

import jitgrad as torch
from jitgrad import nn


def net():
    return nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Sequential(nn.Linear(3, 1, bias=False)))


KEYS = [
    "0.weight", "0.bias", "1.weight", "1.bias", "1.running_mean", "1.running_var", "1.num_batches_tracked",
    "2.0.weight",
]  # fmt: skip


def test_round_trip():
    old, new = net(), net()
    old(torch.ones(4, 2))
    state = old.state_dict()
    assert list(state) == KEYS
    assert repr(new.load_state_dict(state)) == "<All keys matched successfully>"
    for key, value in new.state_dict().items():
        assert torch.equal(value, state[key])
        assert value.dtype is state[key].dtype
    assert new[0].weight is not old[0].weight
    assert new[0].weight.requires_grad


def test_entries_share_memory_and_are_detached():
    model = net()
    state = model.state_dict()
    assert not state["0.weight"].requires_grad
    state["0.weight"].fill_(7.0)
    assert model[0].weight[0, 0].item() == 7.0
    assert model.state_dict(keep_vars=True)["0.weight"] is model[0].weight


def test_prefix_and_destination():
    model, found = net(), {"there": 1}
    assert model.state_dict(destination=found, prefix="net.") is found
    assert list(found) == ["there", *("net." + key for key in KEYS)]
    with pytest.warns(FutureWarning, match="Positional args are being deprecated"):
        assert list(model.state_dict({}, "a.")) == ["a." + key for key in KEYS]


def test_versions_are_kept_beside():
    metadata = net().state_dict()._metadata
    assert metadata[""] == {"version": 1}
    assert metadata["1"] == {"version": 2}
    state = net().state_dict()
    del state._metadata
    del state["1.num_batches_tracked"]  # as version 1 of the batch norm had it
    net().load_state_dict(state)


def test_missing_and_unexpected():
    state = net().state_dict()
    del state["0.bias"]
    state["other"] = torch.ones(1)
    state["3.weight"] = torch.ones(1)
    keys = net().load_state_dict(state, strict=False)
    assert keys.missing_keys == ["0.bias"]
    assert keys.unexpected_keys == ["other", "3.weight"]
    with pytest.raises(RuntimeError) as caught:
        net().load_state_dict(state)
    assert str(caught.value) == (
        'Error(s) in loading state_dict for Sequential:\n\tMissing key(s) in state_dict: "0.bias". '
        '\n\tUnexpected key(s) in state_dict: "other", "3.weight". '
    )


def test_what_does_not_fit():
    state = net().state_dict()
    state["0.weight"] = torch.ones(3, 3)
    state["0.bias"] = [1, 2, 3]
    with pytest.raises(RuntimeError) as caught:
        net().load_state_dict(state, strict=False)
    message = str(caught.value)
    assert (
        "size mismatch for 0.weight: copying a param with shape torch.Size([3, 3]) from checkpoint, the shape in "
        "current model is torch.Size([3, 2])." in message
    )
    assert 'While copying the parameter named "0.bias", expected torch.Tensor' in message
    with pytest.raises(TypeError, match="Expected state_dict to be dict-like, got"):
        net().load_state_dict([1])


def test_other_dtypes_are_cast_or_taken_over():
    state = {key: value.double() if value.is_floating_point() else value for key, value in net().state_dict().items()}
    model = net()
    weight = model[0].weight
    model.load_state_dict(state)
    assert model[0].weight is weight
    assert weight.dtype is torch.float32
    model[0].bias.requires_grad_(False)
    model.load_state_dict(state, assign=True)
    assert model[0].weight is not weight
    assert model[0].weight.dtype is torch.float64
    assert isinstance(model[0].weight, nn.Parameter)
    assert not model[0].bias.requires_grad
    assert model[1].running_mean is state["1.running_mean"]


def test_a_vector_of_one_fills_a_scalar():
    module = nn.Module()
    module.scale = nn.Parameter(torch.tensor(1.0))
    module.load_state_dict({"scale": torch.tensor([5.0])})
    assert module.scale.item() == 5.0


class WithExtra(nn.Module):
    def __init__(self):
        super().__init__()
        self.count = 0

    def get_extra_state(self):
        return {"count": self.count}

    def set_extra_state(self, state):
        self.count = state["count"]


def test_extra_state():
    old, new = nn.Sequential(WithExtra()), nn.Sequential(WithExtra())
    old[0].count = 5
    new.load_state_dict(old.state_dict())
    assert new[0].count == 5
    assert new.load_state_dict({}, strict=False).missing_keys == ["0._extra_state"]
    keys = nn.Sequential(nn.ReLU()).load_state_dict(old.state_dict(), strict=False)
    assert keys.unexpected_keys == ["0._extra_state"]
    with pytest.raises(RuntimeError, match="no extra state"):
        nn.ReLU().get_extra_state()


def test_hooks_around_saving():
    model, seen = nn.Sequential(nn.Linear(1, 1)), []
    model[0].register_state_dict_pre_hook(lambda m, prefix, keep: seen.append((type(m).__name__, prefix, keep)))
    handle = model[0].register_state_dict_post_hook(lambda m, state, prefix, meta: state.pop(prefix + "bias") and None)
    assert list(model.state_dict()) == ["0.weight"]
    assert seen == [("Linear", "0.", False)]
    handle.remove()
    model.register_state_dict_post_hook(lambda *_: {})
    with pytest.raises(RuntimeError, match="state_dict post-hook must return None"):
        model.state_dict()


def test_hooks_around_loading():
    model = nn.Sequential(nn.Linear(1, 1))

    def rename(module, state, prefix, metadata, strict, missing, unexpected, errors):
        assert module is model[0]
        state[prefix + "weight"] = state.pop(prefix + "old")

    model[0].register_load_state_dict_pre_hook(rename)
    post = model.register_load_state_dict_post_hook(lambda m, keys: keys.missing_keys.clear())
    model.load_state_dict({"0.old": torch.ones(1, 1)})
    assert model[0].weight.item() == 1.0
    post.remove()
    model.register_load_state_dict_post_hook(lambda m, keys: keys)
    with pytest.raises(AssertionError, match="not expected to return new values"):
        model.load_state_dict({"0.old": torch.ones(1, 1)})


def test_a_prefix_is_taken_off():
    state = nn.Sequential(nn.Linear(1, 1)).state_dict(prefix="module.")
    nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")
    assert list(state) == ["0.weight", "0.bias"]
    assert list(state._metadata) == ["", "0"]
    nn.Sequential(nn.Linear(1, 1)).load_state_dict(state)
    plain = {"module.a": 1, "b": 2}
    nn.modules.utils.consume_prefix_in_state_dict_if_present(plain, "module.")
    assert plain == {"a": 1, "b": 2}
