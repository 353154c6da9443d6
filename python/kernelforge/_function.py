"""Functions of kf ops, compiled and run on arrays."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from . import _kernelforge, _process
from ._errors import NotFoundError


@dataclass(frozen=True)
class TensorType:
    """The type of a function's input or output. ``str()`` is as MLIR spells it."""

    dtype: str
    """MLIR's name of the elements' type: "f32", "bf16", "i32", "ui8" ..."""
    shape: tuple[int | None, ...]
    """None is an extent that the inputs decide."""

    def __str__(self) -> str:
        extents = ("?" if extent is None else str(extent) for extent in self.shape)
        return "x".join((*extents, self.dtype))


def _types(specs: list[tuple[str, list[int]]]) -> list[TensorType]:
    return [
        TensorType(dtype, tuple(None if extent < 0 else extent for extent in shape))
        for dtype, shape in specs
    ]


class Function(_process.Owner):
    """A function that ``compile()`` has made. Any thread may call it; calls run one
    after another."""

    _native: _kernelforge.Function

    def __init__(self, native: _kernelforge.Function) -> None:
        super().__init__(native)
        self._inputs = _types(native.inputs)
        self._outputs = _types(native.outputs)

    def __call__(self, *arrays: Any) -> Any:
        """Runs it on arrays of the types that ``inputs`` says.

        They are numpy's, or have ``__dlpack__`` (torch's on the CPU, for one). No
        element is converted: other types and shapes are errors. Returns a numpy
        array, or a tuple of them where there are several results; one of bf16 or
        f8E4M3FN, which numpy lacks, is an object with ``__dlpack__``.
        """
        results = self._native.call(*arrays)
        self._tell()
        return results[0] if len(results) == 1 else tuple(results)

    @property
    def name(self) -> str:
        return self._native.name

    @property
    def device(self) -> str:
        """What it runs on."""
        return self._native.device

    @property
    def inputs(self) -> list[TensorType]:
        return list(self._inputs)

    @property
    def outputs(self) -> list[TensorType]:
        return list(self._outputs)

    def __repr__(self) -> str:
        inputs = ", ".join(map(str, self._inputs))
        outputs = ", ".join(map(str, self._outputs))
        return f"<kernelforge.Function {self.name}({inputs}) -> ({outputs})>"


def compile(
    text: str,
    *,
    device: str = "cpu",
    function: str | None = None,
    threads: int | None = None,
    max_tokens: int = 512,
    weights: str | os.PathLike[str] | None = None,
) -> Function:
    """Compiles a function of kf ops from MLIR's text.

    ``function``: its name, where the text has several.
    ``device``, ``threads``: as ``load()`` has them.
    ``max_tokens``: the largest ``?`` that is possible.
    ``weights``: the safetensors or GGUF file, or the model's folder, that has what
    ``kf.weight`` names.

    An interrupt (Ctrl-C) ends it with KeyboardInterrupt.
    """
    path = b"" if weights is None else _process.path_of(weights, "weights")
    try:
        native = _kernelforge.compile(
            _process.text_of(text, "text"),
            "" if function is None else _process.text_of(function, "function"),
            _process.text_of(device, "device"),
            _process.count_of(threads, "threads", least=1),
            path,
            _process.count_of(max_tokens, "max_tokens", least=1),
        )
    except ValueError as error:
        if path and not os.path.exists(path):
            raise NotFoundError(*error.args) from None
        raise
    return Function(native)
