//===- EmbeddingFlags.cpp - Options of how embeddings are made ------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EmbeddingFlags.h"

using namespace kf;

static void addNormalize(OptionParser &parser, std::string &normalize) {
  parser.choice({"normalize", 0, "HOW"}, normalize, {"l2", "none"},
                "whether embeddings are divided by their Euclidean length: l2 "
                "or none; by default as the model's files say, else l2");
}

void EmbeddingFlags::addTo(OptionParser &parser) {
  parser.choice({"pooling", 0, "WHICH"}, pooling, {"mean", "cls", "last"},
                "which rows of the last layer make an embedding: the mean of "
                "all tokens', the first one's or the last one's; by default "
                "as the model's files say, else last");
  addNormalize(parser, normalize);
}

void EmbeddingFlags::addWithRowsTo(OptionParser &parser) {
  parser.choice({"pooling", 0, "WHICH"}, pooling,
                {"mean", "cls", "last", "none"},
                "which rows of the last layer make an embedding: the mean of "
                "all tokens', the first one's or the last one's; none gives "
                "each token's row. By default as the model's files say, else "
                "last");
  addNormalize(parser, normalize);
}

EmbeddingChoice EmbeddingFlags::choice() const {
  EmbeddingChoice choice;
  if (!pooling.empty())
    choice.pooling = poolingOfName(pooling);
  if (!normalize.empty())
    choice.normalizes = normalize == "l2";
  return choice;
}
