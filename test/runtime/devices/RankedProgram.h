//===- RankedProgram.h - A program that ranks run together ------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What all ranks have is scaled and summed up, scaled again and gathered.
//
//===----------------------------------------------------------------------===//

#ifndef KF_TEST_RUNTIME_DEVICES_RANKEDPROGRAM_H
#define KF_TEST_RUNTIME_DEVICES_RANKEDPROGRAM_H

#include "runtime/devices/Device.h"
#include "test/runtime/DeviceSteps.h"
#include "test/runtime/devices/ScalePrograms.h"

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace kf::test {

/// out[i, r] = a_r * sum over ranks s of a_s * x_s[i].
inline Executable rankedProgram(const std::string &target,
                                const std::string &code, int64_t ranks) {
  Executable program = scaleTwice(target, code);
  program.programName = "ranked";
  program.ranks = ranks;
  program.arenaBytes = 256 + 3 * rowBytes;
  const kf_binding scaled = {KF_BINDING_ARENA, 0, 256},
                   summed = {KF_BINDING_ARENA, 0, 256 + rowBytes},
                   again = {KF_BINDING_ARENA, 0, 256 + 2 * rowBytes};
  program.dispatches[1].bindings[0] = summed;
  program.dispatches[1].bindings[2] = again;
  program.outputs = {{DataType::F32, {-1, ranks}}};
  DispatchSpec reduce, gather;
  reduce.collective = {CollectiveSpec::Kind::AllReduce, DataType::F32, -1, 1,
                       1};
  reduce.bindings = {scaled, summed};
  gather.collective = {CollectiveSpec::Kind::AllGather, DataType::F32, -1, 1,
                       ranks};
  gather.bindings = {again, {KF_BINDING_OUTPUT, 0, 0}};
  program.dispatches.insert(program.dispatches.begin() + 1, reduce);
  program.dispatches.push_back(gather);
  return program;
}

/// What rankedProgram() makes of row `i` where rank r has i + 1000 r, and its
/// factor is r + 1.
inline float rankedResult(int64_t i, int64_t rank, int64_t ranks) {
  float sum = 0;
  for (int64_t other = 0; other < ranks; ++other)
    sum += static_cast<float>((other + 1) * (i + 1000 * other));
  return static_cast<float>(rank + 1) * sum;
}

/// What `rank` has in that.
inline std::vector<float> rankedInput(int64_t tokens, int64_t rank) {
  std::vector<float> values(static_cast<size_t>(tokens));
  for (int64_t i = 0; i < tokens; ++i)
    values[static_cast<size_t>(i)] = static_cast<float>(i + 1000 * rank);
  return values;
}

/// Of several stages, the first sends a * x, those behind it a times what they
/// receive; the last gives that.
inline Executable stagedProgram(const std::string &target,
                                const std::string &code, int64_t stage,
                                int64_t stages) {
  Executable program = scaleOnce(target, code);
  program.programName = "staged";
  program.ranks = stages;
  program.arenaBytes = 256 + 2 * rowBytes;
  const kf_binding received = {KF_BINDING_ARENA, 0, 256},
                   scaled = {KF_BINDING_ARENA, 0, 256 + rowBytes};
  DispatchSpec message;
  message.collective = {CollectiveSpec::Kind::Send, DataType::F32, -1, 1, 1};
  message.bindings = {scaled};
  if (stage + 1 < stages) {
    program.dispatches[0].bindings[2] = scaled;
    program.dispatches.push_back(message);
  }
  if (stage > 0) {
    message.collective->kind = CollectiveSpec::Kind::Receive;
    message.bindings = {received};
    program.dispatches[0].bindings[0] = received;
    program.dispatches.insert(program.dispatches.begin(), message);
  }
  return program;
}

/// What the last stage gives of row `i` where the first one's is i, and each
/// rank's factor its number + 1.
inline float stagedResult(int64_t i, int64_t stages) {
  float product = static_cast<float>(i);
  for (int64_t rank = 0; rank < stages; ++rank)
    product *= static_cast<float>(rank + 1);
  return product;
}

/// A rank's device with the program and its buffers.
struct RankRun {
  /// `device` joins `group`, and gets the program; `code` is the scale
  /// kernel's.
  static Result<std::unique_ptr<RankRun>> create(std::unique_ptr<Device> device,
                                                 const std::string &code,
                                                 Group &group) {
    auto self = std::make_unique<RankRun>();
    self->device = std::move(device);
    self->ranks = group.size();
    KF_RETURN_IF_ERROR(self->device->join(group));
    const float a = static_cast<float>(group.rank() + 1);
    KF_RETURN_IF_ERROR(
        self->load(rankedProgram(self->device->name(), code, group.size()), a));
    return self;
  }

  Status load(const Executable &executable, float a) {
    const uint64_t bytes = maxTokens * sizeof(float);
    KF_ASSIGN_OR_RETURN(program, device->load(executable));
    KF_ASSIGN_OR_RETURN(arena, device->allocateArena(executable));
    KF_ASSIGN_OR_RETURN(weight, device->allocate(sizeof(a)));
    KF_ASSIGN_OR_RETURN(input, device->allocate(bytes));
    KF_ASSIGN_OR_RETURN(output, device->allocate(bytes * ranks));
    KF_RETURN_IF_ERROR(writeAndWait(*device, *weight, 0, &a, sizeof(a)));
    KF_ASSIGN_OR_RETURN(
        instance,
        program->bind(
            {arena.get(), {weight.get()}, {}, {input.get()}, {output.get()}}));
    return Status();
  }

  /// Has stagedProgram() in the place of the other one. Rank 0 has the last
  /// stage.
  Status loadStage(const std::string &code, const Group &group) {
    instance.reset();
    program.reset();
    const int64_t stage = (group.rank() + ranks - 1) % ranks;
    return load(stagedProgram(device->name(), code, stage, ranks),
                static_cast<float>(group.rank() + 1));
  }

  Status run(std::span<const float> values, std::vector<float> &result,
             DispatchTimes *times = nullptr, CancelFlag cancelled = nullptr) {
    result.assign(values.size() * ranks, -1);
    KF_ASSIGN_OR_RETURN(std::unique_ptr<Stream> stream, device->createStream());
    KF_RETURN_IF_ERROR(stream->upload(*input, 0, std::as_bytes(values)));
    KF_RETURN_IF_ERROR(stream->enqueue(
        *instance, scalarsFor(static_cast<int64_t>(values.size())),
        {.times = times}));
    KF_RETURN_IF_ERROR(stream->download(
        *output, 0, std::as_writable_bytes(std::span<float>(result))));
    return stream->synchronize(cancelled);
  }

  std::unique_ptr<Device> device;
  int64_t ranks = 0;
  std::unique_ptr<LoadedProgram> program;
  std::unique_ptr<Buffer> arena, weight, input, output;
  std::unique_ptr<Instance> instance;
};

} // namespace kf::test

#endif // KF_TEST_RUNTIME_DEVICES_RANKEDPROGRAM_H
