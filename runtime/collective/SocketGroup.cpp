//===- SocketGroup.cpp - Collectives over connections ---------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/collective/SocketGroup.h"

#include "runtime/collective/CollectiveCall.h"
#include "runtime/collective/MessageBytes.h"
#include "runtime/core/Exceptions.h"

#include <cstring>
#include <optional>

using namespace kf;

namespace {

bool isSummed(DataType type) {
  return type == DataType::F32 || type == DataType::F16 ||
         type == DataType::BF16;
}

/// What stands in front of a rank's bytes: the call.
std::string encode(const CollectiveCall &call) {
  std::string message;
  MessageWriter writer(message);
  writer.put(static_cast<uint8_t>(call.kind));
  writer.put(static_cast<uint8_t>(call.type));
  writer.put(call.count);
  if (call.bytes() > 0)
    message.append(reinterpret_cast<const char *>(call.source), call.bytes());
  return message;
}

/// The call of a message, whose source is in it; nothing: it is none. The
/// number of its bytes is right where the call is like `own`.
std::optional<CollectiveCall> decode(const std::string &message,
                                     const CollectiveCall &own) {
  constexpr size_t header = 10; // bytes, of what is read here
  MessageReader reader(message);
  uint8_t kind = 0, type = 0;
  CollectiveCall call;
  reader.get(kind);
  reader.get(type);
  reader.get(call.count);
  call.kind = static_cast<CollectiveSpec::Kind>(kind);
  call.type = static_cast<DataType>(type);
  if (reader.failed() || kind > uint8_t(CollectiveSpec::Kind::Send) ||
      !(isSummed(call.type) || call.type == DataType::U8) ||
      (call.isLike(own) && message.size() - header != own.bytes()))
    return std::nullopt;
  call.source = reinterpret_cast<const std::byte *>(message.data()) + header;
  return call;
}

/// Rank 0 is connected to all others, which are to no other: it passes on what
/// these send to one another, when it receives itself. So each rank sends once
/// for each time that rank 0 receives, as the stages of a model do.
class SocketRank final : public CallingGroup {
public:
  SocketRank(int64_t rank, int64_t size, RankLinks &links)
      : CallingGroup(rank, size), links(links) {}

  Status send(const void *source, uint64_t bytes) override {
    return orAbort([&] {
      return links.sendData(
          0, encode({CollectiveSpec::Kind::Send, DataType::U8, bytes,
                     static_cast<const std::byte *>(source)}));
    });
  }

  Status receive(void *target, uint64_t bytes) override {
    return orAbort([&]() -> Status {
      KF_RETURN_IF_ERROR(rank() == 0 ? passOn() : Status());
      const size_t from = rank() == 0 ? links.size() - 1 : 0;
      KF_ASSIGN_OR_RETURN(const std::string message, links.receiveData(from));
      const CollectiveCall wanted = {CollectiveSpec::Kind::Send, DataType::U8,
                                     bytes};
      const std::optional<CollectiveCall> sent = decode(message, wanted);
      if (!sent)
        return Status::error(nameOf(links.facts(from)) +
                                 " sends what is no part of a collective",
                             StatusCode::Internal);
      if (!sent->isLike(wanted))
        return Status::error("rank " + std::to_string(previous()) + " " +
                                 sent->describe() + " where rank " +
                                 std::to_string(rank()) + " receives " +
                                 std::to_string(bytes) + " bytes",
                             StatusCode::Internal);
      if (bytes > 0)
        std::memcpy(target, sent->source, bytes);
      return Status();
    });
  }

  void abort(std::string_view reason) override { links.abort(reason); }

  Status failure() const override { return links.failure(); }

private:
  Status call(const CollectiveCall &own, std::byte *target) override {
    return orAbort(
        [&] { return rank() == 0 ? lead(own, target) : follow(own, target); });
  }

  /// Others wait for what does not come.
  template <typename Fn> Status orAbort(Fn fn) {
    Status status = catchExceptions(fn);
    if (!status.ok())
      links.abort(status.message());
    return status;
  }

  /// Of ranks 1, 2, ... to those behind them.
  Status passOn() {
    for (size_t i = 0; i + 1 < links.size(); ++i) {
      KF_ASSIGN_OR_RETURN(const std::string message, links.receiveData(i));
      KF_RETURN_IF_ERROR(links.sendData(i + 1, message));
    }
    return Status();
  }

  uint64_t resultBytes(const CollectiveCall &own) const {
    return own.kind == CollectiveSpec::Kind::AllReduce
               ? own.bytes()
               : own.bytes() * static_cast<uint64_t>(size());
  }

  Status lead(const CollectiveCall &own, std::byte *target) {
    std::vector<std::string> messages(links.size());
    std::vector<CollectiveCall> calls = {own};
    for (size_t i = 0; i < links.size(); ++i) {
      KF_ASSIGN_OR_RETURN(messages[i], links.receiveData(i));
      const std::optional<CollectiveCall> call = decode(messages[i], own);
      if (!call)
        return Status::error(nameOf(links.facts(i)) +
                                 " sends what is no part of a collective",
                             StatusCode::Internal);
      calls.push_back(*call);
    }
    KF_RETURN_IF_ERROR(checkAlike(calls));
    KF_RETURN_IF_ERROR(putTogether(calls, target));
    const std::string_view result(reinterpret_cast<const char *>(target),
                                  resultBytes(own));
    for (size_t i = 0; i < links.size(); ++i)
      KF_RETURN_IF_ERROR(links.sendData(i, result));
    return Status();
  }

  Status follow(const CollectiveCall &own, std::byte *target) {
    KF_RETURN_IF_ERROR(links.sendData(0, encode(own)));
    KF_ASSIGN_OR_RETURN(const std::string result, links.receiveData(0));
    if (result.size() != resultBytes(own))
      return Status::error(nameOf(links.facts(0)) + " sends " +
                               std::to_string(result.size()) + " bytes where " +
                               std::to_string(resultBytes(own)) + " are due",
                           StatusCode::Internal);
    if (!result.empty())
      std::memcpy(target, result.data(), result.size());
    return Status();
  }

  RankLinks &links;
};

} // namespace

std::unique_ptr<Group> kf::createSocketGroup(int64_t rank, int64_t size,
                                             RankLinks &links) {
  return std::make_unique<SocketRank>(rank, size, links);
}
