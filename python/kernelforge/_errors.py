"""Exceptions. Each is an Error, and Python's own of that kind where there is one."""

from __future__ import annotations


class Error(Exception):
    """What went wrong, as one line that says what, where, and what to do.

    ``code`` is the kind: "invalid", "not_found", "out_of_memory", "cancelled",
    "unsupported", "internal" or "unavailable".
    """

    code: str = "internal"


class InvalidError(Error, ValueError):
    """What was given is wrong: an argument, a text, a file."""

    code = "invalid"


class NotFoundError(Error, FileNotFoundError):
    """There is no such file, tensor or device."""

    code = "not_found"


class OutOfMemoryError(Error, MemoryError):
    """The host or a device has no memory left for it."""

    code = "out_of_memory"


class CancelledError(Error):
    """It was ended: the model or the function was closed meanwhile."""

    code = "cancelled"


class UnsupportedError(Error, NotImplementedError):
    """It may be sound, but there is no code for it here."""

    code = "unsupported"


class InternalError(Error, RuntimeError):
    """A fault of kernelforge or a driver, or numbers that overflow."""

    code = "internal"


class UnavailableError(Error, RuntimeError):
    """Something that is needed is not there: a driver, a device."""

    code = "unavailable"
