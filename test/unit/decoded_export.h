/* Exports the samples of a fake capture side, and decodes the messages. */
#ifndef OTELPROF_TEST_DECODED_EXPORT_H
#define OTELPROF_TEST_DECODED_EXPORT_H

#include "encode/merge.h"
#include "encode/profile_export.h"
#include "fake_capture.h"
#include "profiles_service.pb-c.h"

typedef Opentelemetry__Proto__Collector__Profiles__V1development__ExportProfilesServiceRequest
    Request;
typedef Opentelemetry__Proto__Profiles__V1development__Profile Profile;

static inline Request *decode(const struct encoded_export *export) {
    Request *const request =
        opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__unpack(
            NULL, export->protobuf.size, export->protobuf.bytes);
    assert_non_null(request);
    return request;
}

static inline void release(Request *request) {
    opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__free_unpacked(
        request, NULL);
}

static const uint64_t frames_a[] = {0x1000, 0x2000};
static const uint64_t frames_b[] = {0x1010, 0x2000};

static struct harvest_sample cpu(const uint64_t *frames, uint64_t nano) {
    return (struct harvest_sample){.kind = SAMPLE_CPU,
                                   .tid = 7,
                                   .thread_name = "worker",
                                   .frames = frames,
                                   .frame_count = 2,
                                   .values = {[MEASURED_NANO] = (double)nano}};
}

static const char *const quiet[] = {"OTEL_PROFILER_SYMBOLS=none", NULL};

/* Exports the interval [start, end) of the samples that the fake has. The caller closes the writer.
 */
static inline struct encoded_export export_interval(struct profile_exporter *exporter,
                                                    const struct capture_api *api, uint64_t start,
                                                    uint64_t end) {
    struct merge merge = {.items = {0}};
    assert_true(merge_harvest(&merge, api));
    profile_export_cover(exporter, start, end);
    profile_export_begin(exporter, &merge, true);
    const struct encoded_export export =
        profile_export(exporter, &merge, export_part_whole(&merge), start, end);
    merge_free(&merge);
    return export;
}

static inline struct encoded_export export_listed(struct profile_exporter *exporter,
                                                  const struct capture_api *api) {
    return export_interval(exporter, api, 1000, 3000);
}

static inline struct encoded_export export_once(struct profile_exporter *exporter,
                                                const struct capture_api *api) {
    struct encoded_export export = export_listed(exporter, api);
    otlp_writer_close(export.writer);
    export.writer = NULL;
    return export;
}

static struct profile_exporter open_exporter(const struct capture_api *api) {
    return (struct profile_exporter){.api = api,
                                     .forms = FORM_PROTOBUF,
                                     .resource = resource_open(api->config, api->log, ""),
                                     .symbolizer =
                                         symbolizer_open(api->config->symbols, api->guard.run)};
}

#endif
