//===- HostDevice.cpp - Devices in the host's memory ----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/HostDevice.h"

#include "runtime/core/Exceptions.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <fstream>
#include <functional>
#include <sys/resource.h>
#include <unistd.h>

using namespace kf;

static_assert(AlignedBuffer::alignment >= KF_BUFFER_ALIGNMENT);

namespace {

class HostQueue;

/// Where an event was recorded last.
struct Mark {
  HostQueue *queue;      ///< lives until the mark is passed
  uint64_t ticket = 0;   ///< of the record
  bool isPassed = false; ///< the work before it was done or dropped
  Status status;         ///< why it was dropped
};

/// The work of one stream, from the oldest that is not done.
class HostQueue {
public:
  using Operation = std::function<Status(CancelFlag)>;

  HostQueue() = default;
  HostQueue(const HostQueue &) = delete;
  HostQueue &operator=(const HostQueue &) = delete;
  /// Whoever waits for a mark in this queue finds it passed afterwards.
  ~HostQueue() { runTo(pushed, nullptr); }

  /// `group`, unless null, is of an operation that other ranks wait for.
  void push(Operation operation, Group *group = nullptr) {
    pending.push_back({std::move(operation), nullptr, group});
    ++pushed;
  }

  std::shared_ptr<Mark> mark() {
    auto mark = std::make_shared<Mark>();
    mark->queue = this;
    mark->ticket = pushed + 1;
    pending.push_back({nullptr, mark, nullptr});
    ++pushed;
    return mark;
  }

  /// Does what was pushed up to number `ticket`. Operations may run other
  /// queues up to marks that were there before them, and these this one: but
  /// then only to marks that it has passed.
  void runTo(uint64_t ticket, CancelFlag cancelled) {
    while (done < ticket) {
      Work work = std::move(pending.front());
      pending.pop_front();
      ++done;
      if (work.mark) {
        work.mark->isPassed = true;
        work.mark->status = catchExceptions([&] { return failure; });
        continue;
      }
      if (failure.ok() && isCancelled(cancelled))
        failure = Status::cancelled();
      if (failure.ok())
        failure = catchExceptions([&] { return work.operation(cancelled); });
      if (!failure.ok() && work.group)
        work.group->abort(failure.message());
    }
  }

  /// Does everything; the first error, which is forgotten.
  Status finish(CancelFlag cancelled) {
    runTo(pushed, cancelled);
    return std::exchange(failure, Status());
  }

private:
  struct Work {
    Operation operation;        ///< empty for a record
    std::shared_ptr<Mark> mark; ///< null but for a record
    Group *group = nullptr;
  };

  std::deque<Work> pending;
  uint64_t pushed = 0, done = 0;
  Status failure; ///< that nobody has been told
};

/// Returns when `mark` is passed; null stands for an event that was never
/// recorded.
Status reach(const std::shared_ptr<Mark> &mark, CancelFlag cancelled) {
  if (!mark)
    return Status();
  if (!mark->isPassed)
    mark->queue->runTo(mark->ticket, cancelled);
  return mark->status;
}

class HostEvent final : public Event {
public:
  std::shared_ptr<Mark> mark; ///< null until recorded

private:
  Status doSynchronize(CancelFlag cancelled) override {
    return reach(mark, cancelled);
  }
};

class HostStream final : public Stream {
private:
  Status doUpload(Buffer &target, uint64_t offset,
                  std::span<const std::byte> source) override {
    std::byte *to = HostBuffer::of(target).data() + offset;
    if (source.size() <= smallUpload)
      queue.push(
          [to, copy = std::vector(source.begin(), source.end())](CancelFlag) {
            std::ranges::copy(copy, to);
            return Status();
          });
    else
      queue.push([to, source](CancelFlag) {
        std::memcpy(to, source.data(), source.size());
        return Status();
      });
    return Status();
  }

  Status doDownload(Buffer &source, uint64_t offset,
                    std::span<std::byte> target) override {
    const std::byte *from = HostBuffer::of(source).data() + offset;
    queue.push([from, target](CancelFlag) {
      std::memcpy(target.data(), from, target.size());
      return Status();
    });
    return Status();
  }

  Status doCopy(Buffer &target, uint64_t targetOffset, Buffer &source,
                uint64_t sourceOffset, uint64_t bytes) override {
    std::byte *to = HostBuffer::of(target).data() + targetOffset;
    const std::byte *from = HostBuffer::of(source).data() + sourceOffset;
    queue.push([to, from, bytes](CancelFlag) {
      std::memcpy(to, from, bytes);
      return Status();
    });
    return Status();
  }

  Status doFill(Buffer &target, uint64_t offset, uint64_t bytes,
                uint32_t pattern) override {
    std::byte *to = HostBuffer::of(target).data() + offset;
    queue.push([to, bytes, pattern](CancelFlag) {
      for (uint64_t at = 0; at < bytes; at += sizeof(pattern))
        std::memcpy(to + at, &pattern, sizeof(pattern));
      return Status();
    });
    return Status();
  }

  Status doRecord(Event &event) override {
    static_cast<HostEvent &>(event).mark = queue.mark();
    return Status();
  }

  Status doWait(Event &event) override {
    // Whoever cancels this stream does not cancel the one that it waits for.
    queue.push([mark = static_cast<HostEvent &>(event).mark](CancelFlag) {
      return reach(mark, nullptr);
    });
    return Status();
  }

  Status doEnqueue(Instance &instance, std::span<const int64_t> scalars,
                   const EnqueueOptions &options) override {
    std::array<int64_t, KF_SCALAR_COUNT> values;
    std::ranges::copy(scalars, values.begin());
    Group *const group =
        instance.program().ranks > 1 ? instance.device()->group() : nullptr;
    queue.push(
        [&host = static_cast<HostInstance &>(instance), values,
         times = options.times](CancelFlag cancelled) {
          return host.run(values, cancelled, times);
        },
        group);
    return Status();
  }

  Status doSynchronize(CancelFlag cancelled) override {
    return queue.finish(cancelled);
  }

  HostQueue queue;
};

} // namespace

Result<DeviceMemory> kf::hostMemory() {
  DeviceMemory memory;
  memory.largestBuffer = PTRDIFF_MAX;
  std::ifstream file("/proc/meminfo");
  std::string name, unit;
  for (uint64_t kibibytes = 0; file >> name >> kibibytes;) {
    if (name == "MemTotal:")
      memory.total = kibibytes << 10;
    else if (name == "MemAvailable:")
      memory.free = kibibytes << 10;
    std::getline(file, unit);
  }
  if (memory.total == 0)
    return Status::error("cannot read the memory's size from /proc/meminfo",
                         StatusCode::Unavailable);
  // A limit of address space is one of what can be allocated.
  struct rlimit limit;
  uint64_t pages = 0;
  if (::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      std::ifstream("/proc/self/statm") >> pages) {
    const uint64_t taken =
        pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
    const uint64_t left = limit.rlim_cur - std::min(limit.rlim_cur, taken);
    memory.free = std::min(memory.free, left);
    memory.largestBuffer = std::min(memory.largestBuffer, left);
  }
  return memory;
}

Result<std::unique_ptr<Buffer>> HostDevice::doAllocate(uint64_t bytes,
                                                       MemoryKind /*kind*/) {
  KF_ASSIGN_OR_RETURN(AlignedBuffer memory, AlignedBuffer::allocate(bytes));
  return std::unique_ptr<Buffer>(
      std::make_unique<HostBuffer>(std::move(memory)));
}

Result<std::unique_ptr<Buffer>> HostDevice::doWrap(const void *data,
                                                   uint64_t bytes) {
  return std::unique_ptr<Buffer>(std::make_unique<HostBuffer>(data, bytes));
}

Result<std::unique_ptr<Stream>> HostDevice::doCreateStream() {
  return std::unique_ptr<Stream>(std::make_unique<HostStream>());
}

Result<std::unique_ptr<Event>> HostDevice::doCreateEvent() {
  return std::unique_ptr<Event>(std::make_unique<HostEvent>());
}
