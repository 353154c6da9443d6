//===- HttpMessage.cpp - Requests and answers of HTTP ---------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/serve/HttpMessage.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

using namespace kf;

namespace {

class ReadyAnswer : public HttpAnswer {
public:
  explicit ReadyAnswer(HttpResponse response) : response(std::move(response)) {}
  Piece take() override {
    Piece piece;
    piece.isLast = true;
    std::swap(piece.head, response);
    if (piece.head)
      piece.body.swap(piece.head->body);
    return piece;
  }

private:
  std::optional<HttpResponse> response;
};

struct Reason {
  int status;
  std::string_view text;
};
constexpr Reason kReasons[] = {{100, "Continue"},
                               {200, "OK"},
                               {204, "No Content"},
                               {400, "Bad Request"},
                               {401, "Unauthorized"},
                               {403, "Forbidden"},
                               {404, "Not Found"},
                               {405, "Method Not Allowed"},
                               {408, "Request Timeout"},
                               {413, "Content Too Large"},
                               {415, "Unsupported Media Type"},
                               {417, "Expectation Failed"},
                               {429, "Too Many Requests"},
                               {431, "Request Header Fields Too Large"},
                               {500, "Internal Server Error"},
                               {501, "Not Implemented"},
                               {503, "Service Unavailable"},
                               {505, "HTTP Version Not Supported"}};

/// Whether a header's name may have it.
bool isOfName(char c) {
  return c > ' ' && c < 0x7f &&
         std::string_view("\"(),/:;<=>?@[\\]{}").find(c) ==
             std::string_view::npos;
}

/// A header's value is one line.
std::string oneLine(std::string text) {
  std::ranges::replace_if(
      text,
      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; },
      ' ');
  return text;
}

} // namespace

std::string_view HttpRequest::header(std::string_view name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? std::string_view() : found->second;
}

void HttpRequest::addHeader(std::string_view name, std::string_view value) {
  std::string lower(name);
  for (char &c : lower)
    if (c >= 'A' && c <= 'Z')
      c = static_cast<char>(c + 32);
  auto [at, isNew] = headers.emplace(std::move(lower), value);
  if (!isNew)
    at->second.append(", ").append(value);
}

void HttpRequest::addHeaderLines(std::string_view text) {
  constexpr std::string_view blanks = " \t";
  for (size_t end = 0; (end = text.find("\r\n")) != text.npos;
       text.remove_prefix(end + 2)) {
    std::string_view line = text.substr(0, end);
    if (line.empty())
      return;
    const std::string_view name = line.substr(0, line.find(':'));
    if (name.empty() || name.size() == line.size() ||
        !std::ranges::all_of(name, isOfName))
      continue; // the request's line, or nothing at all
    line.remove_prefix(name.size() + 1);
    line.remove_prefix(std::min(line.find_first_not_of(blanks), line.size()));
    addHeader(name, line.substr(0, line.find_last_not_of(blanks) + 1));
  }
}

std::unique_ptr<HttpAnswer> kf::answerNow(HttpResponse response) {
  return std::make_unique<ReadyAnswer>(std::move(response));
}

std::string_view kf::reasonOf(int status) {
  const auto *found = std::ranges::find(kReasons, status, &Reason::status);
  return found == std::end(kReasons) ? "Unknown" : found->text;
}

std::string kf::headText(const HttpResponse &response, HttpFraming framing,
                         size_t length, bool keepsAlive) {
  std::string out = "HTTP/1.1 " + std::to_string(response.status) + " ";
  out += reasonOf(response.status);
  out += "\r\n";
  auto add = [&](std::string_view name, const std::string &value) {
    out.append(name).append(": ").append(oneLine(value)).append("\r\n");
  };
  if (!response.contentType.empty())
    add("Content-Type", response.contentType);
  for (const auto &[name, value] : response.headers)
    add(name, value);
  if (framing == HttpFraming::Length && response.status != 204)
    add("Content-Length", std::to_string(length));
  if (framing == HttpFraming::Chunked)
    add("Transfer-Encoding", "chunked");
  add("Connection", keepsAlive ? "keep-alive" : "close");
  return out += "\r\n";
}

std::string kf::chunkText(std::string_view body) {
  char size[24];
  std::snprintf(size, sizeof(size), "%zx\r\n", body.size());
  std::string out = size;
  return out.append(body).append("\r\n");
}

std::optional<std::string> kf::pathOf(std::string_view target) {
  for (std::string_view scheme : {"http://", "https://"})
    if (target.starts_with(scheme))
      target.remove_prefix(
          std::min(target.find('/', scheme.size()), target.size()));
  target = target.substr(0, target.find_first_of("?#"));
  if (!target.starts_with('/'))
    return std::nullopt;
  std::string path;
  for (size_t at = 0; at < target.size(); ++at) {
    char c = target[at];
    if (c == '%') {
      const std::string_view digits = target.substr(at + 1, 2);
      unsigned value = 0;
      auto [end, code] = std::from_chars(
          digits.data(), digits.data() + digits.size(), value, 16);
      if (digits.size() != 2 || code != std::errc() || end != digits.data() + 2)
        return std::nullopt;
      c = static_cast<char>(value);
      at += 2;
    }
    if (c == '\0')
      return std::nullopt;
    path += c;
  }
  return path;
}
