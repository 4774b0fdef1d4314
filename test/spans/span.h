/* Is a span of the tests' own: all that an SDK must give the API for a span to be active. The other
 * parts are the API's, as programs use it. */
#pragma once

#include <opentelemetry/trace/context.h>
#include <opentelemetry/trace/scope.h>
#include <opentelemetry/trace/span.h>

#include <cstdint>
#include <cstring>

namespace api = opentelemetry;

class TestSpan final : public api::trace::Span {
  public:
    /* `number`: its span id, and the last bytes of its trace id. */
    explicit TestSpan(uint64_t number) : context_(make(number)) {
    }
    void SetAttribute(api::nostd::string_view,
                      const api::common::AttributeValue &) noexcept override {
    }
    void AddEvent(api::nostd::string_view) noexcept override {
    }
    void AddEvent(api::nostd::string_view, api::common::SystemTimestamp) noexcept override {
    }
    void AddEvent(api::nostd::string_view, api::common::SystemTimestamp,
                  const api::common::KeyValueIterable &) noexcept override {
    }
    void AddEvent(api::nostd::string_view,
                  const api::common::KeyValueIterable &) noexcept override {
    }
#if OPENTELEMETRY_ABI_VERSION_NO >= 2
    void AddLink(const api::trace::SpanContext &,
                 const api::common::KeyValueIterable &) noexcept override {
    }
    void AddLinks(const api::trace::SpanContextKeyValueIterable &) noexcept override {
    }
#endif
    void SetStatus(api::trace::StatusCode, api::nostd::string_view) noexcept override {
    }
    void UpdateName(api::nostd::string_view) noexcept override {
    }
    void End(const api::trace::EndSpanOptions &) noexcept override {
    }
    api::trace::SpanContext GetContext() const noexcept override {
        return context_;
    }
    bool IsRecording() const noexcept override {
        return true;
    }

  private:
    static api::trace::SpanContext make(uint64_t number) {
        uint8_t trace[16] = {0x0a, 0x0b};
        uint8_t span[8];
        std::memcpy(trace + 8, &number, sizeof number);
        std::memcpy(span, &number, sizeof number);
        return api::trace::SpanContext(api::trace::TraceId(trace), api::trace::SpanId(span),
                                       api::trace::TraceFlags(1), false);
    }
    const api::trace::SpanContext context_;
};

using SpanPointer = api::nostd::shared_ptr<api::trace::Span>;

inline SpanPointer make_span(uint64_t number) {
    return SpanPointer(new TestSpan(number));
}
