//===- ApiMetrics.cpp - What a server has done, for Prometheus ------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/serve/ApiMetrics.h"

#include "runtime/core/JsonText.h"

using namespace kf;

namespace {

class Writer {
public:
  explicit Writer(const std::string &model)
      : label("model_name=" + jsonText(model)) {}

  void family(const char *name, const char *type, const char *help) {
    out += "# HELP " + std::string(name) + " " + help + "\n# TYPE " + name +
           " " + type + "\n";
  }
  void sample(const std::string &name, const std::string &labels,
              const std::string &value) {
    out += name + "{" + label + (labels.empty() ? "" : ",") + labels + "} " +
           value + "\n";
  }
  template <typename T>
  void one(const char *name, const char *type, T value, const char *help) {
    family(name, type, help);
    sample(name, "", jsonText(value));
  }
  void histogram(const char *name, const Histogram &seconds, const char *help) {
    family(name, "histogram", help);
    int64_t below = 0;
    for (size_t i = 0; i < seconds.counts.size(); ++i) {
      below += seconds.counts[i];
      const bool isLast = i == Histogram::bounds.size();
      const std::string bound =
          isLast ? "+Inf" : jsonText(Histogram::bounds[i]);
      sample(std::string(name) + "_bucket", "le=\"" + bound + "\"",
             jsonText(below));
    }
    sample(std::string(name) + "_sum", "", jsonText(seconds.sum));
    sample(std::string(name) + "_count", "", jsonText(seconds.count));
  }

  std::string out;

private:
  std::string label;
};

void writeService(const ServiceCounts &counts, Writer &to) {
  const int64_t waiting = counts.queued + counts.waiting;
  const double used = counts.pagesTotal
                          ? static_cast<double>(counts.pagesUsed) /
                                static_cast<double>(counts.pagesTotal)
                          : 0.0;
  const char *gauge = "gauge", *counter = "counter";
  to.one("vllm:num_requests_running", gauge, counts.running,
         "Texts that are generated.");
  to.one("vllm:num_requests_waiting", gauge, waiting,
         "Texts that wait to be begun, or for pages.");
  to.one("vllm:kv_cache_usage_perc", gauge, used,
         "The part of the KV cache's pages that texts use; 1 is all.");
  to.one("vllm:num_preemptions_total", counter, counts.preemptions,
         "Texts whose pages others needed.");
  to.one("vllm:prompt_tokens_total", counter, counts.promptTokens,
         "Tokens of prompts that were read.");
  to.one("vllm:generation_tokens_total", counter, counts.generatedTokens,
         "Tokens that were generated.");
  to.one("vllm:prefix_cache_queries_total", counter, counts.promptTokens,
         "Tokens of prompts that were looked for in the cache.");
  to.one("vllm:prefix_cache_hits_total", counter, counts.cachedTokens,
         "Tokens of prompts that were in the cache.");
  to.histogram("vllm:time_to_first_token_seconds", counts.firstToken,
               "From a request to its first token.");
  to.histogram("vllm:inter_token_latency_seconds", counts.betweenTokens,
               "From a token to the next.");
  to.one("llamacpp:requests_processing", gauge, counts.running,
         "Texts that are generated.");
  to.one("llamacpp:requests_deferred", gauge, waiting,
         "Texts that wait to be begun, or for pages.");
  to.one("llamacpp:prompt_tokens_total", counter,
         counts.promptTokens - counts.cachedTokens,
         "Tokens of prompts that were computed.");
  to.one("llamacpp:tokens_predicted_total", counter, counts.generatedTokens,
         "Tokens that were generated.");
  to.one("llamacpp:n_decode_total", counter, counts.steps, "Steps.");
  to.one("kernelforge:requests_refused_total", counter, counts.refused,
         "Texts that the full queue had no room for.");
  to.one("kernelforge:requests_cancelled_total", counter, counts.cancelled,
         "Texts whose client went away, or that were late.");
  to.one("kernelforge:requests_failed_total", counter, counts.failed,
         "Texts that an error ended.");
  to.one("kernelforge:kv_cache_pages", gauge, counts.pagesTotal,
         "Pages of the KV cache.");
}

} // namespace

std::string kf::metricsText(const ServiceCounts *service,
                            const ApiCounts &counts, const std::string &model) {
  Writer to(model);
  if (service)
    writeService(*service, to);
  to.family("vllm:request_success_total", "counter",
            "Texts that ended, by their end.");
  for (const auto &[reason, count] : counts.finished)
    to.sample("vllm:request_success_total",
              "finished_reason=" + jsonText(reason), jsonText(count));
  to.family("kernelforge:http_answers_total", "counter",
            "Answers, by their status.");
  for (const auto &[status, count] : counts.answers)
    to.sample("kernelforge:http_answers_total",
              "status=\"" + std::to_string(status) + "\"", jsonText(count));
  return std::move(to.out);
}
