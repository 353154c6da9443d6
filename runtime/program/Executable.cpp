//===- Executable.cpp - Sizes and checks of a compiled program ------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/program/Executable.h"

#include "runtime/core/BlockFormat.h"
#include "runtime/core/ExpertTiles.h"

#include <algorithm>
#include <limits>

namespace kf {
namespace {

/// Far beyond any kernel's need; a larger request is a damaged file.
constexpr uint64_t kMaxScratchBytes = uint64_t(1) << 32;
constexpr uint64_t kMaxArenaBytes = uint64_t(1) << 46;
constexpr int64_t kMaxPanel = 4096;
constexpr int64_t kMaxTokens = int64_t(1) << 31;
constexpr int64_t kMaxColumns = int64_t(1) << 31;

std::string numbered(const char *what, size_t index) {
  return std::string(what) + " " + std::to_string(index);
}

Status checkTensorSpec(const TensorSpec &spec, const Executable &executable) {
  for (int64_t extent : spec.shape)
    if (extent < 0 && (!isSizeExtent(extent) ||
                       slotOfExtent(extent) >= executable.slotCount()))
      return Status::error("an extent of " + std::to_string(extent) +
                           " is no size of the program");
  Result<int64_t> bytes = checkedByteCount(
      spec.type, resolveShape(spec.shape, executable.largestSizes()));
  return bytes.ok() ? Status() : bytes.status();
}

/// Whether `text` is letters, digits and `others`, and not many.
bool isWord(std::string_view text, std::string_view others) {
  auto isInWord = [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || others.find(c) != std::string_view::npos;
  };
  return !text.empty() && text.size() <= 64 &&
         std::ranges::all_of(text, isInWord);
}

Status checkSizeRange(const SizeRange &range) {
  if (!isWord(range.name, "_$."))
    return Status::error("a size's name is no word of up to 64 letters");
  if (range.least < 0 || range.least > range.most || range.most > kMaxTokens)
    return Status::error("size '" + range.name + "' is from " +
                         std::to_string(range.least) + " to " +
                         std::to_string(range.most) +
                         ", which is not within 0 and 2^31");
  return Status();
}

Status checkBinding(const kf_binding &binding, const Executable &executable) {
  if (binding.kind == KF_BINDING_ARENA) {
    if (binding.index != 0)
      return Status::error("an arena binding has index " +
                           std::to_string(binding.index) + " instead of 0");
    if (binding.offset >= executable.arenaBytes)
      return Status::error("arena offset " + std::to_string(binding.offset) +
                           " is outside the arena of " +
                           std::to_string(executable.arenaBytes) + " bytes");
    if (binding.offset % KF_BUFFER_ALIGNMENT != 0)
      return Status::error("arena offset " + std::to_string(binding.offset) +
                           " is not a multiple of " +
                           std::to_string(KF_BUFFER_ALIGNMENT));
    return Status();
  }
  size_t count = 0;
  const char *what = "";
  switch (binding.kind) {
  case KF_BINDING_WEIGHT:
    count = executable.weights.size(), what = "weight";
    break;
  case KF_BINDING_CACHE:
    count = executable.caches.size(), what = "cache";
    break;
  case KF_BINDING_INPUT:
    count = executable.inputs.size(), what = "input";
    break;
  case KF_BINDING_OUTPUT:
    count = executable.outputs.size(), what = "output";
    break;
  default:
    return Status::error("unknown binding kind " +
                         std::to_string(binding.kind));
  }
  if (binding.index >= count)
    return Status::error("there is no " + numbered(what, binding.index) +
                         " (the program has " + std::to_string(count) + ")");
  if (binding.kind == KF_BINDING_CACHE) {
    int64_t layers = executable.caches[binding.index].layers;
    if (binding.offset >= static_cast<uint64_t>(layers))
      return Status::error(
          "there is no layer " + std::to_string(binding.offset) + " in " +
          numbered("cache", binding.index) + " of " + std::to_string(layers));
    return Status();
  }
  if (binding.offset != 0)
    return Status::error("the binding of " + numbered(what, binding.index) +
                         " has an offset");
  return Status();
}

Status checkGrid(const std::array<kf_grid_dim, 3> &grid,
                 const Executable &executable) {
  const std::array<int64_t, KF_SCALAR_COUNT> largest =
      executable.largestSizes();
  int64_t total = 1;
  for (const kf_grid_dim &dim : grid) {
    if (dim.scalar >= 0 && (!isSizeExtent(extentOfSlot(dim.scalar)) ||
                            dim.scalar >= executable.slotCount()))
      return Status::error("a grid dimension divides scalar " +
                           std::to_string(dim.scalar) +
                           ", which is no size of the program");
    if (dim.value < 1)
      return Status::error("a grid dimension has value " +
                           std::to_string(dim.value) +
                           "; 1 or more is expected");
    int64_t extent = dim.value;
    if (dim.scalar >= 0)
      extent = std::max<int64_t>((largest[dim.scalar] - 1) / dim.value + 1, 1);
    if (__builtin_mul_overflow(total, extent, &total))
      return Status::error("a grid has more workgroups than 63 bits can count");
  }
  return Status();
}

Status checkAccesses(const DispatchSpec &dispatch,
                     const Executable &executable) {
  if (dispatch.accesses.empty())
    return Status();
  if (dispatch.accesses.size() != dispatch.bindings.size())
    return Status::error(
        std::to_string(dispatch.accesses.size()) + " accesses for " +
        std::to_string(dispatch.bindings.size()) + " bindings");
  for (size_t i = 0; i < dispatch.bindings.size(); ++i) {
    const kf_binding &binding = dispatch.bindings[i];
    if (dispatch.accesses[i].writes &&
        (binding.kind == KF_BINDING_WEIGHT || binding.kind == KF_BINDING_INPUT))
      return Status::error(numbered("binding", i) +
                           " is written, which weights and inputs are not");
    const uint64_t most = binding.kind == KF_BINDING_ARENA
                              ? executable.arenaBytes - binding.offset
                              : 0;
    if (dispatch.accesses[i].bytes > most)
      return Status::error(numbered("binding", i) + " has " +
                           std::to_string(dispatch.accesses[i].bytes) +
                           " bytes of the arena, where " +
                           std::to_string(most) + " are");
  }
  return Status();
}

/// A kernel's work names buffers that its dispatches have.
Status checkWork(const KernelSpec &kernel, const DispatchSpec &dispatch) {
  if (!kernel.work || !kernel.work->keys)
    return Status();
  for (uint32_t operand :
       {kernel.work->keys->positions, kernel.work->keys->sequences})
    if (operand >= dispatch.bindings.size())
      return Status::error("the work of kernel '" + kernel.name +
                           "' depends on " + numbered("operand", operand) +
                           ", of which it has " +
                           std::to_string(dispatch.bindings.size()));
  return Status();
}

/// A collective's operand or result `binding`, of `rows` and `columns`: an
/// input or output of that shape, or in the arena, which has room for it.
Status checkPart(const kf_binding &binding, const CollectiveSpec &collective,
                 int64_t columns, const Executable &executable) {
  KF_RETURN_IF_ERROR(checkBinding(binding, executable));
  const int64_t rows = collective.rows;
  KF_ASSIGN_OR_RETURN(
      const int64_t bytes,
      checkedByteCount(
          collective.type,
          resolveShape(std::array{rows, columns}, executable.largestSizes())));
  if (binding.kind == KF_BINDING_ARENA) {
    if (static_cast<uint64_t>(bytes) > executable.arenaBytes - binding.offset)
      return Status::error(
          "it needs " + std::to_string(bytes) + " bytes of the arena, where " +
          std::to_string(executable.arenaBytes - binding.offset) + " are");
    return Status();
  }
  const TensorSpec &spec = binding.kind == KF_BINDING_INPUT
                               ? executable.inputs[binding.index]
                               : executable.outputs[binding.index];
  int64_t rest = 1;
  bool isKnown = true; // a size may stand for the first extent alone
  for (size_t i = 1; i < spec.shape.size(); ++i) {
    isKnown &= spec.shape[i] > 0;
    rest *= spec.shape[i]; // with the first one, in 63 bits
  }
  if (spec.type != collective.type || spec.shape.empty() || !isKnown ||
      spec.shape.front() != rows || rest != columns)
    return Status::error("the program's tensor has another type or shape");
  return Status();
}

/// Ranks read one another's operands while they write their results.
Status checkApart(const DispatchSpec &dispatch, const Executable &executable) {
  const CollectiveSpec &spec = *dispatch.collective;
  const kf_binding &operand = dispatch.bindings[0],
                   &result = dispatch.bindings[1];
  auto bytesOf = [&](int64_t columns) {
    return checkedByteCount(spec.type,
                            resolveShape(std::array{spec.rows, columns},
                                         executable.largestSizes()));
  };
  KF_ASSIGN_OR_RETURN(const int64_t read, bytesOf(spec.columns));
  KF_ASSIGN_OR_RETURN(const int64_t written, bytesOf(spec.resultColumns));
  if (operand.kind == KF_BINDING_ARENA && result.kind == KF_BINDING_ARENA &&
      operand.offset < result.offset + static_cast<uint64_t>(written) &&
      result.offset < operand.offset + static_cast<uint64_t>(read))
    return Status::error("a collective's operand and result overlap in the "
                         "arena");
  return Status();
}

Status checkCollective(const DispatchSpec &dispatch,
                       const Executable &executable) {
  const CollectiveSpec &spec = *dispatch.collective;
  if (executable.ranks < 2)
    return Status::error("a collective in a program of one rank");
  if (!isFloat(spec.type))
    return Status::error("a collective of " + std::string(nameOf(spec.type)) +
                         "; f32, f16 and bf16 are possible");
  const bool isRows =
      spec.rows >= 1 || (isSizeExtent(spec.rows) &&
                         slotOfExtent(spec.rows) < executable.slotCount());
  if (!isRows || spec.columns < 1 || spec.columns > kMaxColumns)
    return Status::error("a collective of " + std::to_string(spec.rows) +
                         " rows and " + std::to_string(spec.columns) +
                         " columns is not possible");
  const bool gathers = spec.kind == CollectiveSpec::Kind::AllGather;
  const int64_t most = gathers ? executable.ranks * spec.columns : spec.columns;
  if (spec.resultColumns > most || spec.resultColumns <= most - spec.columns)
    return Status::error(std::to_string(executable.ranks) + " ranks with " +
                         std::to_string(spec.columns) +
                         " columns each cannot make " +
                         std::to_string(spec.resultColumns));
  if (dispatch.bindings.size() != spec.bindings())
    return Status::error(
        "a collective has " + std::to_string(dispatch.bindings.size()) +
        " bindings instead of " + std::to_string(spec.bindings()));
  if (spec.hasOperand()) {
    const kf_binding &operand = dispatch.bindings.front();
    if (operand.kind != KF_BINDING_ARENA && operand.kind != KF_BINDING_INPUT)
      return Status::error("a collective's operand is neither an input nor in "
                           "the arena");
    KF_RETURN_IF_ERROR(
        checkPart(operand, spec, spec.columns, executable).in("binding 0"));
  }
  if (spec.hasResult()) {
    const kf_binding &result = dispatch.bindings.back();
    if (result.kind != KF_BINDING_ARENA && result.kind != KF_BINDING_OUTPUT)
      return Status::error("a collective's result is neither an output nor in "
                           "the arena");
    KF_RETURN_IF_ERROR(
        checkPart(result, spec, spec.resultColumns, executable)
            .in(numbered("binding", dispatch.bindings.size() - 1)));
  }
  for (const kf_grid_dim &dim : dispatch.grid)
    if (dim.scalar >= 0 || dim.value != 1)
      return Status::error("a collective has more than one workgroup");
  KF_RETURN_IF_ERROR(checkAccesses(dispatch, executable));
  if (spec.hasResult() && !dispatch.accesses.empty() &&
      !dispatch.accesses.back().writes)
    return Status::error("a collective does not write its result");
  return spec.bindings() == 2 ? checkApart(dispatch, executable) : Status();
}

Status checkDispatch(const DispatchSpec &dispatch,
                     const Executable &executable) {
  if (dispatch.collective)
    return checkCollective(dispatch, executable);
  if (dispatch.kernel >= executable.kernels.size())
    return Status::error("there is no " + numbered("kernel", dispatch.kernel) +
                         " (the executable has " +
                         std::to_string(executable.kernels.size()) + ")");
  for (size_t i = 0; i < dispatch.bindings.size(); ++i)
    KF_RETURN_IF_ERROR(checkBinding(dispatch.bindings[i], executable)
                           .in(numbered("binding", i)));
  KF_RETURN_IF_ERROR(checkAccesses(dispatch, executable));
  KF_RETURN_IF_ERROR(checkWork(executable.kernels[dispatch.kernel], dispatch));
  return checkGrid(dispatch.grid, executable);
}

/// A kernel takes the same number of buffers in each of its dispatches.
Status checkBufferCounts(const Executable &executable) {
  std::vector<const DispatchSpec *> first(executable.kernels.size());
  for (size_t i = 0; i < executable.dispatches.size(); ++i) {
    const DispatchSpec &dispatch = executable.dispatches[i];
    if (dispatch.collective)
      continue;
    const DispatchSpec *&known = first[dispatch.kernel];
    if (!known)
      known = &dispatch;
    if (known->bindings.size() != dispatch.bindings.size())
      return Status::error(
          numbered("dispatch", i) + ": " +
          std::to_string(dispatch.bindings.size()) + " buffers for kernel '" +
          executable.kernels[dispatch.kernel].name + "', which took " +
          std::to_string(known->bindings.size()) + " before");
  }
  return Status();
}

bool isCollective(const DispatchSpec &dispatch) {
  return dispatch.collective.has_value();
}

Status checkKernel(const KernelSpec &kernel, std::string_view target) {
  if (kernel.name.empty())
    return Status::error("its name is empty");
  if (kernel.scratchBytes > kMaxScratchBytes)
    return Status::error("it asks for " + std::to_string(kernel.scratchBytes) +
                         " bytes of scratch; at most " +
                         std::to_string(kMaxScratchBytes) + " are possible");
  if (kernel.dynamicBytes > kernel.scratchBytes)
    return Status::error(std::to_string(kernel.dynamicBytes) +
                         " bytes of its "
                         "scratch are a launch's, which is of " +
                         std::to_string(kernel.scratchBytes));
  if (target != "cuda" && (kernel.dynamicBytes != 0 || kernel.waits))
    return Status::error("its scratch is a launch's, or it waits for others, "
                         "which kernels for cuda alone do");
  if (target != "vulkan" && kernel.subgroupThreads != 0)
    return Status::error("it is for subgroups of " +
                         std::to_string(kernel.subgroupThreads) +
                         " threads, which vulkan alone has");
  for (uint32_t size : kernel.workgroupSize)
    if (size == 0)
      return Status::error("its workgroup has a dimension of 0 threads");
  return Status();
}

Status checkLayout(const WeightSpec &spec) {
  const WeightLayout &layout = spec.layout;
  if (layout.kind != WeightLayout::Kind::Panels &&
      (layout.panel != 0 || layout.interleave != 0))
    return Status::error("a weight without panels has a panel or an "
                         "interleave");
  if (layout.kind == WeightLayout::Kind::RowMajor)
    return Status();
  if (layout.kind == WeightLayout::Kind::Fragments) {
    if (!findFragmentTile(spec.type))
      return Status::error("no fragments of " + std::string(nameOf(spec.type)));
    if (!hasRowBlocks(spec.shape))
      return Status::error("fragments need a weight of rank 2, of rank 3 with "
                           "two groups, or of rank 4 with one or two");
    return Status();
  }
  if (layout.kind != WeightLayout::Kind::Panels)
    return Status::error("unknown weight layout");
  if (spec.shape.size() < 2 || spec.shape.size() > 4)
    return Status::error("panels need a weight of rank 2 to 4, not " +
                         std::to_string(spec.shape.size()));
  if (!isFloat(spec.type) && !isBlock(spec.type) &&
      spec.type != DataType::F8E4M3)
    return Status::error("panels need float or block elements, not " +
                         std::string(nameOf(spec.type)));
  if (layout.panel < 1 || layout.panel > kMaxPanel)
    return Status::error("a panel has " + std::to_string(layout.panel) +
                         " rows; 1 to " + std::to_string(kMaxPanel) +
                         " are possible");
  if (layout.interleave < 0)
    return Status::error("a negative interleave");
  if (layout.interleave == 0)
    return Status();
  if (spec.type != DataType::BF16)
    return Status::error("only bf16 elements can be interleaved, not " +
                         std::string(nameOf(spec.type)));
  if (layout.interleave > layout.panel / 2 ||
      layout.panel % (2 * layout.interleave) != 0)
    return Status::error("a panel of " + std::to_string(layout.panel) +
                         " rows is no multiple of twice the interleave " +
                         std::to_string(layout.interleave));
  return Status();
}

/// Everything but the size.
Status checkWeight(const WeightSpec &spec) {
  if (spec.names.empty())
    return Status::error("a weight without checkpoint tensors");
  for (const std::string &name : spec.names)
    if (name.empty())
      return Status::error("a weight names a checkpoint tensor ''");
  if (spec.shape.empty())
    return Status::error("a weight of rank 0");
  for (int64_t dim : spec.shape)
    if (dim < 1)
      return Status::error("a weight has dimension " + std::to_string(dim) +
                           "; 1 or more is expected");
  uint64_t first = static_cast<uint64_t>(spec.shape[0]);
  if (spec.stacked && spec.stackedDims() == 0)
    return Status::error("no leading dimensions of a weight make " +
                         std::to_string(spec.names.size()) +
                         ", as many as it is stacked of");
  if (!spec.stacked && first < spec.names.size())
    return Status::error("a weight's first dimension " + std::to_string(first) +
                         " does not fit its " +
                         std::to_string(spec.names.size()) +
                         " checkpoint tensors");
  if (spec.transposed && isBlock(spec.type))
    return Status::error("blocks cannot be transposed while packing");
  if (spec.transposed && spec.shape.size() != spec.stackedDims() + 2)
    return Status::error("only matrices can be transposed while packing");
  return checkLayout(spec);
}

} // namespace

size_t countStackedDims(std::span<const int64_t> shape, int64_t tensors) {
  int64_t product = 1;
  for (size_t dim = 0; dim + 1 < shape.size(); ++dim) {
    if (__builtin_mul_overflow(product, shape[dim], &product))
      return 0;
    if (product != tensors)
      continue;
    // Of dimensions of 1, as many as leave a matrix.
    while (dim + 3 < shape.size() && shape[dim + 1] == 1)
      ++dim;
    return dim + 1;
  }
  return 0;
}

Result<int64_t> WeightSpec::packedBytes() const {
  std::string where =
      names.empty() ? "weight" : "weight '" + names.front() + "'";
  KF_RETURN_IF_ERROR(checkWeight(*this).in(where));
  if (layout.kind == WeightLayout::Kind::Fragments) {
    // Tiles are padded, blocks are not.
    KF_RETURN_IF_ERROR(
        checkedByteCount(type, {&shape.back(), 1}).status().in(where));
    std::optional<int64_t> size = rowBlockBytes(*findFragmentTile(type), shape);
    if (!size)
      return Status::error(where + ": its fragments are too large");
    return *size;
  }
  std::vector<int64_t> packed = shape;
  if (layout.kind == WeightLayout::Kind::Panels) {
    int64_t &rows = packed[packed.size() - 2];
    int64_t panels = (rows - 1) / layout.panel + 1;
    if (__builtin_mul_overflow(panels, layout.panel, &rows))
      return Status::error(where + ": its panels are too large");
  }
  Result<int64_t> bytes = checkedByteCount(type, packed);
  if (!bytes.ok())
    return bytes.status().in(where);
  const BlockFormat *format = findBlockFormat(type);
  if (!format || layout.kind == WeightLayout::Kind::RowMajor)
    return bytes;
  int64_t blocks = *bytes / format->bytes;
  if (__builtin_mul_overflow(blocks, PackedBlock(*format).bytes, &blocks))
    return Status::error(where + ": its panels are too large");
  return blocks;
}

Result<int64_t> CacheSpec::bytes(int64_t pages) const {
  if (!isFloat(type) && type != DataType::Q8_0)
    return Status::error("a cache of " + std::string(nameOf(type)) +
                         "; f32, f16, bf16 and q8_0 are possible");
  if (layers < 1 || kvHeads < 1 || headDim < 1 || keyBlock < 1 || page < 1)
    return Status::error("a cache has a dimension below 1");
  if (headDim % elementsPerBlock(type) != 0)
    return Status::error("a cache of " + std::string(nameOf(type)) +
                         " with heads of " + std::to_string(headDim) +
                         ", which is no multiple of " +
                         std::to_string(elementsPerBlock(type)) +
                         "; f32, f16 and bf16 are possible");
  if (page % keyBlock != 0)
    return Status::error("a cache with pages of " + std::to_string(page) +
                         " positions, which is no multiple of the key block " +
                         std::to_string(keyBlock));
  if (pages < 1)
    return Status::error("a cache of " + std::to_string(pages) +
                         " pages is not possible; a positive number is");
  if (isOfStates()) {
    if (type != DataType::F32 || keyBlock != 1 || slotPages < 0 ||
        slotPages > std::numeric_limits<int32_t>::max())
      return Status::error("a cache of states has elements of f32, key blocks "
                           "of 1, and 1 to 2147483647 pages for a slot, not " +
                           std::to_string(slotPages));
    // GPUs bind a layer where it begins.
    constexpr int64_t alignment = 256 / sizeof(float);
    int64_t shape[] = {slots(pages), kvHeads, headDim};
    KF_ASSIGN_OR_RETURN(int64_t elements, checkedElementCount(shape));
    if (__builtin_add_overflow(elements, alignment - 1, &elements))
      return Status::error("a cache of states that is too large");
    int64_t padded[] = {layers, elements / alignment, alignment};
    return checkedByteCount(type, padded);
  }
  int64_t shape[] = {layers, pages, 2, kvHeads, page, headDim};
  return checkedByteCount(type, shape);
}

CacheSpec CacheSpec::ofStates(int64_t layers, int64_t heads, int64_t elements,
                              int64_t slotPages) {
  CacheSpec spec;
  spec.layers = layers;
  spec.kvHeads = heads;
  spec.headDim = elements;
  spec.slotPages = slotPages;
  return spec;
}

std::vector<int64_t> resolveShape(std::span<const int64_t> shape,
                                  std::span<const int64_t> scalars) {
  std::vector<int64_t> resolved(shape.begin(), shape.end());
  for (int64_t &extent : resolved)
    if (isSizeExtent(extent))
      extent = scalars[static_cast<size_t>(slotOfExtent(extent))];
  return resolved;
}

Status StepLimits::check(std::span<const int64_t> scalars) const {
  auto isOutside = [](const SizeRange &range, int64_t size) {
    return size < range.least || size > range.most;
  };
  auto takes = [](const SizeRange &range) {
    return "; the program takes " + std::to_string(range.least) + " to " +
           std::to_string(range.most);
  };
  int64_t count = scalars[KF_SCALAR_N_TOKENS];
  if (isOutside(tokens, count))
    return Status::error("a step of " + std::to_string(count) + " tokens" +
                         takes(tokens));
  for (size_t i = 0; i < named.size(); ++i) {
    int64_t size = scalars[KF_SCALAR_NAMED_SIZES + i];
    if (isOutside(named[i], size))
      return Status::error("a step with '" + named[i].name +
                           "' = " + std::to_string(size) + takes(named[i]));
  }
  return Status();
}

std::string_view nameOf(CollectiveSpec::Kind kind) {
  static constexpr std::string_view names[] = {"all_reduce", "all_gather",
                                               "send", "receive"};
  return names[static_cast<size_t>(kind)];
}

const KernelSpec *Executable::kernelOf(const DispatchSpec &dispatch) const {
  return dispatch.collective ? nullptr : &kernels[dispatch.kernel];
}

std::string Executable::nameOf(const DispatchSpec &dispatch) const {
  return dispatch.collective
             ? std::string(kf::nameOf(dispatch.collective->kind))
             : kernels[dispatch.kernel].name;
}

int64_t Executable::slotCount() const {
  return KF_SCALAR_NAMED_SIZES + static_cast<int64_t>(namedSizes.size());
}

std::array<int64_t, KF_SCALAR_COUNT> Executable::largestSizes() const {
  std::array<int64_t, KF_SCALAR_COUNT> largest = {};
  largest[KF_SCALAR_N_TOKENS] = maxTokens;
  for (size_t i = 0; i < namedSizes.size(); ++i)
    largest[KF_SCALAR_NAMED_SIZES + i] = namedSizes[i].most;
  return largest;
}

StepLimits Executable::limits() const {
  return {{"n_tokens", minTokens, maxTokens}, namedSizes};
}

Status Executable::verify() const {
  if (target.empty())
    return Status::error("an executable without a target");
  for (const std::string &feature : features)
    if (!isWord(feature, "-._"))
      return Status::error("a CPU feature is no word of up to 64 letters");
  if (!model.empty() && !isWord(model, ""))
    return Status::error("the model's key is no word of up to 64 letters");
  if (programName.empty())
    return Status::error("an executable without a program name");
  if (ranks < 1 || ranks > kMaxRanks)
    return Status::error("a program for " + std::to_string(ranks) +
                         " ranks; 1 to " + std::to_string(kMaxRanks) +
                         " are possible");
  if (maxTokens < 1 || maxTokens > kMaxTokens)
    return Status::error("maximum number of tokens " +
                         std::to_string(maxTokens) +
                         " is not between 1 and 2^31");
  if (minTokens < 1 || minTokens > maxTokens)
    return Status::error(
        "minimum number of tokens " + std::to_string(minTokens) +
        " is not between 1 and the maximum, " + std::to_string(maxTokens));
  if (namedSizes.size() > KF_NAMED_SIZE_COUNT)
    return Status::error("the program has " +
                         std::to_string(namedSizes.size()) +
                         " named sizes; at most " +
                         std::to_string(KF_NAMED_SIZE_COUNT) + " are possible");
  for (const SizeRange &range : namedSizes)
    KF_RETURN_IF_ERROR(checkSizeRange(range));
  if (arenaBytes > kMaxArenaBytes)
    return Status::error("an arena of " + std::to_string(arenaBytes) +
                         " bytes is larger than any machine's memory");
  if (binary.empty() && !std::ranges::all_of(dispatches, isCollective))
    return Status::error("an executable with dispatches but no kernel code");

  for (size_t i = 0; i < kernels.size(); ++i)
    KF_RETURN_IF_ERROR(
        checkKernel(kernels[i], target).in(numbered("kernel", i)));
  for (const WeightSpec &weight : weights) {
    Result<int64_t> bytes = weight.packedBytes();
    if (!bytes.ok())
      return bytes.status();
  }
  for (size_t i = 0; i < caches.size(); ++i) {
    Result<int64_t> bytes = caches[i].bytes(/*pages=*/1);
    if (!bytes.ok())
      return bytes.status().in(numbered("cache", i));
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    KF_RETURN_IF_ERROR(
        checkTensorSpec(inputs[i], *this).in(numbered("input", i)));
  for (size_t i = 0; i < outputs.size(); ++i)
    KF_RETURN_IF_ERROR(
        checkTensorSpec(outputs[i], *this).in(numbered("output", i)));
  for (size_t i = 0; i < dispatches.size(); ++i)
    KF_RETURN_IF_ERROR(
        checkDispatch(dispatches[i], *this).in(numbered("dispatch", i)));
  return checkBufferCounts(*this);
}

} // namespace kf
