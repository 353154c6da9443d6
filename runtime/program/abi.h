//===- abi.h - What compiled kernels and the runtime agree on
//--------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The one header that the compiler (lib/) and the runtime (runtime/) share.
// C only: these structs are what any code generator has to produce and any
// device has to consume. The same records describe CPU, Vulkan and CUDA.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_PROGRAM_ABI_H
#define KF_RUNTIME_PROGRAM_ABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Changes whenever anything below changes meaning; part of every cache key.
#define KF_ABI_VERSION 5

/// Slots of the scalar buffer (int64 each). Kernels read them at run time, so
/// that nothing is compiled or recorded again from token to token.
enum kf_scalar {
  /// Tokens of this step: extent of every leading `?` without a name.
  KF_SCALAR_N_TOKENS = 0,
  /// Pages that the pool of each KV cache has.
  KF_SCALAR_CACHE_PAGES = 1,
  /// The first of the program's named sizes (`#kf.size`), in its order.
  KF_SCALAR_NAMED_SIZES = 2,
  KF_SCALAR_COUNT = 8,
  KF_NAMED_SIZE_COUNT = KF_SCALAR_COUNT - KF_SCALAR_NAMED_SIZES
};

/// A CPU kernel runs one workgroup. `bindings[i]` is the buffer of the
/// kernel's i-th argument, its results following its operands; all buffers are
/// dense and row-major unless their layout says otherwise, and aligned to
/// KF_BUFFER_ALIGNMENT; row-major weights, which may lie in their file, to an
/// element (blocks: to a byte). `scratch` is private to the calling thread and
/// holds at least the kernel's `scratch_bytes`. `workgroup` is the linear index
/// in the dispatch's grid, last dimension fastest.
typedef void (*kf_kernel_fn)(void *const *bindings, const int64_t *scalars,
                             void *scratch, int64_t workgroup);

enum { KF_BUFFER_ALIGNMENT = 64 };

/// Where a dispatch's buffer lives.
enum kf_binding_kind {
  KF_BINDING_ARENA = 0,  ///< `offset` bytes into the program's arena
  KF_BINDING_WEIGHT = 1, ///< weight number `index` of the executable
  KF_BINDING_CACHE = 2,  ///< layer `offset` of cache number `index`
  KF_BINDING_INPUT = 3,  ///< input number `index` of the program
  KF_BINDING_OUTPUT = 4  ///< output number `index` of the program
};

struct kf_binding {
  uint32_t kind;   ///< kf_binding_kind
  uint32_t index;  ///< see kf_binding_kind; 0 for the arena
  uint64_t offset; ///< bytes into the arena; layer of a cache; else 0
};

/// Number of workgroups along one grid dimension: `value` when `scalar` is
/// negative, else ceil(scalars[scalar] / value).
struct kf_grid_dim {
  int32_t scalar;
  int64_t value;
};

#ifdef __cplusplus
} // extern "C"
#endif

#endif // KF_RUNTIME_PROGRAM_ABI_H
