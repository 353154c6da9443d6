"""What models and functions have in common: arguments, the log, the process's end."""

from __future__ import annotations

import atexit
import logging
import operator
import os
import weakref
from typing import TYPE_CHECKING, Any

from . import _kernelforge
from ._errors import InvalidError

if TYPE_CHECKING:
    from typing_extensions import Self

EMBEDDED = "kf-stories"

_log = logging.getLogger("kernelforge")
_open: weakref.WeakSet[Owner] = weakref.WeakSet()
_is_over = False


class Owner:
    """Owns what is native, which is freed by ``close()``, at the end of a ``with``
    block, when nobody has it any more, or when the interpreter ends."""

    def __init__(self, native: Any) -> None:
        self._native = native
        _open.add(self)
        if _is_over:
            self.close()
        self._tell()

    def close(self) -> None:
        """Ends what goes on, and frees memory. Waits for what runs to end."""
        self._native.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        # Here, since it waits without the GIL.
        native = getattr(self, "_native", None)
        if native is not None:
            native.close()

    def _tell(self) -> None:
        """Gives what the runtime has told to Python's log."""
        tell(self._native.messages())


def tell(messages: list[tuple[str, str]]) -> None:
    """Gives lines with their levels to Python's log."""
    for level, line in messages:
        _log.log(getattr(logging, level), "%s", line)


@atexit.register
def _end_all() -> None:
    """Closes what is open, and ends what goes on on other threads, when the
    interpreter ends: no thread may outlive that."""
    global _is_over
    _is_over = True
    try:
        for thing in list(_open):
            thing.close()
    finally:
        _kernelforge.end()


def path_of(value: Any, name: str) -> bytes:
    """A path as the system has it."""
    path = os.fsencode(value)
    if b"\0" in path:
        raise InvalidError(f"'{name}' has a NUL, which no path has")
    return path


def model_of(value: Any) -> bytes:
    """A model's path; empty is the one that the package carries."""
    path = b"" if value is None else path_of(value, "model")
    if path == EMBEDDED.encode() and not os.path.exists(path):
        return b""
    if value is not None and not path:
        raise InvalidError("'model' is empty; leave it out for the embedded model")
    return path


def text_of(value: Any, name: str) -> str:
    """A text."""
    if not isinstance(value, str):
        raise TypeError(
            f"'{name}' is of type {type(value).__name__}, but a str is expected"
        )
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidError(
            f"'{name}' has {value[error.start]!r}, which is half of a character"
        ) from None
    return value


def choice_of(value: Any, name: str, choices: tuple[str, ...]) -> str:
    """One of some words."""
    word = text_of(value, name)
    if word not in choices:
        raise InvalidError(
            f"'{name}' is {word!r}, but one of {', '.join(choices)} is expected"
        )
    return word


def count_of(value: Any, name: str, least: int = 0, most: int = 2**31 - 1) -> int:
    """A number from ``least`` to ``most``; None is 0."""
    if value is None:
        return 0
    if isinstance(value, bool):
        raise TypeError(f"'{name}' is {value}, but an int is expected")
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(
            f"'{name}' is of type {type(value).__name__}, but an int is expected"
        ) from None
    if not least <= number <= most:
        raise InvalidError(
            f"'{name}' is {number}, but a number from {least} to {most} is expected"
        )
    return number
