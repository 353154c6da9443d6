//===- FormClusters.cpp - Which ops become one kernel ---------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FormClusters.h"

#include "kf/Transforms/KernelKey.h"
#include "kf/Transforms/KernelLimits.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Remarks.h"
#include "llvm/Support/DebugLog.h"

using namespace mlir;
using namespace mlir::kf;

#define DEBUG_TYPE "kf-form-kernels"

namespace {

/// What the op's result is to those that compute it while they read it.
ResultKind kindOf(Operation *op) {
  auto fusion = dyn_cast<FusionOpInterface>(op);
  return fusion ? fusion.getResultKind() : ResultKind::Other;
}

bool isNorm(Operation *op) {
  const ResultKind kind = kindOf(op);
  return kind == ResultKind::Norm || kind == ResultKind::NormOfHeads;
}

/// A norm of [T, heads, D] along D.
bool isNormOfHeads(Operation *op) {
  return kindOf(op) == ResultKind::NormOfHeads &&
         cast<RankedTensorType>(op->getResult(0).getType()).getRank() == 3;
}

/// What an op computes of its operands. Elementwise ops, which other dialects
/// have, too, do whatever makes elements.
OperandReads readsOf(Operation *op) {
  if (isElementwise(op))
    return OperandReads::Elements;
  auto fusion = dyn_cast<FusionOpInterface>(op);
  return fusion ? fusion.getOperandReads() : OperandReads::Memory;
}

/// What changes the op's result in its kernel.
ResultChanges changesOf(Operation *op) {
  auto fusion = dyn_cast<FusionOpInterface>(op);
  return fusion ? fusion.getResultChanges() : ResultChanges::None;
}

/// Whatever works on a kernel follows chains of its ops, so their length is
/// bounded.
constexpr size_t maxClusterOps = 32;

/// Decides the loops of its kernel; a cluster has at most one.
bool isAnchor(Operation *op) {
  return !isElementwise(op) && !isStructural(op) &&
         kindOf(op) != ResultKind::Lookup;
}

/// Whether an elementwise op changes the result of a matmul that nobody else
/// reads.
bool isEpilogue(Operation *op) {
  return llvm::any_of(op->getOperands(), [](Value operand) {
    return operand.getDefiningOp<ProductOpInterface>() && operand.hasOneUse();
  });
}

/// Whether an op from `producer` to `consumer` may know what `producer` reads
/// of a cache, or change it.
bool isCacheUsedBetween(Operation *producer, Operation *consumer) {
  for (Operation *op = producer->getNextNode(); op != consumer;
       op = op->getNextNode())
    if (isa<CacheAttentionInterface, KVAppendOp>(op))
      return true;
  return false;
}

/// Rows of the tensor that an op's loops are over.
struct RowLimit {
  func::FuncOp function;
  int64_t maxTokens;

  /// Whether `tensor` has at most `rows` rows.
  bool holds(Value tensor, int64_t rows) const {
    return getMostRows(function, cast<RankedTensorType>(tensor.getType()),
                       maxTokens) <= rows;
  }
};

/// Why `producer` does not join `cluster` through its use by `consumer`; empty
/// where it does.
StringRef whyApart(const FusionRules &rules, const RowLimit &limit,
                   const Cluster &cluster, Operation *producer,
                   Operation *consumer) {
  auto unless = [](bool joins, StringRef reason) {
    return joins ? StringRef() : reason;
  };
  constexpr StringRef fromMemory = "its reader takes this operand from memory";
  for (Operation *user : producer->getUsers())
    if (!cluster.contains(user))
      return "its result is read outside of the kernel and has to reach memory";
  if (producer->getNumResults() != 1)
    return "it has several results";
  switch (readsOf(consumer)) {
  case OperandReads::Memory:
    return fromMemory;
  case OperandReads::NormOfRows:
    // Rows are normalized as they are packed; nobody else sees them.
    if (!isNorm(producer) || !producer->hasOneUse() ||
        consumer->getOperand(0) != producer->getResult(0))
      return "a product computes nothing but the norm of its rows";
    return unless(limit.holds(producer->getResult(0), rules.mostRowsOfNorm),
                  "the target's products take so many normalized rows from "
                  "memory");
  case OperandReads::RowsOrNorm:
    if (isNorm(producer))
      return unless(producer->hasOneUse(), "its result is read twice");
    break;
  case OperandReads::Heads:
    return unless(
        kindOf(producer) == ResultKind::Rotation || isNormOfHeads(producer),
        "attention and appends compute nothing but norms and rotations");
  case OperandReads::NormOfHeads:
    return unless(isNormOfHeads(producer) && cluster.anchor &&
                      readsOf(cluster.anchor) == OperandReads::Heads,
                  "a rotation computes nothing but the norm before attention "
                  "or an append");
  case OperandReads::Elements:
    break;
  }
  // Elementwise ops and embeddings join whatever reads them one by one; but an
  // epilogue stays with the product whose result it changes.
  if (isElementwise(producer) || kindOf(producer) == ResultKind::Lookup)
    return unless(isElementwise(consumer) || !isEpilogue(producer),
                  "it is computed with the product whose result it changes");
  // Elementwise ops join the op whose result they change.
  if (!isElementwise(consumer))
    return fromMemory;
  if (cluster.anchor)
    return "another op decides the loops of the kernel";
  switch (changesOf(producer)) {
  case ResultChanges::None:
    return "elementwise ops do not join this op";
  case ResultChanges::Elements:
    return "";
  case ResultChanges::Rounding:
    return unless(isRounding(consumer),
                  "of a rotation, nothing but rounding is computed with it");
  case ResultChanges::RoundingAtTheEnd:
    if (!rules.roundingIntoAttention || !isRounding(consumer) ||
        consumer != cluster.root())
      return "of attention, nothing but the rounding of its result is computed "
             "with it";
    return unless(!isa<CacheAttentionInterface>(producer) ||
                      !isCacheUsedBetween(producer, consumer),
                  "the cache is used before its result is rounded");
  }
  llvm_unreachable("every kind of change is handled");
}

/// Whether an append takes `tensor` element by element, turned or not.
bool isTakenByElement(Value tensor) {
  Operation *producer = tensor.getDefiningOp();
  if (producer && kindOf(producer) == ResultKind::Rotation)
    producer = producer->getOperand(0).getDefiningOp();
  return !producer || !isNorm(producer);
}

/// The append that stores what `attention` reads of the step's own rows, where
/// one kernel can do both: no other op is between them that knows the layer.
KVAppendOp findAppend(CacheAttentionInterface attention) {
  if (attention.getKvHead())
    return {};
  auto cache = attention.getCache();
  for (Operation *op = attention->getPrevNode(); op; op = op->getPrevNode()) {
    auto other = dyn_cast<CacheAttentionInterface>(op);
    if (other && other.getCache() == cache &&
        other.getLayer() == attention.getLayer())
      return {};
    auto append = dyn_cast<KVAppendOp>(op);
    if (!append || append.getCache() != cache ||
        append.getLayer() != attention.getLayer())
      continue;
    return isAppendFor(append, attention) && !cache.getType().isQuantized() &&
                   isTakenByElement(append.getK()) &&
                   isTakenByElement(append.getV())
               ? append
               : KVAppendOp();
  }
  return {};
}

/// Says whether `producer` is computed where `consumer` is; `reason` is why
/// not.
void reportFusion(func::FuncOp function, Operation *producer,
                  Operation *consumer, StringRef reason) {
  if (reason.empty()) {
    LDBG() << producer->getName() << " joins " << consumer->getName();
    return; // with a remark for the whole kernel
  }
  LDBG() << producer->getName() << " stays apart from " << consumer->getName()
         << ": " << reason;
  remark::missed(producer->getLoc(), remark::RemarkOpts::name("Fusion")
                                         .category(DEBUG_TYPE)
                                         .function(function.getSymName()))
      << remark::metric("Consumer", consumer->getName().getStringRef())
      << remark::reason("{0}", reason);
}

} // namespace

bool Cluster::add(Operation *op) {
  const size_t known = views.size();
  addViews(op);
  const size_t kernelOps = views.size() + ops.size() + 2; // op and kf.yield
  if (!ops.empty() &&
      (ops.size() == maxClusterOps || kernelOps > maxKernelOps)) {
    while (views.size() > known)
      views.pop_back();
    return false;
  }
  ops.push_back(op);
  if (isAnchor(op) && !anchor)
    anchor = op;
  return true;
}

/// As many as count.
void Cluster::addViews(Operation *op) {
  for (Value operand : op->getOperands()) {
    Operation *producer = operand.getDefiningOp();
    if (views.size() < maxKernelOps && producer && isView(producer) &&
        views.insert(producer))
      addViews(producer);
  }
}

SmallVector<Cluster> mlir::kf::formClusters(func::FuncOp function,
                                            const FusionRules &rules,
                                            int64_t maxTokens) {
  const RowLimit limit = {function, maxTokens};
  SmallVector<Cluster> clusters;
  DenseSet<Operation *> taken;
  for (Operation &op : llvm::reverse(function.getBody().front())) {
    if (isStructural(&op) || taken.contains(&op))
      continue;
    Cluster cluster;
    cluster.add(&op);
    taken.insert(&op);
    for (size_t next = 0; rules.fuses && next < cluster.ops.size(); ++next) {
      Operation *consumer = cluster.ops[next];
      if (auto attention = dyn_cast<CacheAttentionInterface>(consumer);
          attention && limit.holds(attention.getQ(), rules.mostRowsOfAppend))
        if (KVAppendOp append = findAppend(attention);
            append && !taken.contains(append) && cluster.add(append)) {
          LDBG() << "the append of layer " << append.getLayer()
                 << " joins its attention";
          taken.insert(append);
        }
      for (Value operand : consumer->getOperands()) {
        Operation *producer = operand.getDefiningOp();
        if (!producer || isStructural(producer) || taken.contains(producer))
          continue;
        StringRef reason = whyApart(rules, limit, cluster, producer, consumer);
        if (reason.empty() && !cluster.add(producer))
          reason = "the kernel has as many ops as it may have";
        reportFusion(function, producer, consumer, reason);
        if (reason.empty())
          taken.insert(producer);
      }
    }
    clusters.push_back(std::move(cluster));
  }
  std::reverse(clusters.begin(), clusters.end());
  return clusters;
}
