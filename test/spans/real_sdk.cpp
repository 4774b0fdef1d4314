/* Runs eight threads that burn CPU time in spans of OpenTelemetry's own SDK, in functions that have
 * the names of the spans. Each span that ends is written to a file: real_sdk simple|batch FILE. */
#include "burn.h"
#include "otelprof.h"
#include "published.h"

#include <opentelemetry/baggage/baggage_context.h>
#include <opentelemetry/exporters/ostream/span_exporter_factory.h>
#include <opentelemetry/sdk/trace/batch_span_processor_factory.h>
#include <opentelemetry/sdk/trace/batch_span_processor_options.h>
#include <opentelemetry/sdk/trace/simple_processor_factory.h>
#include <opentelemetry/sdk/trace/tracer_provider.h>
#include <opentelemetry/sdk/trace/tracer_provider_factory.h>
#include <opentelemetry/trace/provider.h>

#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace sdk = opentelemetry::sdk::trace;

enum { THREADS = 8, ROUNDS = 1000, MOST_WAITING = 1 << 17 };

static std::unique_ptr<sdk::SpanProcessor> processor(bool is_batch, std::ostream &file) {
    auto exporter = api::exporter::trace::OStreamSpanExporterFactory::Create(file);
    if (!is_batch)
        return sdk::SimpleSpanProcessorFactory::Create(std::move(exporter));
    sdk::BatchSpanProcessorOptions options;
    options.max_queue_size = MOST_WAITING; /* no span is dropped */
    options.schedule_delay_millis = std::chrono::milliseconds(100);
    return sdk::BatchSpanProcessorFactory::Create(std::move(exporter), options);
}

static std::string burn_name(unsigned number) {
    return "burns_" + std::to_string(number % KINDS);
}

/* Works as a server: spans in spans, baggage, and work that goes on after both. */
static void serve(api::trace::Tracer &tracer, unsigned number) {
    api::trace::Scope scope(tracer.StartSpan(burn_name(number)));
    burn_in(number);
    {
        auto context = api::context::RuntimeContext::GetCurrent();
        const auto baggage = api::baggage::GetBaggage(context)->Set("customer", "7");
        const auto token =
            api::context::RuntimeContext::Attach(api::baggage::SetBaggage(context, baggage));
        burn_in(number);
        const auto inner = tracer.StartSpan(burn_name(number + 1), {{"number", number}});
        api::trace::Scope nested(inner);
        inner->AddEvent("begins");
        burn_in(number + 1);
    }
    burn_in(number);
}

static void work(unsigned thread) {
    const auto tracer = api::trace::Provider::GetTracerProvider()->GetTracer("test");
    for (unsigned i = 0; i < ROUNDS; i++)
        serve(*tracer, thread + i);
}

int main(int, char **argv) {
    std::ofstream file(argv[2]);
    std::shared_ptr<api::trace::TracerProvider> provider =
        sdk::TracerProviderFactory::Create(processor(std::string("batch") == argv[1], file));
    api::trace::Provider::SetTracerProvider(provider);
    const bool followed = std::getenv("ADAPTOR") && is_followed();
    for (int i = 0; followed && i < 2; i++)
        (void)otelprof_flush(10000);
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < THREADS; i++)
        threads.emplace_back(work, i);
    for (auto &thread : threads)
        thread.join();
    static_cast<sdk::TracerProvider &>(*provider).Shutdown();
    std::puts(followed ? "followed" : "not followed");
    return 3;
}
