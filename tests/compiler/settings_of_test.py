"""A module of numbers that a traced function reads."""

RATE = 2.0


class Scales:
    """Numbers of a class."""

    inner = 3.0
