//===- KernelInputs.cpp - What to run a single kernel with ----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tuning/KernelInputs.h"

#include "runtime/core/Exceptions.h"
#include "runtime/model/Step.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <random>

using namespace kf;

namespace {

using Role = KernelInput::Role;
using Scalars = std::array<int64_t, KF_SCALAR_COUNT>;

KernelInput inputOf(const KernelCase &kernelCase, size_t index) {
  return index < kernelCase.inputs.size() ? kernelCase.inputs[index]
                                          : KernelInput();
}

/// How a step's rows lie in sequences, and these in pages.
struct Placement {
  int64_t rows = 1, sequences = 1;
  int64_t depth = 0;        ///< positions before the first row of each
  int64_t pages = 1;        ///< of each sequence
  int64_t tableColumns = 1; ///< pages that the table has room for
  int64_t slotPages = 0;    ///< for which there is a slot; 0: there are none

  /// Rows that a sequence has at most.
  int64_t rowsOfEach() const { return (rows + sequences - 1) / sequences; }
  /// With which each sequence has its pages, and its slot.
  int64_t poolPages() const {
    return std::max(pages * sequences,
                    slotPages ? (sequences - 1) * slotPages + 1 : 0);
  }
};

/// The tokens of the whole case say where rows lie, so that fewer rows are its
/// first ones. Errors: tables of several shapes, and one without room for the
/// rows: positions beyond it would be in no page.
Result<Placement> placementOf(const Executable &program,
                              const KernelCase &kernelCase,
                              const Scalars &scalars) {
  Placement place;
  place.rows = kernelCase.tokens;
  std::optional<std::vector<int64_t>> table, slots;
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const Role role = inputOf(kernelCase, i).role;
    if (role != Role::PageTable && role != Role::Slots)
      continue;
    std::vector<int64_t> shape = resolveShape(program.inputs[i].shape, scalars);
    std::optional<std::vector<int64_t>> &known =
        role == Role::Slots ? slots : table;
    if (known && *known != shape)
      return Status::error(role == Role::Slots
                               ? "lists of slots have different shapes"
                               : "page tables have different shapes");
    known = std::move(shape);
  }
  int64_t page = kCachePage;
  for (const CacheSpec &cache : program.caches) {
    page = cache.page;
    place.slotPages = std::max(place.slotPages, cache.slotPages);
  }
  if (slots && slots->size() == 1)
    place.sequences = std::max<int64_t>((*slots)[0], 1);
  if (table && table->size() == 2) {
    place.sequences = std::max<int64_t>((*table)[0], 1);
    place.tableColumns = std::max<int64_t>((*table)[1], 1);
    if (slots && (*slots)[0] != (*table)[0])
      return Status::error("there are slots of " + std::to_string((*slots)[0]) +
                           " sequences, and pages of " +
                           std::to_string((*table)[0]));
  }
  // No step has more positions, and sums stay far from what 64 bits hold.
  constexpr int64_t kMostPositions = int64_t(1) << 31;
  if (page < 1 || page > kMostPositions || kernelCase.depth < 0)
    return Status::error(
        "pages of " + std::to_string(page) + " positions behind " +
        std::to_string(kernelCase.depth) + " are not possible");
  const int64_t room =
      std::min(place.tableColumns, kMostPositions / page) * page;
  if (table && place.rowsOfEach() > room)
    return Status::error(
        std::to_string(place.rows) + " rows in " +
        std::to_string(place.sequences) + " sequences need more than the " +
        std::to_string(room) + " positions that the page table has room for");
  // States are as large at any depth.
  place.depth = slots && !table ? std::min(kernelCase.depth, kMostPositions)
                                : std::clamp<int64_t>(room - place.rowsOfEach(),
                                                      0, kernelCase.depth);
  place.pages = std::min(place.tableColumns,
                         (place.depth + place.rowsOfEach() + page - 1) / page);
  return place;
}

/// A random number below `count`.
int64_t below(std::mt19937_64 &random, int64_t count) {
  return static_cast<int64_t>(random() % static_cast<uint64_t>(count));
}

template <typename T>
void fillIntegers(HostTensor &tensor, const KernelInput &input, bool counts,
                  std::mt19937_64 &random) {
  const int64_t low = static_cast<int64_t>(std::ceil(input.low));
  const int64_t count =
      std::max<int64_t>(static_cast<int64_t>(std::ceil(input.high)) - low, 1);
  T *values = tensor.data<T>();
  for (int64_t i = 0; i < tensor.elementCount(); ++i)
    values[i] = static_cast<T>(counts ? i : low + below(random, count));
}

Status fillNumbers(HostTensor &tensor, const KernelInput &input, bool counts,
                   std::mt19937_64 &random) {
  switch (tensor.type) {
  case DataType::I64:
    fillIntegers<int64_t>(tensor, input, counts, random);
    return Status();
  case DataType::I32:
    fillIntegers<int32_t>(tensor, input, counts, random);
    return Status();
  case DataType::I16:
    fillIntegers<int16_t>(tensor, input, counts, random);
    return Status();
  case DataType::I8:
    // Codes of rows: -128 is none.
    for (int64_t i = 0; i < tensor.elementCount(); ++i)
      tensor.data<int8_t>()[i] = static_cast<int8_t>(below(random, 255) - 127);
    return Status();
  case DataType::I1:
    for (std::byte &byte : tensor.bytes)
      byte = std::byte(random() & 1);
    return Status();
  default:
    break;
  }
  std::vector<float> values(tensor.elementCount());
  std::uniform_real_distribution<float> number(static_cast<float>(input.low),
                                               static_cast<float>(input.high));
  for (float &value : values)
    value = number(random);
  if (tensor.type == DataType::F64) {
    std::ranges::copy(values, tensor.data<double>());
    return Status();
  }
  return convertFromFloat(tensor.type, values.data(),
                          static_cast<int64_t>(values.size()),
                          tensor.bytes.data());
}

/// Sums of `codes`, [rows, columns], over the equal parts that `sums`,
/// [rows, parts], has.
Status fillCodeSums(HostTensor &sums, const HostTensor &codes) {
  const int64_t parts = sums.shape.back(), columns = codes.shape.back();
  if (codes.type != DataType::I8 || codes.shape.size() != 2 ||
      codes.shape[0] != sums.shape[0] || parts < 1 || columns % parts != 0)
    return Status::error("its codes have another shape");
  const int64_t length = columns / parts;
  for (int64_t i = 0; i < sums.elementCount(); ++i) {
    const int8_t *first = codes.data<int8_t>() + i * length;
    sums.data<int32_t>()[i] = std::accumulate(first, first + length, 0);
  }
  return Status();
}

/// Rows of a sequence are neighbours. Pages come in no order, and slots from
/// the last one on.
void fillPlaces(HostTensor &tensor, Role role, const Placement &place,
                uint64_t seed) {
  int32_t *values = tensor.data<int32_t>();
  const int64_t each = place.rowsOfEach();
  if (role == Role::PageTable) {
    std::vector<int32_t> pages(place.poolPages());
    std::iota(pages.begin(), pages.end(), 0);
    std::shuffle(pages.begin(), pages.end(), std::mt19937_64(seed));
    for (int64_t sequence = 0; sequence < tensor.shape[0]; ++sequence)
      for (int64_t i = 0; i < place.pages; ++i)
        values[sequence * place.tableColumns + i] =
            pages[sequence * place.pages + i];
    return;
  }
  if (role == Role::Slots) {
    std::iota(values, values + tensor.elementCount(), 0);
    std::reverse(values, values + tensor.elementCount());
    return;
  }
  for (int64_t row = 0; row < tensor.elementCount(); ++row)
    values[row] = static_cast<int32_t>(
        role == Role::Sequences ? row / each : place.depth + row % each);
}

Status fill(HostTensor &tensor, const KernelInput &input, bool counts,
            const Placement &place, uint64_t seed, size_t index,
            std::span<const HostTensor> before) {
  if (input.role == Role::Numbers) {
    // A sequence of its own for each input.
    std::mt19937_64 random(seed * 1000003 + index);
    return fillNumbers(tensor, input, counts, random);
  }
  const size_t rank =
      input.role == Role::PageTable || input.role == Role::CodeSums ? 2 : 1;
  if (tensor.type != DataType::I32 || tensor.shape.size() != rank)
    return Status::error("it is no i32 tensor of rank " + std::to_string(rank));
  if (input.role == Role::CodeSums)
    return input.codes < before.size()
               ? fillCodeSums(tensor, before[input.codes])
               : Status::error("its codes come after it");
  fillPlaces(tensor, input.role, place, seed);
  return Status();
}

} // namespace

Result<Scalars> kf::kernelScalars(const Executable &program,
                                  const KernelCase &kernelCase) {
  Scalars scalars = {};
  scalars[KF_SCALAR_N_TOKENS] = kernelCase.tokens;
  for (size_t i = 0; i < program.namedSizes.size(); ++i) {
    const SizeRange &range = program.namedSizes[i];
    auto given = kernelCase.sizes.find(range.name);
    scalars[KF_SCALAR_NAMED_SIZES + i] =
        std::clamp<int64_t>(given == kernelCase.sizes.end() ? 1 : given->second,
                            range.least, range.most);
  }
  KF_RETURN_IF_ERROR(program.limits().check(scalars));
  KF_ASSIGN_OR_RETURN(const Placement place,
                      placementOf(program, kernelCase, scalars));
  scalars[KF_SCALAR_CACHE_PAGES] = place.poolPages();
  return scalars;
}

Result<std::vector<HostTensor>>
kf::makeKernelInputs(const Executable &program, const KernelCase &kernelCase,
                     const Scalars &scalars) try {
  KF_ASSIGN_OR_RETURN(const Placement place,
                      placementOf(program, kernelCase, scalars));
  std::vector<HostTensor> inputs;
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const TensorSpec &spec = program.inputs[i];
    KF_ASSIGN_OR_RETURN(
        HostTensor tensor,
        HostTensor::zeros(spec.type, resolveShape(spec.shape, scalars)));
    KF_RETURN_IF_ERROR(fill(tensor, inputOf(kernelCase, i),
                            i >= kernelCase.inputs.size(), place,
                            kernelCase.seed, i, inputs)
                           .in("input " + std::to_string(i)));
    inputs.push_back(std::move(tensor));
  }
  return inputs;
} catch (...) {
  return statusOfException();
}
