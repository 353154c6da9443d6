"""Compares perplexities by conventions of chunks and of windows with sums of
single predictions.

check_perplexity.py FOLDER [arguments of kf-run]
"""
import json
import math
import os
import statistics
import subprocess
import sys

folder, *arguments = sys.argv[1:]
WINDOW, STRIDE = 8, 3
TEXTS = ["Once upon a time there was a little dog named Sam.", "He ran to the hill and back."]


def kf_run(*words):
    return subprocess.run(
        ["kf-run", *words], stdout=subprocess.PIPE, text=True, check=True
    ).stdout


def perplexity(file, *words):
    return json.loads(
        kf_run("perplexity", "--file", file, "--json", "-", *words, *arguments)
    )


def tokens(text):
    out = kf_run("tokenize", "--no-escape", "-p", text, "--add-special", "--json", "-")
    return json.loads(out)["ids"]


def loss(ids):
    """Of the last of `ids` behind the others."""
    before = ",".join(map(str, ids[:-1]))
    scores = json.loads(kf_run("logits", "--ids", before, "--json", "-", *arguments))
    return scores["logsumexp"][-1] - scores["last_logits"][ids[-1]]


def check(result, losses, convention):
    assert result["convention"] == convention, result
    assert result["tokens"] == len(losses), (result, len(losses))
    mean = statistics.mean(losses)
    assert math.isclose(result["nll_per_token"], mean, rel_tol=1e-3), (result, mean)
    assert math.isclose(result["perplexity"], math.exp(mean), rel_tol=1e-2), result
    # As of the mean of independent numbers.
    error = statistics.stdev(losses) / math.sqrt(len(losses))
    assert math.isclose(result["nll_standard_error"], error, rel_tol=1e-2), (result, error)
    both = result["perplexity"] * result["nll_standard_error"]
    assert math.isclose(result["perplexity_standard_error"], both, rel_tol=1e-6), result


# llama-perplexity: the second half of each whole chunk, which begins with the
# begin token; a file's last line break is not of the text.
one = os.path.join(folder, "one.txt")
with open(one, "w") as file:
    file.write(TEXTS[0] + "\n")
ids = tokens(TEXTS[0])
chunks = [ids[i : i + WINDOW] for i in range(0, len(ids) - WINDOW + 1, WINDOW)]
chunks = [ids[:1] + chunk[1:] for chunk in chunks]
losses = [
    [loss(chunk[: end + 1]) for end in range(WINDOW // 2 + 1, WINDOW)] for chunk in chunks
]
check(perplexity(one, "--convention", "llama.cpp", "--window", str(WINDOW)), sum(losses, []), "llama.cpp")
check(perplexity(one, "--chunks", "1", "-c", str(WINDOW)), losses[0], "llama.cpp")

# Hugging Face: each token once, behind what its window has before it.
two = os.path.join(folder, "two.json")
with open(two, "w") as file:
    json.dump(TEXTS, file)
ids = tokens("\n\n".join(TEXTS))
losses, scored, begin = [], 1, 0
while scored < len(ids):
    window = ids[begin : begin + WINDOW]
    losses += [loss(window[: i + 1]) for i in range(scored - begin, len(window))]
    scored = begin + len(window)
    begin += STRIDE
check(perplexity(two, "--window", str(WINDOW), "--stride", str(STRIDE)), losses, "strided")
