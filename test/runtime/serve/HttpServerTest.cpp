//===- HttpServerTest.cpp - Connections, slow and broken ones -------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/serve/HttpServer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <new>
#include <thread>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

using namespace kf;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

/// What a test has its server say.
struct Script : HttpHandler {
  /// An answer whose pieces the test gives.
  struct Answer : HttpAnswer {
    explicit Answer(Script &script) : script(script) { ++script.alive; }
    ~Answer() override { --script.alive; }
    Piece take() override {
      const std::scoped_lock lock(script.mutex);
      ++script.taken;
      if (script.throws)
        throw std::bad_alloc();
      return std::exchange(script.piece, {});
    }
    std::string_view ping() const override { return ": ping\n\n"; }
    Script &script;
  };

  std::optional<HttpResponse> refuse(const HttpRequest &request) override {
    if (request.path == "/refused")
      return HttpResponse{.status = 401, .body = "no"};
    return std::nullopt;
  }
  void complete(const HttpRequest &request, HttpResponse &response) override {
    response.headers.emplace_back("Who", request.header("origin"));
  }
  std::unique_ptr<HttpAnswer> handle(HttpRequest request,
                                     std::function<void()> onNews) override {
    if (request.path == "/now")
      return answerNow({.body = request.method + " " + request.body});
    if (request.path == "/throws")
      throw std::bad_alloc();
    const std::scoped_lock lock(mutex);
    news = std::move(onNews);
    return std::make_unique<Answer>(*this);
  }

  /// Gives the answer something to send.
  void give(HttpAnswer::Piece next) {
    std::function<void()> tell;
    {
      const std::scoped_lock lock(mutex);
      piece = std::move(next);
      tell = news;
    }
    tell();
  }
  bool isAsked() {
    const std::scoped_lock lock(mutex);
    return news != nullptr;
  }

  std::mutex mutex;
  HttpAnswer::Piece piece;
  std::function<void()> news;
  std::atomic<int> alive = 0, taken = 0;
  std::atomic<bool> throws = false; ///< take() finds no memory
};

class Client {
public:
  explicit Client(const std::string &url) {
    handle = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port =
        htons(static_cast<uint16_t>(std::stoi(url.substr(url.rfind(':') + 1))));
    EXPECT_EQ(::connect(handle, reinterpret_cast<sockaddr *>(&address),
                        sizeof(address)),
              0);
    // What never comes fails a test and does not hold it up.
    const timeval most = {.tv_sec = 240, .tv_usec = 0};
    EXPECT_EQ(
        ::setsockopt(handle, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most)), 0);
  }
  ~Client() { close(); }
  void close() {
    if (handle >= 0)
      ::close(std::exchange(handle, -1));
  }
  void send(std::string_view text) {
    (void)!::send(handle, text.data(), text.size(), MSG_NOSIGNAL);
  }
  /// What comes, to the end of `end` or until the server closes.
  std::string read(std::string_view end = "\n\n\n") {
    char buffer[4096];
    size_t at = 0;
    while ((at = ahead.find(end)) == std::string::npos) {
      ssize_t count = 0;
      do // with its time limit, it ends where the process was stopped meanwhile
        count = ::recv(handle, buffer, sizeof(buffer), 0);
      while (count < 0 && errno == EINTR);
      EXPECT_FALSE(count < 0 && errno == EAGAIN) << "nothing comes";
      if (count <= 0)
        return std::exchange(ahead, {});
      ahead.append(buffer, static_cast<size_t>(count));
    }
    const std::string text = ahead.substr(0, at + end.size());
    ahead.erase(0, text.size());
    return text;
  }

private:
  int handle = -1;
  std::string ahead; ///< came behind what read() returned
};

struct Running {
  explicit Running(HttpServerOptions options = {}) {
    options.port = 0;
    server = HttpServer::create(options, script).take();
    thread = std::thread([this] { server->run(); });
  }
  ~Running() {
    server->stop();
    thread.join();
    EXPECT_EQ(script.alive, 0);
  }
  template <typename Fn> void await(Fn condition) {
    const auto end = Clock::now() + 240s;
    while (!condition() && Clock::now() < end)
      std::this_thread::sleep_for(1ms);
    EXPECT_TRUE(condition());
  }

  Script script;
  std::unique_ptr<HttpServer> server;
  std::thread thread;
};

const std::string kHost = " HTTP/1.1\r\nHost: a\r\n";

TEST(HttpServer, KeepsConnections) {
  Running running;
  Client client(running.server->url());
  for (int i = 0; i < 3; ++i) {
    client.send("POST /now" + kHost + "Content-Length: 3\r\n\r\nabc");
    EXPECT_TRUE(
        client.read("POST abc")
            .ends_with(
                "Content-Length: 8\r\nConnection: keep-alive\r\n\r\nPOST abc"));
  }
  // Three at once, and the begin of a fourth.
  const std::string get = "GET /now" + kHost + "\r\n";
  client.send(get + get + get + get.substr(0, 7));
  std::string text;
  while (!text.ends_with("GET ") || std::ranges::count(text, '\n') < 15)
    text += client.read("T ");
  EXPECT_EQ(text.rfind("HTTP/1.1 200 OK"), 2 * text.size() / 3) << text;
  client.send("w HTTP/1.0\r\n\r\n");
  EXPECT_NE(client.read().find("Connection: close"), std::string::npos);
}

TEST(HttpServer, StreamsAndPings) {
  Running running({.pingTime = 50ms});
  Client client(running.server->url());
  client.send("GET /stream" + kHost + "\r\n");
  running.await([&] { return running.script.isAsked(); });
  running.script.give({.head = HttpResponse{.contentType = "a"}, .body = "x"});
  EXPECT_TRUE(client.read("x\r\n").ends_with(
      "Transfer-Encoding: chunked\r\nConnection: "
      "keep-alive\r\n\r\n1\r\nx\r\n"));
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(client.read("ping\n\n\r\n"), "8\r\n: ping\n\n\r\n");
  running.script.give({.body = "end", .isLast = true});
  EXPECT_TRUE(client.read("0\r\n\r\n").ends_with("3\r\nend\r\n0\r\n\r\n"));
  running.await([&] { return running.script.alive == 0; });
}

/// By themselves, not by what is sent to them, or by a time that is over.
TEST(HttpServer, NoticesClientsThatGo) {
  Running running({.idleTime = 1h,
                   .headerTime = 1h,
                   .bodyTime = 1h,
                   .sendTime = 1h,
                   .pingTime = 1h});
  for (int i = 0; i < 5; ++i) {
    Client client(running.server->url());
    client.send("GET /silent" + kHost + "\r\n");
    running.await([&] { return running.script.alive == 1; });
    client.close();
    running.await([&] { return running.script.alive == 0; });
  }
  // News of what is gone harms nobody.
  running.script.give({.isLast = true});
}

/// A slow reader is given up after a time in which it takes nothing; until then
/// its answer is not asked for more than was sent, and others are answered.
TEST(HttpServer, SlowReadersAreBounded) {
  Running running({.sendTime = 300ms});
  Client slow(running.server->url());
  slow.send("GET /slow" + kHost + "\r\n");
  // Once there was nothing, so that the next one has all of it.
  running.await([&] { return running.script.taken >= 1; });
  running.script.give(
      {.head = HttpResponse{}, .body = std::string(64 << 20, 'a')});
  running.await([&] { return running.script.taken >= 2; });
  const int taken = running.script.taken;
  for (int i = 0; i < 10; ++i)
    running.script.give({.body = "more"});
  Client other(running.server->url());
  other.send("GET /now" + kHost + "\r\n");
  EXPECT_NE(other.read("GET ").find("200 OK"), std::string::npos);
  EXPECT_EQ(running.script.taken, taken);
  running.await([&] { return running.script.alive == 0; });
}

TEST(HttpServer, EndsWhatTakesTooLong) {
  {
    Running running({.idleTime = 150ms});
    Client idle(running.server->url());
    EXPECT_EQ(idle.read(), "");
  }
  Running running({.headerTime = 100ms, .bodyTime = 200ms});
  Client header(running.server->url());
  header.send("GET /now HT");
  EXPECT_TRUE(header.read().starts_with("HTTP/1.1 408 Request Timeout"));
  // Drop by drop is no faster.
  Client drops(running.server->url());
  std::thread dropping([&] {
    for (int i = 0; i < 30; ++i) {
      drops.send("G");
      std::this_thread::sleep_for(10ms);
    }
  });
  EXPECT_TRUE(drops.read().starts_with("HTTP/1.1 408"));
  dropping.join();
  Client body(running.server->url());
  body.send("POST /now" + kHost + "Content-Length: 10\r\n\r\nabc");
  EXPECT_TRUE(body.read().starts_with("HTTP/1.1 408"));
}

TEST(HttpServer, RefusesBeforeTheBody) {
  Running running({.mostBodyBytes = 100});
  // The client sees the answer, though nobody reads what it sends.
  for (const char *path : {"/refused", "/now"}) {
    Client client(running.server->url());
    client.send("POST " + std::string(path) + kHost +
                "Content-Length: 4000000\r\n\r\n" + std::string(4000000, 'a'));
    const std::string answer = client.read();
    EXPECT_TRUE(answer.starts_with(
        *path == '/' && path[1] == 'r' ? "HTTP/1.1 401 " : "HTTP/1.1 413 "))
        << answer.substr(0, 100);
    EXPECT_NE(answer.find("Connection: close"), std::string::npos);
  }
  Client expecting(running.server->url());
  expecting.send("POST /refused" + kHost +
                 "Expect: 100-continue\r\nContent-Length: 10\r\n\r\n");
  EXPECT_TRUE(expecting.read("no").starts_with("HTTP/1.1 401"));
}

/// What the server answers by itself has what the handler adds, who knows the
/// headers that came.
TEST(HttpServer, CompletesItsOwnAnswers) {
  const std::string get = "GET /now" + kHost, post = "POST /now" + kHost;
  const std::string origin = "Origin:  me \r\n", many(2000, 'a');
  HttpServerOptions options = {.mostHeaderBytes = 1000, .mostBodyBytes = 10};
  Running patient(options);
  options.headerTime = options.bodyTime = 200ms;
  Running hasty(options);
  const std::pair<std::string, int> cases[] = {
      {"no request\r\n" + origin + "\r\n", 400},
      {get + origin + "A : b\r\n\r\n", 400},
      {get + "A : b\r\n" + origin + "\r\n", 400},
      {get + origin + "Host: b\r\n\r\n", 400},
      {get + origin + "A: " + many + "\r\n\r\n", 431},
      {post + origin + "Content-Length: 2000\r\n\r\n" + many, 413},
      {post + origin + "Transfer-Encoding: chunked\r\n\r\nx\r\n", 400},
      {get + origin + "A: b", 408},
      {post + origin + "Content-Length: 9\r\n\r\nabc", 408}};
  for (const auto &[request, status] : cases) {
    Client client((status == 408 ? hasty : patient).server->url());
    client.send(request);
    const std::string answer = client.read();
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 " + std::to_string(status)))
        << request << answer;
    EXPECT_NE(answer.find("\r\nWho: me\r\n"), std::string::npos)
        << request << answer;
  }
}

/// One connection too many is told so, whoever it is of.
TEST(HttpServer, TellsWhoIsTooMany) {
  Running running({.mostConnections = 1, .headerTime = 200ms});
  Client held(running.server->url());
  held.send("GET /stream" + kHost + "\r\n");
  running.await([&] { return running.script.isAsked(); });
  for (const std::string &request :
       {"GET /now" + kHost + "Origin: me\r\n\r\n",
        "GET /now" + kHost + "Origin: me\r\n", std::string()}) {
    const char *who = request.empty() ? "Who: \r\n" : "Who: me\r\n";
    std::string answer;
    // Where this thread got no time, the request came too late: once more.
    for (int i = 0; i < 20 && answer.find(who) == std::string::npos; ++i) {
      Client client(running.server->url());
      client.send(request);
      answer = client.read();
      EXPECT_TRUE(answer.starts_with("HTTP/1.1 503 ")) << answer;
    }
    EXPECT_NE(answer.find(who), std::string::npos) << answer;
  }
}

/// What is no part of a body has an end, too.
TEST(HttpServer, BoundsWhatIsAroundChunks) {
  Running running;
  const std::string head =
      "POST /now" + kHost + "Transfer-Encoding: chunked\r\n\r\n";
  const std::string many(1 << 20, 'a');
  for (const std::string &rest :
       {"1;" + many, "1;a=\"" + many, "0\r\n" + many, "0\r\na: " + many}) {
    Client client(running.server->url());
    client.send(head + rest);
    EXPECT_TRUE(client.read().starts_with("HTTP/1.1 400 "))
        << rest.substr(0, 10);
  }
  // Short ones are read.
  Client client(running.server->url());
  client.send(head + "1;a=b\r\nx\r\n0\r\na: b\r\n\r\n");
  EXPECT_NE(client.read("POST x").find("200 OK"), std::string::npos);
}

/// What one request said is not said of the next one.
TEST(HttpServer, ForgetsTheLastRequest) {
  Running running;
  Client client(running.server->url());
  client.send("HEAD /now" + kHost + "\r\n");
  EXPECT_NE(client.read("\r\n\r\n").find("200 OK"), std::string::npos);
  client.send("what is this\r\n\r\n");
  const std::string answer = client.read();
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 400 ")) << answer;
  EXPECT_NE(answer.find("{\"error\""), std::string::npos) << answer;
}

/// Whose answer cannot be made or taken for want of memory is let go, and the
/// others go on.
TEST(HttpServer, ClosesWhatThrows) {
  Running running;
  Client made(running.server->url());
  made.send("GET /throws" + kHost + "\r\n");
  EXPECT_EQ(made.read(), "");
  Client begun(running.server->url());
  begun.send("GET /stream" + kHost + "\r\n");
  running.await([&] { return running.script.isAsked(); });
  running.script.give({.head = HttpResponse{}, .body = "x"});
  EXPECT_NE(begun.read("x\r\n").find("200 OK"), std::string::npos);
  running.script.throws = true;
  running.script.give({.body = "y"});
  EXPECT_EQ(begun.read(), "");
  running.await([&] { return running.script.alive == 0; });
  Client first(running.server->url());
  first.send("GET /stream" + kHost + "\r\n");
  EXPECT_EQ(first.read(), "");
  Client other(running.server->url());
  other.send("GET /now" + kHost + "\r\n");
  EXPECT_NE(other.read("GET ").find("200 OK"), std::string::npos);
}

TEST(HttpServer, StopsAfterAnswers) {
  Script script;
  auto server = HttpServer::create({.port = 0}, script).take();
  std::thread thread([&] { server->run(); });
  Client idle(server->url()), busy(server->url());
  busy.send("GET /slow" + kHost + "\r\n");
  while (!script.isAsked())
    std::this_thread::sleep_for(1ms);
  server->stop(Clock::now() + 1h);
  EXPECT_EQ(idle.read(), "");
  script.give({.head = HttpResponse{}, .body = "end", .isLast = true});
  const std::string answer = busy.read();
  EXPECT_TRUE(answer.ends_with("Connection: close\r\n\r\nend")) << answer;
  thread.join();
  // Or at once.
  Running running;
  Client client(running.server->url());
  client.send("GET /slow" + kHost + "\r\n");
  running.await([&] { return running.script.alive == 1; });
}

TEST(HttpServer, PortsThatAreTaken) {
  Running running;
  HttpServerOptions options;
  const std::string &url = running.server->url();
  options.port = static_cast<uint16_t>(std::stoi(url.substr(17)));
  auto second = HttpServer::create(options, running.script);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), StatusCode::Unavailable);
  EXPECT_TRUE(running.server->isLocal());
  EXPECT_EQ(HttpServer::create({.host = "no such name"}, running.script)
                .status()
                .code(),
            StatusCode::NotFound);
}

} // namespace
