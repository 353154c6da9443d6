//===- HttpServer.cpp - HTTP/1.1 on a socket ------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The only file that includes Boost.Beast, which takes long to compile.
//
//===----------------------------------------------------------------------===//

#include "runtime/serve/HttpServer.h"

#include "runtime/core/Exceptions.h"
#include "runtime/core/Quote.h"
#include "runtime/serve/ApiError.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>

#include <csignal>
#include <set>
#include <utility>

using namespace kf;
namespace net = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;
using net::ip::tcp;
using Clock = std::chrono::steady_clock;

namespace {

/// Of a connection's input that is read before it is asked for: requests that
/// follow the one that is answered.
constexpr size_t kMostAhead = 64 << 10;
/// Of a body that nobody wants, read so that the client sees its answer.
constexpr uint64_t kMostDrained = 64 << 20;
constexpr std::chrono::seconds kDrainTime(3);
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
/// Connections past the most that are told why they are closed.
constexpr size_t kMostRefused = 64;

std::string lowerCase(std::string_view text) {
  std::string lower(text);
  for (char &c : lower)
    if (c >= 'A' && c <= 'Z')
      c = static_cast<char>(c + 32);
  return lower;
}

} // namespace

namespace kf {
namespace {
class Connection;
}

class HttpServer::Loop {
public:
  Loop(const HttpServerOptions &options, HttpHandler &handler)
      : options(options), handler(handler), acceptor(context), signals(context),
        acceptTimer(context), stopTimer(context) {}

  Status listen();
  void accept();
  void acceptLater();
  void onAccept(error_code error, tcp::socket socket);
  void waitForSignal(std::function<void()> onSignal);
  void forgetSignals();
  void beginStop();
  void closeAll();

  const HttpServerOptions options;
  HttpHandler &handler;
  net::io_context context{1};
  tcp::acceptor acceptor;
  net::signal_set signals;
  net::steady_timer acceptTimer, stopTimer;
  std::set<Connection *> connections;
  std::string url;
  bool isLocal = false;
  bool isAccepting = false; ///< or waits for when to go on
  bool isStopping = false;
  std::optional<Clock::time_point> deadline; ///< of stop()
};

namespace {

class Connection : public std::enable_shared_from_this<Connection> {
public:
  Connection(HttpServer::Loop &loop, tcp::socket socket)
      : loop(loop), socket(std::move(socket)), timer(loop.context),
        buffer(loop.options.mostHeaderBytes + 2 * kMostAhead) {
    loop.connections.insert(this);
  }
  ~Connection() {
    loop.connections.erase(this);
    if (loop.isStopping && loop.connections.empty()) {
      loop.stopTimer.cancel();
      loop.forgetSignals();
    }
  }

  void start(bool isRefused) {
    guarded([&] {
      error_code ignored;
      socket.set_option(tcp::no_delay(true), ignored);
      this->isRefused = isRefused;
      if (isRefused)
        readHeader(); // whom it comes from decides on what is in the answer
      else
        awaitRequest();
    });
  }

  /// Ends it where it has no request; else after its answer.
  void endSoon() {
    if (state == State::Idle)
      close();
  }

  void close() {
    state = State::Closed;
    answer.reset();
    timer.cancel();
    error_code ignored;
    socket.close(ignored);
  }

private:
  enum class State {
    Idle,      ///< waits for a request's first byte
    Header,    ///< reads its head
    Body,      ///< reads the rest
    Answering, ///< waits for the answer, or sends it
    Draining,  ///< has answered, and reads what nobody wants
    Closed
  };

  /// Calls `fn` unless the connection is closed. What is thrown, for want of
  /// memory, closes it: it may have been in the middle of an answer.
  template <typename Fn> void guarded(Fn fn) {
    if (state == State::Closed)
      return;
    try {
      fn();
    } catch (...) {
      close();
    }
  }

  // Each operation that goes on owns the connection.
  template <typename Fn> auto bind(Fn fn) {
    return [self = shared_from_this(), fn](auto... arguments) {
      self->guarded([&] { ((*self).*fn)(arguments...); });
    };
  }

  //===--------------------------------------------------------------------===//
  // Requests
  //===--------------------------------------------------------------------===//

  void awaitRequest() {
    if (loop.isStopping)
      return close();
    state = State::Idle;
    output = std::string(); // a long answer's memory is of no use any more
    arm(loop.options.idleTime);
    if (buffer.size() == 0)
      return watch();
    // The next request is there, at least its begin.
    if (!isWatching)
      return readHeader();
    error_code ignored;
    socket.cancel(ignored);
  }

  void readHeader() {
    state = State::Header;
    request = HttpRequest();
    isHead = isOld = expectsContinue = false; // it may never be known
    parser.emplace();
    parser->header_limit(loop.options.mostHeaderBytes);
    parser->body_limit(loop.options.mostBodyBytes);
    const Clock::duration time = loop.options.headerTime;
    arm(isRefused ? std::min<Clock::duration>(time, kDrainTime) : time);
    http::async_read_header(socket, buffer, *parser,
                            bind(&Connection::onHeader));
  }

  void onHeader(error_code error, size_t) {
    if (state != State::Header)
      return; // it was too late
    if (error && error != http::error::body_limit) {
      takeHeaders();
      if (error != http::error::header_limit)
        return refuseOrClose(error);
      return refuse({431,
                     "the request's line and headers have more than " +
                         std::to_string(loop.options.mostHeaderBytes) +
                         " bytes",
                     "invalid_request_error", "headers_too_large"});
    }
    takeHead();
    if (isRefused)
      return refuseConnection();
    if (std::optional<ApiError> wrong = checkHead())
      return refuse(*wrong);
    if (std::optional<HttpResponse> refused = loop.handler.refuse(request)) {
      keepsAlive &= parser->is_done(); // a body is not waited for
      return answerWith(answerNow(std::move(*refused)));
    }
    if (error == http::error::body_limit)
      return refuseBody();
    state = State::Body;
    arm(loop.options.bodyTime);
    if (expectsContinue && !parser->is_done()) {
      // Not of `output`, which has an answer in it where this takes too long.
      net::async_write(socket, net::buffer(kContinue),
                       bind(&Connection::onContinue));
      return;
    }
    readBody();
  }

  void onContinue(error_code error, size_t) {
    if (state != State::Body)
      return; // it was too late
    if (error)
      return close();
    readBody();
  }

  void readBody() {
    http::async_read(socket, buffer, *parser, bind(&Connection::onBody));
  }

  void onBody(error_code error, size_t) {
    if (state != State::Body)
      return; // it was too late
    if (error == http::error::body_limit)
      return refuseBody();
    if (error)
      return refuseOrClose(error);
    request.body = std::move(parser->get().body());
    // Called by any thread, maybe after the end of the connection.
    std::weak_ptr<Connection> weak = weak_from_this();
    auto onNews = [&context = loop.context, weak] {
      try {
        net::post(context, [weak] {
          if (const auto self = weak.lock())
            self->guarded([&] { self->pump(); });
        });
      } catch (...) {
        // No memory: the timer looks for news, too.
      }
    };
    answerWith(loop.handler.handle(std::move(request), std::move(onNews)));
  }

  /// The headers that the parser knows, and those in what it has not taken.
  void takeHeaders() {
    takeParsedHeaders();
    const auto rest = buffer.data();
    request.addHeaderLines(
        std::string_view(static_cast<const char *>(rest.data()), rest.size()));
  }

  void takeParsedHeaders() {
    auto view = [](boost::beast::string_view text) {
      return std::string_view(text.data(), text.size());
    };
    for (const auto &field : parser->get())
      request.addHeader(view(field.name_string()), view(field.value()));
  }

  /// What the handler sees of the request.
  void takeHead() {
    const auto &message = parser->get();
    request.method = std::string(message.method_string());
    takeParsedHeaders();
    keepsAlive = message.keep_alive();
    isOld = message.version() < 11;
    isHead = request.method == "HEAD";
    expectsContinue = lowerCase(request.header("expect")) == "100-continue";
  }

  std::optional<ApiError> checkHead() {
    const auto &message = parser->get();
    if (message.version() != 10 && message.version() != 11)
      return ApiError{505, "HTTP/1.1 is spoken here", "invalid_request_error",
                      "http_version"};
    const auto hosts = message.equal_range(http::field::host);
    const auto count = std::distance(hosts.first, hosts.second);
    if (count > 1 || (count == 0 && !isOld))
      return ApiError{400, "one Host header is expected",
                      "invalid_request_error", "bad_request"};
    const std::string coding = lowerCase(request.header("transfer-encoding"));
    if (!coding.empty() && coding != "chunked")
      return ApiError{501, "Transfer-Encoding may be 'chunked' alone",
                      "invalid_request_error", "transfer_encoding"};
    if (!request.header("content-encoding").empty() &&
        request.header("content-encoding") != "identity")
      return ApiError{415, "bodies are sent as they are, not compressed",
                      "invalid_request_error", "content_encoding"};
    if (!request.header("expect").empty() && !expectsContinue)
      return ApiError{417, "Expect may be '100-continue' alone",
                      "invalid_request_error", "expect"};
    std::optional<std::string> path = pathOf(
        std::string_view(message.target().data(), message.target().size()));
    if (!path)
      return ApiError{400, "the request's target is no path",
                      "invalid_request_error", "bad_request"};
    request.path = std::move(*path);
    return std::nullopt;
  }

  //===--------------------------------------------------------------------===//
  // Answers
  //===--------------------------------------------------------------------===//

  void refuseBody() {
    refuse({413,
            "the body has more than " +
                std::to_string(loop.options.mostBodyBytes) + " bytes",
            "invalid_request_error", "body_too_large"});
  }

  /// For a request that could not be read to its end.
  void refuseOrClose(error_code error) {
    const bool isMalformed =
        error.category() == http::make_error_code(http::error{}).category() &&
        error != http::error::end_of_stream &&
        error != http::error::partial_message;
    if (!isMalformed)
      return close();
    if (error == http::error::buffer_overflow)
      return refuse({400, "the extension of a chunk or the trailer is too long",
                     "invalid_request_error", "bad_request"});
    refuse({400, "the request is no HTTP/1.1: " + error.message(),
            "invalid_request_error", "bad_request"});
  }

  void refuseConnection() {
    refuse({503, "too many connections; try again later", "server_error",
            "overloaded"});
  }

  /// Answers an error, which ends the connection.
  void refuse(const ApiError &error) {
    keepsAlive = false;
    isDraining = true;
    HttpResponse response = error.response();
    loop.handler.complete(request, response);
    answerWith(answerNow(std::move(response)));
  }

  void answerWith(std::unique_ptr<HttpAnswer> made) {
    state = State::Answering;
    timer.cancel();
    answer = std::move(made);
    isLastTaken = false;
    isDraining |= !keepsAlive && parser && !parser->is_done();
    if (!isDraining)
      watch();
    pump();
  }

  /// Sends what the answer has.
  void pump() {
    if (state != State::Answering || isSending || isLastTaken)
      return;
    HttpAnswer::Piece piece = answer->take();
    isLastTaken = piece.isLast;
    if (piece.head) {
      keepsAlive &= !loop.isStopping;
      framing = piece.isLast ? HttpFraming::Length
                : isOld      ? HttpFraming::Close
                             : HttpFraming::Chunked;
      if (framing == HttpFraming::Close)
        keepsAlive = false;
      output += headText(*piece.head, framing, piece.body.size(), keepsAlive);
    }
    if (isHead)
      piece.body.clear();
    if (framing != HttpFraming::Chunked || isHead) {
      output += piece.body;
    } else {
      if (!piece.body.empty())
        output += chunkText(piece.body);
      if (isLastTaken)
        output += "0\r\n\r\n";
    }
    if (!output.empty())
      return send();
    if (isLastTaken)
      return finish();
    arm(loop.options.pingTime);
  }

  void send() {
    isSending = true;
    arm(loop.options.sendTime);
    socket.async_write_some(net::buffer(output), bind(&Connection::onSent));
  }

  void onSent(error_code error, size_t count) {
    isSending = false;
    if (error)
      return close();
    output.erase(0, count);
    if (!output.empty())
      return send();
    if (isLastTaken)
      return finish();
    pump();
  }

  void finish() {
    answer.reset();
    timer.cancel();
    if (keepsAlive)
      return awaitRequest();
    if (!isDraining)
      return close();
    // Closing at once would have the system tell the client to forget what it
    // has not read yet.
    state = State::Draining;
    error_code ignored;
    socket.shutdown(tcp::socket::shutdown_send, ignored);
    arm(kDrainTime);
    drain();
  }

  void drain() {
    // Not into `buffer`, which what was too late may be reading into.
    unwanted.resize(kMostAhead);
    socket.async_read_some(net::buffer(unwanted), bind(&Connection::onDrained));
  }

  void onDrained(error_code error, size_t count) {
    drained += count;
    if (error || drained > kMostDrained)
      return close();
    drain();
  }

  //===--------------------------------------------------------------------===//
  // Watching
  //===--------------------------------------------------------------------===//

  /// Reads on, to learn of the client's end or of its next request.
  void watch() {
    if (isWatching || buffer.size() >= kMostAhead)
      return;
    isWatching = true;
    socket.async_read_some(buffer.prepare(kMostAhead - buffer.size()),
                           bind(&Connection::onRead));
  }

  void onRead(error_code error, size_t count) {
    isWatching = false;
    // awaitRequest() ends it where there is a request by now.
    if (error && (error != net::error::operation_aborted ||
                  state != State::Idle || buffer.size() == 0))
      return close();
    buffer.commit(count);
    if (state == State::Idle)
      return readHeader();
    watch();
  }

  /// Has onTime() called after `time`, unless it is called again before.
  void arm(Clock::duration time) {
    timer.expires_after(time);
    timer.async_wait([self = shared_from_this()](error_code error) {
      // What has been armed again meanwhile is not due.
      if (!error && self->timer.expiry() <= Clock::now())
        self->guarded([&] { self->onTime(); });
    });
  }

  void onTime() {
    if (state == State::Header || state == State::Body) {
      if (state == State::Header)
        takeHeaders();
      error_code ignored;
      socket.cancel(ignored);
      if (isRefused)
        return refuseConnection();
      return refuse({408, "the request took too long to arrive",
                     "invalid_request_error", "request_timeout"});
    }
    if (state != State::Answering || isSending)
      return close();
    pump();
    if (isSending || state != State::Answering)
      return;
    output = answer->ping();
    if (output.empty())
      return;
    if (framing == HttpFraming::Chunked)
      output = chunkText(output);
    send();
  }

  HttpServer::Loop &loop;
  tcp::socket socket;
  net::steady_timer timer;
  /// What is read of requests, as far as the parser has not taken it: a head,
  /// or the extension of a chunk, has to fit in whole.
  boost::beast::flat_buffer buffer;
  std::optional<http::request_parser<http::string_body>> parser;
  State state = State::Idle;

  HttpRequest request;
  bool isRefused = false; ///< there are too many
  bool keepsAlive = false, isOld = false, isHead = false;
  bool expectsContinue = false;

  std::unique_ptr<HttpAnswer> answer;
  HttpFraming framing = HttpFraming::Length;
  std::string output; ///< that is being sent
  bool isLastTaken = false, isSending = false, isWatching = false;
  bool isDraining = false; ///< reads on after the answer, until it is closed
  std::vector<char> unwanted;
  uint64_t drained = 0;
};

} // namespace

Status HttpServer::Loop::listen() {
  error_code error;
  tcp::resolver resolver(context);
  const auto found = resolver.resolve(
      options.host, std::to_string(options.port),
      tcp::resolver::passive | tcp::resolver::numeric_service, error);
  if (error)
    return Status::error("there is no address of " + inQuotes(options.host) +
                             " to listen on: " + error.message(),
                         StatusCode::NotFound);
  const tcp::endpoint endpoint = found.begin()->endpoint();
  acceptor.open(endpoint.protocol(), error);
  if (!error)
    acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error)
    acceptor.bind(endpoint, error);
  if (!error)
    acceptor.listen(net::socket_base::max_listen_connections, error);
  if (error)
    return Status::error("cannot listen on port " +
                             std::to_string(options.port) + " of " +
                             inQuotes(options.host) + ": " + error.message() +
                             "; --port names another one, 0 one that is free",
                         StatusCode::Unavailable);
  isLocal = endpoint.address().is_loopback();
  const bool isSix = endpoint.address().is_v6();
  url = "http://" + (isSix ? "[" : std::string()) +
        endpoint.address().to_string() + (isSix ? "]:" : ":") +
        std::to_string(acceptor.local_endpoint().port());
  return Status();
}

void HttpServer::Loop::accept() {
  acceptor.async_accept([this](error_code error, tcp::socket socket) {
    isAccepting = false;
    if (!isStopping)
      onAccept(error, std::move(socket));
  });
  isAccepting = true;
}

void HttpServer::Loop::onAccept(error_code error, tcp::socket socket) {
  // No descriptors are left, mostly: later there may be some.
  if (error)
    return acceptLater();
  // First of all, so that nothing of this connection ends it.
  accept();
  const bool isFull = connections.size() >= options.mostConnections;
  // Those that are told so are not many, either.
  if (connections.size() < options.mostConnections + kMostRefused)
    std::make_shared<Connection>(*this, std::move(socket))->start(isFull);
}

void HttpServer::Loop::acceptLater() {
  acceptTimer.expires_after(std::chrono::milliseconds(100));
  acceptTimer.async_wait([this](error_code) {
    isAccepting = false;
    if (!isStopping)
      accept();
  });
  isAccepting = true;
}

void HttpServer::Loop::waitForSignal(std::function<void()> onSignal) {
  signals.async_wait([this, onSignal](error_code error, int) {
    if (error)
      return;
    onSignal();
    // Another one, which may be here by now, ends the process.
    signals.async_wait([this](error_code error, int number) {
      if (error)
        return;
      signals.clear(error);
      std::raise(number);
    });
  });
}

void HttpServer::Loop::forgetSignals() {
  error_code ignored;
  signals.clear(ignored);
  signals.cancel(ignored);
}

void HttpServer::Loop::beginStop() {
  isStopping = true;
  error_code ignored;
  acceptor.close(ignored);
  acceptTimer.cancel();
  for (Connection *connection : connections)
    connection->endSoon();
  if (connections.empty())
    return forgetSignals();
  stopTimer.expires_at(*deadline);
  stopTimer.async_wait([this](error_code error) {
    if (!error)
      closeAll();
  });
}

void HttpServer::Loop::closeAll() {
  for (Connection *connection : connections)
    connection->close();
}

HttpServer::HttpServer(std::unique_ptr<Loop> loop) : loop(std::move(loop)) {}
HttpServer::~HttpServer() = default;

Result<std::unique_ptr<HttpServer>>
HttpServer::create(const HttpServerOptions &options, HttpHandler &handler) {
  return catchExceptions([&]() -> Result<std::unique_ptr<HttpServer>> {
    auto loop = std::make_unique<Loop>(options, handler);
    KF_RETURN_IF_ERROR(loop->listen());
    return std::unique_ptr<HttpServer>(new HttpServer(std::move(loop)));
  });
}

const std::string &HttpServer::url() const { return loop->url; }
bool HttpServer::isLocal() const { return loop->isLocal; }

void HttpServer::catchSignals(std::initializer_list<int> signals,
                              std::function<void()> onSignal) {
  for (int signal : signals)
    loop->signals.add(signal);
  loop->waitForSignal(std::move(onSignal));
}

void HttpServer::run() {
  for (;;) {
    try {
      if (!loop->isAccepting && !loop->isStopping)
        loop->accept();
      loop->context.run();
      return;
    } catch (...) {
      // No memory for a connection that came, or to wait for the next one:
      // the others go on.
    }
  }
}

void HttpServer::stop(Clock::time_point deadline) {
  net::post(loop->context, [loop = loop.get(), deadline] {
    loop->deadline = std::min(loop->deadline.value_or(deadline), deadline);
    loop->beginStop();
  });
}

} // namespace kf
