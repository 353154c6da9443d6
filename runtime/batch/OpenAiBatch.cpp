//===- OpenAiBatch.cpp - Lines of OpenAI's batches ------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/batch/OpenAiBatch.h"

#include "runtime/batch/BatchFile.h"
#include "runtime/batch/JsonSlice.h"
#include "runtime/core/Exceptions.h"
#include "runtime/core/Json.h"
#include "runtime/core/JsonText.h"
#include "runtime/core/Quote.h"
#include "runtime/model/ConfigReader.h"

#include <algorithm>
#include <iterator>

using namespace kf;
using nlohmann::json;

std::string_view kf::pathOf(OpenAiEndpoint endpoint) {
  switch (endpoint) {
  case OpenAiEndpoint::Chat:
    return "/chat/completions";
  case OpenAiEndpoint::Completions:
    return "/completions";
  case OpenAiEndpoint::Embeddings:
    return "/embeddings";
  }
  return {};
}

bool kf::isOpenAiLine(const json &object) {
  return object.is_object() &&
         (object.contains("body") || object.contains("custom_id"));
}

Result<OpenAiLine> kf::readOpenAiLine(const json &object) {
  const ConfigReader reader(object);
  for (const auto &[key, value] : object.items())
    if (key != "custom_id" && key != "method" && key != "url" && key != "body")
      return Status::error("there is no key " + inQuotes(key) +
                           " beside 'body'; possible are custom_id, method, "
                           "url and body");
  OpenAiLine line;
  if (reader.contains("custom_id")) {
    KF_ASSIGN_OR_RETURN(const std::string id, reader.text("custom_id"));
    line.id = json(id).dump(-1, ' ', true, json::error_handler_t::replace);
  }
  if (reader.contains("method")) {
    KF_ASSIGN_OR_RETURN(const std::string method, reader.text("method"));
    if (method != "POST")
      return reader.unexpected("method", "\"POST\"");
  }
  KF_ASSIGN_OR_RETURN(std::string url, reader.text("url"));
  if (url.starts_with("/v1"))
    url.erase(0, 3);
  constexpr OpenAiEndpoint endpoints[] = {OpenAiEndpoint::Chat,
                                          OpenAiEndpoint::Completions,
                                          OpenAiEndpoint::Embeddings};
  const OpenAiEndpoint *found = std::ranges::find(endpoints, url, pathOf);
  if (found == std::end(endpoints))
    return reader.unexpected("url",
                             "\"/v1/chat/completions\", \"/v1/completions\" "
                             "or \"/v1/embeddings\"");
  line.endpoint = *found;
  const json *body = reader.find("body");
  if (!body || !body->is_object())
    return reader.unexpected("body", "an object");
  return line;
}

Result<OpenAiRequest> kf::parseOpenAiRequest(std::string_view line) try {
  KF_RETURN_IF_ERROR(checkLineSize(line));
  KF_ASSIGN_OR_RETURN(const JsonDocument object, parseJson(line));
  if (!isOpenAiLine(*object))
    return Status::error("'custom_id' and 'body' are missing, which a line of "
                         "OpenAI's batches has, as the first one of the file");
  OpenAiRequest request;
  KF_ASSIGN_OR_RETURN(static_cast<OpenAiLine &>(request),
                      readOpenAiLine(*object));
  const json &body = (*object)["body"];
  if (const auto stream = body.find("stream");
      stream != body.end() && *stream == true)
    return Status::error("'body.stream' is not supported: each request becomes "
                         "a line when it is finished");
  if (const auto model = body.find("model");
      model != body.end() && model->is_string())
    request.model = model->get<std::string>();
  request.body = memberText(line, "body");
  return request;
} catch (...) {
  return statusOfException();
}

/// What the two kinds of results share.
static std::string resultOf(size_t number, const std::string &id,
                            std::string response, std::string error) {
  return jsonObject({{"id", jsonText("batch_req_" + std::to_string(number))},
                     {"custom_id", id.empty() ? "null" : id},
                     {"response", std::move(response)},
                     {"error", std::move(error)}});
}

std::string kf::openAiResult(size_t number, const std::string &id, int status,
                             const std::string &body) {
  return resultOf(
      number, id,
      jsonObject({{"status_code", jsonText(status)}, {"body", body}}), "null");
}

std::string kf::openAiResult(size_t number, const std::string &id,
                             const OpenAiError &error) {
  return resultOf(number, id, "null",
                  jsonObject({{"code", jsonText(error.code)},
                              {"message", jsonText(error.message)}}));
}
