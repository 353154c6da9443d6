//===- MissingKernels.h - What devices have no code for ---------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The functions of test/conformance/ops that a device does not compile.
// SupportTest compiles each for every device, whether the machine has one or
// not, and finds what this list does not say; OpConformanceTest runs the others
// on the devices that are there.
//
//===----------------------------------------------------------------------===//

#ifndef KF_TEST_CONFORMANCE_MISSINGKERNELS_H
#define KF_TEST_CONFORMANCE_MISSINGKERNELS_H

#include <string>

namespace kf::test {

/// A part of the error with which `function` of the file `file` ("blocks.mlir")
/// ends on `device`, a name as in TestDevice.h; empty where it compiles.
std::string missingKernel(const std::string &device, const std::string &file,
                          const std::string &function);

} // namespace kf::test

#endif // KF_TEST_CONFORMANCE_MISSINGKERNELS_H
