/* Makes exports of samples that a test gives, and sums them up for pprof. */
#ifndef OTELPROF_TEST_SUMMED_EXPORTS_H
#define OTELPROF_TEST_SUMMED_EXPORTS_H

#include "decoded_export.h"
#include "encode/pprof_sum.h"

static const char *const everything[] = {"OTEL_PROFILER_SYMBOLS=none", "OTEL_PROFILER_TYPES=all",
                                         NULL};
static struct capture_api api;
static struct profile_exporter exporter;

static void begin(void) {
    api = fake_capture(everything);
    exporter = open_exporter(&api);
}

static void end(struct pprof_sum *sum) {
    pprof_sum_close(sum);
    resource_close((struct resource *)(uintptr_t)exporter.resource);
    symbolizer_close(exporter.symbolizer);
}

/* Adds one export of these samples to the sum. */
static void add(struct pprof_sum *sum, const struct harvest_sample *samples, size_t count) {
    fake.samples = samples;
    fake.sample_count = count;
    const struct encoded_export export = export_listed(&exporter, &api);
    pprof_sum_next_export(sum);
    pprof_sum_add(sum, export.writer);
    otlp_writer_close(export.writer);
    free(export.protobuf.bytes);
}

static struct harvest_sample live(const uint64_t *frames, double objects, double bytes) {
    return (struct harvest_sample){.kind = SAMPLE_LIVE,
                                   .thread_name = "",
                                   .frames = frames,
                                   .frame_count = 2,
                                   .values = {objects, bytes}};
}

__attribute__((unused)) static struct harvest_sample allocated(const uint64_t *frames,
                                                               double objects, double bytes) {
    struct harvest_sample sample = live(frames, objects, bytes);
    sample.kind = SAMPLE_ALLOC;
    return sample;
}

__attribute__((unused)) static int64_t total(const struct pprof_sum *sum, size_t value) {
    struct pprof_sample sample;
    int64_t all = 0;
    for (size_t i = 0; i < pprof_sum_count(sum); i++) {
        pprof_sum_sample(sum, i, &sample);
        all += sample.values[value];
    }
    return all;
}

#endif
