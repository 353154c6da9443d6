//===- UnsupportedFields.h - Fields that must have no effect ----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_MODEL_UNSUPPORTEDFIELDS_H
#define KF_RUNTIME_MODEL_UNSUPPORTEDFIELDS_H

#include "runtime/model/ConfigReader.h"
#include "runtime/model/ModelFamily.h"

namespace kf {

/// The value with which a field does nothing, besides being absent or null.
enum class NeutralValue { Off /* false, 0 or empty */, One, True };

/// An error that names the field `name` unless it does nothing.
Status checkNeutral(const ConfigReader &reader, const char *name,
                    NeutralValue neutral);

/// The same for every field that would change the arithmetic of `family` in a
/// way that is not built: those that the family states with another value, and
/// those that UnsupportedFields.cpp lists, but for those that the family reads
/// or states.
Status checkUnsupportedFields(const ConfigReader &reader, const Family &family);

} // namespace kf

#endif // KF_RUNTIME_MODEL_UNSUPPORTEDFIELDS_H
