"""Models: texts, chats, tokens."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

from . import _kernelforge, _process, _requests
from ._errors import CancelledError, NotFoundError
from ._requests import Message, Options, Prompt

if TYPE_CHECKING:
    import numpy
    import numpy.typing
    from typing_extensions import Self, Unpack

EMBEDDED = _process.EMBEDDED
"""The model that the package carries."""

_ACTIVATION_TYPES = ("f32", "f16", "bf16")
_CACHE_TYPES = (*_ACTIVATION_TYPES, "q8_0")
_POOLINGS = ("mean", "cls", "last")


class LogProb(NamedTuple):
    """How likely the model finds a token."""

    id: int
    logprob: float
    """The natural logarithm of its probability, before temperature, penalties and
    biases."""


@dataclass(frozen=True)
class TokenLogProbs:
    """How likely the model finds a token that was chosen."""

    id: int
    logprob: float
    """As ``LogProb`` has it."""
    top: list[LogProb]
    """The likeliest tokens in its place, it among them or not, from the likeliest
    on."""


class Piece(NamedTuple):
    """What is new of a text. ``print(piece, end="")`` prints it."""

    text: str
    ids: list[int]
    """Its tokens; their text may come with a later piece, or never."""
    logprobs: list[TokenLogProbs] | None = None
    """Where ``logprobs`` was given: of tokens whose text begins in this piece."""

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Completion:
    """A text that was generated."""

    text: str
    """Without special tokens, up to a stop text."""
    ids: list[int] = field(repr=False)
    """What was generated; a token that ended the text is the last."""
    finish_reason: Literal["stop", "length", "cancelled"]
    """"stop": by a stop token or text; "length": by ``max_tokens`` or a full
    context; "cancelled": by ``Stream.cancel()``."""
    prompt_tokens: int
    cached_tokens: int
    """Those of the prompt that did not have to be computed."""
    prompt_seconds: float
    """Until the prompt was read and a token chosen."""
    generation_seconds: float
    """From then on, steps of others included."""
    logprobs: list[TokenLogProbs] | None = field(default=None, repr=False)
    """Where ``logprobs`` was given: of the tokens of the text, without those of a
    stop text and without a token that ended it."""

    def __str__(self) -> str:
        return self.text


_Native = list[tuple[int, float, list[tuple[int, float]]]]


def _logprobs(tokens: _Native | None) -> list[TokenLogProbs] | None:
    if tokens is None:
        return None
    return [
        TokenLogProbs(id, logprob, [LogProb(*other) for other in top])
        for id, logprob, top in tokens
    ]


_FINISH_REASONS: dict[str, Literal["stop", "length", "cancelled"]] = {
    "stop token": "stop",
    "stop text": "stop",
    "token limit": "length",
    "context full": "length",
    "cancelled": "cancelled",
}


class Stream(Iterator[Piece]):
    """The pieces of a text while it is generated.

    It goes on whether its pieces are taken or not, and ends where ``cancel()`` is
    called, a ``with`` block of it is left, an interrupt (Ctrl-C) comes while a piece
    is waited for, or nobody has it any more.
    """

    def __init__(self, model: Model, text: _kernelforge.Text) -> None:
        self._model = model
        self._text = text
        self._is_cancelled = False

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Piece:
        """Waits for the next piece."""
        piece = self._text.next()
        self._model._tell()
        if piece is None:
            raise StopIteration
        text, ids, logprobs = piece
        return Piece(text, ids, _logprobs(logprobs))

    def result(self) -> Completion:
        """The whole text; waits for its end."""
        text, ids, reason, prompt, cached, before, after, logprobs = (
            self._text.result()
        )
        self._model._tell()
        if reason == "cancelled" and not self._is_cancelled:
            raise CancelledError(
                "the text was ended: its model was closed, or an interrupt came"
            )
        return Completion(
            text,
            ids,
            _FINISH_REASONS[reason],
            prompt,
            cached,
            before,
            after,
            _logprobs(logprobs),
        )

    def cancel(self) -> None:
        """Ends the text after the step that runs; what there is stays."""
        self._is_cancelled = True
        self._text.cancel()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.cancel()


@dataclass(frozen=True)
class Loss:
    """How well a model predicts a text."""

    nll: float
    """The sum of -log p of its tokens, in nats."""
    tokens: int
    nll_per_token: float
    nll_standard_error: float
    """Of ``nll_per_token``, as of independent tokens; NaN for one token."""
    perplexity: float
    """exp(nll_per_token)"""


class Model(_process.Owner):
    """A model that ``load()`` has opened. Any thread may use it; texts that are
    asked for at once are generated at once."""

    _native: _kernelforge.Model

    def generate(self, prompt: Prompt, **options: Unpack[Options]) -> Completion:
        """Continues a text, or token ids, which are read as they are.

        An interrupt (Ctrl-C) ends it with KeyboardInterrupt.
        """
        return self.stream(prompt, **options).result()

    def stream(self, prompt: Prompt, **options: Unpack[Options]) -> Stream:
        """The same, piece by piece."""
        return self._submit(_requests.completion(prompt, options), False)

    def batch(
        self, prompts: Iterable[Prompt], **options: Unpack[Options]
    ) -> list[Completion]:
        """Continues many texts, as many at once as ``load()`` was told."""
        if isinstance(prompts, (str, bytes)) or not isinstance(prompts, Iterable):
            raise TypeError(
                f"'prompts' is of type {type(prompts).__name__}, but a list of "
                "prompts is expected"
            )
        requests = [_requests.completion(prompt, options) for prompt in prompts]
        streams = []
        try:
            for request in requests:
                streams.append(self._submit(request, False))
            return [stream.result() for stream in streams]
        finally:
            for stream in streams:
                stream.cancel()

    @overload
    def chat(
        self,
        messages: Iterable[Message],
        *,
        stream: Literal[False] = False,
        chat_template_kwargs: Mapping[str, Any] | None = None,
        **options: Unpack[Options],
    ) -> Completion: ...

    @overload
    def chat(
        self,
        messages: Iterable[Message],
        *,
        stream: Literal[True],
        chat_template_kwargs: Mapping[str, Any] | None = None,
        **options: Unpack[Options],
    ) -> Stream: ...

    def chat(
        self,
        messages: Iterable[Message],
        *,
        stream: bool = False,
        chat_template_kwargs: Mapping[str, Any] | None = None,
        **options: Unpack[Options],
    ) -> Completion | Stream:
        """Answers a conversation: messages as OpenAI's API has them.

        ``chat_template_kwargs`` are variables of the model's chat template. With
        ``stream``, the answer comes piece by piece.
        """
        request = _requests.chat(messages, chat_template_kwargs, options)
        answer = self._submit(request, True)
        return answer if stream else answer.result()

    def apply_template(
        self,
        messages: Iterable[Message],
        *,
        add_generation_prompt: bool = True,
        chat_template_kwargs: Mapping[str, Any] | None = None,
    ) -> str:
        """The prompt that the model's chat template makes of a conversation."""
        request = _requests.chat(messages, chat_template_kwargs, {})
        return self._native.render(request, bool(add_generation_prompt))

    def tokenize(
        self, text: str, *, add_special: bool = False, parse_special: bool = True
    ) -> list[int]:
        """The token ids of a text.

        ``add_special`` puts the tokens around that the model expects, begin-of-text
        mostly. With ``parse_special``, special tokens that the text spells become
        their ids.
        """
        text = _process.text_of(text, "text")
        return self._native.tokenize(text, bool(add_special), bool(parse_special))

    def detokenize(self, ids: Iterable[int], *, skip_special: bool = False) -> str:
        """The text of token ids; what is no UTF-8 becomes U+FFFD."""
        return self._native.detokenize(_requests.ids_of(ids, "ids"), bool(skip_special))

    def embed(
        self,
        texts: str | Iterable[Prompt],
        *,
        pooling: Literal["mean", "cls", "last"] | None = None,
        normalize: bool | None = None,
        dimensions: int | None = None,
    ) -> numpy.typing.NDArray[numpy.float32]:
        """Embeddings: near to one another for texts that mean the same.

        Of one text an array [size], of several [texts, size], in their order. A
        text may be token ids, which are read as they are; another one gets the
        tokens around it that the model expects.

        ``pooling``: which rows of the last layer it is made of: the mean of all
        tokens', the first one's or the last one's; by default as the model's
        files say, else the last one's.
        ``normalize``: to the Euclidean length 1; by default as the model's files
        say, else True.
        ``dimensions``: the first numbers alone, for models that were trained for
        it; these are what is normalized.
        """
        import numpy

        inputs = _requests.embedding_inputs(texts)
        size = _process.count_of(
            dimensions, "dimensions", least=1, most=self.embedding_size
        )
        wanted = (
            (
                ""
                if pooling is None
                else _process.choice_of(pooling, "pooling", _POOLINGS)
            ),
            None if normalize is None else bool(normalize),
            size,
        )
        asked: list[_kernelforge.Text] = []
        try:
            for text, ids in inputs:
                asked.append(self._native.embed(text, ids, *wanted))
                self._tell()
            rows = [text.embedding() for text in asked]
        finally:
            self._tell()
            for text in asked:
                text.cancel()
        if isinstance(texts, str):
            return rows[0]
        if not rows:
            return numpy.empty((0, size or self.embedding_size), numpy.float32)
        return numpy.stack(rows)

    def perplexity(self, text: str) -> Loss:
        """How well the model predicts a text.

        The text stands between the begin and the end token; its tokens and the end
        token count, as in ``kf-run perplexity``. One that is longer than the
        context is cut into windows, each of which begins anew. Texts that are being
        generated end first; those that are asked for meanwhile wait.
        """
        nll, tokens, error = self._native.loss(_process.text_of(text, "text"))
        self._tell()
        per_token = nll / tokens
        try:
            perplexity = math.exp(per_token)
        except OverflowError:
            perplexity = math.inf
        return Loss(nll, tokens, per_token, error, perplexity)

    @property
    def name(self) -> str:
        """The path that it was opened from, mostly."""
        return self._native.name

    @property
    def device(self) -> str:
        """What it runs on."""
        return self._native.device

    @property
    def context(self) -> int:
        """How many tokens a text has room for, prompt included."""
        return self._native.context

    @property
    def vocabulary_size(self) -> int:
        """Token ids are below it."""
        return self._native.vocabulary

    @property
    def embedding_size(self) -> int:
        """How many numbers ``embed()`` makes of a text, at most."""
        return self._native.hidden_size

    @property
    def eos_ids(self) -> list[int]:
        """Tokens that end a text."""
        return self._native.eos_ids

    @property
    def has_tokenizer(self) -> bool:
        """Whether it reads and writes text, or token ids alone."""
        return self._native.has_tokenizer

    @property
    def has_chat_template(self) -> bool:
        """Whether ``chat()`` can be called."""
        return self._native.has_template

    def __repr__(self) -> str:
        return f"<kernelforge.Model {self.name!r} on {self.device}>"

    def _submit(self, request: str, is_chat: bool) -> Stream:
        text = self._native.submit(request, is_chat)
        self._tell()
        return Stream(self, text)


def load(
    model: str | os.PathLike[str] | None = None,
    *,
    device: str = "cpu",
    threads: int | None = None,
    context: int | None = None,
    cache_type: Literal["f32", "f16", "bf16", "q8_0"] | None = None,
    activation_type: Literal["f32", "f16", "bf16"] = "f32",
    cache_memory: int | None = None,
    parallel: int = 8,
    chat_template: str | os.PathLike[str] | None = None,
    adapters: Mapping[str, str | os.PathLike[str]] | None = None,
) -> Model:
    """Opens a model: a folder as Hugging Face lays it out, or a GGUF file.

    Without one, or as "kf-stories", it is the small one that the package carries.
    Programs are compiled when a text needs them, and kept in ``kf-run``'s cache.

    ``device``: "cpu", "cuda", "vulkan", "reference", "auto", or "vulkan:1".
    ``threads``: of the CPU; by default as many as the process may use.
    ``context``: positions of a text; 0: all that the model has. By default 4096, as
    far as the model goes.
    ``cache_type``: elements of the KV cache; f16 by default, f32 on the reference.
    ``activation_type``: elements of what kernels hand on; f32 by default.
    ``cache_memory``: bytes of the KV cache at most.
    ``parallel``: how many texts are generated at once; others wait.
    ``chat_template``: a file (Jinja), in place of the model's own template.
    ``adapters``: folders in PEFT's format, by the names that texts choose them by
    (``adapter``).
    """
    if adapters is not None and not isinstance(adapters, Mapping):
        raise TypeError(
            f"'adapters' is of type {type(adapters).__name__}, but a mapping of names "
            "to folders is expected"
        )
    path = _process.model_of(model)
    try:
        native = _kernelforge.load(
            path,
            _process.text_of(device, "device"),
            _process.count_of(threads, "threads", least=1),
            None if context is None else _process.count_of(context, "context"),
            (
                ""
                if cache_type is None
                else _process.choice_of(cache_type, "cache_type", _CACHE_TYPES)
            ),
            _process.choice_of(activation_type, "activation_type", _ACTIVATION_TYPES),
            _process.count_of(cache_memory, "cache_memory", least=1, most=2**63 - 1),
            _process.count_of(parallel, "parallel", least=1),
            (
                b""
                if chat_template is None
                else _process.path_of(chat_template, "chat_template")
            ),
            [
                (
                    _process.text_of(name, "adapters"),
                    _process.path_of(folder, f"adapters[{name!r}]"),
                )
                for name, folder in (adapters or {}).items()
            ],
        )
    except ValueError as error:
        # What is at a path is an error of the path's where nothing is.
        if path and not os.path.exists(path):
            raise NotFoundError(*error.args) from None
        raise
    return Model(native)
