"""Lines that stand at the head of many scripts."""

import pytest

import jitgrad as torch


def test_the_choice_of_a_device():
    device = torch.device("cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu")
    assert device == torch.device("cpu")
    assert torch.cuda.device_count() == 0


def test_a_seeding_recipe():
    torch.manual_seed(0)
    torch.cuda.manual_seed_all(0)
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False
    torch.cuda.empty_cache()


def test_waiting_for_a_device_that_is_not_there():
    with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
        torch.cuda.synchronize()
