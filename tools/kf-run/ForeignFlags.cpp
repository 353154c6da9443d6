//===- ForeignFlags.cpp - What users of other programs type ---------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ForeignFlags.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

using namespace kf;

namespace {

using enum ForeignFlag::Meaning;
using enum ForeignFlag::Takes;

constexpr std::string_view kSamplers =
    "is not supported: tokens are chosen by --temp, --top-k, --top-p, --min-p, "
    "penalties and --logit-bias";
constexpr std::string_view kOtherDrafts =
    "is not supported: tokens are drafted by --draft-model MODEL, on the "
    "device "
    "and in the context of the other one, or by --ngram N, at most "
    "--draft-tokens at a time and as many as are worth it";
/// Among values that ask for nothing: all numbers below 0.
constexpr std::string_view kAnyNegative = "<0";

constexpr std::string_view kThoughts =
    "is not supported: --chat-template-kwargs '{\"enable_thinking\": false}' "
    "leaves thoughts out where the template can, and -n bounds an answer";

/// Of entries with the same spelling, the first one that fits counts. Notes and
/// errors begin with the option as it was typed: "-ngl ...".
constexpr ForeignFlag kFlags[] = {
    // Other spellings.
    {"--n-predict --predict --max-new-tokens --max-tokens "
     "--max-completion-tokens",
     "", Same, Value, "tokens"},
    {"--ctx-size --n-ctx --max-model-len --max-seq-len", "", Same, Value,
     "context"},
    {"--temperature", "", Same, Value, "temp"},
    {"--repetition-penalty", "", Same, Value, "repeat-penalty"},
    {"-sys --sys --system-prompt", "", Same, Value, "system"},
    {"-f -bf --binary-file", "", Same, Value, "file"},
    {"-ctk --cache-type-k -ctv --cache-type-v --kv-cache-dtype", "", Same,
     Value, "cache-type"},
    {"-r --reverse-prompt", "", Same, Value, "stop"},
    {"-l", "", Same, Value, "logit-bias"},
    {"-np --n-parallel", "", Same, Value, "parallel"},
    {"--chat-template-file", "", Same, Value, "template"},
    {"-jf --json-schema-file --guided-json", "", Same, Value, "json-schema"},
    {"-dev", "", Same, Value, "device"},
    {"--tensor-parallel-size -tp", "", Same, Value, "tensor-parallel"},
    {"--pipeline-parallel-size -pp", "", Same, Value, "pipeline-parallel"},
    {"-md --model-draft", "", Same, Value, "draft-model"},
    {"--draft --draft-n --draft-max", "", Same, Value, "draft-tokens"},
    {"--lora-modules", "", Same, Value, "lora"},
    {"--model-name-or-path --model-path --pretrained", "", Same, Value,
     "model"},
    {"-cnv --conversation -i --interactive -if --interactive-first", "", Same,
     Nothing, "conversation"},
    {"-no-cnv --no-conversation -st --single-turn", "generate", Same, Nothing,
     "no-conversation"},
    {"--no-parse-special", "", Same, Nothing, "plain"},
    {"--log-disable --no-show-timings", "generate batch", Same, Nothing,
     "quiet"},
    {"-e --entry-point", "", Same, Value, "function"},
    {"--ftype --outtype", "quantize", Same, Value, "type"},
    {"--train-file --train-data --dataset", "train", Same, Value, "data"},
    {"--output-dir --out", "train", Same, Value, "output"},
    {"--lora-r --lora-rank --rank", "train", Same, Value, "lora"},
    {"--lora-target-modules --target-modules", "train", Same, Value,
     "lora-targets"},
    {"--use-rslora", "train", Same, Nothing, "rslora"},
    {"--lr -lr", "train", Same, Value, "learning-rate"},
    {"--min-lr -lr-min", "train", Same, Value, "min-learning-rate"},
    {"--lr-scheduler-type", "train", Same, Value, "schedule"},
    {"--warmup-steps", "train", Same, Value, "warmup"},
    {"--num-train-epochs --num-epochs -epochs", "train", Same, Value, "epochs"},
    {"--max-steps", "train", Same, Value, "steps"},
    {"--per-device-train-batch-size --batch-size", "train", Same, Value,
     "batch"},
    {"--max-seq-length --max-seq-len --max-length --ctx-size", "train", Same,
     Value, "length"},
    {"--gradient-accumulation-steps", "train", Same, Value, "accumulate"},
    {"--optim -opt", "train", Same, Value, "optimizer"},
    {"--adam-beta1", "train", Same, Value, "beta1"},
    {"--adam-beta2", "train", Same, Value, "beta2"},
    {"--adam-epsilon", "train", Same, Value, "epsilon"},
    {"-wd", "train", Same, Value, "weight-decay"},
    {"--max-grad-norm", "train", Same, Value, "clip"},
    {"--eval-file --validation-file", "train", Same, Value, "eval-data"},
    {"--val-split -val-split", "train", Same, Value, "eval-split"},
    {"--eval-steps", "train", Same, Value, "eval-every"},
    {"--save-steps", "train", Same, Value, "save-every"},
    {"--save-total-limit", "train", Same, Value, "keep"},
    {"--logging-steps", "train", Same, Value, "print-every"},

    // What happens anyway.
    {"-cnv --conversation -i --interactive -if --interactive-first", "chat",
     Already, Nothing, ""},
    {"-e --escape", "generate chat tokenize", Already, Nothing, ""},
    {"--cont-batching -cb --metrics --slots --props --webui --ui "
     "--cache-prompt --kv-unified -kvu",
     "serve", Already, Nothing, ""},
    {"--served-model-name", "", Same, Value, "alias"},
    {"--max-num-seqs", "", Same, Value, "parallel"},
    {"--no-display-prompt --stream --streaming --warmup --no-warmup "
     "--no-context-shift --no-mmproj --no-perf --offline --repack "
     "--kv-offload -kvo --op-offload --log-prefix --log-timestamps "
     "--no-log-prefix --no-log-timestamps --no-log-jsonl --show-timings "
     "--backend-sampling -bs --mmproj-auto --no-mmproj-auto",
     "", Already, Nothing, ""},
    // They say how that works which is refused below.
    {"--mirostat-lr --mirostat-ent --dynatemp-exp --xtc-threshold --dry-base "
     "--dry-allowed-length --dry-penalty-last-n --dry-sequence-breaker "
     "--adaptive-decay -gaw --grp-attn-w",
     "", Already, Value, ""},
    {"--log-disable --no-show-timings --simple-io --no-bos --stdin "
     "--allow-requantize",
     "", Already, Nothing, ""},

    // Of no effect.
    {"-ngl --gpu-layers --n-gpu-layers", "", NoEffect, Value,
     "has no effect: all layers are always on the device, which --device "
     "names (auto takes a GPU)"},
    {"-fit --fit -fitt --fit-target -fitc --fit-ctx", "", NoEffect, Value,
     "has no effect: --device names the device, and -c and --cache-memory say "
     "what the KV cache may take"},
    {"-fa --flash-attn", "", NoEffect, Switch,
     "has no effect: attention never makes the matrix of all scores"},
    {"--mlock --mmap --no-mmap -dio --direct-io -ndio --no-direct-io "
     "--no-repack -nr --no-host",
     "", NoEffect, Nothing,
     "has no effect: weights are packed into memory of their own once, and "
     "mapped where they lie as kernels want them"},
    {"-lm --load-mode -lzm --lazy-mode", "", NoEffect, Value,
     "has no effect: weights are packed into memory of their own once, and "
     "mapped where they lie as kernels want them"},
    {"-mmp", "", NoEffect, Switch,
     "has no effect: weights are packed into memory of their own once, and "
     "mapped where they lie as kernels want them"},
    {"--color", "", NoEffect, Switch, "has no effect: text has no colours"},
    {"-tb --threads-batch", "", NoEffect, Value,
     "has no effect: prompts have the threads that -t says, too"},
    {"-b --batch-size -ub --ubatch-size", "bench", Refused, Value,
     "is llama-bench's size of a batch, which is the device's choice here: "
     "leave it out (sequences that generate at once are -s, --sequences)"},
    {"-b --batch-size -ub --ubatch-size", "", NoEffect, Value,
     "has no effect: how many rows of a prompt a step reads is the device's "
     "choice"},
    {"-v --verbose --log-verbose --perf", "", NoEffect, Nothing,
     "has no effect: --profile says where the time goes"},
    {"-lv --verbosity --log-verbosity", "", NoEffect, Value,
     "has no effect: --profile says where the time goes"},
    {"--log-colors", "", NoEffect, Switch,
     "has no effect: messages have no colours"},
    {"--check-tensors", "", NoEffect, Nothing,
     "has no effect: a number that is not finite is an error where it is met"},
    {"--verbose-prompt", "", NoEffect, Nothing,
     "has no effect: 'kf-run tokenize' shows a prompt's tokens"},
    {"-ptc --print-token-count", "", NoEffect, Value,
     "has no effect: a line at the end says how many tokens there were"},
    {"-sp --special", "generate chat", NoEffect, Nothing,
     "has no effect: special tokens are not shown ('kf-run generate --json' "
     "has all ids)"},
    {"-mli --multiline-input", "", NoEffect, Nothing,
     "has no effect: a line that ends with \\ goes on in the next one"},
    {"-np --n-parallel --parallel", "generate chat", NoEffect, Value,
     "has no effect: this is one text; 'kf-run batch' and 'kf-run serve' "
     "generate many"},
    {"-dt --defrag-thold", "", NoEffect, Value,
     "has no effect: the KV cache is made of pages, which can lie anywhere"},
    {"--swa-full", "", NoEffect, Nothing,
     "has no effect: the cache keeps all positions anyway"},
    {"-ctxcp --ctx-checkpoints --swa-checkpoints -cram --cache-ram", "",
     NoEffect, Value,
     "has no effect: the KV cache keeps what prompts have in common; "
     "--cache-memory bounds it"},
    {"--cache-reuse -sps --slot-prompt-similarity", "", NoEffect, Value,
     "has no effect: prompts share all that they have in common at their "
     "begin"},
    {"--threads-http -to --timeout", "serve", NoEffect, Value,
     "has no effect: one thread serves all connections, and docs/Server.md "
     "says "
     "how long they may wait"},
    {"--no-webui --no-ui", "serve", NoEffect, Nothing,
     "has no effect: the page at / stays, and --api-key says who may use it"},
    {"--no-slots", "serve", NoEffect, Nothing,
     "has no effect: /slots stays, and --api-key says who may ask it"},
    {"-nocb --no-cont-batching", "serve", NoEffect, Nothing,
     "has no effect: requests share steps; --parallel 1 answers one at a time"},
    {"--no-cache-prompt -no-kvu --no-kv-unified --no-cache-idle-slots", "serve",
     NoEffect, Nothing,
     "has no effect: prompts share what they have in common, which changes no "
     "answer"},
    {"--reasoning-format", "serve", NoEffect, Value,
     "has no effect: thoughts in <think> tags are reasoning_content"},
    {"--reasoning-format", "generate chat", NoEffect, Value,
     "has no effect: thoughts are shown as the model writes them"},
    {"--progress", "bench", NoEffect, Nothing,
     "has no effect: a terminal shows it anyway"},
    {"--trust-remote-code", "", NoEffect, Nothing,
     "has no effect: no code of a model is run"},

    // Errors.
    {"-p --prompt -f --file -bf --binary-file", "chat", Refused, Value,
     "is not of chats: type the message, or pipe it in; --system TEXT is the "
     "system message"},
    {"-st --single-turn", "chat", Refused, Nothing,
     "is not needed: a message that is piped in ends the chat, as in echo "
     "Hello | kf-run chat MODEL"},
    {"-r --reverse-prompt --stop", "chat", Refused, Value,
     "is not of chats: answers end where the model ends them, or after -n "
     "tokens"},
    {"--ignore-eos", "chat", Refused, Nothing,
     "is not of chats: answers end where the model ends them, or after -n "
     "tokens"},
    {"-sysf --system-prompt-file", "", Refused, Value,
     "is not supported: --system \"$(cat FILE)\" takes the text of a file"},
    {"--in-prefix --in-suffix", "", Refused, Value,
     "is not supported: the chat template says what stands around messages, "
     "and --template FILE takes another one"},
    {"--in-prefix-bos", "", Refused, Nothing,
     "is not supported: the chat template says what stands around messages, "
     "and --template FILE takes another one"},
    {"--usage", "", Refused, Nothing, "is --help here"},
    {"--version", "", Refused, Nothing, "is of no command: 'kf-run --version'"},
    {"-hf -hfr --hf-repo -hff --hf-file -hft --hf-token -mu --model-url -dr "
     "--docker-repo",
     "", Refused, Value,
     "names a model to download, which kf-run does not: 'hf "
     "download REPO --local-dir DIR', and give DIR or its .gguf file"},
    {"--mmproj -mm --mmproj-url -mmu --image --images --audio --video "
     "--image-min-tokens --image-max-tokens",
     "", Refused, Value,
     "is not supported: prompts are text alone, without images and audio"},
    {"--api-key --key", "compare", Refused, Value,
     "is not for command lines, which others on this machine see: --key-env "
     "NAME names the environment variable that holds the key"},
    {"--host --port --api-key --api-key-file", "", Refused, Value,
     "is of the server: 'kf-run serve MODEL'"},
    {"--ssl-key-file --ssl-cert-file --ssl-keyfile --ssl-certfile", "serve",
     Refused, Value,
     "is not supported: a reverse proxy has the certificate (docs/Server.md, "
     "TLS)"},
    {"--path --api-prefix --root-path --media-path", "serve", Refused, Value,
     "is not supported: a reverse proxy serves files and other paths "
     "(docs/Server.md)"},
    {"--models-dir --models-preset --models-max", "serve", Refused, Value,
     "is not supported: a server has one model; start one for each, with a "
     "--port of its own"},
    {"--tools", "serve", Refused, Value,
     "is said by requests: tools (docs/Server.md)"},
    {"-rea --reasoning", "", Refused, Value, kThoughts, "on auto"},
    {"--reasoning-budget", "", Refused, Value, kThoughts, "-1"},
    {"--reasoning-budget-message", "", Refused, Value, kThoughts},
    {"--reasoning-effort", "", Refused, Value,
     "is not supported: --chat-template-kwargs '{\"reasoning_effort\": "
     "\"low\"}' tells it to templates that know it"},
    {"--ignore-eos", "serve", Refused, Nothing,
     "is said by requests: ignore_eos (docs/Server.md)"},
    {"-r --reverse-prompt --stop", "serve", Refused, Value,
     "is said by requests: stop (docs/Server.md)"},
    {"-f --file -p --prompt -sys --system-prompt", "serve", Refused, Value,
     "is said by requests: prompt, or messages (docs/Server.md)"},
    {"--rerank --reranking --spm-infill", "serve", Refused, Nothing,
     "is not supported: models continue texts and answer chats"},
    {"--rpc", "", Refused, Value,
     "is not supported: a model is computed by one device of this machine"},
    {"--list-devices", "", Refused, Nothing, "is 'kf-run devices' here"},
    {"--cache-list -cl", "", Refused, Nothing,
     "is not supported: models are where they were put; 'kf-run cache list' "
     "lists compiled programs"},
    {"--log-file", "", Refused, Value,
     "is not supported: messages go to stderr, and 2> FILE puts them into a "
     "file"},
    {"--embd-normalize", "embed serve batch", Refused, Value,
     "is --normalize here: l2 for 2, none for -1; others are not supported"},
    {"--pooling --embd-normalize", "", Refused, Value,
     "is of embeddings, which this command does not make"},
    {"-sm --split-mode -ts --tensor-split --device-map", "", Refused, Value,
     "is not supported: a model is computed by one device, which --device "
     "names, as in cuda:1",
     "none layer auto"},
    {"--decode-context-parallel-size -dcp",
     "batch bench chat embed generate inspect logits perplexity serve", Refused,
     Value,
     "is not supported: ranks of --tensor-parallel cannot share positions as "
     "well; --context-parallel N has N ranks share them that are whole "
     "otherwise",
     "1"},
    {"--tensor-parallel-size -tp --pipeline-parallel-size -pp "
     "--decode-context-parallel-size -dcp",
     "", Refused, Value,
     "is not supported: the model is computed by one device, which --device "
     "names, as in cuda:1",
     "1"},
    {"-mg --main-gpu", "", Refused, Value,
     "is --device here, as in --device cuda:1", "0"},
    {"-ot --override-tensor", "", Refused, Value,
     "is not supported: all tensors are on one device"},
    {"-ncmoe --n-cpu-moe -ncffn --n-cpu-ffn", "", Refused, Value,
     "is not supported: all tensors are on one device", "0"},
    {"-cmoe --cpu-moe --no-op-offload", "", Refused, Nothing,
     "is not supported: all tensors are on one device"},
    {"-nkvo --no-kv-offload", "", Refused, Switch,
     "is not supported: keys and values are where the model is computed; "
     "--cache-type q8_0 makes them smaller"},
    {"--gpu-memory-utilization", "", Refused, Value,
     "is not supported: --cache-memory SIZE bounds what keys and values take"},
    {"--numa --prio --poll --cpu-mask --cpu-range --cpu-strict -C -Cr "
     "--prio-batch --poll-batch --cpu-mask-batch --cpu-range-batch "
     "--cpu-strict-batch -Cb -Crb",
     "", Refused, Value,
     "is not supported: taskset, numactl and nice say where and how a process "
     "runs, and -t with how many threads"},
    {"--draft-min --draft-n-min --draft-p-min -cd --ctx-size-draft -ngld "
     "--gpu-layers-draft "
     "--n-gpu-layers-draft -devd --device-draft -td --threads-draft -tbd "
     "--threads-batch-draft -hfd --hf-repo-draft -lcs --lookup-cache-static "
     "-lcd --lookup-cache-dynamic --speculative-config",
     "", Refused, Value, kOtherDrafts},
    {"--spec-type", "", Refused, Value, kOtherDrafts, "none"},
    {"--control-vector --control-vector-scaled --control-vector-layer-range",
     "", Refused, Value,
     "is not supported: a model is changed by adapters, --lora NAME=PATH"},
    {"--lora-scaled", "", Refused, Value,
     "is not supported: an adapter's factor is lora_alpha of its "
     "adapter_config.json; --lora NAME=PATH adds it"},
    {"--lora --lora-modules", "", Refused, Value,
     "is of commands that run a model: generate, chat, batch, bench, logits, "
     "perplexity, embed and serve"},
    {"--lora-init-without-apply", "serve", Refused, Nothing,
     "is not needed: requests name an adapter as their model, and without one "
     "have none"},
    {"--enable-lora", "", Already, Nothing, ""},
    {"--max-loras --max-lora-rank --max-cpu-loras", "", Already, Value, ""},
    {"--grammar --grammar-file -j --json-schema -jf --json-schema-file "
     "--guided-json",
     "serve", Refused, Value,
     "is said by requests: response_format, json_schema and grammar "
     "(docs/Server.md)"},
    {"--mirostat --dynatemp-range --xtc-probability --dry-multiplier", "",
     Refused, Value, kSamplers, "0"},
    {"--typical --typical-p --num-beams", "", Refused, Value, kSamplers, "1"},
    {"--top-nsigma --top-n-sigma", "", Refused, Value, kSamplers, "0 <0"},
    {"--adaptive-target", "", Refused, Value, kSamplers, "<0"},
    {"--samplers --sampler-seq --sampling-seq", "", Refused, Value, kSamplers},
    {"--do-sample", "", Refused, Switch,
     "is not needed: tokens are drawn where --temp is above 0, or --top-k, "
     "--top-p or --min-p is given"},
    {"--rope-scaling --rope-scale --rope-freq-base --rope-freq-scale "
     "--yarn-orig-ctx --yarn-ext-factor --yarn-attn-factor --yarn-beta-slow "
     "--yarn-beta-fast",
     "", Refused, Value,
     "is not supported: the model says how positions are rotated"},
    {"-gan --grp-attn-n", "", Refused, Value,
     "is not supported: a context has the positions that the model was made "
     "for, at most",
     "1"},
    {"--keep --n-keep", "", Refused, Value,
     "is not supported: a context that is full ends the text; -c N makes it "
     "longer",
     "0"},
    {"--context-shift", "", Refused, Nothing,
     "is not supported: a context that is full ends the text; -c N makes it "
     "longer"},
    {"--prompt-cache --slot-save-path", "", Refused, Value,
     "is not supported: keys and values are not kept in files; chat and batch "
     "compute what prompts have in common once"},
    {"--prompt-cache-all --prompt-cache-ro", "", Refused, Nothing,
     "is not supported: keys and values are not kept in files; chat and batch "
     "compute what prompts have in common once"},
    {"--chat-template", "", Refused, Value,
     "is not supported: --template FILE takes a template as a file"},
    {"--jinja --no-jinja", "", Already, Nothing, ""},
    {"--warmup-ratio", "train", Refused, Value,
     "is not supported: --warmup N counts steps", "0 0.0"},
    {"--gradient-checkpointing", "train", Already, Switch, ""},
    {"--bf16 --fp16", "train", Refused, Switch,
     "is not supported: what is trained is f32, and the model's own weights "
     "are of the type that they are stored in"},
    {"--max-length", "", Refused, Value,
     "is not supported: -n counts the tokens to generate, and -c those of the "
     "whole context"},
    {"--dtype --torch-dtype", "", Refused, Value,
     "is not supported: weights stay of the type that they are stored in; "
     "'kf-run quantize' writes them in another one, and --activation-type and "
     "--cache-type say what is computed",
     "auto"},
    {"--load-in-4bit --load-in-8bit", "", Refused, Nothing,
     "is not supported: 'kf-run quantize MODEL OUT.gguf q4_0' (or q8_0) writes "
     "such a model once"},
    {"--quantization", "", Refused, Value,
     "is not supported: 'kf-run quantize MODEL OUT.gguf q4_0' writes such a "
     "model once"},
    {"-embd --embeddings --embedding", "serve", Already, Switch, ""},
    {"-embd --embeddings --embedding", "", Refused, Switch,
     "is not needed: 'kf-run embed' makes embeddings, and so does the server"},
    {"--embd-output-format --embd-separator", "embed", Refused, Value,
     "is not supported: each line of -f FILE is a text, and becomes a line of "
     "JSON"},
    {"--chunk-size", "", Refused, Value, "is --window here"},
    {"--ppl-stride", "", Refused, Value,
     "is not supported: --stride N is Hugging Face's convention, and "
     "--convention llama.cpp that of llama-perplexity"},
    {"--kl-divergence --kl-divergence-base", "", Refused, Switch,
     "is not supported: 'kf-run eval --fidelity' compares logits with the "
     "reference's"},
    {"--hellaswag --winogrande --multiple-choice", "", Refused, Nothing,
     "is not supported: perplexity scores whole texts"},
    {"--imatrix --include-weights --exclude-weights", "", Refused, Value,
     "is not supported: types are chosen without an importance matrix"},
    {"--pure --leave-output-tensor", "", Refused, Nothing,
     "is not supported: q8_0, q4_0, q4_1, q5_0 and q5_1 are of one type but "
     "for the output matrix, and the K types are mixes"},
    {"--output-tensor-type --token-embedding-type --tensor-type", "quantize",
     Refused, Value,
     "is not supported: the file's type says those of all tensors"},
    {"--override-kv", "", Refused, Value,
     "is not supported: a model's metadata is taken as it is"},
    {"--pass-pipeline --verify-diagnostics --split-input-file "
     "--show-dialects --load-pass-plugin --allow-unregistered-dialect",
     "", Refused, Switch,
     "is of kf-opt, which runs passes on a file as mlir-opt does; 'kf-run "
     "emit-mlir --compile-to=PHASE' prints a phase"},
    {"--entry-point-result", "", Refused, Value,
     "is not needed: all results are printed"},
    {"--shared-libs", "", Refused, Value,
     "is not needed: kernels call no libraries"},
};

/// Whatever begins and ends so.
struct FlagFamily {
  std::string_view begin, end;
  ForeignFlag flag;
};

constexpr FlagFamily kFamilies[] = {
    {"--mlir-",
     "",
     {"", "", Refused, Switch,
      "is of kf-opt, which runs passes on a file as mlir-opt does; 'kf-run "
      "emit-mlir --compile-to=PHASE' prints a phase"}},
    {"--spec-", "", {"", "", Refused, Switch, kOtherDrafts}},
    {"--", "-draft", {"", "", Refused, Switch, kOtherDrafts}},
};

struct ForeignCommand {
  std::string_view words, advice;
};

constexpr ForeignCommand kCommands[] = {
    {"run complete completion llama-cli main simple",
     "'kf-run generate MODEL -p TEXT' continues a text, and 'kf-run chat "
     "MODEL' talks"},
    {"server llama-server api",
     "'kf-run serve MODEL' answers requests of OpenAI's API"},
    {"llama-bench benchmark", "'kf-run bench MODEL' measures tokens a second"},
    {"llama-quantize convert export", "'kf-run quantize MODEL OUT.gguf q4_k' "
                                      "writes a model as a GGUF file"},
    {"llama-perplexity ppl score",
     "'kf-run perplexity MODEL --file TEXT' scores a text"},
    {"finetune fine-tune llama-finetune sft lora",
     "'kf-run train MODEL --data FILE --lora 16 --output DIR' trains an "
     "adapter"},
    {"llama-tokenize encode", "'kf-run tokenize MODEL -p TEXT' prints ids"},
    {"llama-gguf gguf-dump show info",
     "'kf-run inspect MODEL' shows what a model is made of"},
    {"pull download",
     "models are not downloaded: 'hf download REPO --local-dir "
     "DIR', and give DIR or its .gguf file as MODEL"},
    {"list ls", "'kf-run cache list' lists compiled programs, and 'kf-run "
                "devices' devices"},
    {"opt mlir-opt", "kf-opt runs passes on a file, as mlir-opt does"},
    {"compile translate mlir-translate llc",
     "'kf-run emit-mlir MODEL --compile-to=PHASE' prints a phase, and "
     "'--compile-to=binary -o FILE' writes the program"},
    {"mlir-runner runner", "'kf-run exec FILE.mlir' runs a function"},
    {"profile", "--profile of the other commands says where the time goes"},
    {"version", "'kf-run --version' prints it"},
    {"embedding embeddings llama-embedding",
     "'kf-run embed MODEL -p TEXT' makes embeddings"},
};

/// The words of `list`, with blanks between them.
std::vector<std::string_view> wordsOf(std::string_view list) {
  std::vector<std::string_view> words;
  while (!list.empty()) {
    const size_t end = std::min(list.find(' '), list.size());
    words.push_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return words;
}

bool contains(std::string_view list, std::string_view word) {
  const std::vector<std::string_view> words = wordsOf(list);
  return std::ranges::find(words, word) != words.end();
}

/// The number that `word` is, if it is one.
std::optional<double> readNumber(std::string_view word) {
  double number = 0;
  const char *last = word.data() + word.size();
  auto [end, code] = std::from_chars(word.data(), last, number);
  return code == std::errc() && end == last ? std::optional(number)
                                            : std::nullopt;
}

/// Whether `flag` means something to `command`.
bool isOf(const ForeignFlag &flag, std::string_view command,
          const std::function<bool(std::string_view)> &hasOption) {
  return (flag.commands.empty() || contains(flag.commands, command)) &&
         (flag.meaning != Same || hasOption(flag.text));
}

} // namespace

bool kf::isSwitchValue(std::string_view word) {
  int64_t number = 0;
  const char *last = word.data() + word.size();
  auto [end, code] = std::from_chars(word.data(), last, number);
  return (code == std::errc() && end == last) ||
         contains("on off auto true false True False", word);
}

const ForeignFlag *
kf::findForeignFlag(std::string_view spelling, std::string_view command,
                    const std::function<bool(std::string_view)> &hasOption) {
  for (const ForeignFlag &flag : kFlags)
    if (contains(flag.spellings, spelling) && isOf(flag, command, hasOption))
      return &flag;
  for (const FlagFamily &family : kFamilies)
    if (spelling.starts_with(family.begin) && spelling.ends_with(family.end))
      return &family.flag;
  return nullptr;
}

bool kf::isRefused(const ForeignFlag &flag,
                   std::optional<std::string_view> value) {
  if (flag.meaning != Refused || !value)
    return flag.meaning == Refused;
  const std::optional<double> number = readNumber(*value);
  return std::ranges::none_of(wordsOf(flag.off), [&](std::string_view word) {
    return word == *value ||
           (number && (number == readNumber(word) ||
                       (word == kAnyNegative && *number < 0)));
  });
}

std::vector<std::string_view>
kf::foreignNames(std::string_view command,
                 const std::function<bool(std::string_view)> &hasOption) {
  std::vector<std::string_view> names;
  for (const ForeignFlag &flag : kFlags)
    if (flag.meaning != Refused && isOf(flag, command, hasOption))
      for (std::string_view spelling : wordsOf(flag.spellings))
        if (spelling.starts_with("--"))
          names.push_back(spelling.substr(2));
  return names;
}

std::string_view kf::adviceForCommand(std::string_view word) {
  for (const ForeignCommand &command : kCommands)
    if (contains(command.words, word))
      return command.advice;
  return {};
}
