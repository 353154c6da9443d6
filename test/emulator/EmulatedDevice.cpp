//===- EmulatedDevice.cpp - Kernels for another CPU, emulated -------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/emulator/EmulatedDevice.h"

#include "runtime/devices/HostDevice.h"
#include "test/emulator/KernelHost.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace kf;

namespace {

// The paths that CMake found; empty where something is missing.
#ifndef KF_EMULATOR
#define KF_EMULATOR ""
#define KF_EMULATOR_ROOT ""
#define KF_EMULATOR_LINKER ""
#define KF_KERNEL_HOST ""
#endif

Status failureOf(const std::string &what) {
  return Status::error(what + ": " + std::strerror(errno));
}

/// Runs a program to its end.
Status runProgram(const std::vector<std::string> &words) {
  std::vector<char *> arguments;
  for (const std::string &word : words)
    arguments.push_back(const_cast<char *>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child)
    return failureOf(words[0]);
  if (status != 0)
    return Status::error(words[0] + " failed");
  return Status();
}

/// Memory that both processes have at one address. What is taken from it is not
/// given back.
class SharedMemory {
public:
  SharedMemory() = default;
  SharedMemory(const SharedMemory &) = delete;
  SharedMemory &operator=(const SharedMemory &) = delete;
  ~SharedMemory() {
    if (base)
      munmap(base, KF_SHARED_BYTES);
    if (file >= 0)
      close(file);
  }

  Status create() {
    file = memfd_create("kernels", 0);
    if (file < 0 || ftruncate(file, KF_SHARED_BYTES) != 0)
      return failureOf("shared memory");
    void *wanted = reinterpret_cast<void *>(KF_SHARED_ADDRESS);
    void *mapped = mmap(wanted, KF_SHARED_BYTES, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_FIXED_NOREPLACE, file, 0);
    if (mapped == MAP_FAILED)
      return failureOf("shared memory");
    base = static_cast<std::byte *>(mapped);
    return Status();
  }

  /// Zeros; null where there is no more. A page lies behind each.
  std::byte *take(uint64_t bytes) {
    constexpr uint64_t page = 4096;
    const uint64_t size = (bytes + 2 * page - 1) / page * page;
    if (bytes > KF_SHARED_BYTES || size > KF_SHARED_BYTES - used)
      return nullptr;
    used += size;
    return base + used - size;
  }

  int descriptor() const { return file; }

private:
  int file = -1;
  std::byte *base = nullptr;
  uint64_t used = 0;
};

/// The process in the emulator.
class Emulator {
public:
  Emulator() = default;
  Emulator(const Emulator &) = delete;
  Emulator &operator=(const Emulator &) = delete;
  ~Emulator() {
    if (to)
      fclose(to);
    if (from)
      fclose(from);
    if (child > 0)
      waitpid(child, nullptr, 0);
  }

  Status start(const std::string &cpu, int memory) {
    int input[2], output[2];
    if (pipe2(input, O_CLOEXEC) != 0 || pipe2(output, O_CLOEXEC) != 0)
      return failureOf("pipe");
    const std::string number = std::to_string(memory);
    child = fork();
    if (child == 0) {
      dup2(input[0], STDIN_FILENO);
      dup2(output[1], STDOUT_FILENO);
      execl(KF_EMULATOR, KF_EMULATOR, "-cpu", cpu.c_str(), "-L",
            KF_EMULATOR_ROOT, KF_KERNEL_HOST, number.c_str(), nullptr);
      _exit(127);
    }
    close(input[0]);
    close(output[1]);
    to = fdopen(input[1], "w");
    from = fdopen(output[0], "r");
    if (child < 0 || !to || !from)
      return failureOf(KF_EMULATOR);
    return answer();
  }

  /// Hands over a command and what follows it, and waits for the answer.
  Status send(const kf_host_command &command,
              std::initializer_list<std::span<const std::byte>> parts) {
    fwrite(&command, sizeof(command), 1, to);
    for (std::span<const std::byte> part : parts)
      fwrite(part.data(), 1, part.size(), to);
    fflush(to);
    return answer();
  }

  uint32_t libraries = 0;

private:
  Status answer() {
    uint32_t length = 0;
    if (fread(&length, sizeof(length), 1, from) != 1)
      return Status::error("the emulated program ended");
    std::string text(length, ' ');
    if (fread(text.data(), 1, length, from) != length)
      return Status::error("the emulated program ended");
    return length ? Status::error("emulated: " + text) : Status();
  }

  pid_t child = -1;
  FILE *to = nullptr, *from = nullptr;
};

class EmulatedInstance final : public HostInstance {
public:
  EmulatedInstance(const Executable &program, const BindingTable &table,
                   uint32_t library, Emulator &emulator)
      : HostInstance(program, table), library(library), emulator(emulator) {}

  Status run(std::span<const int64_t> scalars, CancelFlag /*cancelled*/,
             DispatchTimes * /*times*/) override {
    for (const DispatchSpec &dispatch : program().dispatches) {
      std::vector<std::byte *> bindings;
      for (const kf_binding &binding : dispatch.bindings) {
        std::byte *base = HostBuffer::of(*bufferOf(buffers(), binding)).data();
        uint64_t offset = binding.offset;
        if (binding.kind == KF_BINDING_CACHE) {
          const CacheSpec &cache = program().caches[binding.index];
          KF_ASSIGN_OR_RETURN(int64_t bytes,
                              cache.bytes(scalars[KF_SCALAR_CACHE_PAGES]));
          offset *= bytes / cache.layers;
        }
        bindings.push_back(base + offset);
      }
      const auto grid = *gridOf(dispatch, scalars);
      kf_host_command command = {};
      command.kind = KF_HOST_RUN;
      command.library = library;
      command.count = dispatch.kernel;
      command.bytes = static_cast<uint32_t>(bindings.size() * sizeof(void *));
      command.workgroups = static_cast<uint64_t>(grid[0]) * grid[1] * grid[2];
      command.scratch_bytes = program().kernels[dispatch.kernel].scratchBytes;
      KF_RETURN_IF_ERROR(
          emulator.send(command, {std::as_bytes(std::span(bindings)),
                                  std::as_bytes(scalars)}));
    }
    return Status();
  }

private:
  uint32_t library;
  Emulator &emulator;
};

class EmulatedProgram final : public LoadedProgram {
public:
  EmulatedProgram(const Executable &program, uint32_t library,
                  Emulator &emulator)
      : LoadedProgram(program), library(library), emulator(emulator) {}

private:
  Result<std::unique_ptr<Instance>> doBind(const BindingTable &table) override {
    return std::unique_ptr<Instance>(std::make_unique<EmulatedInstance>(
        program(), table, library, emulator));
  }

  uint32_t library;
  Emulator &emulator;
};

/// Its buffers are shared; what is wrapped is copied.
class EmulatedDevice final : public HostDevice {
public:
  ~EmulatedDevice() override {
    std::error_code ignored;
    if (!folder.empty())
      std::filesystem::remove_all(folder, ignored);
  }

  Status open(const std::string &cpu) {
    std::string name =
        (std::filesystem::temp_directory_path() / "kf-XXXXXX").string();
    if (!mkdtemp(name.data()))
      return failureOf(name);
    folder = name;
    KF_RETURN_IF_ERROR(memory.create());
    return emulator.start(cpu, memory.descriptor());
  }

  std::string name() const override { return "cpu"; }
  std::string description() const override { return KF_EMULATOR; }

private:
  Result<std::unique_ptr<Buffer>> doAllocate(uint64_t bytes,
                                             MemoryKind /*kind*/) override {
    std::byte *data = memory.take(bytes);
    if (!data)
      return Status::outOfMemory();
    return std::unique_ptr<Buffer>(std::make_unique<HostBuffer>(data, bytes));
  }

  Result<std::unique_ptr<Buffer>> doWrap(const void *data,
                                         uint64_t bytes) override {
    auto buffer = doAllocate(bytes, MemoryKind::Device);
    if (buffer.ok())
      std::memcpy((*buffer)->hostPointer(), data, bytes);
    return buffer;
  }

  Result<std::unique_ptr<LoadedProgram>>
  doLoad(const Executable &executable) override {
    const std::string number = std::to_string(emulator.libraries);
    const std::string object = folder + "/" + number + ".o",
                      library = folder + "/" + number + ".so";
    std::ofstream(object, std::ios::binary) << executable.binary;
    KF_RETURN_IF_ERROR(
        runProgram({KF_EMULATOR_LINKER, "-m", "aarch64linux", "-shared",
                    "--whole-archive", "-o", library, object}));
    std::string text = library + '\0';
    for (const KernelSpec &kernel : executable.kernels)
      text += kernel.name + '\0';
    kf_host_command command = {};
    command.kind = KF_HOST_LOAD;
    command.count = static_cast<uint32_t>(executable.kernels.size());
    command.bytes = static_cast<uint32_t>(text.size());
    KF_RETURN_IF_ERROR(
        emulator.send(command, {std::as_bytes(std::span(text))}));
    return std::unique_ptr<LoadedProgram>(std::make_unique<EmulatedProgram>(
        executable, emulator.libraries++, emulator));
  }

  std::string folder;
  SharedMemory memory;
  Emulator emulator;
};

} // namespace

bool kf::test::hasEmulator() { return KF_EMULATOR[0] != 0; }

Result<std::unique_ptr<Device>>
kf::test::openEmulatedDevice(const std::string &cpu) {
  auto device = std::make_unique<EmulatedDevice>();
  KF_RETURN_IF_ERROR(device->open(cpu));
  return std::unique_ptr<Device>(std::move(device));
}
