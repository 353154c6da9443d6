//===- Api.cpp - OpenAI's API, and llama.cpp's, of one model --------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/serve/Api.h"

#include "runtime/core/Exceptions.h"
#include "runtime/core/JsonText.h"
#include "runtime/core/Quote.h"
#include "runtime/serve/ChatPage.h"

#include <algorithm>
#include <chrono>

using namespace kf;

/// A path of the server, and what it is for.
struct Api::Endpoint {
  enum class Kind {
    Page,
    Health,
    Metrics,
    Models,
    Model, ///< "PATH/NAME"
    Props,
    Slots,
    Tokenize,
    Detokenize,
    ApplyTemplate,
    Chat,
    Completion,
    Llama,
    Embeddings
  };
  std::string_view path;
  Kind kind;
  bool isPost; ///< else it is GET and HEAD

  bool needsModel() const {
    return kind != Kind::Page && kind != Kind::Health && kind != Kind::Metrics;
  }
  bool needsKey() const { return kind != Kind::Page && kind != Kind::Health; }
};

/// OpenAI's are also without "/v1", but /completion and /completions differ:
/// the first one is llama.cpp's.
const Api::Endpoint *Api::find(std::string_view path) {
  using enum Endpoint::Kind;
  static constexpr Endpoint endpoints[] = {
      {"/", Page, false},
      {"/health", Health, false},
      {"/metrics", Metrics, false},
      {"/models", Models, false},
      {"/models/", Model, false},
      {"/props", Props, false},
      {"/slots", Slots, false},
      {"/tokenize", Tokenize, true},
      {"/detokenize", Detokenize, true},
      {"/apply-template", ApplyTemplate, true},
      {"/chat/completions", Chat, true},
      {"/completions", Completion, true},
      {"/completion", Llama, true},
      {"/embeddings", Embeddings, true}};
  if (path.starts_with("/v1/") && path != "/v1/")
    path.remove_prefix(3);
  for (const Endpoint &endpoint : endpoints)
    if (path == endpoint.path ||
        (endpoint.kind == Model && path.size() > endpoint.path.size() &&
         path.starts_with(endpoint.path)))
      return &endpoint;
  return nullptr;
}

/// What the thread of the tasks does for a request, and what comes of it.
struct Api::Work {
  std::atomic<bool> isCancelled = false;
  std::mutex mutex;
  std::unique_ptr<HttpAnswer> answer; ///< once it is there
};

/// The answer to a request, which a task makes; with the headers that the
/// request's origin is to see.
class Api::WorkAnswer : public HttpAnswer {
public:
  WorkAnswer(Api &api, std::shared_ptr<Work> work,
             std::vector<std::pair<std::string, std::string>> headers)
      : api(api), work(std::move(work)), headers(std::move(headers)) {}
  ~WorkAnswer() override { work->isCancelled = true; }

  Piece take() override {
    if (!answer) {
      const std::scoped_lock lock(work->mutex);
      answer = std::move(work->answer);
    }
    if (!answer)
      return {};
    Piece piece = answer->take();
    if (piece.head) {
      ++api.counts.answers[piece.head->status];
      piece.head->headers.insert(piece.head->headers.end(), headers.begin(),
                                 headers.end());
    }
    return piece;
  }
  std::string_view ping() const override {
    return answer ? answer->ping() : std::string_view();
  }

private:
  Api &api;
  std::shared_ptr<Work> work;
  std::unique_ptr<HttpAnswer> answer;
  std::vector<std::pair<std::string, std::string>> headers;
};

Api::Api(ApiOptions given)
    : options(std::move(given)),
      created(std::chrono::duration_cast<std::chrono::seconds>(
                  std::chrono::system_clock::now().time_since_epoch())
                  .count()) {
  std::random_device device;
  std::seed_seq seeds{device(), device(), device(), device()};
  random.seed(seeds);
}

void Api::open(ServedModel model) {
  served = std::move(model);
  if (served.chat)
    endOfTurn = served.chat->endOfTurnIds();
  thinks = served.chatTemplate.find("</think>") != std::string::npos;
  std::vector<int64_t> ends = served.files->config.eosIds;
  ends.insert(ends.end(), endOfTurn.begin(), endOfTurn.end());
  constraints = std::make_unique<ConstraintCompiler>(
      *served.files->tokenizer, served.files->config.vocabSize,
      std::move(ends));
  isOpen.store(true, std::memory_order_release);
}

const ServedModel *Api::opened() const {
  return isOpen.load(std::memory_order_acquire) ? &served : nullptr;
}

ServiceState Api::state() const {
  const ServedModel *model = opened();
  return model ? model->service->state() : ServiceState::Loading;
}

std::string Api::randomText(size_t length) {
  constexpr std::string_view letters =
      "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  const std::scoped_lock lock(randomMutex);
  std::string text;
  for (size_t i = 0; i < length; ++i)
    text += letters[random() % letters.size()];
  return text;
}

//===----------------------------------------------------------------------===//
// Requests
//===----------------------------------------------------------------------===//

/// "application/json" of "application/json; charset=utf-8".
static bool isJson(std::string_view type) {
  type = type.substr(0, type.find_first_of("; \t"));
  constexpr std::string_view json = "application/json";
  return std::ranges::equal(type, json, {}, [](char c) {
    return c >= 'A' && c <= 'Z' ? char(c + 32) : c;
  });
}

std::optional<ApiError> Api::check(const HttpRequest &request,
                                   const Endpoint *endpoint) const {
  const HttpAccess &access = options.access;
  if (!access.isHostAllowed(request))
    return ApiError{403,
                    "the server is not called " +
                        inQuotes(request.header("host")) +
                        "; --allow-host allows a name, and so does a key",
                    "permission_error", "host_not_allowed"};
  if (!access.isOriginAllowed(request))
    return ApiError{403,
                    "pages of " + inQuotes(request.header("origin")) +
                        " may not ask; --cors-origin allows an origin",
                    "permission_error", "origin_not_allowed"};
  if ((!endpoint || endpoint->needsKey()) && !access.hasKey(request))
    return ApiError{401,
                    "the API key is wrong or missing: 'Authorization: Bearer "
                    "KEY' is expected",
                    "invalid_request_error", "invalid_api_key"};
  if (!endpoint)
    return ApiError{404, "there is no " + inQuotes(request.path) + " here",
                    "invalid_request_error", "not_found"};
  const bool isGet = request.method == "GET" || request.method == "HEAD";
  if (endpoint->isPost ? request.method != "POST" : !isGet)
    return ApiError{405,
                    inQuotes(request.path) + " is for " +
                        (endpoint->isPost ? "POST" : "GET") + ", not " +
                        inQuotes(request.method),
                    "invalid_request_error", "method_not_allowed"};
  const std::string_view length = request.header("content-length");
  if (isGet && (!request.header("transfer-encoding").empty() ||
                (!length.empty() && length != "0")))
    return ApiError{413, inQuotes(request.path) + " takes no body",
                    "invalid_request_error", "body_too_large"};
  if (endpoint->isPost && !isJson(request.header("content-type")))
    return ApiError{415,
                    "the body has to be JSON, with the header 'Content-Type: "
                    "application/json'",
                    "invalid_request_error", "unsupported_media_type"};
  if (endpoint->needsModel() && state() == ServiceState::Loading)
    return ApiError{503, "the model is loading", "server_error", "loading"};
  return std::nullopt;
}

/// What a browser asks before a page's request.
HttpResponse Api::preflight(const HttpRequest &request) const {
  HttpResponse response{.status = 204,
                        .contentType = "",
                        .headers = options.access.corsHeaders(request)};
  if (!response.headers.empty()) {
    response.headers.emplace_back("Access-Control-Allow-Methods",
                                  "GET, POST, OPTIONS");
    // Clients have headers of their own, as OpenAI's X-Stainless-OS, which ask
    // for nothing that the origin may not do.
    const std::string_view asked =
        request.header("access-control-request-headers");
    response.headers.emplace_back(
        "Access-Control-Allow-Headers",
        asked.empty() ? "Authorization, Content-Type, X-Api-Key" : asked);
    response.headers.emplace_back("Access-Control-Max-Age", "600");
  }
  return response;
}

std::optional<HttpResponse> Api::refuse(const HttpRequest &request) {
  const Endpoint *endpoint = find(request.path);
  HttpResponse response;
  if (request.method == "OPTIONS" && endpoint &&
      options.access.isHostAllowed(request) &&
      options.access.isOriginAllowed(request)) {
    response = preflight(request);
    ++counts.answers[response.status];
  } else if (std::optional<ApiError> error = check(request, endpoint)) {
    response = error->response();
    if (error->status == 405)
      response.headers.emplace_back(
          "Allow", endpoint->isPost ? "POST, OPTIONS" : "GET, HEAD, OPTIONS");
    complete(request, response);
  } else {
    return std::nullopt;
  }
  return response;
}

void Api::complete(const HttpRequest &request, HttpResponse &response) {
  for (auto &header : options.access.corsHeaders(request))
    response.headers.push_back(std::move(header));
  ++counts.answers[response.status];
}

std::unique_ptr<HttpAnswer> Api::handle(HttpRequest request,
                                        std::function<void()> onNews) {
  using enum Endpoint::Kind;
  const Endpoint *endpoint = find(request.path);
  auto work = std::make_shared<Work>();
  auto answer = std::make_unique<WorkAnswer>(
      *this, work, options.access.corsHeaders(request));
  auto now = [&](HttpResponse response) {
    work->answer = answerNow(std::move(response));
    return std::move(answer);
  };
  switch (endpoint->kind) {
  case Page:
    return now(page());
  case Health:
    return now(health());
  case Metrics:
    return now(metrics());
  case Models:
    return now(models());
  case Model:
    return now(model(request.path.substr(request.path.find("/models/") + 8)));
  case Props:
    return now(props());
  case Slots:
    return now(slots());
  default:
    break;
  }
  tasks.run([this, work, kind = endpoint->kind, body = std::move(request.body),
             onNews = std::move(onNews)] {
    if (work->isCancelled)
      return;
    std::unique_ptr<HttpAnswer> made;
    try {
      const CancelFlag cancelled = &work->isCancelled;
      switch (kind) {
      case Tokenize:
        made = answerNow(tokenize(body, cancelled));
        break;
      case Detokenize:
        made = answerNow(detokenize(body));
        break;
      case ApplyTemplate:
        made = answerNow(applyTemplate(body, cancelled));
        break;
      case Chat:
        made = generate(Form::Chat, body, onNews, cancelled);
        break;
      case Completion:
        made = generate(Form::Completion, body, onNews, cancelled);
        break;
      case Embeddings:
        made = embed(body, onNews, cancelled);
        break;
      default:
        made = generate(Form::Llama, body, onNews, cancelled);
        break;
      }
    } catch (...) {
      made = answerNow(ApiError::of(statusOfException()).response());
    }
    {
      const std::scoped_lock lock(work->mutex);
      work->answer = std::move(made);
    }
    onNews();
  });
  return answer;
}

//===----------------------------------------------------------------------===//
// What there is
//===----------------------------------------------------------------------===//

/// It reaches nothing but this server, and no other page shows it.
HttpResponse Api::page() {
  return {.contentType = "text/html; charset=utf-8",
          .body = std::string(chatPage()),
          .headers = {{"Content-Security-Policy",
                       "default-src 'none'; style-src 'unsafe-inline'; "
                       "script-src 'unsafe-inline'; connect-src 'self'; "
                       "base-uri 'none'; form-action 'none'; "
                       "frame-ancestors 'none'"},
                      {"X-Content-Type-Options", "nosniff"},
                      {"Referrer-Policy", "no-referrer"},
                      {"Cache-Control", "no-cache"}}};
}

HttpResponse Api::health() const {
  const ServiceState now = state();
  if (now == ServiceState::Ready)
    return {.body = R"({"status":"ok"})"};
  const ServedModel *model = opened();
  const Status failure = model ? model->service->failure() : Status();
  return ApiError{503,
                  failure.ok() ? "the model is " + std::string(nameOf(now))
                               : failure.message(),
                  "server_error", std::string(nameOf(now))}
      .response();
}

HttpResponse Api::metrics() const {
  HttpResponse response{.contentType = "text/plain; version=0.0.4"};
  const ServedModel *model = opened();
  if (model) {
    const ServiceCounts service = model->service->counts();
    response.body = metricsText(&service, counts, options.names.front());
  } else {
    response.body = metricsText(nullptr, counts, options.names.front());
  }
  return response;
}

/// Of an adapter, or of the model without one, 0.
std::string Api::modelJson(int64_t adapter) const {
  const ModelConfig &config = served.files->config;
  const std::string &model = options.names.front();
  return jsonObject(
      {{"id",
        jsonText(adapter > 0
                     ? served.files->adapters[static_cast<size_t>(adapter - 1)]
                     : model)},
       {"object", jsonText("model")},
       {"created", jsonText(created)},
       {"owned_by", jsonText("kernelforge")},
       {"parent", adapter > 0 ? jsonText(model) : "null"},
       {"max_model_len", jsonText(served.service->contextLength())},
       {"meta", jsonObject({{"n_vocab", jsonText(config.vocabSize)},
                            {"n_ctx_train", jsonText(config.maxPositions)},
                            {"n_embd", jsonText(config.hiddenSize)}})}});
}

HttpResponse Api::models() const {
  std::string list = modelJson(0);
  for (size_t i = 1; i <= served.files->adapters.size(); ++i)
    list += "," + modelJson(static_cast<int64_t>(i));
  return {.body = jsonObject(
              {{"object", jsonText("list")}, {"data", "[" + list + "]"}})};
}

HttpResponse Api::model(std::string_view name) const {
  int64_t adapter = 0;
  if (std::optional<ApiError> error = findModel(std::string(name), adapter))
    return error->response();
  return {.body = modelJson(adapter)};
}

HttpResponse Api::props() const {
  const ChatConfig &chat = served.files->chat;
  return {
      .body = jsonObject(
          {{"default_generation_settings",
            jsonObject({{"n_ctx", jsonText(served.service->contextLength())}})},
           {"total_slots", jsonText(served.parallel)},
           {"model_alias", jsonText(options.names.front())},
           {"chat_template", jsonText(served.chatTemplate)},
           {"bos_token", jsonText(chat.bosToken)},
           {"eos_token", jsonText(chat.eosToken)},
           {"embeddings",
            served.noEmbeddings.ok()
                ? jsonObject(
                      {{"pooling", jsonText(nameOf(served.embedding.pooling))},
                       {"normalized", jsonText(served.embedding.normalizes)}})
                : "null"},
           {"modalities", R"({"vision":false,"audio":false})"},
           {"build_info", jsonText("kernelforge")}})};
}

/// Texts that are begun have the first places.
HttpResponse Api::slots() const {
  std::vector<TextState> texts = served.service->texts();
  std::erase_if(texts, [](const TextState &text) { return !text.isBegun; });
  std::vector<std::string> slots;
  for (int64_t i = 0; i < served.parallel; ++i) {
    const bool isUsed = static_cast<size_t>(i) < texts.size();
    std::vector<JsonMember> members = {
        {"id", jsonText(i)},
        {"n_ctx", jsonText(served.service->contextLength())},
        {"is_processing", jsonText(isUsed)}};
    if (isUsed) {
      const TextState &text = texts[static_cast<size_t>(i)];
      members.emplace_back("id_task", jsonText(text.number));
      members.emplace_back("n_prompt_tokens", jsonText(text.prompt));
      members.emplace_back("n_decoded", jsonText(text.generated));
    }
    slots.push_back(jsonObject(members));
  }
  return {.body = jsonArray(slots, [](const auto &slot) { return slot; })};
}
