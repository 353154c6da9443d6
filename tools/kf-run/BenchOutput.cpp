//===- BenchOutput.cpp - What kf-run bench prints -------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BenchOutput.h"

#include "JsonDocument.h"
#include "Report.h"

#include "runtime/measure/Statistics.h"
#include "runtime/program/ProgramIdentity.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace kf;
using nlohmann::ordered_json;

namespace {

template <typename... Args>
std::string formatted(const char *format, Args... args) {
  char buffer[64];
  std::snprintf(buffer, sizeof(buffer), format, args...);
  return buffer;
}

std::string parametersText(uint64_t parameters) {
  const double count = static_cast<double>(parameters);
  return parameters < 1000000000 ? formatted("%.2f M", count / 1e6)
                                 : formatted("%.2f B", count / 1e9);
}

std::string sizeText(uint64_t bytes) {
  const double size = static_cast<double>(bytes);
  return bytes < uint64_t(1) << 30 ? formatted("%.2f MiB", size / 0x1p20)
                                   : formatted("%.2f GiB", size / 0x1p30);
}

/// "llama 1.1B q4_0".
std::string modelType(const BenchSubject &subject) {
  const double count = static_cast<double>(subject.parameters);
  const std::string size = subject.parameters < 1000000000
                               ? formatted("%.0fM", count / 1e6)
                               : formatted("%.1fB", count / 1e9);
  return subject.architecture + " " + size + " " + subject.weightType;
}

/// ", 2 ranks"; empty for one.
std::string ranksText(const BenchSubject &subject) {
  return subject.ranks == 1 ? std::string()
                            : ", " + std::to_string(subject.ranks) + " ranks";
}

struct Rates {
  Statistics nanoseconds, tokens; ///< of a run; tokens a second
  std::vector<int64_t> samplesNs;
  std::vector<double> samplesTs;
};

Rates ratesOf(const BenchResult &result) {
  Rates rates;
  std::vector<double> nanoseconds;
  for (double seconds : result.seconds) {
    nanoseconds.push_back(seconds * 1e9);
    rates.samplesNs.push_back(std::llround(seconds * 1e9));
    rates.samplesTs.push_back(
        seconds > 0 ? static_cast<double>(result.test.tokens()) / seconds : 0);
  }
  rates.nanoseconds = statisticsOf(nanoseconds);
  rates.tokens = statisticsOf(rates.samplesTs);
  return rates;
}

/// The share of what the ceiling allows that the mean run reaches.
double fractionOf(const BenchCeiling &ceiling, const Rates &rates) {
  const double seconds = rates.nanoseconds.mean / 1e9;
  return seconds > 0 ? ceiling.seconds / seconds : 0;
}

/// This build of kf-run, as the linker calls it.
ordered_json buildId() {
  const Result<std::string> identity = programIdentity();
  if (!identity.ok())
    return nullptr;
  std::string text;
  for (unsigned char byte : identity->substr(0, 8))
    text += formatted("%02x", byte);
  return text;
}

//===----------------------------------------------------------------------===//
// JSON and CSV
//===----------------------------------------------------------------------===//

/// All that is told about a result, by name.
ordered_json fieldsOf(const BenchResult &result, const ordered_json &build) {
  const BenchSubject &subject = result.subject;
  const BenchTest &test = result.test;
  const Rates rates = ratesOf(result);
  ordered_json fields = {
      {"build_version", KF_VERSION},
      {"build_id", build},
      {"cpu_info", subject.isHost ? subject.description : ""},
      {"gpu_info", subject.isHost ? "" : subject.description},
      {"backends", subject.device},
      {"model_filename", subject.model},
      {"model_type", modelType(subject)},
      {"model_size", subject.modelBytes},
      {"model_n_params", subject.parameters},
      {"n_batch", result.rowsPerStep},
      {"n_ubatch", result.rowsPerStep},
      {"n_threads", subject.threads},
      {"n_ranks", subject.ranks},
      {"type_k", subject.cacheType},
      {"type_v", subject.cacheType},
      {"n_prompt", test.prompt},
      {"n_gen", test.generated},
      {"n_depth", test.depth},
      {"test_time", result.time},
      {"avg_ns", std::llround(rates.nanoseconds.mean)},
      {"stddev_ns", std::llround(rates.nanoseconds.deviation)},
      {"avg_ts", rates.tokens.mean},
      {"stddev_ts", rates.tokens.deviation},
      {"samples_ns", rates.samplesNs},
      {"samples_ts", rates.samplesTs},
      {"test", test.name()},
      {"device", subject.device},
      {"weight_type", subject.weightType},
      {"activation_type", subject.activationType},
      {"n_sequences", test.sequences},
      {"ceiling", nullptr},
      {"ceiling_unit", nullptr},
      {"ceiling_fraction", nullptr},
      {"load_ns", std::llround(result.load * 1e9)},
      {"compile_ns", std::llround(result.compile * 1e9)},
      {"first_token_ns", std::llround(result.firstToken * 1e9)},
      {"weights_bytes", result.memory.weights},
      {"cache_bytes", result.memory.cache},
      {"arenas_bytes", result.memory.arenas},
      {"io_bytes", result.memory.io},
      {"peak_bytes", result.peakMemory},
      {"device_bytes", result.deviceMemory ? ordered_json(*result.deviceMemory)
                                           : ordered_json(nullptr)},
      {"preset", subject.preset.empty() ? ordered_json(nullptr)
                                        : ordered_json(subject.preset)},
      {"n_drafted", result.drafted},
      {"n_accepted", result.accepted}};
  if (result.ceiling) {
    fields["ceiling"] = result.ceiling->rate;
    fields["ceiling_unit"] = std::string(result.ceiling->unit);
    fields["ceiling_fraction"] = fractionOf(*result.ceiling, rates);
  }
  return fields;
}

class JsonOutput final : public BenchOutput {
public:
  Status begin(const BenchSubject &) override { return writeStdout("["); }
  Status add(const BenchResult &result) override {
    // Indented once more than it stands alone, a list in a line.
    std::string text = first ? "\n  {" : ",\n  {";
    bool firstField = true;
    const ordered_json fields = fieldsOf(result, build);
    for (const auto &[name, value] : fields.items()) {
      text += (firstField ? "\n    " : ",\n    ") + documentText(name, -1) +
              ": " + documentText(value, -1);
      firstField = false;
    }
    first = false;
    return writeStdout(text + "\n  }");
  }
  Status end() override { return writeStdout("\n]\n"); }

private:
  ordered_json build = buildId();
  bool first = true;
};

class JsonLinesOutput final : public BenchOutput {
public:
  Status begin(const BenchSubject &) override { return Status(); }
  Status add(const BenchResult &result) override {
    return writeStdout(documentText(fieldsOf(result, build), -1) + "\n");
  }
  Status end() override { return Status(); }

private:
  ordered_json build = buildId();
};

class CsvOutput final : public BenchOutput {
public:
  Status begin(const BenchSubject &) override {
    std::string line;
    const ordered_json fields = fieldsOf({}, nullptr);
    for (const auto &[name, value] : fields.items())
      if (!value.is_array())
        line += (line.empty() ? "" : ",") + name;
    return writeStdout(line + "\n");
  }
  Status add(const BenchResult &result) override {
    std::string line;
    const ordered_json fields = fieldsOf(result, build);
    for (const auto &[name, value] : fields.items()) {
      if (value.is_array())
        continue;
      std::string text = value.is_null()     ? ""
                         : value.is_string() ? value.get<std::string>()
                                             : documentText(value, -1);
      for (size_t at = 0; (at = text.find('"', at)) != text.npos; at += 2)
        text.insert(at, 1, '"');
      line += (line.empty() ? "\"" : ",\"") + text + "\"";
    }
    return writeStdout(line + "\n");
  }
  Status end() override { return Status(); }

private:
  ordered_json build = buildId();
};

//===----------------------------------------------------------------------===//
// Markdown
//===----------------------------------------------------------------------===//

class MarkdownOutput final : public BenchOutput {
public:
  MarkdownOutput(const std::vector<BenchTest> &tests, bool withDrafts)
      : withDrafts(withDrafts) {
    for (const BenchTest &test : tests) {
      withSequences |= test.sequences > 1;
      testWidth = std::max(testWidth, test.name().size());
    }
  }

  Status begin(const BenchSubject &subject) override {
    withThreads = subject.threads > 0;
    std::vector<std::string> names, rules;
    for (const Column &column : columns()) {
      names.push_back(column.name);
      rules.push_back(std::string(column.width - 1, '-') + ":");
    }
    return writeStdout(modelType(subject) + ", " +
                       sizeText(subject.modelBytes) + ", " +
                       parametersText(subject.parameters) + " parameters, on " +
                       subject.device + ranksText(subject) + "\n\n" +
                       line(names) + line(rules));
  }

  Status add(const BenchResult &result) override {
    const Rates rates = ratesOf(result);
    std::vector<std::string> cells;
    if (withThreads)
      cells.push_back(std::to_string(result.subject.threads));
    if (withSequences)
      cells.push_back(std::to_string(result.test.sequences));
    cells.push_back(result.test.name());
    cells.push_back(
        formatted("%.2f ± %.2f", rates.tokens.mean, rates.tokens.deviation));
    const auto &ceiling = result.ceiling;
    cells.push_back(ceiling ? formatted("%.1f %s", ceiling->rate,
                                        std::string(ceiling->unit).c_str())
                            : "unknown");
    cells.push_back(
        ceiling ? formatted("%.1f %%", 100 * fractionOf(*ceiling, rates))
                : "-");
    if (withDrafts)
      cells.push_back(std::to_string(result.accepted) + " of " +
                      std::to_string(result.drafted));
    return writeStdout(line(cells));
  }

  Status end() override {
    return writeStdout("\nbuild: kf-run " KF_VERSION "\n");
  }

private:
  struct Column {
    const char *name;
    size_t width;
  };

  /// All to the right.
  std::vector<Column> columns() const {
    std::vector<Column> columns;
    if (withThreads)
      columns.push_back({"threads", 7});
    if (withSequences)
      columns.push_back({"sequences", 9});
    columns.insert(
        columns.end(),
        {{"test", testWidth}, {"t/s", 20}, {"ceiling", 16}, {"of it", 7}});
    if (withDrafts)
      columns.push_back({"drafts", 15});
    return columns;
  }

  std::string line(const std::vector<std::string> &cells) const {
    std::string text = "|";
    const std::vector<Column> all = columns();
    for (size_t i = 0; i < cells.size(); ++i) {
      // Characters, of which each has one byte that continues none.
      const size_t width = static_cast<size_t>(std::ranges::count_if(
          cells[i], [](char c) { return (c & 0xc0) != 0x80; }));
      text += " " +
              std::string(all[i].width - std::min(width, all[i].width), ' ') +
              cells[i] + " |";
    }
    return text + "\n";
  }

  bool withSequences = false, withThreads = false, withDrafts;
  size_t testWidth = 6;
};

} // namespace

std::unique_ptr<BenchOutput>
BenchOutput::create(const std::string &format,
                    const std::vector<BenchTest> &tests, bool withDrafts) {
  if (format == "json")
    return std::make_unique<JsonOutput>();
  if (format == "jsonl")
    return std::make_unique<JsonLinesOutput>();
  if (format == "csv")
    return std::make_unique<CsvOutput>();
  return std::make_unique<MarkdownOutput>(tests, withDrafts);
}

std::optional<double> kf::ceilingShareOf(const BenchResult &result) {
  if (!result.ceiling)
    return std::nullopt;
  return fractionOf(*result.ceiling, ::ratesOf(result));
}
