//===- TiedEmbeddings.cpp - Whether an output matrix is shared ------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/model/TiedEmbeddings.h"

#include "runtime/core/Exceptions.h"
#include "runtime/core/Quote.h"
#include "runtime/model/TensorList.h"

#include <algorithm>
#include <cstring>

using namespace kf;

namespace {

/// Whether `a` and `b` are the same numbers, whatever their types.
Result<bool> areEqual(const TensorView &a, const TensorView &b) {
  if (a.shape != b.shape)
    return false;
  const int64_t columns = a.shape.empty() ? 1 : a.shape.back();
  if (a.bytes == 0 || b.bytes == 0)
    return a.bytes == b.bytes;
  const auto rowBytes = [&](const TensorView &view) {
    return static_cast<uint64_t>(columns / elementsPerBlock(view.type) *
                                 bytesPerBlock(view.type));
  };
  const uint64_t aBytes = rowBytes(a), bBytes = rowBytes(b);
  const std::byte *from = static_cast<const std::byte *>(a.data);
  const std::byte *other = static_cast<const std::byte *>(b.data);
  std::vector<float> x(static_cast<size_t>(columns)), y(x.size());
  for (uint64_t row = 0; row < a.bytes / aBytes; ++row) {
    const std::byte *p = from + row * aBytes, *q = other + row * bBytes;
    if (a.type == b.type && std::memcmp(p, q, aBytes) == 0)
      continue;
    KF_RETURN_IF_ERROR(convertToFloat(a.type, p, columns, x.data()));
    KF_RETURN_IF_ERROR(convertToFloat(b.type, q, columns, y.data()));
    if (x != y)
      return false;
  }
  return true;
}

} // namespace

Status kf::settleTiedEmbeddings(ModelConfig &config,
                                const WeightSource &weights) try {
  if (!config.tiedEmbeddings)
    return Status();
  const TensorNames &tensors = tensorNames(config);
  const std::string head = std::string(tensors.head) + ".weight";
  const std::string bare = std::string(tensors.embedding) + ".weight";
  const std::vector<std::string> names = weights.names();
  auto has = [&](const std::string &name) {
    return std::ranges::binary_search(names, name);
  };
  const std::string table =
      has(bare) ? bare : std::string(tensors.prefix) + bare;
  if (!has(head) || !has(table))
    return Status();
  KF_ASSIGN_OR_RETURN(TensorView embedding, weights.find(table));
  KF_ASSIGN_OR_RETURN(TensorView output, weights.find(head));
  KF_ASSIGN_OR_RETURN(bool equal, areEqual(embedding, output));
  weights.release(head);
  if (equal)
    return Status();
  config.tiedEmbeddings = false;
  config.warnings.push_back(
      "'tie_word_embeddings' says that the output matrix is the embedding "
      "table, but the checkpoint's " +
      inQuotes(head) + " differs from " + inQuotes(table) +
      "; it is used, as in transformers: set the field to false");
  return Status();
} catch (...) {
  return statusOfException();
}
