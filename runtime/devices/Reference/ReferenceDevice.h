//===- ReferenceDevice.h - Programs run by the reference ops ----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `--device=reference`: every kernel is interpreted op by op with the functions
// of ReferenceOps.h, on one thread. Slow, and right: what the other devices are
// compared with. Kernel code is the JSON of KernelInterpreter.h, one entry for
// each KernelSpec, in order. Grids are ignored; a dispatch runs once.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_DEVICES_REFERENCE_REFERENCEDEVICE_H
#define KF_RUNTIME_DEVICES_REFERENCE_REFERENCEDEVICE_H

#include "runtime/devices/Device.h"

#include <memory>

namespace kf {

/// Makes the device; cannot fail. Fresh buffers hold zeros; a wrapped one
/// cannot be written to.
std::unique_ptr<Device> createReferenceDevice();

} // namespace kf

#endif // KF_RUNTIME_DEVICES_REFERENCE_REFERENCEDEVICE_H
