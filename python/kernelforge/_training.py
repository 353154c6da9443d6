"""Training of adapters and models."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from . import _kernelforge, _process
from ._requests import _dump, _plain

_SCHEDULES = ("constant", "linear", "cosine")
_OPTIMIZERS = ("adamw", "sgd")
_LONG = ("cut", "drop")
_RECOMPUTE = ("layers", "cheap")


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
    lora_targets: Iterable[str] | None = None,
    lora_dropout: float | None = None,
    rslora: bool = False,
    full: bool = False,
    recompute: Literal["layers", "cheap"] = "layers",
    learning_rate: float | None = None,
    min_learning_rate: float | None = None,
    schedule: Literal["constant", "linear", "cosine"] = "linear",
    warmup: int = 0,
    epochs: int | None = None,
    steps: int | None = None,
    batch: int = 4,
    length: int | None = None,
    accumulate: int = 1,
    optimizer: Literal["adamw", "sgd"] = "adamw",
    beta1: float | None = None,
    beta2: float | None = None,
    epsilon: float | None = None,
    momentum: float | None = None,
    weight_decay: float = 0.0,
    clip: float = 1.0,
    seed: int | None = 0,
    pack: bool = True,
    shuffle: bool = True,
    long: Literal["cut", "drop"] = "cut",
    train_on_prompt: bool = False,
    chat_template: str | os.PathLike[str] | None = None,
    chat_template_kwargs: Mapping[str, Any] | None = None,
    eval_data: str | os.PathLike[str] | None = None,
    eval_split: float | None = None,
    eval_every: int = 0,
    save_every: int = 0,
    keep: int = 2,
    resume: bool | str | os.PathLike[str] = False,
    force: bool = False,
    on_step: Callable[[TrainingStep], Any] | None = None,
    device: str = "cpu",
    threads: int | None = None,
) -> TrainingResult:
    """Trains an adapter for a model (``lora``: its rank), or all of its weights
    (``full``), and writes it to the folder ``output``.

    Arguments are the options of ``kf-run train``, which its help describes; models,
    devices and chat templates are named as in ``load()``.

    ``seed``: None is any, and with ``resume`` the checkpoint's.
    ``pack``, ``shuffle``: False is ``--no-pack`` and ``--no-shuffle``.
    ``resume``: True goes on from the last checkpoint in ``output``, a path from that
    one.
    ``on_step``: is called after each step, on another thread; what it raises ends the
    training behind a checkpoint, and is raised here.

    An interrupt (Ctrl-C) writes a checkpoint, and ends it with KeyboardInterrupt.
    """
    if chat_template_kwargs is not None and not isinstance(
        chat_template_kwargs, Mapping
    ):
        raise TypeError(
            "'chat_template_kwargs' is of type "
            f"{type(chat_template_kwargs).__name__}, but a mapping is expected"
        )
    if isinstance(lora_targets, str):
        raise TypeError("'lora_targets' is a str, but a list of names is expected")
    if lora_targets is not None:
        lora_targets = list(lora_targets)
        if not lora_targets:
            raise InvalidError("'lora_targets' has no name; None is all products")
    options = {
        "lora": lora,
        "lora_alpha": lora_alpha,
        "lora_targets": None
        if lora_targets is None
        else [_process.text_of(name, "lora_targets") for name in lora_targets],
        "lora_dropout": lora_dropout,
        "rslora": rslora,
        "full": full,
        "recompute": _process.choice_of(recompute, "recompute", _RECOMPUTE),
        "learning_rate": learning_rate,
        "min_learning_rate": min_learning_rate,
        "schedule": _process.choice_of(schedule, "schedule", _SCHEDULES),
        "warmup": warmup,
        "epochs": epochs,
        "steps": steps,
        "batch": batch,
        "length": length,
        "accumulate": accumulate,
        "optimizer": _process.choice_of(optimizer, "optimizer", _OPTIMIZERS),
        "beta1": beta1,
        "beta2": beta2,
        "epsilon": epsilon,
        "momentum": momentum,
        "weight_decay": weight_decay,
        "clip": clip,
        "seed": seed,
        "pack": pack,
        "shuffle": shuffle,
        "long": _process.choice_of(long, "long", _LONG),
        "train_on_prompt": train_on_prompt,
        "chat_template_kwargs": chat_template_kwargs,
        "eval_split": eval_split,
        "eval_every": eval_every,
        "save_every": save_every,
        "keep": keep,
        "force": force,
    }
    if resume is False:
        checkpoint = None
    else:
        checkpoint = b"" if resume is True else _process.path_of(resume, "resume")
    outcome, messages = _kernelforge.train(
        _process.model_of(model),
        _process.text_of(device, "device"),
        _process.count_of(threads, "threads", least=1),
        _process.path_of(data, "data"),
        _process.path_of(output, "output"),
        None if eval_data is None else _process.path_of(eval_data, "eval_data"),
        None
        if chat_template is None
        else _process.path_of(chat_template, "chat_template"),
        checkpoint,
        _dump({name: _plain(value, name) for name, value in options.items()}),
        None if on_step is None else lambda step: on_step(TrainingStep(*step)),
    )
    _process.tell(messages)
    return TrainingResult(*outcome)
