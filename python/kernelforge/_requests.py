"""Options of texts, and requests that the native module reads: OpenAI's, as JSON."""

from __future__ import annotations

import json
import math
import numbers
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict, Union

from . import _process
from ._errors import InvalidError

Prompt = Union[str, Sequence[int]]
Message = Mapping[str, Any]


class Options(TypedDict, total=False):
    """How a text is generated; each option may be left out, or be None.

    The names are those of OpenAI's API and of ``kf-run``.
    """

    max_tokens: int | None
    """The most tokens to generate; -1: until the context is full. By default 256,
    and for a chat what the model recommends, or until the context is full."""
    temperature: float | None
    """0 takes the most likely token. By default 0; a chat, and a text where one of
    the next three asks to draw, takes what the model recommends."""
    top_p: float | None
    """Draws from the most likely tokens that sum up to this."""
    top_k: int | None
    """Draws from this many of the most likely tokens; 0: all."""
    min_p: float | None
    """Leaves out tokens less likely than this times the most likely one."""
    seed: int | None
    """The same seed gives the same text; without one it is drawn."""
    stop: str | Sequence[str] | None
    """Ends the text where one of these would begin."""
    stop_token_ids: Sequence[int] | None
    """Token ids that end the text, besides the model's own."""
    ignore_eos: bool | None
    """Goes on after tokens that end a text."""
    repetition_penalty: float | None
    """Divides the logits of tokens that were seen, prompt included; 1: does not."""
    presence_penalty: float | None
    """Subtracted from the logits of tokens that were seen, prompt included."""
    frequency_penalty: float | None
    """Subtracted from a token's logit for each time that it was seen."""
    repeat_last_n: int | None
    """How many of the last tokens count as seen; -1: all."""
    logit_bias: Mapping[int, float] | None
    """Added to the logits of tokens by id; -inf excludes a token."""
    adapter: str | None
    """The name of one of the adapters that ``load()`` was given; by default none."""
    logprobs: int | None
    """Tells how likely the model finds each token, and this many of the likeliest in
    its place: 0 to 20."""


_NAMES = frozenset(Options.__annotations__)
_MOST_LOGPROBS = 20


def _plain(value: Any, name: str) -> Any:
    """The value as JSON has it: numbers of numpy's as Python's."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        if not math.isfinite(value):
            raise InvalidError(f"'{name}' is {value}, but a finite number is expected")
        return float(value)
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise TypeError(f"'{name}' has the key {key!r}, which is no str")
        return {key: _plain(item, f"{name}.{key}") for key, item in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, (bytes, bytearray)):
        return [_plain(item, f"{name}[]") for item in value]
    raise TypeError(f"'{name}' has a value of type {type(value).__name__}")


def ids_of(ids: Iterable[int], name: str) -> list[int]:
    """Token ids as a list of 32 bits each."""
    if isinstance(ids, (bytes, bytearray, str, Mapping)) or not isinstance(
        ids, Iterable
    ):
        raise TypeError(
            f"'{name}' is of type {type(ids).__name__}, but token ids are expected"
        )
    found = []
    for value in ids:
        if isinstance(value, bool):
            raise TypeError(f"'{name}' has {value}, but token ids are expected")
        try:
            found.append(operator.index(value))
        except TypeError:
            raise TypeError(
                f"'{name}' has a value of type {type(value).__name__}, but token "
                "ids are expected"
            ) from None
        if not 0 <= found[-1] < 2**31:
            raise InvalidError(f"'{name}' has {found[-1]}, which is no token id")
    return found


def _biases(biases: Any) -> list[list[Any]]:
    if not isinstance(biases, Mapping):
        raise TypeError(
            f"'logit_bias' is of type {type(biases).__name__}, but a mapping of "
            "token ids to numbers is expected"
        )
    ids = ids_of(biases.keys(), "logit_bias")
    # JSON has no infinity; false excludes a token, too.
    return [
        [id, False if value == -math.inf else _plain(value, "logit_bias")]
        for id, value in zip(ids, biases.values())
    ]


def _request(options: Mapping[str, Any], *, is_chat: bool) -> dict[str, Any]:
    request: dict[str, Any] = {}
    for name, value in options.items():
        if name not in _NAMES:
            raise TypeError(
                f"there is no option '{name}'; there are " + ", ".join(sorted(_NAMES))
            )
        if value is None:
            continue
        if name == "adapter":
            request["model"] = _process.text_of(value, name)
        elif name == "logit_bias":
            request[name] = _biases(value)
        elif name == "stop_token_ids":
            request[name] = ids_of(value, name)
        elif name == "logprobs":
            count = _process.count_of(value, name, most=_MOST_LOGPROBS)
            request |= (
                {"logprobs": True, "top_logprobs": count}
                if is_chat
                else {"logprobs": count}
            )
        else:
            request[name] = _plain(value, name)
    return request


def _dump(request: dict[str, Any]) -> str:
    text = json.dumps(request, ensure_ascii=False, allow_nan=False)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidError(
            f"a text has {error.object[error.start]!r}, which is half of a character"
        ) from None
    return text


def completion(prompt: Prompt, options: Mapping[str, Any]) -> str:
    """The request for one text."""
    request = _request(options, is_chat=False)
    if isinstance(prompt, str):
        request["prompt"] = prompt
    elif isinstance(prompt, (bytes, bytearray)) or not isinstance(prompt, Iterable):
        raise TypeError(
            f"'prompt' is of type {type(prompt).__name__}, but a text, or token ids, "
            "are expected"
        )
    else:
        request["prompt"] = ids_of(prompt, "prompt")
        if not request["prompt"]:
            raise InvalidError(
                "'prompt' has no token ids; give at least one, or a text"
            )
    return _dump(request)


def embedding_inputs(
    texts: str | Iterable[Prompt],
) -> list[tuple[str | None, list[int]]]:
    """Of each text itself and no ids, or its ids alone."""
    if isinstance(texts, str):
        texts = [texts]
    elif isinstance(texts, (bytes, bytearray, Mapping)) or not isinstance(
        texts, Iterable
    ):
        raise TypeError(
            f"'texts' is of type {type(texts).__name__}, but a text, or a list of "
            "texts or token ids, is expected"
        )
    found: list[tuple[str | None, list[int]]] = []
    for text in texts:
        name = f"texts[{len(found)}]"
        if isinstance(text, str):
            found.append((_process.text_of(text, name), []))
            continue
        if isinstance(text, numbers.Integral):
            raise TypeError(
                f"'{name}' is a number, but a text, or the list of its token ids, "
                "is expected"
            )
        ids = ids_of(text, name)
        if not ids:
            raise InvalidError(f"'{name}' has no token ids; give at least one")
        found.append((None, ids))
    return found


def chat(
    messages: Iterable[Message],
    chat_template_kwargs: Mapping[str, Any] | None,
    options: Mapping[str, Any],
) -> str:
    """The request for an answer to a conversation."""
    request = _request(options, is_chat=True)
    if isinstance(messages, (str, bytes, Mapping)) or not isinstance(
        messages, Iterable
    ):
        raise TypeError(
            f"'messages' is of type {type(messages).__name__}, but a list of "
            'messages is expected, as in [{"role": "user", "content": "Hello"}]'
        )
    request["messages"] = _plain(list(messages), "messages")
    if chat_template_kwargs is not None:
        request["chat_template_kwargs"] = _plain(
            chat_template_kwargs, "chat_template_kwargs"
        )
    return _dump(request)
