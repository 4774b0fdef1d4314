#include "facts.h"

#include "drop_reason.h"
#include "written_text.h"

/* Begins a metric in Prometheus' text format 0.0.4. Names follow OpenTelemetry's conversion for
 * Prometheus: dots become `_`; unit and `_total` are suffixes. */

static void metrics_begin(struct wire *to, const char *name, const char *type, const char *help) {
    text_add(to, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void metrics_label(struct wire *to, const char *separator, const char *name,
                          const char *value) {
    text_add(to, "%s%s=", separator, name);
    text_add_prometheus(to, value ? value : "");
}

static void write_target(const struct resource *resource, struct wire *to) {
    metrics_begin(to, "target_info", "gauge", "The process that is profiled.");
    text_add(to, "target_info{");
    metrics_label(to, "", "service_name", resource_find(resource, "service.name"));
    metrics_label(to, ",", "service_instance_id", resource_find(resource, "service.instance.id"));
    metrics_label(to, ",", "process_executable_name",
                  resource_find(resource, "process.executable.name"));
    metrics_label(to, ",", "telemetry_sdk_version", OTELPROF_VERSION);
    text_add(to, "} 1\n");
}

static void metrics_write_drops(const struct capture_api *api, struct wire *to) {
    uint64_t counts[DROP_REASON_COUNT];
    api->counters.dropped(counts);
    metrics_begin(to, "otelprof_dropped_total", "counter", "What was lost, by reason.");
    for (unsigned i = 0; i < DROP_REASON_COUNT; i++)
        text_add(to, "otelprof_dropped_total{reason=\"%s\"} %llu\n", drop_reason_name(i),
                 (unsigned long long)counts[i]);
    metrics_begin(to, "otelprof_foreign_stack_cpu_time_seconds_total", "counter",
                  "CPU time of the samples that are counted as foreign_stack.");
    text_add(to, "otelprof_foreign_stack_cpu_time_seconds_total ");
    text_add_seconds(to, api->counters.foreign_stack_nano());
    text_add(to, "\n");
    metrics_begin(to, "otelprof_short_child_cpu_time_seconds_total", "counter",
                  "CPU time of children that ended without an export.");
    text_add(to, "otelprof_short_child_cpu_time_seconds_total ");
    text_add_seconds(to, api->counters.short_child_nano());
    text_add(to, "\n");
}

static void metrics_write_sampling(const struct serve *serve, struct wire *to) {
    static const char *const names[SAMPLINGS] = {
        [SAMPLING_CPU] = "cpu", [SAMPLING_ALLOCATIONS] = "alloc", [SAMPLING_LOCKS] = "lock"};
    struct sampling_cost costs[SAMPLINGS];
    serve->of.api->counters.sampling_cost(costs);
    metrics_begin(to, "otelprof_self_sampling_cpu_time_seconds_total", "counter",
                  "CPU time of the program's threads that sampling took.");
    for (unsigned i = 0; i < SAMPLINGS; i++) {
        text_add(to, "otelprof_self_sampling_cpu_time_seconds_total{of=\"%s\"} ", names[i]);
        text_add_seconds(to, costs[i].cpu_nano);
        text_add(to, "\n");
    }
    metrics_begin(to, "otelprof_lowered_by_budget", "gauge",
                  "1: OTEL_PROFILER_MAX_OVERHEAD has lowered rates at present.");
    text_add(to, "otelprof_lowered_by_budget %d\n", control_is_lowered(serve->of.control));
}

void write_metrics(const struct serve *serve, struct wire *to) {
    const struct capture_api *const api = serve->of.api;
    const struct control *const control = serve->of.control;
    write_target(serve->of.resource, to);
    metrics_begin(to, "otelprof_self_cpu_time_seconds_total", "counter",
                  "CPU time of the profiler's own thread.");
    text_add(to, "otelprof_self_cpu_time_seconds_total ");
    text_add_seconds(to, api->counters.helper_cpu_nano());
    text_add(to, "\n");
    metrics_begin(to, "otelprof_threads", "gauge", "Threads of the process.");
    text_add(to, "otelprof_threads %u\n", api->counters.threads());
    metrics_begin(to, "otelprof_paused_by_program", "gauge",
                  "1 while nothing is sampled because the program has called otelprof_stop().");
    text_add(to, "otelprof_paused_by_program %d\n", api->lifecycle.is_paused());
    metrics_begin(to, "otelprof_shed", "gauge",
                  "1 while nothing is sampled because processors are too busy.");
    text_add(to, "otelprof_shed %d\n", control_sheds(control));
    metrics_begin(to, "otelprof_shed_seconds_total", "counter", "Time in which that was so.");
    text_add(to, "otelprof_shed_seconds_total ");
    text_add_seconds(to, control_shed_nano(control));
    text_add(to, "\n");
    metrics_write_sampling(serve, to);
    metrics_write_drops(api, to);
    metrics_begin(to, "otelprof_exports_total", "counter", "Exports, by how they ended.");
    text_add(to, "otelprof_exports_total{outcome=\"delivered\"} %llu\n",
             (unsigned long long)api->counters.exports_delivered());
    text_add(to, "otelprof_exports_total{outcome=\"failed\"} %llu\n",
             (unsigned long long)api->counters.exports_failed());
}
