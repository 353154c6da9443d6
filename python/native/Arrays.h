//===- Arrays.h - Tensors as numpy and DLPack have them ---------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_PYTHON_NATIVE_ARRAYS_H
#define KF_PYTHON_NATIVE_ARRAYS_H

#include "runtime/core/Tensor.h"

#include <nanobind/nanobind.h>

#include <string>

namespace kf::python {

/// A copy of `array`, a numpy array or what has __dlpack__ or a buffer, with
/// any strides; no element is converted. `name` is what errors call it. Throws:
/// TypeError for what is no such array, kernelforge.Error for one in a device's
/// memory or of a type that no tensor has. With the GIL.
HostTensor tensorOf(nanobind::handle array, const std::string &name);

/// `tensor` as a numpy array that owns its elements, or, of a type that numpy
/// lacks (bf16, f8E4M3FN), as an object that has __dlpack__. With the GIL.
nanobind::object arrayOf(HostTensor tensor);

} // namespace kf::python

#endif // KF_PYTHON_NATIVE_ARRAYS_H
