//===- Npy.h - NumPy files and tensor literals ------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How tensors come into `kf-run exec` and leave it: .npy files, raw bytes, and
// literals on the command line, written as iree-run-module writes them.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_IO_NPY_H
#define KF_RUNTIME_IO_NPY_H

#include "runtime/core/Tensor.h"

#include <span>
#include <string>
#include <string_view>

namespace kf {

/// Reads a .npy file (format 1, 2 or 3; C order; little-endian f2 f4 f8 i1 i2
/// i4 i8 u1 b1). Another order, byte order or type is an error that names it.
Result<HostTensor> readNpy(const std::string &path);
/// The same from memory.
Result<HostTensor> parseNpy(std::span<const std::byte> bytes);

/// `tensor` as a .npy file (format 1). BF16 is an error: NumPy has no such
/// type.
Result<std::string> formatNpy(const HostTensor &tensor);
Status writeNpy(const std::string &path, const HostTensor &tensor);

/// Reads a tensor literal:
///   2x3xf32=1,2,3,4,5,6   values in row-major order, separated by commas,
///   2x3xf32=[1 2 3][4 5 6]  spaces or brackets
///   4xi32=7               one value fills the tensor
///   f32=1.5               a scalar (rank 0)
///   4xi32                 zeros
///   @x.npy                a .npy file
///   2x3xf32=@x.bin        raw little-endian elements
/// Types are those of parseDataType. i1 takes 0, 1, true and false.
Result<HostTensor> parseTensorLiteral(std::string_view text);

} // namespace kf

#endif // KF_RUNTIME_IO_NPY_H
