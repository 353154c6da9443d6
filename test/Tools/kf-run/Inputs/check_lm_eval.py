"""Has lm-eval, from PyPI, score the embedded model through `kf-run serve`.

Its task is made here: to go on with beginnings of stories as `kf-run generate`
does. One of the answers is another one's, so that a right score is not 1.
"""

import glob
import json
import os
import re
import subprocess
import sys

SECONDS = 600
BEGINS = ("Once upon a time", "One day, a little girl", "The old dog", "Lily went to",
          "There was a boat")
TOKENS = 12


def generated(text):
    return subprocess.run(
        ["kf-run", "generate", "-p", text, "-n", str(TOKENS), "--quiet"], check=True,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout.removesuffix("\n")


answers = [generated(begin) for begin in BEGINS]
assert len(set(answers)) == len(answers), answers
answers[-1] = answers[0]
with open("stories.jsonl", "w") as file:
    for begin, answer in zip(BEGINS, answers):
        file.write(json.dumps({"begin": begin, "answer": answer.strip()}) + "\n")
with open("stories.yaml", "w") as file:
    json.dump({
        "task": "stories", "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": os.path.abspath("stories.jsonl")}},
        "test_split": "test", "output_type": "generate_until",
        "doc_to_text": "{{begin}}", "doc_to_target": "{{answer}}",
        "generation_kwargs": {"until": ["\n\n\n"], "max_gen_toks": TOKENS, "temperature": 0},
        "filter_list": [{"name": "whole", "filter": [
            {"function": "remove_whitespace"}, {"function": "take_first"}]}],
        "metric_list": [{"metric": "exact_match", "aggregation": "mean",
                         "higher_is_better": True}],
        "metadata": {"version": 1}}, file)

serve = subprocess.Popen(["kf-run", "serve", "--port", "0"], stdout=subprocess.PIPE, text=True)
try:
    url = re.fullmatch(r"listening on (\S+)\n", serve.stdout.readline())[1]
    assert serve.stdout.readline().startswith("serving ")
    model = {"model": "kf-stories", "base_url": url + "/v1/completions", "num_concurrent": 3,
             "tokenizer_backend": "none", "tokenized_requests": False, "max_retries": 1}
    subprocess.run(
        [sys.executable, "-m", "lm_eval", "--model", "local-completions", "--model_args",
         ",".join(f"{key}={value}" for key, value in model.items()),
         "--tasks", "stories", "--include_path", ".", "--output_path", "scores"],
        check=True, timeout=SECONDS, stdout=subprocess.DEVNULL,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": os.getcwd(),
             "OPENAI_API_KEY": "none"})
finally:
    serve.terminate()
    assert serve.wait(SECONDS) == 0
(path,) = glob.glob("scores/**/results_*.json", recursive=True)
with open(path) as file:
    score = json.load(file)["results"]["stories"]["exact_match,whole"]
assert abs(score - (len(BEGINS) - 1) / len(BEGINS)) < 1e-9, score
