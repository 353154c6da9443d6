"""Compiles transformer models, and runs them.

>>> import kernelforge
>>> with kernelforge.load("path/to/model") as model:
...     print(model.generate("Once upon a time", max_tokens=20))

``load()`` opens a model to generate texts, answer chats and score texts;
``compile()`` makes a function of kf ops that runs on numpy arrays. Errors are
``Error``; what the runtime warns of goes to the log "kernelforge".
"""

from ._errors import (
    CancelledError,
    Error,
    InternalError,
    InvalidError,
    NotFoundError,
    OutOfMemoryError,
    UnavailableError,
    UnsupportedError,
)
from ._function import Function, TensorType, compile
from ._kernelforge import version as __version__
from ._model import (
    EMBEDDED,
    Completion,
    LogProb,
    Loss,
    Model,
    Piece,
    Stream,
    TokenLogProbs,
    load,
)
from ._requests import Options
from ._training import TrainingResult, TrainingStep, train

__all__ = [
    "EMBEDDED",
    "CancelledError",
    "Completion",
    "Error",
    "Function",
    "InternalError",
    "InvalidError",
    "LogProb",
    "Loss",
    "Model",
    "NotFoundError",
    "Options",
    "OutOfMemoryError",
    "Piece",
    "Stream",
    "TensorType",
    "TokenLogProbs",
    "TrainingResult",
    "TrainingStep",
    "UnavailableError",
    "UnsupportedError",
    "__version__",
    "compile",
    "load",
    "train",
]

for _name in __all__:
    _thing = globals()[_name]
    if getattr(_thing, "__module__", "").startswith("kernelforge."):
        _thing.__module__ = "kernelforge"
del _name, _thing
