#!/usr/bin/env python3
# Compares logits and perplexity of GGUF files that kf-run quantize writes with
# llama.cpp's: of the small models of test/golden, and of random ones where
# llama.cpp knows no such sizes. Needs cmake, a C++ compiler and, without
# --llama, PyPI, whose source package of llama-cpp-python has llama.cpp: about
# five minutes of two cores.
"""usage: gguf_peer.py [--llama FOLDER --source FOLDER] [--work FOLDER]
                    [--kf-run FILE] [--types T,...] [MODEL...]

  --llama FOLDER   with libllama.so, libggml.so and libggml-base.so
  --source FOLDER  llama.cpp's source, of which they were built
  --work FOLDER    where files go, llama.cpp's too; /tmp/kf-gguf-peer by default
  --kf-run FILE    kf-run by default, wherever it is
  --types T,...    f32,bf16,q8_0,q4_0,q4_k by default
  MODEL...         folders of test/golden; all by default

Files of f32 have to have our logits and perplexity to 1e-3. Of other types,
llama.cpp reads the same weights in f32, to 1e-3 too, and its own products of
them, which round rows (to bf16, or to blocks of 8 bits), are shown beside. Exits
with 1 if one is further off.
"""

import argparse
import glob
import json
import math
import os
import random
import shutil
import struct
import subprocess
import sys
import tarfile

HERE = os.path.dirname(os.path.abspath(__file__))
GOLDEN = os.path.join(os.path.dirname(HERE), "golden")
IDS = [5, 9, 31, 7, 44, 12, 58, 23, 3, 17, 40, 29, 61, 8, 50, 36]
LIMIT = 1e-3
PACKAGE = "llama-cpp-python"
VERSION = "0.3.36"  # whose llama.cpp it is

# What llama.cpp takes for granted, where a golden model has it otherwise.
EDITS = {
    "llama4": {"attention_chunk_size": 8192, "attn_scale": 0.1,
               "floor_scale": 8192},
    "gemma2": {"query_pre_attn_scalar": 12},
    "gemma3": {"query_pre_attn_scalar": 16},
    "starcoder2": {"sliding_window": None},
    "phi3": {"sliding_window": None},
    "mistral-window": {"sliding_window": None},
    "gpt-oss": {"swiglu_limit": 7.0,
                "rope_parameters": {"rope_type": "default",
                                    "rope_theta": 150000.0}},
    "gpt-oss-mxfp4": {"swiglu_limit": 7.0,
                      "rope_scaling": {"rope_type": "default"}},
}
# Models that llama.cpp reads otherwise, as quantize warns, or not at all.
LEFT_OUT = {
    "gemma3n": "its sizes are constants in llama.cpp; gemma3n-random has them",
    "gemma4-shared-kv": "llama.cpp takes other layers' keys; "
                        "gemma4-random has those that it takes",
    "gemma3-nested": "it is gemma3",
    "llama-float8": "no golden model of a type that files have",
}


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"gguf_peer.py: error: {' '.join(command)}: {done.stderr}")
    return done


def build_llama(work):
    """Builds libllama of PyPI's source package; its folder, and the source."""
    folder = f"{work}/{PACKAGE.replace('-', '_')}-{VERSION}"
    source, built = f"{folder}/vendor/llama.cpp", f"{work}/llama-{VERSION}"
    functions = f"{source}/ggml/src/ggml-cpu/vec.h"
    if not os.path.isdir(folder):
        run(sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary",
            PACKAGE, "--no-build-isolation", "-d", work, f"{PACKAGE}=={VERSION}")
        with tarfile.open(f"{folder}.tar.gz") as archive:
            archive.extractall(work, filter="data")
    # GELU of every f32, not of those of a table of f16.
    table, without = "#define GGML_GELU_FP16", "#undef GGML_GELU_FP16"
    with open(functions, encoding="utf-8") as file:
        text = file.read()
    if without not in text:
        if table not in text:
            sys.exit(f"gguf_peer.py: error: {functions} has no '{table}'")
        with open(functions, "w", encoding="utf-8") as file:
            file.write(text.replace(table, without))
    run("cmake", "-S", source, "-B", built, "-DCMAKE_BUILD_TYPE=Release",
        "-DLLAMA_CURL=OFF", "-DLLAMA_BUILD_TESTS=OFF", "-DGGML_OPENMP=OFF",
        "-DLLAMA_BUILD_EXAMPLES=OFF", "-DLLAMA_BUILD_TOOLS=OFF",
        "-DLLAMA_BUILD_SERVER=OFF")
    run("cmake", "--build", built, "-j2", "--target", "llama")
    return f"{built}/bin", source


def build_reader(libraries, source, work):
    reader = f"{work}/llama_logits"
    run(os.environ.get("CC", "cc"), "-O1", f"{HERE}/llama_logits.c",
        f"-I{source}/include", f"-I{source}/ggml/include", f"-L{libraries}",
        "-lllama", "-lggml", "-lggml-base", f"-Wl,-rpath,{libraries}", "-o",
        reader)
    return reader


def write_random(folder, config, shapes):
    """Writes a model with random weights of bf16."""
    os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/config.json", "w", encoding="utf-8") as file:
        json.dump(config, file)
    rand = random.Random(1)
    header, data = {}, bytearray()
    for name, shape in shapes.items():
        # Small enough that dozens of layers make no more of rounding.
        spread = 0.3 / math.sqrt(shape[-1]) if len(shape) > 1 else 0.1
        middle = 0 if len(shape) > 1 else 1
        begin = len(data)
        for _ in range(math.prod(shape)):
            value = struct.pack("<f", rand.gauss(middle, spread))
            data += value[2:]
        header[name] = {"dtype": "BF16", "shape": shape,
                        "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    with open(f"{folder}/model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def gemma(kind, layers, sharing, width, types, sizes):
    """The configuration and shapes of a small Gemma with inputs of tokens."""
    hidden, heads, kv_heads, vocabulary = 32, 4, 2, 64
    config = {
        "model_type": kind,
        "attention_bias": False, "bos_token_id": 1, "eos_token_id": 2,
        "dtype": "bfloat16", "final_logit_softcapping": 30.0, "head_dim": 8,
        "hidden_activation": "gelu_pytorch_tanh", "hidden_size": hidden,
        "hidden_size_per_layer_input": width, "intermediate_size": 64,
        "layer_types": types, "max_position_embeddings": 256,
        "num_attention_heads": heads, "num_hidden_layers": layers,
        "num_key_value_heads": kv_heads, "num_kv_shared_layers": sharing,
        "pad_token_id": 0, "rms_norm_eps": 1e-6, "sliding_window": 8,
        "tie_word_embeddings": True, "vocab_size": vocabulary,
        "vocab_size_per_layer_input": vocabulary, **sizes}
    shapes = {
        "model.embed_tokens.weight": [vocabulary, hidden],
        "model.embed_tokens_per_layer.weight": [vocabulary, layers * width],
        "model.per_layer_model_projection.weight": [layers * width, hidden],
        "model.per_layer_projection_norm.weight": [width],
        "model.norm.weight": [hidden]}
    for i, one in enumerate(types):
        dim = (sizes.get("global_head_dim", 8)
               if one == "full_attention" else 8)
        inner = 64
        if i >= layers - sharing and sizes.get("use_double_wide_mlp"):
            inner = 128
        of_layer = {
            "self_attn.q_proj": [heads * dim, hidden],
            "self_attn.o_proj": [hidden, heads * dim],
            "self_attn.q_norm": [dim],
            "mlp.gate_proj": [inner, hidden], "mlp.up_proj": [inner, hidden],
            "mlp.down_proj": [hidden, inner],
            "per_layer_input_gate": [width, hidden],
            "per_layer_projection": [hidden, width]}
        # llama.cpp's loader wants Gemma 3n's keys in every layer.
        if i < layers - sharing or kind == "gemma3n_text":
            of_layer.update({"self_attn.k_proj": [kv_heads * dim, hidden],
                             "self_attn.v_proj": [kv_heads * dim, hidden],
                             "self_attn.k_norm": [dim]})
        for norm in ("input_layernorm", "post_attention_layernorm",
                     "pre_feedforward_layernorm", "post_feedforward_layernorm",
                     "post_per_layer_input_norm"):
            of_layer[norm] = [hidden]
        at = f"model.layers.{i}."
        shapes.update({f"{at}{k}.weight": v for k, v in of_layer.items()})
        if kind == "gemma4_text":
            shapes[f"{at}layer_scalar"] = [1]
    return config, shapes


def write_gemma4(folder):
    types = 3 * (2 * ["sliding_attention"] + ["full_attention"])
    config, shapes = gemma(
        "gemma4_text", 9, 3, 8, types,
        {"global_head_dim": 16, "use_double_wide_mlp": True,
         "enable_moe_block": False, "attention_k_eq_v": False,
         "rope_parameters": {
             "full_attention": {"partial_rotary_factor": 0.25,
                                "rope_theta": 1e6,
                                "rope_type": "proportional"},
             "sliding_attention": {"rope_theta": 1e4,
                                   "rope_type": "default"}}})
    write_random(folder, config, shapes)


def write_gemma3n(folder):
    """Of the sizes that are constants in llama.cpp."""
    layers, sharing, width, streams, rank = 30, 10, 256, 4, 64
    types = 6 * (4 * ["sliding_attention"] + ["full_attention"])
    # llama.cpp cuts gates off at .95 by the deviation of a sample of the 64.
    cutoff = 1.6448533535003662 * math.sqrt(64 / 63)
    share = (1 + math.erf(cutoff / math.sqrt(2))) / 2
    config, shapes = gemma(
        "gemma3n_text", layers, sharing, width, types,
        {"activation_sparsity_pattern": [share] * 10 + [0.0] * 20,
         "altup_active_idx": 0, "altup_correct_scale": True,
         "altup_num_inputs": streams, "laurel_rank": rank,
         "intermediate_size": [64] * layers,
         "rope_parameters": {
             "full_attention": {"rope_theta": 1e6, "rope_type": "default"},
             "sliding_attention": {"rope_theta": 1e4,
                                   "rope_type": "default"}}})
    hidden = config["hidden_size"]
    for i in range(streams - 1):
        for part in ("altup_projections", "altup_unembed_projections"):
            shapes[f"model.{part}.{i}.weight"] = [hidden, hidden]
    for i in range(layers):
        at = f"model.layers.{i}."
        shapes.update({
            f"{at}altup.router_norm.weight": [hidden],
            f"{at}altup.modality_router.weight": [streams, hidden],
            f"{at}altup.prediction_coefs.weight": [streams * streams, streams],
            f"{at}altup.correction_coefs.weight": [streams, streams],
            f"{at}altup.correct_output_scale": [hidden],
            f"{at}laurel.linear_left.weight": [rank, hidden],
            f"{at}laurel.linear_right.weight": [hidden, rank],
            f"{at}laurel.post_laurel_norm.weight": [hidden]})
    write_random(folder, config, shapes)


RANDOM = {"gemma3n-random": write_gemma3n, "gemma4-random": write_gemma4}


def model_folder(name, work):
    """The folder of a model, edited or made in `work` if need be."""
    folder = f"{work}/{name}"
    if name in RANDOM:
        RANDOM[name](folder)
        return folder
    if name not in EDITS:
        return f"{GOLDEN}/{name}"
    shutil.copytree(f"{GOLDEN}/{name}", folder, dirs_exist_ok=True)
    with open(f"{folder}/config.json", encoding="utf-8") as file:
        config = json.load(file)
    config.update(EDITS[name])
    with open(f"{folder}/config.json", "w", encoding="utf-8") as file:
        json.dump(config, file)
    return folder


def our_logits(kf_run, file):
    """A row of logits for each of IDS."""
    rows = []
    for count in range(1, len(IDS) + 1):
        text = run(kf_run, "logits", file, "--ids",
                   ",".join(map(str, IDS[:count])), "--device", "reference",
                   "--cache-type", "f32", "--json", "-").stdout
        rows.append(json.loads(text)["last_logits"])
    return rows


def llama_logits(reader, file):
    """The same of llama.cpp, or what it says where it does not read the file."""
    done = subprocess.run([reader, file, *map(str, IDS)], capture_output=True,
                          text=True, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit {done.returncode}"]
        return lines[0]
    return [[float(word) for word in line.split()]
            for line in done.stdout.splitlines()]


def perplexity(rows):
    total = 0.0
    for row, following in zip(rows, IDS[1:]):
        most = max(row)
        total += most + math.log(sum(math.exp(x - most) for x in row))
        total -= row[following]
    return math.exp(total / (len(IDS) - 1))


def distance(rows, others):
    """The largest difference; inf where one is no number."""
    differences = [abs(a - b) for row, other in zip(rows, others, strict=True)
                   for a, b in zip(row, other, strict=True)]
    return max(x if math.isfinite(x) else math.inf for x in differences)


def compare(arguments, reader, name, kind):
    """Prints a line; whether both agree."""
    work, kf_run = arguments.work, arguments.kf_run
    file = f"{work}/{name}.{kind}.gguf"
    warned = run(kf_run, "quantize", model_folder(name, work), file, "--type",
                 kind, "--force").stderr
    ours = our_logits(kf_run, file)
    rounds, same = "", file
    if kind != "f32":
        own = llama_logits(reader, file)
        rounds = (own if isinstance(own, str) else
                  f"{distance(ours, own):.1e}, {perplexity(own):.4f}")
        same = f"{work}/{name}.{kind}.f32.gguf"
        run(kf_run, "quantize", file, same, "--type", "f32", "--force")
    theirs = llama_logits(reader, same)
    if isinstance(theirs, str):
        print(f"| {name} | {kind} | not read: {theirs} | | | {rounds} |")
        return "will not load" in warned
    far = distance(ours, theirs)
    mine, other = perplexity(ours), perplexity(theirs)
    agrees = far <= LIMIT and abs(mine - other) <= LIMIT * mine
    expected = "llama.cpp will not heed" in warned or "rounds" in warned
    mark = "" if agrees else " (as warned)" if expected else " **differs**"
    print(f"| {name} | {kind} | {far:.1e}{mark} | {mine:.4f} | {other:.4f} | "
          f"{rounds} |", flush=True)
    return agrees or expected


def main():
    parser = argparse.ArgumentParser(usage=__doc__, add_help=False)
    parser.add_argument("--llama")
    parser.add_argument("--source")
    parser.add_argument("--work", default="/tmp/kf-gguf-peer")
    parser.add_argument("--kf-run", default="kf-run")
    parser.add_argument("--types", default="f32,bf16,q8_0,q4_0,q4_k")
    parser.add_argument("models", nargs="*")
    arguments = parser.parse_args()
    if bool(arguments.llama) != bool(arguments.source):
        parser.error("--llama and --source go together")
    os.makedirs(arguments.work, exist_ok=True)
    if arguments.llama:
        libraries, source = arguments.llama, arguments.source
    else:
        libraries, source = build_llama(arguments.work)
    reader = build_reader(libraries, source, arguments.work)
    models = arguments.models or [
        *sorted(os.path.basename(os.path.dirname(path))
                for path in glob.glob(f"{GOLDEN}/*/config.json")), *RANDOM]
    print("| model | type | logits differ by | perplexity | llama.cpp's | "
          "its own products: logits, perplexity |")
    print("| --- | --- | --- | --- | --- | --- |")
    agree = True
    for name in models:
        if name in LEFT_OUT:
            print(f"| {name} | | {LEFT_OUT[name]} | | | |")
            continue
        for kind in arguments.types.split(","):
            agree &= compare(arguments, reader, name, kind)
    sys.exit(0 if agree else 1)


if __name__ == "__main__":
    main()
