//===- NcclLibrary.cpp - Functions of NVIDIA's NCCL -----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Cuda/NcclLibrary.h"

#include "runtime/core/Lines.h"

#include <cstdlib>
#include <dlfcn.h>
#include <string>

using namespace kf;

namespace {

constexpr const char *sources =
    "the system's package libnccl2, or PyPI's nvidia-nccl-cu13 or "
    "nvidia-nccl-cu12, whose folder nvidia/nccl/lib LD_LIBRARY_PATH has to "
    "name";

/// "2.27.3" of 22703.
std::string versionText(int version) {
  return std::to_string(version / 10000) + "." +
         std::to_string(version % 10000 / 100) + "." +
         std::to_string(version % 100);
}

Status tooOld(const std::string &what) {
  return Status::error(what + ": install NCCL " +
                           versionText(leastNcclVersion) +
                           " or later: " + sources,
                       StatusCode::Unavailable);
}

/// What the user has not decided. NVLink's multicast needs memory of a kind
/// that not every machine, container and fabric manager has for it, and where
/// it has not, NCCL fails instead of doing without; the sums of a step are
/// small, and gain nothing by it. And whatever NCCL does here is in graphs of
/// which a device runs one at a time: it need not put events into them that
/// order them with one another.
void setEnvironment() {
  (void)setenv("NCCL_NVLS_ENABLE", "0", /*overwrite=*/0);
  (void)setenv("NCCL_GRAPH_MIXING_SUPPORT", "0", /*overwrite=*/0);
}

/// It is never closed: it leaves threads behind.
struct Library {
  void *handle = nullptr; ///< null: it does not load
  std::string reason;     ///< why it does not
};

const Library &openLibrary() {
  static const Library library = [] {
    setEnvironment();
    Library opened;
    opened.handle = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!opened.handle) {
      const char *reason = dlerror();
      opened.reason = reason ? reason : "";
    }
    return opened;
  }();
  return library;
}

} // namespace

Status kf::ncclNotLoaded(const std::string &reason) {
  const bool isMissing = reason.starts_with("libnccl.so.2: ") &&
                         reason.ends_with("No such file or directory");
  return Status::error(
      (isMissing ? "no NCCL (libnccl.so.2)"
                 : "NCCL does not load (" + oneLine(reason) + ")") +
          ", which several CUDA devices need: install " + sources,
      StatusCode::Unavailable);
}

Result<NcclFunctions> kf::loadNcclFunctions() {
  const Library &library = openLibrary();
  if (!library.handle)
    return ncclNotLoaded(library.reason);
  NcclFunctions nccl;
#define KF_LOAD(name, result, parameters)                                      \
  nccl.name =                                                                  \
      reinterpret_cast<decltype(nccl.name)>(dlsym(library.handle, #name));     \
  if (!nccl.name)                                                              \
    return tooOld("libnccl.so.2 has no " #name);
  KF_NCCL_FUNCTIONS(KF_LOAD)
#undef KF_LOAD
  return nccl;
}

Result<NcclFunctions> kf::startNccl(const NcclFunctions *library) {
  NcclFunctions nccl;
  if (library) {
    nccl = *library;
  } else {
    KF_ASSIGN_OR_RETURN(nccl, loadNcclFunctions());
  }
  int version = 0;
  KF_RETURN_IF_ERROR(
      ncclStatus(nccl, nccl.ncclGetVersion(&version), "ncclGetVersion"));
  if (version < leastNcclVersion)
    return tooOld("libnccl.so.2 is NCCL " + versionText(version));
  return nccl;
}

Status kf::ncclStatus(const NcclFunctions &nccl, ncclResult_t result,
                      const char *what) {
  if (result == ncclSuccess)
    return {};
  std::string message = std::string(what) + ": ";
  const char *text = nccl.ncclGetErrorString(result);
  message += text ? text : "ncclResult_t " + std::to_string(int(result));
  const char *last = nccl.ncclGetLastError(nullptr);
  if (last && *last)
    message += ": " + oneLine(last);
  const bool isOthers = result == ncclRemoteError || result == ncclSystemError;
  return Status::error(std::move(message), isOthers ? StatusCode::Unavailable
                                                    : StatusCode::Internal);
}
