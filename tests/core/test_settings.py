"""Settings from an environment."""

import pytest

from jitgrad._core.settings import Settings, read_settings, settings


def test_defaults():
    assert read_settings({}) == Settings(jit=True, cache_dir=None, bounds_check=False)


@pytest.mark.parametrize(("word", "on"), [("0", False), ("1", True), (" Off ", False), ("TRUE", True), ("", True)])
def test_switch(word, on):
    assert read_settings({"JITGRAD_JIT": word}).jit is on


def test_values():
    read = read_settings({"JITGRAD_CACHE_DIR": "/x/y", "JITGRAD_BOUNDSCHECK": "1"})
    assert read == Settings(jit=True, cache_dir="/x/y", bounds_check=True)
    assert read_settings({"JITGRAD_CACHE_DIR": ""}).cache_dir is None


def test_an_unknown_word_is_an_error():
    with pytest.raises(ValueError, match="JITGRAD_JIT must be 0 or 1, got 'maybe'"):
        read_settings({"JITGRAD_JIT": "maybe"})


def test_frozen():
    with pytest.raises(AttributeError):
        settings.jit = False
