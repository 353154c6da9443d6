//===- TileRegisters.h - Permission to use AMX ------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CORE_TILEREGISTERS_H
#define KF_RUNTIME_CORE_TILEREGISTERS_H

namespace kf {

/// Whether threads of this process may use the tile registers of x86-64 CPUs
/// (AMX), which Linux keeps for processes that ask for them. The first call
/// asks, for all threads that there are and will be. False as well where the
/// CPU has no such registers, or the system does not know them. Any thread.
bool mayUseTiles();

} // namespace kf

#endif // KF_RUNTIME_CORE_TILEREGISTERS_H
