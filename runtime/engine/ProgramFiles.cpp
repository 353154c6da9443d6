//===- ProgramFiles.cpp - A model's programs, compiled ahead --------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/ProgramFiles.h"

#include "runtime/core/Exceptions.h"
#include "runtime/core/MappedFile.h"
#include "runtime/core/Quote.h"

#include <algorithm>
#include <utility>

using namespace kf;

Result<Executable> kf::readExecutable(const std::string &path) {
  KF_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::open(path));
  Result<Executable> executable = Executable::deserialize(file.text());
  return executable.ok()
             ? std::move(executable)
             : Result<Executable>(executable.status().in("'" + path + "'"));
}

Status ProgramFiles::add(const std::string &path, const ModelFiles &model,
                         const std::string &modelKey, std::string_view device) {
  KF_ASSIGN_OR_RETURN(Executable executable, readExecutable(path));
  auto fail = [&](const std::string &message) {
    return Status::error(message).in("'" + path + "'");
  };
  if (executable.target != device)
    return fail("it was compiled for '" + executable.target +
                "', and the device is '" + std::string(device) +
                "'; choose the other with --device, or compile for this one");
  if (executable.model.empty())
    return fail(
        "it holds the function '" + executable.programName +
        "', and no part of a model's step, which kf-run emit-mlir MODEL "
        "--compile-to=binary makes");
  if (executable.ranks != 1)
    return fail("it was compiled for " + std::to_string(executable.ranks) +
                " ranks, and here is one; compile it without --ranks");
  if (executable.model != modelKey)
    return fail("it was compiled for another model, or for weights of other "
                "types, than " +
                inQuotes(model.name) + "; compile it for this one");
  Result<StepShape> shape = stepShapeOf(executable);
  if (!shape.ok())
    return fail(shape.message());
  if (Status fits = checkStep(executable, *shape, model.config); !fits.ok())
    return fail(fits.message());
  if (auto known = origins.find(*shape); known != origins.end())
    return fail("it holds '" + nameOf(*shape) + "', and so does '" +
                known->second + "'; give one of them");
  if (shape->part == StepPart::Body && hasBody() &&
      executable.caches != caches())
    return fail("its KV cache lies in memory in another way than that of '" +
                origins.begin()->second +
                "'; compile both with the same --cache-type and --target-cpu");
  origins[*shape] = path;
  programs.emplace(*shape, std::move(executable));
  return Status();
}

/// An error unless there is one of each part, and a head for each choice.
Status ProgramFiles::checkWhole() const {
  for (StepPart part : {StepPart::Body, StepPart::Head, StepPart::Choose})
    if (std::ranges::none_of(programs, [&](const auto &program) {
          return program.first.part == part;
        }))
      return Status::error("none of these programs is the part '" +
                           std::string(nameOf(part)) +
                           "' of a step; compile one with kf-run emit-mlir "
                           "--part " +
                           std::string(nameOf(part)));
  for (const auto &[shape, executable] : programs)
    if (const StepShape head = {StepPart::Head, shape.rows};
        shape.part == StepPart::Choose && !programs.contains(head))
      return Status::error("it holds '" + nameOf(shape) +
                           "', which takes the logits of '" + nameOf(head) +
                           "'; give that program, too")
          .in("'" + origins.at(shape) + "'");
  return Status();
}

Result<ProgramFiles> ProgramFiles::open(std::span<const std::string> paths,
                                        const ModelFiles &model,
                                        std::string_view device) try {
  ProgramFiles files;
  const std::string modelKey = modelKeyOf(model);
  for (const std::string &path : paths)
    KF_RETURN_IF_ERROR(files.add(path, model, modelKey, device));
  KF_RETURN_IF_ERROR(files.checkWhole());
  return files;
} catch (...) {
  return statusOfException();
}

std::vector<StepShape> ProgramFiles::shapes() const {
  std::vector<StepShape> shapes;
  for (const auto &[shape, executable] : programs)
    shapes.push_back(shape);
  return shapes;
}

Result<Executable> ProgramFiles::get(const StepShape &shape) const {
  if (auto found = programs.find(shape); found != programs.end())
    return found->second;
  return Status::error("there is no file of the program '" + nameOf(shape) +
                       "', and nothing is compiled here" +
                       (shape.part == StepPart::Embed
                            ? "; compile one with kf-run emit-mlir --part embed"
                            : ""));
}
