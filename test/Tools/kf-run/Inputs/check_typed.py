"""Runs what people type who know other programs, and looks at the answers.

check_typed.py MODELS FOLDER

Each command exits with the code that stands before it and says, on stdout or
stderr, what stands behind it; one that fails says so in a line.
"""
import json
import os
import re
import shlex
import subprocess
import sys

models, folder = sys.argv[1:]
model = os.path.join(models, "kf-stories-gguf", "kf-stories-Q4_0.gguf")
hub = os.path.join(models, "kf-stories")
os.chdir(folder)

with open("prompt.txt", "w") as file:
    file.write("Once upon a time\n")
with open("openai.jsonl", "w") as file:
    file.write(
        '{"model": "kf", "messages": [{"role": "user", "content":'
        ' [{"type": "text", "text": "Once"}]}], "max_tokens": 3,'
        ' "temperature": 0, "stream": false}\n'
    )
with open("image.jsonl", "w") as file:
    file.write(
        '{"messages": [{"role": "user", "content": [{"type": "image_url",'
        ' "image_url": {"url": "x.png"}}]}]}\n'
    )
with open("schema.json", "w") as file:
    file.write('{"const": 7}\n')
with open("tools.jsonl", "w") as file:
    file.write('{"prompt": "a", "tools": []}\n')
with open("api.jsonl", "w") as file:
    file.write(
        '{"custom_id": "1", "method": "POST", "url": "/v1/completions",'
        ' "body": {"prompt": "a"}}\n'
    )
for method in ("awq", "gptq"):
    os.makedirs(method, exist_ok=True)
    with open(os.path.join(hub, "config.json")) as file:
        config = json.load(file)
    config["quantization_config"] = {"quant_method": method, "bits": 4}
    with open(os.path.join(method, "config.json"), "w") as file:
        json.dump(config, file)
with open("x.mlir", "w") as file:
    file.write("func.func @f(%a: tensor<2xf32>) -> tensor<2xf32> {\n")
    file.write("  return %a : tensor<2xf32>\n}\n")
with open("pytorch_model.bin", "wb") as file:
    file.write(b"PK\x03\x04")
with open("model.onnx", "wb") as file:
    file.write(b"\x08\x07")

NO_EFFECT = r"note: {} has no effect: "
COMMANDS = f"""
# llama-cli
0 kf-run -m {model} -p "Once upon a time" -n 4 -ngl 99 | note: -ngl has no effect: all layers are always on the device
0 kf-run -m {model} -p Once --n-predict 4 --ctx-size 128 | decode 3 tokens
0 kf-run -m {model} -p Once -n 4 -fa on | note: -fa has no effect
0 kf-run -m {model} -p Once -n 4 -fa | note: -fa has no effect
0 kf-run -m {model} -p Once -n 4 -ctk q8_0 -ctv q8_0 | decode 3 tokens
2 kf-run -m {model} -p Once -n 4 -ctk q8_0 -ctv f16 | -ctk q8_0 and -ctv f16 are both --cache-type here
0 kf-run -m {model} -f prompt.txt -n 4 | prefill 5 tokens
0 kf-run -m {model} -p Once -n 4 -c 0 | decode 3 tokens
0 kf-run -m {model} -p Once -n 4 --temp 0.8 --seed -1 | decode 3 tokens
0 kf-run -m {model} -p "Once\\nupon" -n 1 --json - | "prompt": "Once\\\\nupon"
0 kf-run -m {model} -p "Once\\nupon" --no-escape -n 1 --json - | "prompt": "Once\\\\\\\\nupon"
0 kf-run -m {model} -p Once -n 4 -b 2048 -ub 512 | note: -ub has no effect
0 kf-run -m {model} -p Once -n 4 --mlock --no-mmap | note: --mlock has no effect
0 kf-run -m {model} -p Once -n 4 --color | note: --color has no effect
0 kf-run -m {model} -p Once -n 4 -t 1 -tb 1 -no-cnv --no-display-prompt | decode 3 tokens
0 kf-run -m {model} -p Once -n 4 -e -r "." --temp 0 --repeat-penalty 1.1 | decode
0 kf-run -m {model} -cnv -sys "Be kind." -n 2 < prompt.txt | token limit
0 kf-run chat -m {model} -i --color -n 2 < prompt.txt | token limit
2 kf-run chat -m {model} -p Hello | -p is not of chats: type the message
2 kf-run -hf ggml-org/gemma-3-1b-it-GGUF -p Hi | names a model to download, which kf-run does not
2 kf-run -m {model} -p Hi --mmproj mmproj.gguf | prompts are text alone
2 kf-run -m {model} -p Hi --image cat.png | prompts are text alone
0 kf-run -m {model} -p Hi --grammar 'root ::= "yes"' | complete
0 kf-run -m {model} -p Hi -j '{{"const": 7}}' | complete
0 kf-run -m {model} -p Hi -jf schema.json | complete
2 kf-run serve -m {model} --grammar-file x.gbnf | is said by requests: response_format
2 kf-run -m {model} -p Hi --mirostat 2 | tokens are chosen by --temp
0 kf-run -m {model} -p Once -n 4 --mirostat 0 --mirostat-lr 0.1 --typical 1.0 --xtc-probability 0.0 | decode 3 tokens
0 kf-run -m {model} -p Once -n 4 --dry-multiplier 0 --keep 0 -sm layer -mg 0 -ncmoe 0 | decode 3 tokens
0 kf-run -m {model} -p Once -n 4 --spec-type none --top-nsigma 0 --adaptive-target -0.5 -gaw 512 | decode 3 tokens
2 kf-run -m {model} -p Hi --spec-type ngram-simple | or by --ngram N
2 kf-run -m {model} -p Hi --adaptive-target 0 | tokens are chosen by --temp
2 kf-run -m {model} -p Hi --keep -1 | -c N makes it longer
0 kf-run -m {model} -p Once -n 1 -l 11-inf -mli -sp -ptc 8 -np 1 -dt 0.1 -lm mmap --verbose-prompt | note: -dt has no effect: the KV cache is made of pages
0 kf-run -m {model} -p Once -n 1 --no-show-timings --no-log-prefix -bs | upon
2 kf-run -m {model} -p Hi --spec-draft-n-max 8 | tokens are drafted by --draft-model MODEL
2 kf-run -m {model} -p Hi --cache-type-k-draft q8_0 | in the context of the other one
2 kf-run -m {model} -p Hi --video cat.mp4 | prompts are text alone
2 kf-run -m {model} -p Hi --prompt-cache-all | keys and values are not kept in files
2 kf-run chat -m {model} -f prompt.txt | -f is not of chats: type the message
2 kf-run chat -m {model} -sysf prompt.txt | --system "$(cat FILE)" takes the text of a file
2 kf-run chat -m {model} --in-prefix User: | the chat template says what stands around messages
2 kf-run chat -m {model} -r User: | answers end where the model ends them
2 kf-run chat -m {model} --reasoning off | --chat-template-kwargs '{{"enable_thinking": false}}' leaves thoughts out
0 kf-run chat -m {model} -n 2 --reasoning-budget -1 --reasoning-format none < prompt.txt | token limit
2 kf-run chat -m {model} --reasoning -1 | --chat-template-kwargs '{{"enable_thinking": false}}' leaves thoughts out
0 kf-run chat -m {model} -n 2 --reasoning auto --no-show-timings < prompt.txt | token limit
2 kf-run chat -m {model} --reasoning-budget-message on | -n bounds an answer
2 kf-run chat -m {model} --reasoning-effort low | --chat-template-kwargs '{{"reasoning_effort": "low"}}' tells it
0 kf-run chat -m {model} -n 2 --chat-template-kwargs '{{"enable_thinking": false}}' < prompt.txt | token limit
2 kf-run generate --version | is of no command: 'kf-run --version'
1 kf-run -m {model} -p Hi -md draft.gguf | draft.gguf
0 kf-run -m {model} -p Once -n 4 -md {model} --draft-max 2 | decode 3 tokens
1 kf-run -m {model} -p Hi --lora x.gguf | adapter 'x.gguf': it is no folder
1 kf-run -m {model} -p Hi --lora {hub} | but is a model's folder; adapters are added to one
2 kf-run -m {model} -p Hi --lora-scaled x.gguf:0.5 | an adapter's factor is lora_alpha
2 kf-run tune -m {model} --lora x | is of commands that run a model
2 kf-run -m {model} -p Hi -sm row | a model is computed by one device
2 kf-run llama-cli -m {model} | 'kf-run generate MODEL -p TEXT' continues a text
2 kf-run server -m {model} --port 8080 | 'kf-run serve MODEL' answers requests of OpenAI's API
2 kf-run -m {model} -p Hi --port 8080 | is of the server: 'kf-run serve MODEL'
2 kf-run pull llama3 | models are not downloaded
# llama-bench, llama-quantize, llama-perplexity, llama-tokenize
0 kf-run bench -m {model} -p 8 -n 2 -r 1 -ngl 99 -fa 1 -t 1 | tg2
0 kf-run bench -m {model} -p 8 -n 0 -r 1 -t 1 -o jsonl | "n_batch":[0-9]+,"n_ubatch":[0-9]+
0 kf-run bench -m {model} -p 0 -n 2 -r 1 -t 1 -ctk q8_0 -ctv q8_0 -mmp 0 | tg2
2 kf-run bench -m {model} -b 2048 -ub 512 | sequences that generate at once are -s
0 kf-run quantize {hub} stories.gguf Q4_K_M | note: Q4_K_M is q4_k here: the same mix
0 kf-run quantize {hub} stories-q8.gguf Q8_0 | wrote 'stories-q8.gguf'
0 kf-run quantize {model} again.gguf Q8_0 --allow-requantize | wrote 'again.gguf'
0 kf-run quantize {hub} four.gguf Q4_0 2 | wrote 'four.gguf'
2 kf-run quantize {hub} two.gguf Q4_0 --threads 2 3 | the threads are given twice: '3' and --threads 2
2 kf-run quantize {hub} four.gguf Q4_0 many | THREADS takes an integer from 0 to
2 kf-run quantize {model} Q4_K_M | OUT.gguf is missing: give MODEL, OUT.gguf and 'Q4_K_M'
2 kf-run quantize {hub} s.gguf Q4_K_S | there is no mix 'Q4_K_S'; q4_k is the one of its kind
2 kf-run quantize {hub} s.gguf Q4_K_M --imatrix imatrix.dat | without an importance matrix
0 kf-run perplexity -m {model} -f prompt.txt -c 4 --chunks 1 | perplexity
2 kf-run perplexity -m {model} -f prompt.txt --ppl-stride 4 | --convention llama.cpp
0 kf-run tokenize -m {model} -p "Once\\nupon" | ids:
0 kf-run inspect -m {model} --json - | "architecture"
0 kf-run help bench | usage: kf-run bench
2 kf-run help convert | 'kf-run quantize MODEL OUT.gguf q4_k' writes a model
# llama-server: what it understands goes on, to a model that is not there
1 kf-run serve -m absent -np 4 --n-gpu-layers 99 --jinja --slots --metrics --props --alias a | cannot open model 'absent'
1 kf-run serve -m absent -cb --webui --warmup --no-context-shift --cache-prompt -kvu -c 512 -n 9 | cannot open model 'absent'
1 kf-run serve -m absent --no-show-timings | cannot open model 'absent'
1 kf-run serve -m absent --no-mmproj --no-perf --offline --repack --log-timestamps | cannot open model 'absent'
1 kf-run serve -m absent --api-key-file prompt.txt --host 0.0.0.0 --temp 0.5 --top-k 4 -t 1 | cannot open model 'absent'
1 kf-run serve -m absent --threads-http 4 | note: --threads-http has no effect: one thread serves all connections
1 kf-run serve -m absent --timeout 600 | note: --timeout has no effect: .*docs/Server.md
1 kf-run serve -m absent --no-webui | note: --no-webui has no effect: the page at / stays
1 kf-run serve -m absent --no-slots -nocb | note: -nocb has no effect: requests share steps
1 kf-run serve -m absent --reasoning-format deepseek | thoughts in <think> tags are reasoning_content
1 kf-run serve -m absent --cache-reuse 256 -sps 0.5 | note: --cache-reuse has no effect: prompts share all
1 kf-run serve -m absent -ctxcp 8 -cram 2048 --swa-full --check-tensors | note: -cram has no effect: .*--cache-memory bounds it
1 kf-run serve -m absent --no-cache-prompt -lv 4 --log-colors off -fit on | note: -lv has no effect: --profile
1 kf-run serve -m absent --no-mmap --mlock -dio -fa auto | note: -dio has no effect
2 kf-run serve -m absent --chat-template chatml | --template FILE takes a template as a file
1 kf-run serve -m {hub} --chat-template-file absent.jinja | cannot open 'absent.jinja'
2 kf-run serve -m absent --ssl-key-file k.pem --ssl-cert-file c.pem | a reverse proxy has the certificate
2 kf-run serve -m absent --path public | a reverse proxy serves files
2 kf-run serve -m absent --slot-save-path slots | keys and values are not kept in files
2 kf-run serve -m absent --lora-init-without-apply | requests name an adapter as their model
2 kf-run serve -m absent --model-draft d.gguf --ngram 2 | --ngram and --draft-model both draft tokens
2 kf-run serve -m absent -ngld 9 | on the device and in the context of the other one
2 kf-run serve -m absent --mmproj-url x | prompts are text alone
2 kf-run serve -m absent -ts 1,1 | a model is computed by one device
2 kf-run serve -m absent -mg 1 | is --device here, as in --device cuda:1
2 kf-run serve -m absent --keep 4 | -c N makes it longer
2 kf-run serve -m absent --rope-freq-base 1e6 | the model says how positions are rotated
2 kf-run serve -m absent --grp-attn-n 2 | the positions that the model was made for
2 kf-run serve -m absent --override-kv a=int:1 | a model's metadata is taken as it is
2 kf-run serve -m absent --samplers top_k | tokens are chosen by --temp
2 kf-run serve -m absent --dry-multiplier 0.8 --dry-allowed-length 2 | tokens are chosen by --temp
2 kf-run serve -m absent --xtc-probability 0.5 | tokens are chosen by --temp
2 kf-run serve -m absent --typical 0.9 | tokens are chosen by --temp
2 kf-run serve -m absent --top-n-sigma 1 | tokens are chosen by --temp
2 kf-run serve -m absent --dynatemp-range 0.5 | tokens are chosen by --temp
2 kf-run serve -m absent --reasoning-budget 0 | chat-template-kwargs
1 kf-run serve -m absent --chat-template-kwargs '{{"enable_thinking":false}}' | cannot open model 'absent'
2 kf-run serve -m absent --ignore-eos | is said by requests: ignore_eos
2 kf-run serve -m absent -r STOP | is said by requests: stop
2 kf-run serve -m absent --system-prompt x | is said by requests: prompt, or messages
2 kf-run serve -m absent --models-dir models | a server has one model
2 kf-run serve -m absent --reranking | models continue texts and answer chats
2 kf-run serve -m absent --rpc 10.0.0.1:50052 | one device of this machine
2 kf-run serve -m absent --list-devices | is 'kf-run devices' here
2 kf-run serve -m absent --log-file x.log | 2> FILE
2 kf-run generate -m absent --pooling mean | is of embeddings
2 kf-run generate -m absent --embd-normalize 2 | is of embeddings
2 kf-run embed -m absent --embd-normalize 2 | is --normalize here
2 kf-run serve -m absent --embd-normalize 2 | is --normalize here
2 kf-run batch -m absent --embd-normalize 2 | is --normalize here
# Hugging Face, OpenAI, vLLM
0 kf-run generate {hub} --prompt Once --max_new_tokens 4 --temperature 0.7 --top_p 0.9 | decode 3 tokens
0 kf-run generate --model {hub} --prompt Once --max-tokens 4 --max-model-len 64 | decode 3 tokens
2 kf-run generate {hub} -p Once --do_sample True | tokens are drawn where --temp is above 0
2 kf-run generate {hub} -p Once --torch_dtype float16 | weights stay of the type
2 kf-run generate {hub} -p Once --load_in_4bit | 'kf-run quantize MODEL OUT.gguf q4_0'
1 kf-run generate {hub} -p Once --tensor-parallel-size 3 | 3 ranks cannot share the model's 4 heads
2 kf-run tune {hub} -tp 2 | computed by one device
0 kf-run generate {hub} -p Once --max-tokens 4 --tensor-parallel-size 1 --dtype auto | decode 3 tokens
1 kf-run generate meta-llama/Llama-3.2-1B -p Once | 'hf download meta-llama/Llama-3.2-1B --local-dir DIR'
1 kf-run generate {hub}/model.safetensors -p Once | give the folder that it lies in
1 kf-run generate ./pytorch_model.bin -p Once | is of PyTorch
1 kf-run generate ./model.onnx -p Once | is of ONNX
1 kf-run generate ./awq -p Once | 'quantization_config' is of the method 'awq', whose weights are not read
1 kf-run generate ./gptq -p Once | 'quantization_config' is of the method 'gptq', whose weights are not read
0 kf-run batch {hub} --file openai.jsonl --quiet | "finish_reason":"length"
1 kf-run batch {hub} --file image.jsonl --quiet | has a part of type 'image_url'; prompts are text alone
1 kf-run batch {hub} --file tools.jsonl --quiet | 'tools' is not supported
0 kf-run batch {hub} --file api.jsonl --quiet | "custom_id":"1","response":{{"status_code":200,
0 kf-run perplexity {hub} --file prompt.txt --window 4 --stride 2 | perplexity
# mlir-opt, mlir-runner
0 kf-opt x.mlir --canonicalize --cse | func.func @f
0 kf-opt x.mlir --pass-pipeline=builtin.module(canonicalize) --mlir-print-ir-after-all | IR Dump After
0 kf-run exec x.mlir -e f --input 2xf32=1,2 | 1
2 kf-run exec x.mlir --entry-point-result=void | all results are printed
2 kf-run emit-mlir {hub} --mlir-print-ir-after-all | is of kf-opt
2 kf-run emit-mlir x.mlir --pass-pipeline=builtin.module(cse) | is of kf-opt
2 kf-run opt x.mlir | kf-opt runs passes on a file
1 kf-run ./x.mlir -p Once | 'kf-run exec' runs its functions
"""

count = 0
for line in COMMANDS.strip().splitlines():
    if line.startswith("#"):
        continue
    count += 1
    code, rest = line.split(" ", 1)
    command, expected = rest.rsplit(" | ", 1)
    words = shlex.split(command)
    stdin = subprocess.DEVNULL
    if "<" in words:
        stdin = open(words[words.index("<") + 1])
        words = words[: words.index("<")]
    run = subprocess.run(
        words, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    said = run.stdout + run.stderr
    assert run.returncode == int(code), (line, run.returncode, said)
    assert expected in said or re.search(expected, said), (line, said)
    # What a batch says of its requests comes beside its results.
    if run.returncode and "batch" not in words:
        lines = [text for text in run.stderr.splitlines() if text[:6] != "note: "]
        assert run.stdout == "" and len(lines) == 1, (line, said)
        assert lines[0].startswith("error: "), (line, said)
assert count >= 60, count

# Who writes JSON over a model by mistake is stopped.
before = os.path.getsize("again.gguf")
run = subprocess.run(
    ["kf-run", "inspect", "--json", "again.gguf"], stderr=subprocess.PIPE, text=True
)
assert run.returncode == 2, run
assert run.stderr.startswith("error: --json would replace the model 'again.gguf'"), run
assert os.path.getsize("again.gguf") == before
