//===- TestExecutable.h - An executable with one of everything --*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TEST_RUNTIME_TESTEXECUTABLE_H
#define KF_TEST_RUNTIME_TESTEXECUTABLE_H

#include "runtime/program/Executable.h"

namespace kf {

/// Sound but for its binary, which is no object.
inline Executable sampleExecutable() {
  Executable executable;
  executable.target = "cpu";
  executable.features = {"avx2", "sse4.2"};
  executable.model = "00ff";
  executable.programName = "step \"8\"";
  executable.maxTokens = 8;
  executable.arenaBytes = 65536;
  executable.kernels = {{"norm", 0, {1, 1, 1}}, {"matmul", 4096, {64, 1, 1}}};
  KernelWork work;
  work.bytes.constant = 5120;
  work.bytes.perSize[KF_SCALAR_N_TOKENS] = 416;
  work.int8Ops.perSize[KF_SCALAR_N_TOKENS] = 5120;
  work.bf16Flops.constant = 1024;
  work.keys = {.positions = 0,
               .sequences = 3,
               .window = {.size = 7, .chunked = true},
               .bytesPerKey = 128,
               .flopsPerKey = 64,
               .inBF16 = true};
  executable.kernels[1].work = work;
  WeightSpec norm;
  norm.names = {"norm"};
  norm.shape = {64};
  WeightSpec matrix;
  matrix.names = {"q", "k"};
  matrix.type = DataType::BF16;
  matrix.shape = {40, 64};
  matrix.layout = {WeightLayout::Kind::Panels, 32, 16};
  executable.weights = {norm, matrix};
  executable.caches = {{DataType::F32, 3, 2, 8, 16, 32}};
  executable.inputs = {{DataType::F32, {-1, 64}}};
  executable.outputs = {{DataType::F32, {-1, 40}}};
  DispatchSpec first;
  first.bindings = {{KF_BINDING_INPUT, 0, 0},
                    {KF_BINDING_WEIGHT, 0, 0},
                    {KF_BINDING_ARENA, 0, 128}};
  first.accesses = {{false, 0}, {false, 0}, {true, 64}};
  DispatchSpec second;
  second.kernel = 1;
  second.bindings = {{KF_BINDING_ARENA, 0, 128},
                     {KF_BINDING_WEIGHT, 1, 0},
                     {KF_BINDING_OUTPUT, 0, 0},
                     {KF_BINDING_CACHE, 0, 2}};
  second.grid[0] = {KF_SCALAR_N_TOKENS, 16};
  second.grid[1] = {-1, 2};
  executable.dispatches = {first, second};
  executable.binary = std::string("code\0with\xff zeros", 16);
  return executable;
}

} // namespace kf

#endif // KF_TEST_RUNTIME_TESTEXECUTABLE_H
