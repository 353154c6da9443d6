//===- ScalePrograms.h - Programs that any device can run -------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Executables of a kernel z = a * x that each device's tests have in its own
// code, and what they are run with.
//
//===----------------------------------------------------------------------===//

#ifndef KF_TEST_RUNTIME_DEVICES_SCALEPROGRAMS_H
#define KF_TEST_RUNTIME_DEVICES_SCALEPROGRAMS_H

#include "runtime/program/Executable.h"

#include <cstddef>
#include <string>
#include <vector>

namespace kf::test {

constexpr int64_t maxTokens = 1000;
constexpr uint64_t rowBytes = 4096; // of maxTokens floats, rounded up

/// Kernel "scale" as the reference device has it.
inline std::string referenceScaleCode() {
  return R"([
      {"name": "scale",
       "arguments": [{"tensor": "f32", "shape": [-1, 1]},
                     {"tensor": "f32", "shape": [1, 1]}],
       "ops": [{"name": "kf.matmul", "operands": [0, 1],
                "results": [{"id": 2,
                             "type": {"tensor": "f32", "shape": [-1, 1]}}],
                "attributes": {}}],
       "results": [2]}])";
}

/// z = a * x, by kernel "scale" of `code` in workgroups of 64.
inline Executable scaleOnce(const std::string &target,
                            const std::string &code) {
  Executable executable;
  executable.target = target;
  executable.programName = "scale_once";
  executable.maxTokens = maxTokens;
  executable.kernels = {{"scale", 0, {64, 1, 1}}};
  executable.weights.resize(1);
  executable.weights[0].names = {"a"};
  executable.weights[0].shape = {1, 1};
  executable.inputs = executable.outputs = {{DataType::F32, {-1, 1}}};
  executable.dispatches = {{0,
                            {{KF_BINDING_INPUT, 0, 0},
                             {KF_BINDING_WEIGHT, 0, 0},
                             {KF_BINDING_OUTPUT, 0, 0}},
                            {{{KF_SCALAR_N_TOKENS, 64}, {-1, 1}, {-1, 1}}}}};
  executable.binary = code;
  return executable;
}

/// z = a * (a * x) by two dispatches of the kernel, through the arena.
inline Executable scaleTwice(const std::string &target,
                             const std::string &code) {
  Executable executable = scaleOnce(target, code);
  executable.programName = "scale_twice";
  executable.arenaBytes = 256 + rowBytes;
  executable.dispatches.push_back(executable.dispatches[0]);
  executable.dispatches[0].bindings[2] = {KF_BINDING_ARENA, 0, 256};
  executable.dispatches[1].bindings[0] = {KF_BINDING_ARENA, 0, 256};
  return executable;
}

/// `named` is the first of the named sizes.
inline std::vector<int64_t> scalarsFor(int64_t tokens, int64_t named = 0) {
  std::vector<int64_t> scalars(KF_SCALAR_COUNT, 0);
  scalars[KF_SCALAR_N_TOKENS] = tokens;
  scalars[KF_SCALAR_NAMED_SIZES] = named;
  return scalars;
}

/// Bytes of which no two neighbours are alike for long.
inline std::vector<std::byte> noise(uint64_t bytes) {
  std::vector<std::byte> result(bytes);
  for (uint64_t i = 0; i < bytes; ++i)
    result[i] = static_cast<std::byte>(i * 2654435761u >> 13);
  return result;
}

/// `code` with its length before it, as Executable::binary has it.
inline std::string lengthPrefixed(const std::string &code) {
  std::string result;
  for (unsigned i = 0; i < 8; ++i)
    result += static_cast<char>((uint64_t(code.size()) >> (8 * i)) & 0xff);
  return result + code;
}

} // namespace kf::test

#endif // KF_TEST_RUNTIME_DEVICES_SCALEPROGRAMS_H
