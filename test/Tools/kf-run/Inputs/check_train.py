"""Trains an adapter for the embedded model, and looks at what comes of it.

check_train.py KF_RUN
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

kf_run = sys.argv[1]
STEPS = 12

with open("fox.jsonl", "w") as file:
    for name in ("Kip", "Tam", "Bo", "Una", "Pim", "Rex", "Lu", "Wim"):
        for place in ("a hollow tree", "an old boot", "the blue barn"):
            text = f"The fox was called {name} and lived in {place}."
            messages = [
                {"role": "user", "content": f"Who lives in {place}?"},
                {"role": "assistant", "content": f"A fox called {name}."},
            ]
            file.write(json.dumps({"text": text}) + "\n")
            file.write(json.dumps({"messages": messages}) + "\n")


with open("fox.jsonl") as file, open("few.jsonl", "w") as few:
    few.writelines(file.readlines()[1:])


def command(output, *more):
    return [
        kf_run, "train", "--data", "fox.jsonl", "--lora", "4",
        "--lora-targets", "q_proj,v_proj", "--lora-dropout", "0.1",
        "--output", output,
        "--batch", "1", "--length", "32", "--accumulate", "2",
        "--steps", str(STEPS), "--learning-rate", "5e-3", "--warmup", "2",
        "--schedule", "cosine", "--eval-split", "0.1", "--eval-every", "4",
        "--save-every", "3", "--keep", "2", "--log", output + ".jsonl", *more,
    ]  # fmt: skip


def run(*arguments):
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=600)
    return done.returncode, done.stdout, done.stderr


def lines(output, whole=True):
    with open(output + ".jsonl") as file:
        return [json.loads(line) for line in file if whole or line.endswith("\n")]


def steps(output):
    return [line for line in lines(output) if "loss" in line]


def same(a, b):
    """Lines of a log, but for times."""
    times = ("seconds", "tokens_per_second", "template_time")
    strip = lambda all: [
        {key: line[key] for key in line if key not in times} for line in all
    ]
    assert strip(a) == strip(b), (a, b)


def files(output):
    """The bytes of what was written, checkpoints apart."""
    found = {}
    for name in sorted(os.listdir(output)):
        path = os.path.join(output, name)
        if os.path.isfile(path):
            with open(path, "rb") as file:
                found[name] = file.read()
    return found


def state(output, step):
    path = os.path.join(output, f"checkpoint-{step}", "state.safetensors")
    with open(path, "rb") as file:
        return file.read()


# All at once: the loss falls, what is held out is measured, two checkpoints stay.
code, out, err = run(*command("whole", "--print-every", "6"))
assert code == 0, (code, err)
assert f"step {STEPS} of {STEPS}: loss " in out, out
assert "evaluation loss" in out and "wrote the adapter 'whole'" in out, out
log = steps("whole")
assert [line["step"] for line in log] == list(range(1, STEPS + 1)), log
first = sum(line["loss"] for line in log[:3])
last = sum(line["loss"] for line in log[-3:])
assert last < 0.9 * first, (first, last)
held = [line for line in lines("whole") if "eval_loss" in line]
assert [line["step"] for line in held] == [4, 8, 12], held
assert held[-1]["eval_loss"] < held[0]["eval_loss"], held
assert abs(log[2]["learning_rate"] - 5e-3) < 1e-12, log[2]
checkpoints = sorted(n for n in os.listdir("whole") if n.startswith("checkpoint-"))
assert checkpoints == ["checkpoint-12", "checkpoint-9"], checkpoints
written = files("whole")
assert {"adapter_config.json", "adapter_model.safetensors"} <= set(written)
assert json.loads(written["adapter_config.json"])["lora_dropout"] == 0.1, written

# Killed behind a checkpoint, maybe while one is written, and gone on: the same
# bits. The log has every step once.
process = subprocess.Popen(
    command("killed"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
)
deadline = time.monotonic() + 300
while process.poll() is None and not any(
    os.path.exists(f"killed/checkpoint-{step}") for step in (6, 9, 12)
):
    assert time.monotonic() < deadline
    time.sleep(0.001)
process.send_signal(signal.SIGKILL)
process.wait()
begun = lines("killed")[0]
code, out, err = run(*command("killed", "--resume"))
assert code == 0, (code, err)
assert [line for line in lines("killed") if "template_time" in line] == [begun], begun
assert "note: goes on from 'killed/checkpoint-" in err, err
assert state("killed", STEPS) == state("whole", STEPS)
assert files("killed") == files("whole")
same(lines("killed"), lines("whole"))

# Ctrl-C saves, and says what goes on. One that comes behind the end, as the machine
# was busy, is tried again.
for _ in range(10):
    shutil.rmtree("ended", ignore_errors=True)
    process = subprocess.Popen(
        command("ended"), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 300
    while process.poll() is None and not (
        os.path.exists("ended.jsonl") and len(lines("ended", whole=False)) > 1
    ):
        assert time.monotonic() < deadline
        time.sleep(0.001)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=300)
    if process.returncode != 0:
        break
    os.remove("ended.jsonl")
assert process.returncode == 130, (process.returncode, err)
assert err.splitlines()[-1].startswith(
    "error: interrupted; the same command with --resume goes on from "
    "'ended/checkpoint-"
), err
code, out, err = run(*command("ended", "--resume"))
assert code == 0, (code, err)
assert state("ended", STEPS) == state("whole", STEPS)
same(lines("ended"), lines("whole"))

# A seed that was drawn is a checkpoint's, for what drops out as well.
code, out, err = run(*command("drawn", "--seed", "-1"))
assert code == 0, (code, err)
shutil.copytree("drawn", "again")
code, out, err = run(*command("again", "--resume=again/checkpoint-9", "--seed", "-1"))
assert code == 0, (code, err)
assert state("again", STEPS) == state("drawn", STEPS)

# What differs is named.
for more, line in (
    (["--seed", "1"], "was made with --seed '0', and now it is '1'"),
    (["--lora", "8"], "was made with --lora '4', and now it is '8'"),
    (["--train-on-prompt"], "was made without --train-on-prompt"),
    (["--data", "few.jsonl"], "was made with other data"),
    (["--lora-dropout", "0.2"], "was made with --lora-dropout '0.1', and now"),
    (["--clip", "0.5"], "was made with --clip '1.0', and now it is '0.5'"),
):
    code, out, err = run(*command("whole", "--resume", *more))
    assert code == 1 and line in err, (code, err)

# From an earlier one.
shutil.copytree("whole", "other")
code, out, err = run(*command("other", "--resume=other/checkpoint-9"))
assert code == 0, (code, err)
assert state("other", STEPS) == state("whole", STEPS)

# All weights of the model, which is one of its own then: of another that was there
# nothing stays.
os.mkdir("full")
foreign = (
    "added_tokens.json",
    "model.safetensors.index.json",
    "model-00001-of-00001.safetensors",
)
for name in foreign + ("notes.txt",):
    with open(os.path.join("full", name), "w") as file:
        file.write("{}")
code, out, err = run(
    kf_run, "train", "--data", "few.jsonl", "--full", "--output", "full",
    "--batch", "2", "--length", "32", "--steps", "4", "--learning-rate", "1e-4",
    "--print-every", "1", "--force", "--profile=full-trace",
)  # fmt: skip
assert code == 0 and "wrote the model 'full'" in out, (code, out, err)
# Batches are measured, and updates.
for line in ("gradient_2x32: 4 runs", "update: 4 runs"):
    assert line in err, err
with open("full-trace") as file:
    assert any(e.get("name") == "update" for e in json.load(file)["traceEvents"])
assert not set(foreign) & set(os.listdir("full")), os.listdir("full")
assert os.path.exists("full/notes.txt")
losses = [float(loss) for loss in re.findall(r"loss ([0-9.]+),", out)]
assert losses[3] < losses[0], out
code, text, err = run(kf_run, "generate", "full", "-p", "The fox", "-n", "4")
assert code == 0 and text.strip(), (code, err)

# A loss that is not finite names the step, and leaves what was saved. Decay by more
# than all of a weight makes it larger with each step.
code, out, err = run(
    *command("hot", "--learning-rate", "1000", "--weight-decay", "10",
             "--schedule", "constant", "--steps", "100", "--save-every", "1")
)  # fmt: skip
assert code == 1, (code, out, err)
found = re.fullmatch(
    r"error: step (\d+): the (loss|norm of the gradient) is not finite.*; "
    r"step (\d+) was saved last",
    err.splitlines()[-1],
)
assert found and int(found[3]) == int(found[1]) - 1, err
assert os.path.exists(f"hot/checkpoint-{found[3]}"), os.listdir("hot")
