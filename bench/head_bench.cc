// head_bench: our parser of request heads beside Beast's, on the same bytes, in the same run.
//
// Workloads
//   browser  A browser's request for a page, about 600 bytes, 14 fields.
//   tool     A command-line tool's, about 80 bytes, 3 fields.
// Each head is parsed and its framing decided, again and again, as a server does it: ours into a RequestHead that is
// kept, Beast's with a parser made anew each time, which is how Beast is used. "Alone" is our parsing without deciding.
//
// Method: rounds in which each peer has one short window; medians of the rounds. `--smoke` makes them tiny.
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>

#include "facetheory/http/body_framing.h"
#include "facetheory/http/message_head.h"

#include "bench/measure.h"

namespace facetheory::bench {
namespace {

constexpr std::string_view kBrowser =
    "GET /news/2026/a-longer-slug-for-a-page?page=2&order=desc HTTP/1.1\r\n"
    "Host: www.example.com\r\n"
    "Connection: keep-alive\r\n"
    "sec-ch-ua: \"Chromium\";v=\"128\", \"Not;A=Brand\";v=\"24\"\r\n"
    "sec-ch-ua-mobile: ?0\r\n"
    "sec-ch-ua-platform: \"Linux\"\r\n"
    "Upgrade-Insecure-Requests: 1\r\n"
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/128.0.0.0 "
    "Safari/537.36\r\n"
    "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8\r\n"
    "Sec-Fetch-Site: same-origin\r\n"
    "Sec-Fetch-Mode: navigate\r\n"
    "Sec-Fetch-Dest: document\r\n"
    "Referer: https://www.example.com/news\r\n"
    "Accept-Encoding: gzip, deflate, br, zstd\r\n"
    "Accept-Language: en-GB,en;q=0.9\r\n"
    "\r\n";

constexpr std::string_view kTool =
    "GET / HTTP/1.1\r\nHost: www.example.com\r\nUser-Agent: curl/7.88.1\r\nAccept: */*\r\n\r\n";

bool parse_ours(std::string_view bytes, RequestHead& head) {
  return parse_request_head(bytes, 32768, head).state == HeadState::complete && request_framing(head) &&
         check_host(head) && keeps_alive(head);
}

bool parse_with_beast(std::string_view bytes) {
  boost::beast::http::request_parser<boost::beast::http::empty_body> parser;
  boost::system::error_code failed;
  parser.put(boost::asio::buffer(bytes), failed);
  return !failed && parser.is_header_done() && parser.keep_alive();
}

// Nanoseconds for each call; negative: one went wrong.
template <typename Parse>
double measure(int times, Parse parse) {
  const auto begin = std::chrono::steady_clock::now();
  bool good = true;
  for (int i = 0; i < times; ++i)
    good = parse() && good;
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
  return good ? took.count() / times : -1;
}

bool compare(const char* name, std::string_view head, int rounds, int times) {
  std::vector<double> ours;
  std::vector<double> alone;
  std::vector<double> beast;
  RequestHead into;
  for (int i = 0; i <= rounds; ++i) {
    const double our_time = measure(times, [&] { return parse_ours(head, into); });
    const double alone_time =
        measure(times, [&] { return parse_request_head(head, 32768, into).state == HeadState::complete; });
    const double beast_time = measure(times, [&] { return parse_with_beast(head); });
    if (our_time < 0 || alone_time < 0 || beast_time < 0) return false;
    if (i == 0) continue;  // Warms up.
    ours.push_back(our_time);
    alone.push_back(alone_time);
    beast.push_back(beast_time);
  }
  std::printf("%-8s %4zu bytes   ours %6.0f ns (alone %.0f)   beast %6.0f ns   %.1f times as fast\n", name,
              head.size(), median(ours), median(alone), median(beast), median(beast) / median(ours));
  return true;
}

}  // namespace
}  // namespace facetheory::bench

int main(int argc, char** argv) {
  using namespace facetheory::bench;
  const bool smoke = argc == 2 && std::strcmp(argv[1], "--smoke") == 0;
  if (argc > 1 && !smoke) {
    std::fprintf(stderr, "usage: head_bench [--smoke]\n");
    return 2;
  }
  const int rounds = smoke ? 1 : 21;
  const int times = smoke ? 10 : 50000;
  const bool good = compare("browser", kBrowser, rounds, times) && compare("tool", kTool, rounds, times);
  if (!good) std::fprintf(stderr, "head_bench: a head was not understood\n");
  return good ? 0 : 1;
}
