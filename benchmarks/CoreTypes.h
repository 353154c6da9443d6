//===- CoreTypes.h - Peers compute for this CPU, not an older one -*- C++ -*-=//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_BENCHMARKS_CORETYPES_H
#define KF_BENCHMARKS_CORETYPES_H

namespace kf::bench {

/// Tells BLAS libraries by their environment variables to use the kernels of
/// this CPU's vector width: releases that do not know the CPU fall back to SSE
/// or AVX2, several times slower. Also makes them start no threads of their
/// own. Variables that are set stay as they are. Libraries read them when they
/// are loaded, so where one was missing, the program is started anew. The first
/// thing in main(); returns when all are set.
void forceCoreTypes(char **argv);

} // namespace kf::bench

#endif // KF_BENCHMARKS_CORETYPES_H
