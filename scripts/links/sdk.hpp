// Is a minimal SDK behind OpenTelemetry's C++ API: spans get ids, and go to spans::exporter when
// they end.
#pragma once

#include <opentelemetry/common/attribute_value.h>
#include <opentelemetry/common/key_value_iterable.h>
#include <opentelemetry/trace/provider.h>
#include <opentelemetry/trace/span.h>
#include <opentelemetry/trace/tracer.h>
#include <opentelemetry/trace/tracer_provider.h>

#include <algorithm>
#include <memory>
#include <string>

#include "spans.hpp"

namespace sdk {

namespace api = opentelemetry::trace;
namespace common = opentelemetry::common;
namespace nostd = opentelemetry::nostd;

inline std::string text(nostd::string_view view) {
    return {view.data(), view.size()};
}

class Span final : public api::Span {
  public:
    Span(std::shared_ptr<api::Tracer> tracer, nostd::string_view name, const api::SpanContext &parent) : tracer_(std::move(tracer)) {
        finished_.name = text(name);
        finished_.start_ns = spans::now_ns();
        spans::fill_randomly(finished_.span_id, sizeof finished_.span_id);
        if (parent.IsValid()) {
            parent.trace_id().CopyBytesTo(finished_.trace_id);
            parent.span_id().CopyBytesTo(finished_.parent_id);
        } else {
            spans::fill_randomly(finished_.trace_id, sizeof finished_.trace_id);
        }
        context_ = api::SpanContext(api::TraceId(finished_.trace_id), api::SpanId(finished_.span_id), api::TraceFlags(1), false);
    }
    ~Span() override {
        End({});
    }
    // Keeps text alone: the demo has no other attributes.
    void SetAttribute(nostd::string_view key, const common::AttributeValue &value) noexcept override {
        if (nostd::holds_alternative<nostd::string_view>(value))
            finished_.attributes.emplace_back(text(key), text(nostd::get<nostd::string_view>(value)));
        else if (nostd::holds_alternative<const char *>(value))
            finished_.attributes.emplace_back(text(key), nostd::get<const char *>(value));
    }
    void AddEvent(nostd::string_view) noexcept override {}
    void AddEvent(nostd::string_view, common::SystemTimestamp) noexcept override {}
    void AddEvent(nostd::string_view, const common::KeyValueIterable &) noexcept override {}
    void AddEvent(nostd::string_view, common::SystemTimestamp, const common::KeyValueIterable &) noexcept override {}
    void SetStatus(api::StatusCode, nostd::string_view) noexcept override {}
    void UpdateName(nostd::string_view name) noexcept override {
        finished_.name = text(name);
    }
    void End(const api::EndSpanOptions &) noexcept override {
        if (finished_.end_ns)
            return;
        finished_.end_ns = spans::now_ns();
        spans::exporter.add(finished_);
    }
    api::SpanContext GetContext() const noexcept override {
        return context_;
    }
    bool IsRecording() const noexcept override {
        return !finished_.end_ns;
    }

  private:
    std::shared_ptr<api::Tracer> tracer_;
    spans::Finished finished_;
    api::SpanContext context_ = api::SpanContext::GetInvalid();
};

class Tracer final : public api::Tracer, public std::enable_shared_from_this<Tracer> {
  public:
    nostd::shared_ptr<api::Span> StartSpan(nostd::string_view name, const common::KeyValueIterable &attributes,
                                           const api::SpanContextKeyValueIterable &, const api::StartSpanOptions &) noexcept override {
        nostd::shared_ptr<api::Span> span(new Span(shared_from_this(), name, GetCurrentSpan()->GetContext()));
        attributes.ForEachKeyValue([&span](nostd::string_view key, common::AttributeValue value) {
            span->SetAttribute(key, value);
            return true;
        });
        return span;
    }
#if OPENTELEMETRY_ABI_VERSION_NO == 1
    void ForceFlushWithMicroseconds(uint64_t) noexcept override {}
    void CloseWithMicroseconds(uint64_t) noexcept override {}
#endif
};

class TracerProvider final : public api::TracerProvider {
  public:
    nostd::shared_ptr<api::Tracer> GetTracer(nostd::string_view, nostd::string_view, nostd::string_view) noexcept override {
        return nostd::shared_ptr<api::Tracer>(tracer_);
    }

  private:
    std::shared_ptr<Tracer> tracer_ = std::make_shared<Tracer>();
};

inline void install() {
    api::Provider::SetTracerProvider(nostd::shared_ptr<api::TracerProvider>(std::make_shared<TracerProvider>()));
}

} // namespace sdk
