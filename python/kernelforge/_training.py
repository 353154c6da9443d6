"""Training of adapters and models."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

from . import _kernelforge, _process
from ._errors import InvalidError

_SCHEDULES = ("constant", "linear", "cosine")
_OPTIMIZERS = ("adamw", "sgd")


@dataclass(frozen=True)
class TrainingStep:
    """What a step did."""

    step: int
    """Its number, from 1."""
    loss: float
    """The mean over what was to be learnt, in nats, before the update."""
    learning_rate: float
    gradient_norm: float
    """Before it was clipped."""
    tokens: int
    seconds: float


@dataclass(frozen=True)
class TrainingResult:
    """What came of a training."""

    steps: int
    eval_loss: float | None
    """Of what was held out, at the end; None where nothing was."""


def train(
    model: str | os.PathLike[str] | None = None,
    *,
    data: str | os.PathLike[str],
    output: str | os.PathLike[str],
    lora: int | None = None,
    lora_alpha: float | None = None,
    lora_targets: Iterable[str] = ("all-linear",),
    full: bool = False,
    learning_rate: float | None = None,
    min_learning_rate: float = 0.0,
    schedule: Literal["constant", "linear", "cosine"] = "linear",
    warmup: int = 0,
    epochs: int | None = None,
    steps: int | None = None,
    batch: int = 4,
    length: int | None = None,
    accumulate: int = 1,
    optimizer: Literal["adamw", "sgd"] = "adamw",
    weight_decay: float = 0.0,
    clip: float = 1.0,
    seed: int = 0,
    train_on_prompt: bool = False,
    eval_data: str | os.PathLike[str] | None = None,
    eval_split: float | None = None,
    eval_every: int = 0,
    save_every: int = 0,
    keep: int = 2,
    resume: bool | str | os.PathLike[str] = False,
    on_step: Callable[[TrainingStep], Any] | None = None,
    device: str = "cpu",
    threads: int | None = None,
) -> TrainingResult:
    """Trains an adapter for a model (``lora``: its rank), or all of its weights
    (``full``), and writes it to the folder ``output``.

    Arguments are the options of ``kf-run train``, which its help describes; models and
    devices are named as in ``load()``.

    ``resume``: True goes on from the last checkpoint in ``output``, a path from that
    one.
    ``on_step``: is called after each step, on another thread; what it raises ends the
    training behind a checkpoint, and is raised here.

    An interrupt (Ctrl-C) writes a checkpoint, and ends it with KeyboardInterrupt.
    """
    if full == (lora is not None):
        raise InvalidError(
            "'lora' and 'full' exclude each other"
            if full
            else "give 'lora', a rank, to train an adapter, or 'full' to train all "
            "weights"
        )
    if epochs is not None and steps is not None:
        raise InvalidError("'epochs' and 'steps' exclude each other")
    if eval_data is not None and eval_split is not None:
        raise InvalidError("'eval_data' and 'eval_split' exclude each other")
    options = {
        "learning_rate": (2e-5 if full else 2e-4)
        if learning_rate is None
        else learning_rate,
        "min_learning_rate": min_learning_rate,
        "schedule": _process.choice_of(schedule, "schedule", _SCHEDULES),
        "warmup": warmup,
        "epochs": epochs,
        "steps": steps,
        "batch": batch,
        "length": length,
        "accumulate": accumulate,
        "optimizer": _process.choice_of(optimizer, "optimizer", _OPTIMIZERS),
        "weight_decay": weight_decay,
        "clip": clip,
        "seed": seed,
        "train_on_prompt": train_on_prompt,
        "eval_split": eval_split,
        "eval_every": eval_every,
        "save_every": save_every,
        "keep": keep,
    }
    if lora is not None:
        options["lora"] = lora
        options["lora_alpha"] = 2 * lora if lora_alpha is None else lora_alpha
        options["lora_targets"] = [
            _process.text_of(name, "lora_targets") for name in lora_targets
        ]
    if resume is False:
        checkpoint = None
    else:
        checkpoint = b"" if resume is True else _process.path_of(resume, "resume")
    outcome, messages = _kernelforge.train(
        b"" if model is None else _process.path_of(model, "model"),
        _process.text_of(device, "device"),
        _process.count_of(threads, "threads", least=1),
        _process.path_of(data, "data"),
        _process.path_of(output, "output"),
        None if eval_data is None else _process.path_of(eval_data, "eval_data"),
        checkpoint,
        json.dumps(options),
        None if on_step is None else lambda step: on_step(TrainingStep(*step)),
    )
    _process.tell(messages)
    return TrainingResult(*outcome)
