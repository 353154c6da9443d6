//===- Executable.h - A compiled program and its kernels --------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the compiler hands to the runtime: kernel binaries, one program (a
// straight list of dispatches) and the list of weights in the layouts that
// its kernels read. Plain data, serializable, loadable without the compiler.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_PROGRAM_EXECUTABLE_H
#define KF_RUNTIME_PROGRAM_EXECUTABLE_H

#include "runtime/core/Status.h"
#include "runtime/core/Tensor.h"
#include "runtime/program/KernelWork.h"
#include "runtime/program/abi.h"

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

/// The most ranks that run a program together.
inline constexpr int64_t kMaxRanks = 1024;

/// How a weight lies in memory when its kernels read it (`#kf.layout`,
/// `#kf.fragments`).
struct WeightLayout {
  enum class Kind {
    RowMajor, ///< as its logical shape says
    /// Panels of `panel` rows for matmul: logical [N, K] becomes
    /// [ceil(N/panel)][K][panel], logical [G, N, K] becomes
    /// [ceil(N/panel)][G][K][panel]; rows past N are zero. Block types have
    /// [ceil(N/panel)][G][K / elements of a block][PackedBlock of the panel].
    Panels,
    /// Tiles for matrix units, see FragmentTile.
    Fragments
  };
  Kind kind = Kind::RowMajor;
  int64_t panel = 0;
  /// Panels of bf16: within each group of 2*interleave columns of a panel row,
  /// element i and element i+interleave are neighbours, so that one 32-bit lane
  /// holds both (i in the low half). 0: no interleaving.
  int64_t interleave = 0;

  bool operator==(const WeightLayout &) const = default;
};

/// How many leading dimensions of a weight of shape `shape` tell the tensors
/// apart that it is stacked of: the fewest whose product is `tensors`, which
/// leave one behind them, and those of 1 behind these that leave a matrix. 0 if
/// there are none.
size_t countStackedDims(std::span<const int64_t> shape, int64_t tensors);

/// One weight as kernels want it.
struct WeightSpec {
  /// Checkpoint tensors that make it up, in order along its first dimension:
  /// concatenated, or stacked when `stacked` (shape gains leading dimensions,
  /// see countStackedDims()).
  std::vector<std::string> names;
  bool stacked = false;
  /// Checkpoint tensors are stored [K, N] and are transposed to [N, K]
  /// (GPT-2's Conv1D).
  bool transposed = false;
  DataType type = DataType::F32; ///< of the packed elements
  std::vector<int64_t> shape;    ///< logical, after concatenation
  WeightLayout layout;

  /// Leading dimensions that tell checkpoint tensors apart; 0 unless stacked.
  size_t stackedDims() const {
    return stacked ? countStackedDims(shape, int64_t(names.size())) : 0;
  }
  /// Bytes that the packed weight takes.
  Result<int64_t> packedBytes() const;
  bool operator==(const WeightSpec &) const = default;
};

/// An input or output of a program. A negative extent -1 - s stands for what
/// slot s of the step's scalars says: -1 for n_tokens, the named sizes below.
struct TensorSpec {
  DataType type = DataType::F32;
  std::vector<int64_t> shape;
  bool operator==(const TensorSpec &) const = default;
};

/// The extent that stands for a slot of the scalars, and the slot again.
constexpr int64_t extentOfSlot(int64_t slot) { return -1 - slot; }
constexpr int64_t slotOfExtent(int64_t extent) { return -1 - extent; }
/// Whether an extent is a number, or stands for a size of the step.
constexpr bool isSizeExtent(int64_t extent) {
  return extent == extentOfSlot(KF_SCALAR_N_TOKENS) ||
         (extent <= extentOfSlot(KF_SCALAR_NAMED_SIZES) &&
          extent > extentOfSlot(KF_SCALAR_COUNT));
}
/// `shape` with the step's sizes in place.
std::vector<int64_t> resolveShape(std::span<const int64_t> shape,
                                  std::span<const int64_t> scalars);

/// What a size of a step may be: with less or more, a kernel would read past
/// the end of a tensor.
struct SizeRange {
  std::string name; ///< "n_tokens", or as `#kf.size` says
  int64_t least = 1, most = 1;
  bool operator==(const SizeRange &) const = default;
};

/// A KV cache, a pool of pages that hold `page` positions each:
/// [layers][pages][2][kvHeads][page][headDim] elements; index 0 of the third
/// dimension is K, 1 is V. Within a K head of a page, positions come in blocks
/// of `keyBlock`, which divides `page`: [page/keyBlock][headDim][keyBlock].
///
/// In q8_0, blocks are 32 elements of a row, whose headDim is a multiple of 32.
/// Elements are codes of one byte then, in the order above, and the codes of a
/// K or V head of a page are followed by their scales (f16):
/// [page/keyBlock][headDim/32][keyBlock] of keys, [page][headDim/32] of values.
/// Codes and scales are what quantizeBlocks makes of a block. The scale of one
/// with a NaN, or with numbers that no finite scale holds, is a NaN, so that
/// none is hidden, however sums are done; its codes say nothing then.
///
/// Or, with `slotPages`, a cache of states: [layers][slots][kvHeads][headDim]
/// of f32, a slot for every `slotPages` pages that the pools of keys and values
/// have, and one for what is left of them. Layers are padded to 256 bytes.
struct CacheSpec {
  DataType type = DataType::F32; ///< f32, f16, bf16 or q8_0
  int64_t layers = 0, kvHeads = 0, headDim = 0, keyBlock = 1, page = 64;
  int64_t slotPages = 0; ///< at most INT32_MAX; 0: keys and values

  /// A cache of states: `heads` of `elements` each.
  static CacheSpec ofStates(int64_t layers, int64_t heads, int64_t elements,
                            int64_t slotPages);
  bool isOfStates() const { return slotPages != 0; }
  /// Slots of a cache of states beside pools of `pages` pages.
  int64_t slots(int64_t pages) const {
    return pages / slotPages + (pages % slotPages != 0);
  }

  /// Bytes of a pool of `pages` pages; an error where there is no such cache.
  Result<int64_t> bytes(int64_t pages) const;
  bool operator==(const CacheSpec &) const = default;
};

/// The sizes that a program's steps may have.
struct StepLimits {
  SizeRange tokens;
  std::vector<SizeRange> named;

  /// An error, which says which, unless the sizes among `scalars` (of
  /// KF_SCALAR_COUNT) are within them.
  Status check(std::span<const int64_t> scalars) const;
};

struct KernelSpec {
  std::string name; ///< symbol in the binary, or SPIR-V entry point
  uint64_t scratchBytes = 0;
  std::array<uint32_t, 3> workgroupSize = {1, 1, 1}; ///< GPU threads
  std::optional<KernelWork> work = {}; ///< nothing where it is not known
  uint64_t dynamicBytes = 0; ///< of the scratch, what a launch gives (cuda)
  /// Every workgroup waits for the dispatches before, ahead of whatever depends
  /// on them, so that it may begin while they are at work (cuda).
  bool waits = false;
  /// Threads of a subgroup, which the code counts on; 0: any number (vulkan).
  uint32_t subgroupThreads = 0;
};

/// What a dispatch does with a buffer.
struct BindingAccess {
  bool writes = true; ///< it may, and may read as well; else it only reads
  /// Of the arena, from the binding's offset on; 0: up to its end.
  uint64_t bytes = 0;

  bool operator==(const BindingAccess &) const = default;
};

/// What a dispatch without a kernel does: all ranks put together what each has
/// in its first binding, [rows, columns], and have the result in the second.
/// Every rank runs the same ones in the same order. Or two of them do: one
/// sends what its only binding has, and the rank behind it receives that.
struct CollectiveSpec {
  enum class Kind {
    AllReduce, ///< the sum; as many columns
    AllGather, ///< [rows, resultColumns]: the columns of all ranks side by
               ///< side, as far as they reach; each rank has some of them
    Send,      ///< to rank r + 1, or 0 behind the last; as many columns
    Receive,   ///< of rank r - 1, or of the last; as many columns
  };
  static constexpr Kind kinds[] = {Kind::AllReduce, Kind::AllGather, Kind::Send,
                                   Kind::Receive};
  Kind kind = Kind::AllReduce;
  DataType type = DataType::F32; ///< f32, f16 or bf16
  int64_t rows = 1; ///< a number, or an extent as TensorSpec has them
  int64_t columns = 1, resultColumns = 1;

  bool hasOperand() const { return kind != Kind::Receive; }
  bool hasResult() const { return kind != Kind::Send; }
  /// How many bindings its dispatch has; the result's is the last.
  size_t bindings() const { return size_t(hasOperand()) + hasResult(); }
  bool operator==(const CollectiveSpec &) const = default;
};
/// "all_reduce", "all_gather", "send", "receive".
std::string_view nameOf(CollectiveSpec::Kind kind);

struct DispatchSpec {
  uint32_t kernel = 0; ///< index into Executable::kernels
  std::vector<kf_binding> bindings;
  std::array<kf_grid_dim, 3> grid = {{{-1, 1}, {-1, 1}, {-1, 1}}};
  std::vector<BindingAccess> accesses = {}; ///< [bindings], or none: unknown
  /// In the place of the kernel; one workgroup then.
  std::optional<CollectiveSpec> collective = {};

  BindingAccess accessOf(size_t binding) const {
    return accesses.empty() ? BindingAccess() : accesses[binding];
  }
};

struct Executable {
  /// Version of the file form.
  static constexpr uint8_t kFileVersion = 10;

  std::string target; ///< "cpu", "reference", "vulkan", "cuda"
  /// What of the CPU the code uses, as LLVM calls it ("avx512f"); none for
  /// other targets, and for another architecture than the compiler's own.
  std::vector<std::string> features;
  /// The model whose step it is (modelKeyOf), constants of its configuration
  /// included; empty for a function of a file.
  std::string model;
  std::string programName;
  /// How many ranks run it together, each with its own weights and caches.
  int64_t ranks = 1;
  /// The n_tokens that a step may have: with fewer or more, a kernel would read
  /// past the end of a tensor.
  int64_t minTokens = 1, maxTokens = 1;
  /// Sizes with a name, in the order of their slots from KF_SCALAR_NAMED_SIZES.
  std::vector<SizeRange> namedSizes;
  uint64_t arenaBytes = 0;
  std::vector<KernelSpec> kernels;
  std::vector<WeightSpec> weights;
  std::vector<CacheSpec> caches;
  std::vector<TensorSpec> inputs, outputs;
  std::vector<DispatchSpec> dispatches;
  /// Target's kernel code: an ELF object, or an archive of some (cpu); for each
  /// kernel, in order, its size in 8 bytes, the lowest first, and a SPIR-V
  /// module (vulkan), or PTX or machine code (cuda); a JSON list of op lists
  /// (reference).
  std::string binary;

  /// The kernel that a dispatch runs; null for a collective.
  const KernelSpec *kernelOf(const DispatchSpec &dispatch) const;
  /// What a dispatch is called: its kernel's name, or "all_reduce".
  std::string nameOf(const DispatchSpec &dispatch) const;
  /// The largest sizes that a step may have, in their slots; 0 elsewhere.
  std::array<int64_t, KF_SCALAR_COUNT> largestSizes() const;
  /// Slots of the scalars up to the last named size.
  int64_t slotCount() const;
  StepLimits limits() const;
  /// Checks every index and offset; run on whatever came from a file.
  Status verify() const;
  /// File form: magic, version, sizes, a JSON head, the binary, a checksum.
  std::string serialize() const;
  static Result<Executable> deserialize(std::string_view bytes);
};

} // namespace kf

#endif // KF_RUNTIME_PROGRAM_EXECUTABLE_H
