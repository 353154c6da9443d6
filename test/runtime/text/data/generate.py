#!/usr/bin/env python3
"""Writes the tokenizers of this folder and what the reference packages make of
texts.json with them. README.md has the packages' versions.

usage: python3 generate.py    (in this folder; needs tokenizers, sentencepiece
                               and gguf from PyPI)
"""
import io
import json
import pathlib
import random
import tempfile

import gguf
import sentencepiece
from sentencepiece import sentencepiece_model_pb2 as proto
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models,
                        normalizers, pre_tokenizers, processors, trainers)

HERE = pathlib.Path(__file__).parent
STORIES = HERE / "../../../../models/kf-stories/heldout.json"
MARK = "\u2581"

TEXTS = [
    "", " ", "  ", "   ", "\n", "\n\n", "\t", " \n ", "\r\n", "a", " a", "a ",
    " a ", "  two  spaces  ", "Hello, world!", "Hello World  HELLO\nhello",
    "Once upon a time, there was a little girl named Lily.",
    "line one\nline two\n\n\nline five\n", "tabs\tand\t\ttabs",
    "trailing newline\n", "\n leading", "a\u00a0b\u2003c\u3000d",
    "I'm, you're, he'll, we've, it's, they'd, don't",
    "I'M, YOU'RE, HE'LL, WE'VE, IT'S, THEY'D, DON'T",
    "it\u2019s \u201cquoted\u201d", "1", "12", "123", "1234", "1234567890",
    "3.14159 and 2,718", "x1y22z333", "\u0661\u0662\u0663 \u00bd \u2167 \u00b2",
    "caf\u00e9 na\u00efve \u00fcber", "cafe\u0301 nai\u0308ve", "\u1e9b\u0323",
    "a\u0300\u0301\u0302b", "\u4f60\u597d\uff0c\u4e16\u754c\u3002",
    "\u3053\u3093\u306b\u3061\u306f \u30ab\u30bf\u30ab\u30ca",
    "\uc548\ub155\ud558\uc138\uc694 \u1112\u1161\u11ab",
    "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440",
    "\u0645\u0631\u062d\u0628\u0627", "\u0928\u092e\u0938\u094d\u0924\u0947",
    "\U0001f642", "\U0001f642\U0001f642 ok",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea",
    "\u0000\u0001\u001f\u007f", "a\u0000b", "\ufeffbom", "\ufffd",
    "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", "...!!!???", "a_b-c.d/e",
    "if (x == 1) {\n    return y;\n}", "https://example.com/a?b=c&d=e#f",
    "CamelCaseWords andMixedUPPERlower", "\uff21\uff22\uff23 \ufb01 \u2460",
    MARK, MARK + "the" + MARK + MARK, " " + MARK + " ", "<0x0A>", "<0xZZ>",
    "<s>", "</s>", "<unk>", "a<s>b", "<s> a </s> b", " <s> ", "<s><s>",
    "<|endoftext|>", "a <|endoftext|> b", "<|begin_of_text|>x<|eot_id|>",
    "<|im_start|>user\nhi<|im_end|>\n", "[INST] hi [/INST] there </s>",
    "<tool> x<tool>y <left> <right> z", "solo xsolo solo, solox",
    "NORM norm", "aaa" + "bbb", "a" * 300, " " * 130, "ab" * 100, "\n" * 40,
    "ha " * 60, "\u4f60" * 50, "the the the", "  the   little\n\n  girl",
]

GPT2 = (r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+"
        r"|\s+(?!\S)|\s+")
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
          r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
TEKKEN = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*"
          r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?"
          r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}"
          r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
GPT4O = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*"
         r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+"
         r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}"
         r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK3 = (r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"
             r"|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*"
             r"|\s*[\r\n]+|\s+(?!\S)|\s+")


def corpus():
    stories = json.loads(STORIES.read_text())[:20]
    return stories + [t for t in TEXTS if t and "\0" not in t] * 9


def write(name, data):
    path = HERE / name
    if isinstance(data, str):
        data = data.encode()
    path.write_bytes(data)
    assert len(data) < 60_000, (name, len(data))


def write_expected(name, expected):
    lines = [f" {json.dumps(key)}: {json.dumps(value, separators=(',', ':'))}"
             for key, value in expected.items()]
    write(name + ".expected.json", "{\n" + ",\n".join(lines) + "\n}\n")


# --- Hugging Face's tokenizers -------------------------------------------


def expect(tokenizer, decodable):
    """What the tokenizer makes of every text. `decodable` are ids of which any
    sequence may be decoded."""
    plain = Tokenizer.from_str(tokenizer.to_str())
    plain.encode_special_tokens = True
    rng = random.Random(7)
    sequences = [rng.choices(decodable, k=rng.randrange(1, 12))
                 for _ in range(25)]
    ids = [tokenizer.encode(t, add_special_tokens=False).ids for t in TEXTS]
    return {
        "ids": ids,
        "plain": [plain.encode(t, add_special_tokens=False).ids
                  for t in TEXTS],
        "decoded": [tokenizer.decode(i) for i in ids],
        "around": tokenizer.encode("Hello").ids,
        "sequences": sequences,
        "sequences_decoded": [tokenizer.decode(s, skip_special_tokens=False)
                              for s in sequences],
    }


def template(tokenizer, begin):
    if begin:
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{begin} $A", special_tokens=[
                (begin, tokenizer.token_to_id(begin))])


def byte_level(name, splits, special, begin=None, nfc=False,
               ignore_merges=False, digits=False, use_regex=False,
               tokenizer_json=True, pre=None, normal=()):
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    if nfc:
        tokenizer.normalizer = normalizers.NFC()
    steps = [pre_tokenizers.Digits(individual_digits=True)] if digits else []
    steps += [pre_tokenizers.Split(Regex(s), "isolated") for s in splits]
    steps.append(pre_tokenizers.ByteLevel(add_prefix_space=False,
                                          use_regex=use_regex))
    tokenizer.pre_tokenizer = (pre_tokenizers.Sequence(steps)
                               if len(steps) > 1 else steps[0])
    tokenizer.decoder = decoders.ByteLevel()
    # Merges that cross the splits show whether text is split.
    split = tokenizer.pre_tokenizer
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False,
                                                       use_regex=False)
    tokenizer.train_from_iterator(corpus(), trainers.BpeTrainer(
        vocab_size=800, show_progress=False, min_frequency=2,
        max_token_length=5,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.pre_tokenizer = split
    if ignore_merges:
        # Words that are tokens, though no merge makes them.
        tree = json.loads(tokenizer.to_str())
        for word in ["\u0120girl.", "1234", "zebra", "\u0120zebra"]:
            tree["model"]["vocab"].setdefault(word, len(tree["model"]["vocab"]))
        tokenizer = Tokenizer.from_str(json.dumps(tree))
    tokenizer.add_special_tokens(special)
    if normal:
        tokenizer.add_tokens(list(normal))
    template(tokenizer, begin)
    if tokenizer_json:
        write(name + ".json", tokenizer.to_str())
    expected = expect(tokenizer, list(range(tokenizer.get_vocab_size())))
    write_expected(name, expected)
    if pre:
        write_gpt2_gguf(name, tokenizer, pre, begin)


# --- GGUF --------------------------------------------------------------------


def write_gguf(name, fill):
    with tempfile.NamedTemporaryFile() as file:
        writer = gguf.GGUFWriter(file.name, "llama")
        fill(writer)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.close()
        write(name, pathlib.Path(file.name).read_bytes())


def write_gpt2_gguf(name, tokenizer, pre, begin):
    tree = json.loads(tokenizer.to_str())
    added = {t["id"]: t for t in tree["added_tokens"]}
    vocab = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    types = [gguf.TokenType.NORMAL if i not in added
             else gguf.TokenType.CONTROL if added[i]["special"]
             else gguf.TokenType.USER_DEFINED for _, i in vocab]

    def fill(writer):
        writer.add_tokenizer_model("gpt2")
        if pre != "default":  # which is what its absence means
            writer.add_tokenizer_pre(pre)
        writer.add_token_list([t for t, _ in vocab])
        writer.add_token_types(types)
        writer.add_token_merges([" ".join(m) for m in tree["model"]["merges"]])
        if begin:
            writer.add_bos_token_id(tokenizer.token_to_id(begin))

    write_gguf(name + ".gguf", fill)


def write_llama_gguf(name, model):
    pieces = proto.ModelProto.FromString(model).pieces

    def fill(writer):
        writer.add_tokenizer_model("llama")
        writer.add_tokenizer_pre("default")
        writer.add_token_list([p.piece for p in pieces])
        writer.add_token_scores([p.score for p in pieces])
        writer.add_token_types([p.type for p in pieces])
        writer.add_bos_token_id(1)
        writer.add_eos_token_id(2)
        writer.add_unk_token_id(0)

    write_gguf(name + ".gguf", fill)


# --- SentencePiece -----------------------------------------------------------


def train(**options):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(corpus()), model_writer=model,
        hard_vocab_limit=False, minloglevel=2, num_threads=1, **options)
    return model.getvalue()


INVALID = [b"\xff", b"a\xffb", b"\xc3", b"\xe4\xbd", b"\xed\xa0\x80",
           b"\xf0\x9f\x99 x", b"\xc0\x80", b"ok \x80\x80 ok\xf4\x90\x80\x80"]


def sentencepiece_case(name, model):
    write(name + ".model", model)
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    count = processor.get_piece_size()
    rng = random.Random(7)
    bytes_ = [i for i in range(count) if processor.is_byte(i)]
    decodable = [i for i in range(count) if i not in bytes_]
    sequences = [rng.choices(decodable, k=rng.randrange(1, 12))
                 for _ in range(25)]
    ids = [processor.encode(t) for t in TEXTS]
    write_expected(name, {
        "plain": ids,
        "decoded": [processor.decode(i) for i in ids],
        "invalid": [b.hex() for b in INVALID],
        "invalid_ids": [processor.encode(b) for b in INVALID],
        "sequences": sequences,
        "sequences_decoded": [processor.decode(s) for s in sequences],
    })


def merges_of(pieces):
    """The merges of a SentencePiece BPE model, as transformers extracts
    them."""
    vocab = {p.piece: i for i, p in enumerate(pieces)}
    merges = []
    for piece in pieces:
        local = [(piece.piece[:i], piece.piece[i:], piece.score)
                 for i in range(1, len(piece.piece))
                 if piece.piece[:i] in vocab and piece.piece[i:] in vocab]
        merges += sorted(local, key=lambda m: (vocab[m[0]], vocab[m[1]]))
    merges.sort(key=lambda m: (m[2], len(m[0]), len(m[1])), reverse=True)
    return vocab, [m[:2] for m in merges]


def llama_json(name, model, normalizer, pre_tokenizer, decoder, added):
    pieces = proto.ModelProto.FromString(model).pieces
    vocab, merges = merges_of(pieces)
    tokenizer = Tokenizer(models.BPE(vocab, merges, unk_token="<unk>",
                                     fuse_unk=True, byte_fallback=True))
    if normalizer:
        tokenizer.normalizer = normalizer
    if pre_tokenizer:
        tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoder
    tokenizer.add_special_tokens(["<unk>", "<s>", "</s>"])
    for token in added:
        tokenizer.add_tokens([token])
    template(tokenizer, "<s>")
    write(name + ".json", tokenizer.to_str())
    decodable = [i for t, i in tokenizer.get_vocab().items()
                 if not t.startswith("<0x")]
    write_expected(name, expect(tokenizer, sorted(decodable)))


def main():
    write("texts.json", json.dumps(TEXTS, separators=(",\n", ":")) + "\n")

    # LLaMA 2, Mistral: BPE with byte fallback.
    llama = train(model_type="bpe", vocab_size=620, byte_fallback=True,
                  character_coverage=0.99, split_digits=True,
                  normalization_rule_name="identity",
                  remove_extra_whitespaces=False,
                  allow_whitespace_only_pieces=True)
    sentencepiece_case("llama", llama)
    fused = [decoders.Replace(MARK, " "), decoders.ByteFallback(),
             decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    llama_json("llama-prepend", llama,
               normalizers.Sequence([normalizers.Prepend(MARK),
                                     normalizers.Replace(" ", MARK)]),
               None, decoders.Sequence(fused), [])
    write_llama_gguf("llama-prepend", llama)
    llama_json("llama-metaspace", llama, None,
               pre_tokenizers.Metaspace(prepend_scheme="first", split=False),
               decoders.Sequence(fused),
               [AddedToken("[INST]", special=True),
                AddedToken("<tool>", single_word=True),
                AddedToken("<left>", lstrip=True),
                AddedToken("<right>", rstrip=True),
                AddedToken("solo", single_word=True, normalized=False),
                AddedToken("NORM", normalized=True)])

    # Other uses of the same parts: unknown characters, a word per mark.
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Strip(), normalizers.Replace(Regex(r"\s+"), " "),
         normalizers.NFC()])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Metaspace(), pre_tokenizers.Punctuation(),
         pre_tokenizers.Digits()])
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.train_from_iterator(corpus(), trainers.BpeTrainer(
        vocab_size=200, special_tokens=["<unk>", "<s>"], show_progress=False))
    write("metaspace.json", tokenizer.to_str())
    write_expected("metaspace",
                   expect(tokenizer, list(range(tokenizer.get_vocab_size()))))

    # SentencePiece with rules, symbols and other defaults.
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as rules:
        for source, target in [("\t", " "), ("\n", " "), ("\u00a0", " "),
                               ("\u3000", " "), ("\uff21", "A"),
                               ("\uff22", "B"), ("\ufb01", "fi"),
                               ("e\u0301", "\u00e9"), ("\u2460", "1"),
                               ("\u200d", ""), ("\u2026", "...")]:
            rules.write(" ".join(f"{ord(c):X}" for c in source) + "\t" +
                        " ".join(f"{ord(c):X}" for c in target) + "\n")
        rules.flush()
        bpe = proto.ModelProto.FromString(
            train(model_type="bpe", vocab_size=400, character_coverage=0.98,
                  normalization_rule_tsv=rules.name,
                  user_defined_symbols=["<tool>", "hello", "12"],
                  control_symbols=["[INST]"]))
        # Pieces that are not to be used any more.
        for piece in bpe.pieces:
            if piece.piece in (MARK + "the", "the", "ll", MARK + "lit"):
                piece.type = proto.ModelProto.SentencePiece.UNUSED
        sentencepiece_case("bpe-rules", bpe.SerializeToString())
        sentencepiece_case("unigram-rules", train(
            model_type="unigram", vocab_size=400, character_coverage=0.98,
            normalization_rule_tsv=rules.name,
            user_defined_symbols=["<tool>", "hello", "12"]))
    sentencepiece_case("unigram-bytes", train(
        model_type="unigram", vocab_size=560, byte_fallback=True,
        normalization_rule_name="identity", treat_whitespace_as_suffix=True,
        remove_extra_whitespaces=False, character_coverage=0.98))

    # Byte-level BPE, a GGUF file beside each.
    byte_level("gpt2", [], ["<|endoftext|>"], use_regex=True, pre="gpt-2")
    byte_level("llama3", [LLAMA3], ["<|begin_of_text|>", "<|eot_id|>"],
               begin="<|begin_of_text|>", ignore_merges=True, pre="llama-bpe")
    byte_level("qwen2", [QWEN2], ["<|im_start|>", "<|im_end|>"], nfc=True,
               pre="qwen2", normal=["<tool>"])
    byte_level("smollm", [], ["<|im_start|>", "<|im_end|>"], digits=True,
               use_regex=True, pre="smollm")
    byte_level("tekken", [TEKKEN], ["<s>", "</s>", "[INST]", "[/INST]"],
               begin="<s>", ignore_merges=True, pre="tekken")
    # Splits of which only the GGUF file is kept.
    for pre, splits in {
            "default": [r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+",
                        "[0-9][0-9][0-9]"],
            "gpt-4o": [GPT4O],
            "deepseek-v3": [r"\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u30ff]+",
                            DEEPSEEK3],
            "deepseek-coder": [r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+",
                               "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+",
                               r"\p{N}"],
            "falcon": [r"[\p{P}\$\+<=>\^~\|`]+", GPT2, "[0-9][0-9][0-9]"],
    }.items():
        byte_level("pre-" + pre, splits, ["<|endoftext|>"],
                   tokenizer_json=False, pre=pre)


if __name__ == "__main__":
    main()
