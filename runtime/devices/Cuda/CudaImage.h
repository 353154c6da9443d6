//===- CudaImage.h - Kernels as the driver takes them -----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads Executable::binary. The driver takes images without their lengths, so
// that whatever is given to it is checked here first.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_DEVICES_CUDA_CUDAIMAGE_H
#define KF_RUNTIME_DEVICES_CUDA_CUDAIMAGE_H

#include "runtime/core/Status.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace kf {

/// The entry of every image.
constexpr const char *cudaEntryName = "kf_kernel";

/// What a piece of PTX is made for: "sm_90a".
struct PtxTarget {
  int number = 0;        ///< 90
  bool isExact = false;  ///< with an 'a': this compute capability alone
  bool isFamily = false; ///< with an 'f': this major version, from here on
  /// Whether the driver can compile it for a compute capability.
  bool fits(int major, int minor) const;
  bool operator==(const PtxTarget &) const = default;
};

/// One kernel's code. Refers to the binary.
struct CudaImage {
  std::string_view bytes; ///< PTX with the NUL that ends it, or an ELF file
  bool isPtx = false;
  std::optional<PtxTarget> target; ///< of PTX that says it
  /// Of PTX: what its entry takes. None: it has no entry of this name, several,
  /// or characters ('\\', '#') that plain code has none of.
  std::optional<size_t> parameters;
  /// Of PTX: whether its code waits for the kernels that it depends on.
  bool waits = false;
};

/// The images of `count` kernels. Errors: lengths that do not fit, text with
/// bytes that PTX has not, an ELF file whose tables lie outside of it.
Result<std::vector<CudaImage>> parseCudaImages(std::string_view binary,
                                               size_t count);

} // namespace kf

#endif // KF_RUNTIME_DEVICES_CUDA_CUDAIMAGE_H
