//===- ObjectLoader.h - Links kernel objects into this process --*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Takes the relocatable ELF object that the compiler made, or an archive of
// some, links them in memory and finds their kernels. The memory goes away with
// the LoadedObject.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_DEVICES_CPU_OBJECTLOADER_H
#define KF_RUNTIME_DEVICES_CPU_OBJECTLOADER_H

#include "runtime/core/Status.h"
#include "runtime/program/abi.h"

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

/// One thread at a time may use a loader and its objects. Where there is no
/// memory, operations are errors (SpareMemory.h).
class ObjectLoader {
public:
  struct Session;

  /// Code in memory. Must not outlive its loader.
  class LoadedObject {
  public:
    ~LoadedObject();
    /// One function per name given to load(), in that order.
    std::span<const kf_kernel_fn> functions() const { return found; }

  private:
    friend class ObjectLoader;
    LoadedObject(Session &session, void *library)
        : session(session), library(library) {}

    Session &session;
    void *library; // the linker's name space of this object
    std::vector<kf_kernel_fn> found;
  };

  /// An error, which names them, where this machine lacks some of `features`,
  /// or keeps them from this process.
  static Status checkFeatures(std::span<const std::string> features);

  static Result<std::unique_ptr<ObjectLoader>> create();
  ~ObjectLoader();

  /// Links `code` and finds the functions `names`. What it calls (memcpy,
  /// expf, ...) comes from this process. Errors: not an object for this
  /// machine, a symbol that is missing on either side.
  Result<std::unique_ptr<LoadedObject>>
  load(std::string_view code, std::span<const std::string> names);

private:
  explicit ObjectLoader(std::unique_ptr<Session> session);
  Result<std::unique_ptr<LoadedObject>>
  link(std::string_view code, std::span<const std::string> names);

  std::unique_ptr<Session> session;
};

} // namespace kf

#endif // KF_RUNTIME_DEVICES_CPU_OBJECTLOADER_H
