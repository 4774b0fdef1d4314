// Sends finished spans to a Collector: OTLP/HTTP in JSON, on a plain socket. A real program links
// an OpenTelemetry SDK for this, which not every system packages.
#pragma once

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace spans {

struct Finished {
    std::string name;
    uint8_t trace_id[16] = {};
    uint8_t span_id[8] = {};
    uint8_t parent_id[8] = {}; // all zero: none
    uint64_t start_ns = 0;
    uint64_t end_ns = 0;
    std::vector<std::pair<std::string, std::string>> attributes;
};

inline uint64_t now_ns() {
    return static_cast<uint64_t>(std::chrono::system_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
}

inline void fill_randomly(uint8_t *bytes, size_t count) {
    thread_local std::mt19937_64 dice{std::random_device{}()};
    for (size_t i = 0; i < count; i++)
        bytes[i] = static_cast<uint8_t>(dice() >> 32);
}

inline std::string hex(const uint8_t *bytes, size_t count) {
    std::string text;
    for (size_t i = 0; i < count; i++) {
        char digits[3];
        std::snprintf(digits, sizeof digits, "%02x", bytes[i]);
        text += digits;
    }
    return text;
}

inline std::string quoted(const std::string &text) {
    std::string result = "\"";
    for (const char c : text) {
        char escaped[8];
        const bool is_plain = static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\';
        std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned char>(c));
        result += is_plain ? std::string(1, c) : escaped;
    }
    return result + "\"";
}

inline std::string json(const Finished &span) {
    static const uint8_t none[8] = {};
    std::string text = "{\"traceId\":\"" + hex(span.trace_id, 16) + "\",\"spanId\":\"" + hex(span.span_id, 8) +
                       "\",\"kind\":2,\"name\":" + quoted(span.name);
    if (!std::equal(none, none + 8, span.parent_id))
        text += ",\"parentSpanId\":\"" + hex(span.parent_id, 8) + "\"";
    text += ",\"startTimeUnixNano\":\"" + std::to_string(span.start_ns) + "\",\"endTimeUnixNano\":\"" +
            std::to_string(span.end_ns) + "\",\"attributes\":[";
    for (const auto &[key, value] : span.attributes) {
        text += text.back() == '[' ? "" : ",";
        text += "{\"key\":" + quoted(key) + ",\"value\":{\"stringValue\":" + quoted(value) + "}}";
    }
    return text + "]}";
}

// Keeps ended spans until flush() sends them. Any thread may call any of its functions.
class Exporter {
  public:
    void connect_to(uint16_t port, std::string service) {
        port_ = port;
        service_ = std::move(service);
    }
    void add(Finished span) {
        const std::lock_guard<std::mutex> lock(mutex_);
        waiting_.push_back(std::move(span));
    }
    // Returns whether the Collector accepted all waiting spans.
    bool flush() {
        const std::lock_guard<std::mutex> lock(mutex_);
        std::string list;
        for (const Finished &span : waiting_)
            list += (list.empty() ? "" : ",") + json(span);
        waiting_.clear();
        return post("{\"resourceSpans\":[{\"resource\":{\"attributes\":[{\"key\":\"service.name\",\"value\":{\"stringValue\":" +
                    quoted(service_) + "}}]},\"scopeSpans\":[{\"scope\":{\"name\":\"demo\"},\"spans\":[" + list + "]}]}]}");
    }

  private:
    bool post(const std::string &body) const {
        const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_in address = {};
        address.sin_family = AF_INET;
        address.sin_port = htons(port_);
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        const std::string request = "POST /v1/traces HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Type: application/json\r\n"
                                    "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
        char answer[16] = {};
        bool is_sent = connect(fd, reinterpret_cast<const sockaddr *>(&address), sizeof address) == 0;
        for (size_t at = 0; is_sent && at < request.size();) {
            const ssize_t sent = send(fd, request.data() + at, request.size() - at, MSG_NOSIGNAL);
            is_sent = sent > 0;
            at += is_sent ? static_cast<size_t>(sent) : 0;
        }
        is_sent = is_sent && recv(fd, answer, 12, MSG_WAITALL) == 12 && std::string(answer) == "HTTP/1.1 200";
        close(fd);
        return is_sent;
    }

    std::mutex mutex_;
    std::vector<Finished> waiting_;
    uint16_t port_ = 0;
    std::string service_;
};

inline Exporter exporter;

} // namespace spans
