//===- Training.h - Training, as Python calls it ---------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_PYTHON_NATIVE_TRAINING_H
#define KF_PYTHON_NATIVE_TRAINING_H

#include <nanobind/nanobind.h>

namespace kf::python {

/// Adds `train` to the module.
void bindTraining(nanobind::module_ &m);

} // namespace kf::python

#endif // KF_PYTHON_NATIVE_TRAINING_H
