// Links samples to spans in C++: c++ -I/usr/local/include spans.cpp
#include <otelprof.h>

#include <array>
#include <stdexcept>

using trace_id = std::array<uint8_t, 16>;
using span_id = std::array<uint8_t, 8>;

static volatile unsigned long work;

[[gnu::noinline]] static void resize_image() {
    for (work = 0; work < 500000000; work = work + 1) {
    }
}

[[gnu::noinline]] static void write_report() {
    for (work = 0; work < 500000000; work = work + 1) {
    }
    throw std::runtime_error("a scope ends by an exception, too");
}

static void handle(const trace_id &trace, const span_id &span, const char *route, void (*handler)()) {
    otelprof::span_scope linked(trace.data(), span.data());
    otelprof::label_scope labelled("http.route", route);
    handler();
}

int main() {
    const trace_id trace = {{0x4b, 0xf9, 0x2f, 0x35, 0x77, 0xb3, 0x4d, 0xa6, 0xa3, 0xce, 0x92, 0x9d, 0x0e, 0x0e, 0x47, 0x36}};
    handle(trace, {{1, 1, 1, 1, 1, 1, 1, 1}}, "/images", resize_image);
    try {
        handle(trace, {{2, 2, 2, 2, 2, 2, 2, 2}}, "/reports", write_report);
    } catch (const std::runtime_error &) {
        return 0;
    }
    return 1;
}
