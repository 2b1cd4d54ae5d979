"""Facts without behaviour: dtypes, shapes, settings, the words of error messages."""
