"""The errors of olrank. Their messages are whole sentences that say what to do."""

__all__ = ["DataError", "Error", "InvalidArgument", "NumericError"]


class Error(Exception):
    """Anything that the engine refuses or cannot do."""


class InvalidArgument(Error, ValueError):
    """A setting or an argument that does not exist, is out of bounds or contradicts another."""


class DataError(Error, ValueError):
    """Data that cannot be read; the message has the file, the line and the column."""


class NumericError(Error, ArithmeticError):
    """A computation that lost its accuracy, overflowed or became NaN."""
