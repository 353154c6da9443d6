//===- EventStream.cpp - Events of a stream, as they come -----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/client/EventStream.h"

#include <algorithm>
#include <utility>

using namespace kf;

static Status tooLong(const char *what) {
  return Status::error("a stream with " + std::string(what) +
                       " of more than 4 MiB");
}

Status EventStream::push(std::string_view bytes) {
  while (!bytes.empty()) {
    if (std::exchange(afterCr, false) && bytes.front() == '\n') {
      bytes.remove_prefix(1);
      continue;
    }
    const size_t end = bytes.find_first_of("\r\n");
    const std::string_view part = bytes.substr(0, end);
    if (part.size() > kMostBytes - line.size())
      return tooLong("a line");
    line += part;
    if (end == bytes.npos)
      return Status();
    afterCr = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    KF_RETURN_IF_ERROR(endLine());
    line.clear();
  }
  return Status();
}

Status EventStream::endLine() {
  constexpr std::string_view mark = "\xef\xbb\xbf", field = "data";
  std::string_view text = line;
  if (std::exchange(isFirst, false) && text.starts_with(mark))
    text.remove_prefix(mark.size());
  if (text.empty()) { // the event is over
    if (!std::exchange(hasData, false))
      return Status();
    const std::string whole = std::exchange(data, {});
    return onData(whole);
  }
  // A comment has no name before the colon; other fields mean nothing here.
  const size_t colon = std::min(text.find(':'), text.size());
  if (text.substr(0, colon) != field)
    return Status();
  text.remove_prefix(std::min(colon + 1, text.size()));
  if (text.starts_with(' '))
    text.remove_prefix(1);
  if (text.size() + hasData > kMostBytes - data.size())
    return tooLong("an event");
  if (std::exchange(hasData, true))
    data += '\n';
  data += text;
  return Status();
}
