//===- ObjectLoader.cpp - Links kernel objects into this process ----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// ORC's object linking layer alone: no IR, no target registry, no threads, so
// that loading costs a millisecond.
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/Cpu/ObjectLoader.h"

#include "runtime/core/Tensor.h"
#include "runtime/core/TileRegisters.h"
#include "runtime/devices/Cpu/SpareMemory.h"

#include "llvm/ExecutionEngine/Orc/AbsoluteSymbols.h"
#include "llvm/ExecutionEngine/Orc/Core.h"
#include "llvm/ExecutionEngine/Orc/ExecutionUtils.h"
#include "llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h"
#include "llvm/ExecutionEngine/Orc/SelfExecutorProcessControl.h"
#include "llvm/ExecutionEngine/Orc/TaskDispatch.h"
#include "llvm/Object/Archive.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"

#include <algorithm>
#include <bit>

namespace kf {
namespace {

/// LLVM's messages may have several lines.
std::string oneLine(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  while (!text.empty() && text.back() == ' ')
    text.pop_back();
  return text;
}

std::string textOf(llvm::Error error) {
  return oneLine(llvm::toString(std::move(error)));
}

// What code for x86 CPUs without F16C, or without AVX512-BF16, calls to convert
// 16 bits. The compiler's run-time library has them, but a static program does
// not export them to the kernels that it loads.
#ifdef __x86_64__
float extendHalf(_Float16 value) {
  return halfToFloat(std::bit_cast<uint16_t>(value));
}
_Float16 truncateToHalf(float value) {
  return std::bit_cast<_Float16>(floatToHalf(value));
}
/// Bits of a bf16, which is returned in the same register as a _Float16.
_Float16 truncateToBfloat(float value) {
  return std::bit_cast<_Float16>(floatToBfloat(value));
}
#endif

/// Functions that kernels may call beside those of the C library.
llvm::orc::SymbolMap runtimeFunctions(llvm::orc::ExecutionSession &session) {
  llvm::orc::SymbolMap map;
#ifdef __x86_64__
  auto add = [&](const char *name, auto *function) {
    map[session.intern(name)] = {llvm::orc::ExecutorAddr::fromPtr(function),
                                 llvm::JITSymbolFlags::Exported |
                                     llvm::JITSymbolFlags::Callable};
  };
  add("__extendhfsf2", extendHalf);
  add("__truncsfhf2", truncateToHalf);
  add("__truncsfbf2", truncateToBfloat);
#endif
  return map;
}

/// A copy of `object`, which has to be for `arch`: the linker would take any
/// architecture's.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
copyObject(llvm::MemoryBufferRef object, llvm::Triple::ArchType arch) {
  auto file = llvm::object::ObjectFile::createObjectFile(object);
  if (!file)
    return file.takeError();
  if ((*file)->getArch() != arch)
    return llvm::createStringError(
        "they are for " +
        llvm::Triple::getArchTypeName((*file)->getArch()).str() +
        ", not for this machine");
  auto copy =
      llvm::MemoryBuffer::getMemBufferCopy(object.getBuffer(), "kernels");
  if (!copy)
    return llvm::createStringError(std::errc::not_enough_memory,
                                   "out of memory");
  return copy;
}

/// `code`, or what is in it where it is an archive.
llvm::Expected<std::vector<std::unique_ptr<llvm::MemoryBuffer>>>
objectsOf(std::string_view code, llvm::Triple::ArchType arch) {
  const llvm::MemoryBufferRef whole(llvm::StringRef(code.data(), code.size()),
                                    "kernels");
  std::vector<std::unique_ptr<llvm::MemoryBuffer>> objects;
  auto add = [&](llvm::MemoryBufferRef object) -> llvm::Error {
    auto copy = copyObject(object, arch);
    if (!copy)
      return copy.takeError();
    objects.push_back(std::move(*copy));
    return llvm::Error::success();
  };
  if (!code.starts_with(llvm::object::ArchiveMagic)) {
    if (llvm::Error error = add(whole))
      return std::move(error);
    return objects;
  }
  auto archive = llvm::object::Archive::create(whole);
  if (!archive)
    return archive.takeError();
  llvm::Error error = llvm::Error::success();
  for (const llvm::object::Archive::Child &child :
       (*archive)->children(error)) {
    // Of the last one, nobody has looked at whether it ends within the archive.
    auto object = child.getMemoryBufferRef();
    const size_t rest = object ? static_cast<size_t>(whole.getBufferEnd() -
                                                     object->getBufferStart())
                               : 0;
    llvm::Error wrong =
        !object ? object.takeError()
        : object->getBufferSize() > rest
            ? llvm::createStringError("a member is longer than the archive")
            : add(*object);
    if (wrong) {
      llvm::consumeError(std::move(error));
      return std::move(wrong);
    }
  }
  if (error)
    return std::move(error);
  return objects;
}

} // namespace

struct ObjectLoader::Session {
  explicit Session(std::unique_ptr<llvm::orc::ExecutorProcessControl> process)
      : execution(std::move(process)), linker(execution) {
    // The linker reports why a symbol could not be made here, and only that
    // it could not to whoever looks it up.
    execution.setErrorReporter([this](llvm::Error error) {
      std::string text = textOf(std::move(error));
      if (reported.empty())
        reported = std::move(text);
    });
  }
  ~Session() {
    ending.emplace(spare);
    llvm::consumeError(execution.endSession());
  }

  /// The error to show for `error`: the linker's own, where it has one.
  Status failure(llvm::Error error) {
    std::string text = textOf(std::move(error));
    if (!reported.empty())
      text = std::exchange(reported, "");
    return Status::error("cannot load the compiled kernels: " + text);
  }

  SpareMemory spare;
  std::optional<SpareMemory::Use> ending; ///< until those below are gone
  llvm::orc::ExecutionSession execution;
  llvm::orc::ObjectLinkingLayer linker;
  std::string reported;
  uint64_t loads = 0; // names libraries
};

ObjectLoader::LoadedObject::~LoadedObject() {
  SpareMemory::Use use(session.spare);
  llvm::consumeError(session.execution.removeJITDylib(
      *static_cast<llvm::orc::JITDylib *>(library)));
}

ObjectLoader::ObjectLoader(std::unique_ptr<Session> session)
    : session(std::move(session)) {}

ObjectLoader::~ObjectLoader() = default;

Status ObjectLoader::checkFeatures(std::span<const std::string> features) {
  SpareMemory spare;
  KF_RETURN_IF_ERROR(spare.fill());
  llvm::StringMap<bool> host;
  {
    SpareMemory::Use use(spare);
    host = llvm::sys::getHostCPUFeatures();
  }
  if (!spare.isFull())
    return Status::outOfMemory();
  std::string missing;
  for (const std::string &feature : features)
    if (!host.lookup(feature) ||
        (feature.starts_with("amx-") && !mayUseTiles()))
      missing += (missing.empty() ? "" : ", ") + feature;
  if (missing.empty())
    return Status();
  return Status::error("it was compiled for a CPU with " + missing +
                       ", which this one lacks; compile it with --target-cpu "
                       "for one that both are, such as x86-64-v3");
}

Result<std::unique_ptr<ObjectLoader>> ObjectLoader::create() {
  SpareMemory spare;
  KF_RETURN_IF_ERROR(spare.fill());
  SpareMemory::Use use(spare);
  auto process = llvm::orc::SelfExecutorProcessControl::Create(
      nullptr, std::make_unique<llvm::orc::InPlaceTaskDispatcher>());
  if (!process)
    return Status::error("cannot set up the kernel linker: " +
                         textOf(process.takeError()));
  std::unique_ptr<ObjectLoader> loader(
      new ObjectLoader(std::make_unique<Session>(std::move(*process))));
  if (!spare.isFull())
    return Status::outOfMemory();
  KF_RETURN_IF_ERROR(loader->session->spare.fill());
  return loader;
}

Result<std::unique_ptr<ObjectLoader::LoadedObject>>
ObjectLoader::load(std::string_view code, std::span<const std::string> names) {
  KF_RETURN_IF_ERROR(session->spare.fill());
  SpareMemory::Use use(session->spare);
  auto loaded = link(code, names);
  if (!session->spare.isFull())
    return Status::outOfMemory();
  return loaded;
}

Result<std::unique_ptr<ObjectLoader::LoadedObject>>
ObjectLoader::link(std::string_view code, std::span<const std::string> names) {
  using namespace llvm::orc;
  ExecutionSession &execution = session->execution;
  auto objects = objectsOf(code, execution.getTargetTriple().getArch());
  if (!objects)
    return session->failure(objects.takeError());

  JITDylib &library = execution.createBareJITDylib(
      "kernels." + std::to_string(session->loads++));
  std::unique_ptr<LoadedObject> loaded(new LoadedObject(*session, &library));
  auto here = DynamicLibrarySearchGenerator::GetForCurrentProcess('\0');
  if (!here)
    return session->failure(here.takeError());
  library.addGenerator(std::move(*here));
  if (llvm::Error error = library.define(
          llvm::orc::absoluteSymbols(runtimeFunctions(execution))))
    return session->failure(std::move(error));
  for (std::unique_ptr<llvm::MemoryBuffer> &object : *objects)
    if (llvm::Error error = session->linker.add(library, std::move(object)))
      return session->failure(std::move(error));

  SymbolLookupSet wanted;
  std::vector<SymbolStringPtr> interned;
  for (const std::string &name : names)
    interned.push_back(execution.intern(name));
  for (const SymbolStringPtr &name : interned)
    wanted.add(name);
  wanted.removeDuplicates();
  auto symbols =
      execution.lookup(makeJITDylibSearchOrder(&library), std::move(wanted));
  if (!symbols)
    return session->failure(symbols.takeError());
  for (const SymbolStringPtr &name : interned)
    loaded->found.push_back(
        (*symbols)[name].getAddress().toPtr<kf_kernel_fn>());
  session->reported.clear();
  return loaded;
}

} // namespace kf
