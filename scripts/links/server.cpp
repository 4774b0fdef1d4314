// Is the demo's web shop: an HTTP server of four threads, each request of which is a span.
//     server COLLECTORS_PORT
// It prints the port that it listens at, and ends by SIGTERM.
#include <csignal>
#include <cstring>
#include <thread>

#if __has_include(<opentelemetry/trace/provider.h>) && !defined(WITHOUT_OPENTELEMETRY)
#include "sdk.hpp"
#define HAS_OPENTELEMETRY 1
#else
#include "otelprof.h"
#include "spans.hpp"
#endif

// --- the work of requests ---

namespace shop {

#define WORK __attribute__((noinline)) // each is a function of the profile

// Makes a picture smaller: this takes some milliseconds for any picture.
WORK unsigned scale_pixels(unsigned seed) {
    std::vector<unsigned> pixels(1 << 16, seed);
    for (unsigned round = 0; round < 250; round++)
        for (size_t i = 1; i + 1 < pixels.size(); i++)
            pixels[i] = (pixels[i - 1] + 2 * pixels[i] + pixels[i + 1] + round) / 4 * 3;
    return pixels[pixels.size() / 2];
}

WORK unsigned hash_receipt(const std::string &order) {
    unsigned hash = 2166136261U;
    for (unsigned round = 0; round < 200000; round++)
        for (const char c : order)
            hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
    return hash;
}

// Tries every length for each star: fast for most users' patterns.
WORK bool wildcard_match(const char *pattern, const char *text) {
    if (*pattern == '*')
        return wildcard_match(pattern + 1, text) || (*text && wildcard_match(pattern, text + 1));
    if (*pattern && *pattern == *text)
        return wildcard_match(pattern + 1, text + 1);
    return !*pattern && !*text;
}

WORK unsigned find_products(const std::string &pattern) {
    unsigned found = 0;
    for (unsigned i = 0; i < 2000; i++)
        found += wildcard_match(pattern.c_str(), ("lamp " + std::to_string(i)).c_str());
    return found + wildcard_match(pattern.c_str(), std::string(80, 'a').c_str());
}

unsigned answer(const std::string &path, const std::string &query) {
    if (path == "/search")
        return find_products(query);
    return path == "/checkout" ? hash_receipt(query) : scale_pixels(static_cast<unsigned>(query.size()));
}

} // namespace shop

// --- a request is a span ---

#ifdef HAS_OPENTELEMETRY

namespace trace = opentelemetry::trace;

unsigned serve(const std::string &path, const std::string &query) {
    static const auto tracer = trace::Provider::GetTracerProvider()->GetTracer("shop");
    const auto span = tracer->StartSpan("GET " + path, {{"url.path", path}, {"url.query", query}});
    const trace::Scope scope(span);
    return shop::answer(path, query);
}

#else

unsigned serve(const std::string &path, const std::string &query) {
    spans::Finished span;
    span.name = "GET " + path;
    span.attributes = {{"url.path", path}, {"url.query", query}};
    spans::fill_randomly(span.trace_id, sizeof span.trace_id);
    spans::fill_randomly(span.span_id, sizeof span.span_id);
    span.start_ns = spans::now_ns();
    unsigned result = 0;
    {
        const otelprof::span_scope scope(span.trace_id, span.span_id);
        result = shop::answer(path, query);
    }
    span.end_ns = spans::now_ns();
    spans::exporter.add(std::move(span));
    return result;
}

#endif

// --- HTTP ---

void answer_request(int client) {
    char request[1024] = {};
    for (size_t length = 0; length + 1 < sizeof request && !std::strstr(request, "\r\n\r\n");) {
        const ssize_t got = read(client, request + length, sizeof request - 1 - length);
        if (got <= 0)
            return;
        length += static_cast<size_t>(got);
    }
    const std::string line(request, std::strcspn(request, "\r\n"));
    const std::string target = line.substr(4, line.rfind(' ') - 4);
    const size_t mark = std::min(target.find('?'), target.size());
    const std::string body = std::to_string(serve(target.substr(0, mark), target.substr(std::min(mark + 1, target.size()))));
    const std::string response =
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
    (void)!write(client, response.data(), response.size());
}

void work(int listener) {
    for (int client; (client = accept(listener, nullptr, nullptr)) >= 0; close(client))
        answer_request(client);
}

int main(int, char **arguments) {
    spans::exporter.connect_to(static_cast<uint16_t>(std::stoi(arguments[1])), "shop");
#ifdef HAS_OPENTELEMETRY
    sdk::install();
#endif
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &ends, nullptr);

    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (bind(listener, reinterpret_cast<sockaddr *>(&address), size) || listen(listener, 64) ||
        getsockname(listener, reinterpret_cast<sockaddr *>(&address), &size))
        return 1;
    std::printf("%d\n", ntohs(address.sin_port));
    std::fflush(stdout);

    std::vector<std::thread> workers;
    for (int i = 0; i < 4; i++)
        workers.emplace_back(work, listener);
    int signal = 0;
    sigwait(&ends, &signal);
    shutdown(listener, SHUT_RDWR); // ends each accept()
    for (std::thread &worker : workers)
        worker.join();
    close(listener);
    return spans::exporter.flush() ? 0 : 1;
}
