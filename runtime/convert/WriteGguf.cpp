//===- WriteGguf.cpp - From a plan to a GGUF file -------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/convert/WriteGguf.h"

#include "runtime/convert/TensorRows.h"
#include "runtime/core/Exceptions.h"

#include <algorithm>

using namespace kf;

namespace {

int64_t elementsOf(const std::vector<int64_t> &shape) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

/// Writes one plan.
class PlanWriter {
public:
  PlanWriter(const GgufPlan &plan, const WeightSource &weights,
             GgufWriter &writer, ThreadPool &pool, const WriteOptions &options)
      : plan(plan), weights(weights), writer(writer), rows(pool),
        options(options) {}

  Result<WriteSummary> write() {
    for (const GgufPlan::Tensor &planned : plan.tensors)
      summary.elements += elementsOf(planned.tensor.shape);
    for (const GgufPlan::Tensor &planned : plan.tensors)
      KF_RETURN_IF_ERROR(write(planned));
    KF_RETURN_IF_ERROR(writer.finish());
    summary.fileBytes = writer.fileBytes();
    return std::move(summary);
  }

private:
  Status write(const GgufPlan::Tensor &planned) {
    const ConvertedTensor &tensor = planned.tensor;
    ++summary.tensors[planned.type];
    auto sink = [&](std::span<const std::byte> bytes) {
      summary.tensorBytes += bytes.size();
      KF_RETURN_IF_ERROR(writer.append(bytes));
      return advance(static_cast<int64_t>(bytes.size()) /
                     bytesPerBlock(planned.type) *
                     elementsPerBlock(planned.type));
    };
    if (tensor.source.empty())
      return rows.convert(tensor, nullptr, planned.type, sink);
    ConvertedTensor part = tensor;
    std::vector<std::string> sources = {tensor.source};
    sources.insert(sources.end(), tensor.following.begin(),
                   tensor.following.end());
    for (const std::string &source : sources) {
      KF_ASSIGN_OR_RETURN(TensorView view, weights.find(source));
      part.source = source;
      if (sources.size() > 1) {
        part.shape = view.shape;
        if (part.order == TensorOrder::Transposed)
          std::ranges::reverse(part.shape);
      }
      summary.sourceBytes += view.bytes;
      KF_RETURN_IF_ERROR(rows.convert(part, &view, planned.type, sink));
      weights.release(source);
    }
    return Status();
  }

  Status advance(int64_t elements) {
    done += elements;
    if (options.progress && !options.progress(done, summary.elements))
      return Status::error("interrupted");
    return Status();
  }

  const GgufPlan &plan;
  const WeightSource &weights;
  GgufWriter &writer;
  TensorRows rows;
  const WriteOptions &options;
  WriteSummary summary;
  int64_t done = 0;
};

} // namespace

Result<WriteSummary> kf::writeGguf(const GgufPlan &plan,
                                   const WeightSource &weights,
                                   const std::string &path, ThreadPool &pool,
                                   const WriteOptions &options) try {
  std::vector<GgufTensorInfo> infos;
  for (const GgufPlan::Tensor &planned : plan.tensors)
    infos.push_back({planned.tensor.name, planned.tensor.shape, planned.type});
  KF_ASSIGN_OR_RETURN(
      std::unique_ptr<GgufWriter> writer,
      GgufWriter::create(path, plan.metadata, infos, options.replace));
  return PlanWriter(plan, weights, *writer, pool, options).write();
} catch (...) {
  return statusOfException();
}
