//===- GrammarMasks.cpp - Masks of texts, for scripts ---------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// usage: kf_grammar_masks VOCABULARY
//
// The vocabulary's first line has the ids of end tokens; each line behind it is
// the bytes of a token in hexadecimal digits, or "-" for a special one. Reads
// requests, a line of JSON each: {"schema" or "gbnf": text, "ids": [tokens that
// follow one another], "whitespace": as in JsonOptions, "masks": whether to
// write them, "times": how often the text is read, each time with what is known
// from before; the last time counts}. Answers each with a line of JSON:
// {"error": text} or {"compile_us": n, "create_us": n, "fill_us": [n for each
// mask], "accepted": how many tokens}, in microseconds of the CPU, and behind
// it the masks in front of each accepted token and behind the last, in "bytes".
//
//===----------------------------------------------------------------------===//

#include "runtime/grammar/GrammarMatcher.h"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <ctime>
#include <fstream>
#include <iostream>
#include <sstream>

using namespace kf;
using nlohmann::json;

static Result<std::shared_ptr<const GrammarVocabulary>>
readVocabulary(const char *path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  std::istringstream numbers(line);
  std::vector<int32_t> ends;
  for (int32_t id; numbers >> id;)
    ends.push_back(id);
  std::vector<GrammarToken> tokens;
  while (std::getline(file, line)) {
    GrammarToken &token = tokens.emplace_back();
    if (line == "-") {
      token.special = true;
      continue;
    }
    for (size_t i = 0; i + 1 < line.size(); i += 2)
      token.bytes +=
          static_cast<char>(std::stoi(line.substr(i, 2), nullptr, 16));
  }
  return GrammarVocabulary::create(tokens, std::move(ends));
}

/// Of the CPU, so that other programs do not count.
static double microseconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) * 1e6 + double(now.tv_nsec) / 1e3;
}

static Status answer(const json &request,
                     std::shared_ptr<const GrammarVocabulary> vocabulary,
                     json &reply, std::string &masks) {
  double start = microseconds();
  JsonOptions options;
  options.maxIndent = request.value("whitespace", options.maxIndent);
  Result<Grammar> grammar =
      request.contains("schema")
          ? Grammar::fromJsonSchema(request["schema"].get<std::string>(), {},
                                    options)
          : Grammar::fromGbnf(request["gbnf"].get<std::string>());
  reply["compile_us"] = microseconds() - start;
  KF_RETURN_IF_ERROR(grammar.status());
  KF_ASSIGN_OR_RETURN(const GrammarMatcher fresh,
                      GrammarMatcher::create(*grammar, vocabulary));
  reply["create_us"] =
      microseconds() - start - reply["compile_us"].get<double>();
  std::vector<uint32_t> mask(vocabulary->maskWords());
  size_t accepted = 0;
  const std::vector<int32_t> ids = request.value("ids", std::vector<int32_t>());
  for (int left = request.value("times", 1); left > 0; --left) {
    GrammarMatcher matcher = fresh;
    reply["fill_us"] = json::array();
    masks.clear();
    for (accepted = 0;; ++accepted) {
      start = microseconds();
      KF_RETURN_IF_ERROR(matcher.fillMask(mask));
      reply["fill_us"].push_back(microseconds() - start);
      if (request.value("masks", false))
        masks.append(reinterpret_cast<const char *>(mask.data()),
                     mask.size() * sizeof(uint32_t));
      if (accepted == ids.size() || !matcher.accept(ids[accepted]).ok() ||
          matcher.isFinished())
        break;
    }
  }
  reply["accepted"] = accepted;
  return Status();
}

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: kf_grammar_masks VOCABULARY\n");
    return 2;
  }
  double start = microseconds();
  const auto vocabulary = readVocabulary(argv[1]);
  if (!vocabulary) {
    std::fprintf(stderr, "error: %s: %s\n", argv[1],
                 vocabulary.message().c_str());
    return 1;
  }
  std::cout << json{{"tokens", (*vocabulary)->size()},
                    {"read_us", microseconds() - start}}
            << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    json reply = json::object();
    std::string masks;
    const Status status = answer(json::parse(line), *vocabulary, reply, masks);
    if (!status.ok())
      reply["error"] = status.message(), masks.clear();
    reply["bytes"] = masks.size();
    std::cout << reply.dump() << '\n' << masks << std::flush;
  }
  return 0;
}
