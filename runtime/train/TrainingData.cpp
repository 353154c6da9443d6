//===- TrainingData.cpp - Examples of a file ------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/TrainingData.h"

#include "runtime/batch/BatchFile.h"
#include "runtime/batch/JsonSlice.h"
#include "runtime/core/Exceptions.h"
#include "runtime/core/Json.h"
#include "runtime/core/Lines.h"
#include "runtime/core/MappedFile.h"
#include "runtime/core/Sha256.h"
#include "runtime/train/CounterRandom.h"

#include <algorithm>
#include <cmath>

using namespace kf;

namespace {

/// The stream of CounterRandom that chooses what is held out.
constexpr uint64_t kSplitStream = 0x73706c6974; // "split"

/// How many tokens of `example` are labels.
int64_t labelsOf(const TrainingExample &example) {
  return example.counts.empty() ? 0
                                : std::count(example.counts.begin() + 1,
                                             example.counts.end(), true);
}

class DataReader {
public:
  DataReader(const ExampleEncoder &encoder, const TrainingDataOptions &options,
             std::string_view text, const std::string &path)
      : encoder(encoder), options(options), text(text),
        work(options.observer, "reading " + quotePath(path)) {}

  Status readLines();
  Status readArray();
  Status readText();

  TrainingData data;

private:
  size_t mostTokens() const { return static_cast<size_t>(options.length) + 1; }
  Status addLine(std::string_view line);
  void add(TrainingExample example);

  const ExampleEncoder &encoder;
  const TrainingDataOptions &options;
  std::string_view text;
  ObservedWork work;
};

void DataReader::add(TrainingExample example) {
  if (example.ids.size() > mostTokens()) {
    if (options.longExamples == LongExamples::Drop) {
      ++data.tooLong;
      return;
    }
    ++data.cut;
    example.ids.resize(mostTokens());
    example.counts.resize(mostTokens());
  }
  if (labelsOf(example) == 0)
    ++data.empty;
  else
    data.examples.push_back(std::move(example));
}

Status DataReader::addLine(std::string_view line) {
  if (isCancelled(options.cancelled))
    return Status::cancelled();
  work.update(static_cast<double>(line.data() - text.data()) /
              static_cast<double>(text.size()));
  KF_ASSIGN_OR_RETURN(const ExampleSource source, parseExample(line));
  std::vector<TrainingExample> made;
  KF_RETURN_IF_ERROR(encoder.encode(
      source, made, {.tokens = mostTokens(), .cancelled = options.cancelled}));
  if (made.empty())
    ++data.empty;
  for (TrainingExample &example : made)
    add(std::move(example));
  return Status();
}

Status DataReader::readLines() {
  BatchReader lines(text);
  while (const std::optional<std::string_view> line = lines.nextLine()) {
    const Status status = addLine(*line);
    if (status.ok() || status.isCancelled()) {
      KF_RETURN_IF_ERROR(status);
      continue;
    }
    const bool isFirst = lines.line() == 1 && !line->starts_with('{');
    return Status::error("line " + std::to_string(lines.line()) + ": " +
                             status.message() +
                             (isFirst ? "; a line is a JSON object, and the "
                                        "name of a plain text ends in .txt"
                                      : ""),
                         status.code());
  }
  return Status();
}

Status DataReader::readArray() {
  size_t count = 0;
  {
    KF_ASSIGN_OR_RETURN(const JsonDocument document, parseJson(text));
    if (!document->is_array())
      return Status::error("an array of texts or of examples is expected; the "
                           "name of a file with an example a line ends in "
                           ".jsonl");
    count = document->size();
  }
  const std::vector<std::string_view> elements = elementTexts(text);
  if (elements.size() != count)
    return Status::error(std::to_string(elements.size()) + " of " +
                         std::to_string(count) +
                         " elements can be told apart; give a file with an "
                         "example a line, whose name ends in .jsonl");
  size_t number = 0;
  for (std::string_view element : elements) {
    const Status status = addLine(element);
    if (!status.ok())
      return status.isCancelled()
                 ? status
                 : status.in("element " + std::to_string(number));
    ++number;
  }
  return Status();
}

/// Pieces as long as a row, each of which begins with the last token of the one
/// before, so that all tokens but the first are learnt.
Status DataReader::readText() {
  if (text.empty())
    return Status();
  KF_ASSIGN_OR_RETURN(const TrainingExample whole,
                      encoder.encodeText(text, options.cancelled));
  const size_t length = static_cast<size_t>(options.length);
  for (size_t at = 0; at + 1 < whole.ids.size(); at += length) {
    const auto first = static_cast<ptrdiff_t>(at);
    const auto last =
        static_cast<ptrdiff_t>(std::min(at + mostTokens(), whole.ids.size()));
    add({{whole.ids.begin() + first, whole.ids.begin() + last},
         {whole.counts.begin() + first, whole.counts.begin() + last}});
  }
  return Status();
}

} // namespace

int64_t TrainingData::tokens() const {
  int64_t sum = 0;
  for (const TrainingExample &example : examples)
    sum += static_cast<int64_t>(example.ids.size());
  return sum;
}

int64_t TrainingData::labels() const {
  int64_t sum = 0;
  for (const TrainingExample &example : examples)
    sum += labelsOf(example);
  return sum;
}

std::string TrainingData::digest() const {
  Digest digest = {};
  std::string bytes;
  for (const TrainingExample &example : examples) {
    bytes = bytesOf(digest);
    for (size_t i = 0; i < example.ids.size(); ++i) {
      // Ids are not below 0, so that there is room for one more bit.
      const uint32_t word = static_cast<uint32_t>(example.ids[i]) << 1 |
                            static_cast<uint32_t>(example.counts[i]);
      for (int shift = 0; shift < 32; shift += 8)
        bytes += static_cast<char>(word >> shift & 0xff);
    }
    digest = sha256(bytes);
  }
  return hexText(digest);
}

Result<TrainingData>
kf::readTrainingData(const std::string &path, const ExampleEncoder &encoder,
                     const TrainingDataOptions &options) try {
  KF_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::open(path));
  const bool isText = path.ends_with(".txt"), isArray = path.ends_with(".json");
  std::string_view text = file.text();
  // That of lines is taken off where they are read.
  constexpr std::string_view byteOrderMark = "\xef\xbb\xbf";
  if ((isText || isArray) && text.starts_with(byteOrderMark))
    text.remove_prefix(byteOrderMark.size());
  DataReader reader(encoder, options, text, path);
  const Status status = isText    ? reader.readText()
                        : isArray ? reader.readArray()
                                  : reader.readLines();
  if (!status.ok())
    return status.isCancelled() ? status : status.in(quotePath(path));
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos)
    return Status::error(quotePath(path) + " is empty");
  if (reader.data.examples.empty())
    return Status::error(
        quotePath(path) + " has no token to learn" +
        (reader.data.tooLong ? ": all examples are longer than " +
                                   std::to_string(options.length) + " tokens"
         : reader.data.cut
             ? ": what counts is behind the first " +
                   std::to_string(options.length) + " tokens of each example"
             : ""));
  return std::move(reader.data);
} catch (...) {
  return statusOfException();
}

Result<TrainingData> kf::splitTrainingData(TrainingData &data, double share,
                                           uint64_t seed) try {
  const size_t all = data.examples.size();
  if (all < 2)
    return Status::error("one example cannot be divided in what is trained on "
                         "and what is held out");
  const auto count = static_cast<size_t>(
      std::clamp(std::round(share * static_cast<double>(all)), 1.0,
                 static_cast<double>(all - 1)));
  std::vector<bool> isHeld(all);
  const std::vector<size_t> order =
      CounterRandom(seed, kSplitStream).permutation(all);
  for (size_t i = 0; i < count; ++i)
    isHeld[order[i]] = true;
  TrainingData held;
  std::vector<TrainingExample> rest;
  for (size_t i = 0; i < all; ++i)
    (isHeld[i] ? held.examples : rest).push_back(std::move(data.examples[i]));
  data.examples = std::move(rest);
  return held;
} catch (...) {
  return statusOfException();
}
