//===- Device.h - Where programs run ----------------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The interface that CPU, Vulkan, CUDA and the reference interpreter implement.
//
//   Device --allocate--> Buffer        --createStream--> Stream
//          --load--> LoadedProgram --bind--> Instance
//
//   stream->upload(ids, 0, bytes);             // each returns at once
//   stream->enqueue(*instance, scalars);
//   stream->download(logits, 0, result);
//   stream->synchronize();                     // waits; the first error
//
// What a stream is given happens in that order. Streams are ordered with one
// another by events alone. A call returns an error for what can be found out at
// once, and then has no effect; what goes wrong later is the next
// synchronize()'s.
//
// Public functions check what is the same on every device; devices implement
// the private do...() functions, whose arguments are sound.
//
// Ownership: whatever a Device made, and what that made in turn, must not
// outlive it, nor an Instance its LoadedProgram. Buffers and instances must
// outlive the work that was enqueued with them. Threads: one thread at a time
// may use a Device and all that came from it. Failure: every call that can fail
// returns a Status; none aborts or throws.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_DEVICES_DEVICE_H
#define KF_RUNTIME_DEVICES_DEVICE_H

#include "runtime/collective/Group.h"
#include "runtime/core/Cancellation.h"
#include "runtime/program/Executable.h"

#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace kf {

class Device;

enum class MemoryKind {
  Device,    ///< where kernels read and write fastest
  HostPinned ///< the host's, with a hostPointer(); copy() to and from it is the
             ///< fastest transfer and needs no staging
};

/// Memory that kernels of one device can read and write.
class Buffer {
public:
  virtual ~Buffer() = default;
  Buffer(const Buffer &) = delete;
  Buffer &operator=(const Buffer &) = delete;

  uint64_t size() const { return bytes; } ///< in bytes
  MemoryKind kind() const { return memoryKind; }
  /// Made by Device::wrap(): nothing may write to it.
  bool isReadOnly() const { return readOnly; }
  /// The device that made it.
  const Device *device() const { return owner; }
  /// The buffer's memory where the host shares it (CPU, reference, pinned),
  /// else null. Work on the buffer must be over when the host touches it.
  virtual void *hostPointer() { return nullptr; }

protected:
  explicit Buffer(uint64_t bytes) : bytes(bytes) {}

private:
  friend class Device;
  uint64_t bytes;
  MemoryKind memoryKind = MemoryKind::Device;
  bool readOnly = false;
  const Device *owner = nullptr;
};

/// Buffers of one program, by index, as many as the Executable has of each
/// kind; none is null but an arena of 0 bytes. Not owned.
struct BindingTable {
  Buffer *arena = nullptr;
  std::vector<Buffer *> weights, caches, inputs, outputs;
};

/// When a thread of the host worked on a dispatch.
struct WorkerTime {
  uint32_t thread = 0;      ///< 0 is the one that waits for the stream
  uint64_t begin = 0;       ///< nanoseconds since the run began
  uint64_t nanoseconds = 0; ///< that it took
  uint64_t workgroups = 0;  ///< that it ran
};

/// How long one dispatch took.
struct DispatchTime {
  std::string kernel; ///< its name
  uint64_t nanoseconds = 0;
  uint64_t begin = 0; ///< nanoseconds since the run began
  /// Who worked on it, in no order; empty where the device cannot tell. A
  /// thread may be there twice: with its share, and with what it took over.
  std::vector<WorkerTime> workers = {};
};
/// One for each dispatch of a program, in order.
using DispatchTimes = std::vector<DispatchTime>;

struct EnqueueOptions {
  /// Where to put the dispatches' times, measured by the device; filled once
  /// the stream has been synchronized without an error. Null: not measured.
  DispatchTimes *times = nullptr;
};

/// A program with its buffers; owns what a device can record of that (command
/// buffers, graphs). Runs of one instance share its arena: they must be in one
/// stream, or ordered by events.
class Instance {
public:
  virtual ~Instance() = default;
  Instance(const Instance &) = delete;
  Instance &operator=(const Instance &) = delete;

  /// The program, without its binary.
  const Executable &program() const { return executable; }
  const BindingTable &buffers() const { return table; }
  const Device *device() const { return owner; }

protected:
  /// `executable` is the LoadedProgram's, `table` is checked.
  Instance(const Executable &executable, const BindingTable &table)
      : executable(executable), table(table) {}

private:
  friend class LoadedProgram;
  friend class Stream;
  Status check(std::span<const int64_t> scalars);
  /// What else this device asks of a run with `scalars`, which fit the program
  /// and its buffers.
  virtual Status doCheck(std::span<const int64_t> /*scalars*/) {
    return Status();
  }

  const Executable &executable;
  BindingTable table;
  const Device *owner = nullptr;
  std::vector<int64_t> checked; ///< the scalars that were checked last
};

/// An Executable made ready on a device.
class LoadedProgram {
public:
  virtual ~LoadedProgram() = default;
  LoadedProgram(const LoadedProgram &) = delete;
  LoadedProgram &operator=(const LoadedProgram &) = delete;

  /// The program, without its binary.
  const Executable &program() const { return executable; }

  /// Fixes the buffers of an instance's runs. Any number of instances may
  /// exist. Errors: buffers that are missing, too small for the arena or a
  /// weight, of another device, or read-only where kernels write.
  Result<std::unique_ptr<Instance>> bind(const BindingTable &table);

protected:
  /// `executable` is verified and for this device.
  explicit LoadedProgram(const Executable &executable);

private:
  friend class Device;
  virtual Result<std::unique_ptr<Instance>>
  doBind(const BindingTable &table) = 0;

  Executable executable;
  const Device *owner = nullptr;
};

/// A place in a stream's work that others can wait for. One that was never
/// recorded is reached. A wait is for what was recorded last before it, so that
/// no two streams can wait for one another. An error that kept the work from
/// being done stays the event's until it is recorded again.
class Event {
public:
  virtual ~Event() = default;
  Event(const Event &) = delete;
  Event &operator=(const Event &) = delete;

  /// Returns when the work before the event is done, with the error that kept
  /// it from being done. `cancelled` as for Stream::synchronize().
  Status synchronize(CancelFlag cancelled = nullptr);

protected:
  Event() = default;

private:
  friend class Device;
  friend class Stream;
  virtual Status doSynchronize(CancelFlag cancelled) = 0;

  const Device *owner = nullptr;
};

/// Work in order. After an error, what is behind it in the stream, and what
/// waits for that in other streams, is dropped, but for what a device has begun
/// ahead of time; so is what comes until synchronize() has returned the error.
/// Destruction waits for the work; its errors are lost.
class Stream {
public:
  /// Up to so many bytes upload() copies before it returns.
  static constexpr uint64_t smallUpload = 4096;

  virtual ~Stream() = default;
  Stream(const Stream &) = delete;
  Stream &operator=(const Stream &) = delete;

  // Ranges must lie within their buffers, and what is written to must not be
  // read-only. None of these waits for the work, but upload() and download()
  // may wait for earlier ones where the device's staging memory is used up.

  /// Host memory to [offset, offset + source.size()). More than `smallUpload`
  /// bytes must stay as they are until the stream has passed.
  Status upload(Buffer &target, uint64_t offset,
                std::span<const std::byte> source);
  /// [offset, offset + target.size()) to host memory, which is not to be
  /// touched, nor uploaded, until the stream, an event behind this, or one that
  /// has waited for such an event, is synchronized.
  Status download(Buffer &source, uint64_t offset, std::span<std::byte> target);
  /// `bytes` bytes from one buffer to another, or to a part of the same that
  /// does not overlap.
  Status copy(Buffer &target, uint64_t targetOffset, Buffer &source,
              uint64_t sourceOffset, uint64_t bytes);
  /// `pattern` again and again over [offset, offset + bytes), both multiples
  /// of 4.
  Status fill(Buffer &target, uint64_t offset, uint64_t bytes,
              uint32_t pattern);
  /// The event is reached when all before this is done.
  Status record(Event &event);
  /// What follows begins when `event`, as recorded so far, is reached.
  Status wait(Event &event);
  /// Runs every dispatch in order. `scalars` has KF_SCALAR_COUNT entries.
  /// Errors at once: sizes that the program does not take, buffers too small
  /// for them, limits of the device.
  Status enqueue(Instance &instance, std::span<const int64_t> scalars,
                 const EnqueueOptions &options = {});

  /// Returns when everything is done, with the first error, which is forgotten
  /// then. Once `cancelled` is set, the device may drop what has not begun, and
  /// end a run between two dispatches: the error is Status::cancelled(), and
  /// what the dropped work writes is undefined.
  Status synchronize(CancelFlag cancelled = nullptr);

protected:
  Stream() = default;

private:
  friend class Device;
  virtual Status doUpload(Buffer &target, uint64_t offset,
                          std::span<const std::byte> source) = 0;
  virtual Status doDownload(Buffer &source, uint64_t offset,
                            std::span<std::byte> target) = 0;
  virtual Status doCopy(Buffer &target, uint64_t targetOffset, Buffer &source,
                        uint64_t sourceOffset, uint64_t bytes) = 0;
  virtual Status doFill(Buffer &target, uint64_t offset, uint64_t bytes,
                        uint32_t pattern) = 0;
  virtual Status doRecord(Event &event) = 0;
  virtual Status doWait(Event &event) = 0;
  virtual Status doEnqueue(Instance &instance, std::span<const int64_t> scalars,
                           const EnqueueOptions &options) = 0;
  virtual Status doSynchronize(CancelFlag cancelled) = 0;
  Status checkRange(const Buffer &buffer, uint64_t offset,
                    uint64_t bytes) const;
  Status checkTarget(const Buffer &buffer, uint64_t offset,
                     uint64_t bytes) const;

  const Device *owner = nullptr;
};

/// Bytes of a device's memory.
struct DeviceMemory {
  uint64_t total = 0;
  uint64_t free = 0;          ///< as far as the device tells, for all processes
  uint64_t largestBuffer = 0; ///< the most that allocate() may give at once
};

class Device {
public:
  virtual ~Device() = default;
  Device(const Device &) = delete;
  Device &operator=(const Device &) = delete;

  /// "cpu", "vulkan", ...; equals Executable::target of what it can load.
  virtual std::string name() const = 0;
  /// What to compile for so that this very device runs it, as the compiler
  /// spells targets: the name, or an attribute with what the device reports.
  virtual std::string target() const { return name(); }
  /// One line for `kf-run devices`: model, features, limits.
  virtual std::string description() const = 0;
  /// Whether streams are at work while nobody waits for them.
  virtual bool runsAlone() const { return false; }
  /// Rows of a prompt that a step should have: more take no less time each.
  virtual int64_t promptRows() const { return 512; }
  /// Whether a program of few rows takes about as long for one as for all of
  /// them, so that programs of more sizes are worth their time to compile.
  virtual bool takesRowsInTiles() const { return false; }
  /// Whether such tiles may have 48, 80, 96 and 192 rows, too, and 24 are less
  /// work than 32, so that a program of as many takes less time than one of the
  /// next power of two.
  virtual bool hasTilesBetween() const { return false; }
  /// Whether products multiply f16 by weights of blocks, on matrix units, which
  /// rounds the numbers of these.
  virtual bool roundsBlocks() const { return false; }
  /// How many texts that are generated at once have the most tokens a second
  /// together, as far as that was measured: more have no more, but wait longer.
  virtual int64_t textsAtOnce() const { return 16; }
  /// Bytes of a tensor that kernels read or write, at most.
  virtual uint64_t mostTensorBytes() const { return UINT64_MAX; }
  /// Workgroups that run at the same time; 0: unknown.
  virtual int workers() const { return 0; }
  /// How many of these the next run is likely to have: fewer while other
  /// processes have their cores.
  virtual int readyWorkers() const { return workers(); }
  Result<DeviceMemory> memory() const;

  /// Makes the device a rank of `group`, which must outlive it: from then on it
  /// runs programs for as many ranks, which the others run at the same time. A
  /// run that fails here, is cancelled or dropped, or is not enqueued for an
  /// error, aborts the group, so that no rank waits for one that does not come;
  /// a run that waits for a rank which lives and does not come ends by
  /// Group::abort alone. Before programs are loaded; some devices wait for the
  /// other ranks to join as well. Errors: a device that has no collectives, or
  /// is a rank already; where it waits, the group's.
  Status join(Group &group);
  /// Null: none, and programs are for one rank.
  Group *group() const { return ranks; }

  // Work in streams does not disturb these; they may wait for the device.

  /// A buffer of zeros.
  Result<std::unique_ptr<Buffer>>
  allocate(uint64_t bytes, MemoryKind kind = MemoryKind::Device);
  /// Memory for the arena of a program that this device may load. Programs
  /// whose runs meet other ranks may have it in common: no two of them run at
  /// the same time.
  Result<std::unique_ptr<Buffer>> allocateArena(const Executable &executable);
  /// A read-only buffer over host memory that stays valid and unchanged as long
  /// as it, aligned as its elements are; devices without shared memory copy.
  Result<std::unique_ptr<Buffer>> wrap(const void *data, uint64_t bytes);
  Result<std::unique_ptr<Stream>> createStream();
  Result<std::unique_ptr<Event>> createEvent();
  /// Verifies `executable` and makes its kernels ready. Errors: another
  /// target's program, code that does not fit the device or the program.
  Result<std::unique_ptr<LoadedProgram>> load(const Executable &executable);

protected:
  Device() = default;

private:
  virtual Result<DeviceMemory> doMemory() const = 0;
  virtual Result<std::unique_ptr<Buffer>> doAllocate(uint64_t bytes,
                                                     MemoryKind kind) = 0;
  /// That of doAllocate() unless a device has something better.
  virtual Result<std::unique_ptr<Buffer>>
  doAllocateArena(const Executable &executable);
  /// `data` is not null unless `bytes` is 0.
  virtual Result<std::unique_ptr<Buffer>> doWrap(const void *data,
                                                 uint64_t bytes) = 0;
  virtual Result<std::unique_ptr<Stream>> doCreateStream() = 0;
  virtual Result<std::unique_ptr<Event>> doCreateEvent() = 0;
  virtual Result<std::unique_ptr<LoadedProgram>>
  doLoad(const Executable &executable) = 0;
  /// An error where the device's programs cannot have collectives.
  virtual Status doJoin(Group &group);

  Group *ranks = nullptr;
};

/// "weight 3"; an arena has no number.
std::string describe(const kf_binding &binding);

/// The table's buffer that a verified `binding` means.
Buffer *bufferOf(const BindingTable &table, const kf_binding &binding);

/// Workgroups of a verified dispatch in x, y and z. Errors: a negative scalar,
/// more than 63 bits count in all.
Result<std::array<int64_t, 3>> gridOf(const DispatchSpec &dispatch,
                                      std::span<const int64_t> scalars);

} // namespace kf

#endif // KF_RUNTIME_DEVICES_DEVICE_H
