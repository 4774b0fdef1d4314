#include "facts.h"

#include "clock.h"
#include "drop_reason.h"
#include "written_text.h"

#include <unistd.h>

/* Writes a string member. An unknown attribute is written as "". */
static void status_member(struct wire *to, const char *name, const char *value) {
    text_add(to, "  ");
    text_add_json(to, name);
    text_add(to, ": ");
    text_add_json(to, value ? value : "");
    text_add(to, ",\n");
}

static void status_number(struct wire *to, const char *name, uint64_t value) {
    text_add(to, "  \"%s\": %llu,\n", name, (unsigned long long)value);
}

static void status_seconds(struct wire *to, const char *name, uint64_t nano) {
    text_add(to, "  \"%s\": ", name);
    text_add_seconds(to, nano);
    text_add(to, ",\n");
}

struct list {
    struct wire *to;
    const char *separator;
};

static void begin_item(struct list *list) {
    text_add(list->to, "%s\n    ", list->separator);
    list->separator = ",";
}

static void status_write_setting(void *arg, const char *name, const char *value) {
    struct list *const list = arg;
    begin_item(list);
    text_add_json(list->to, name);
    text_add(list->to, ": ");
    text_add_json(list->to, value);
}

static const char *const sampling_names[SAMPLINGS] = {
    [SAMPLING_CPU] = "cpu", [SAMPLING_ALLOCATIONS] = "alloc", [SAMPLING_LOCKS] = "lock"};

static void status_write_sampling(const struct serve *serve, struct wire *to) {
    struct sampling_cost costs[SAMPLINGS];
    struct list list = {to, ""};
    serve->of.api->counters.sampling_cost(costs);
    text_add(to, "  \"sampling_cpu_seconds\": {");
    for (unsigned i = 0; i < SAMPLINGS; i++) {
        begin_item(&list);
        text_add(to, "\"%s\": ", sampling_names[i]);
        text_add_seconds(to, costs[i].cpu_nano);
    }
    text_add(to, "\n  },\n");
}

static void status_write_drops(const struct serve *serve, struct wire *to) {
    uint64_t counts[DROP_REASON_COUNT];
    struct list list = {to, ""};
    serve->of.api->counters.dropped(counts);
    text_add(to, "  \"dropped\": {");
    for (unsigned i = 0; i < DROP_REASON_COUNT; i++) {
        begin_item(&list);
        text_add(to, "\"%s\": %llu", drop_reason_name(i), (unsigned long long)counts[i]);
    }
    text_add(to, "\n  },\n");
    status_seconds(to, "foreign_stack_cpu_seconds", serve->of.api->counters.foreign_stack_nano());
    status_seconds(to, "short_child_cpu_seconds", serve->of.api->counters.short_child_nano());
}

void write_status(const struct serve *serve, struct wire *to) {
    const struct capture_api *const api = serve->of.api;
    const struct control *const control = serve->of.control;
    const struct resource *const resource = serve->of.resource;
    struct list settings = {to, ""};
    text_add(to, "{\n");
    status_member(to, "profiler", "libotelprof");
    status_member(to, "version", OTELPROF_VERSION);
    status_number(to, "pid", (uint64_t)getpid());
    status_member(to, "executable", resource_find(resource, "process.executable.path"));
    status_member(to, "service.name", resource_find(resource, "service.name"));
    status_member(to, "service.instance.id", resource_find(resource, "service.instance.id"));
    status_seconds(to, "profiled_seconds", monotonic_nano() - api->start_nano);
    status_number(to, "threads", api->counters.threads());
    status_seconds(to, "process_cpu_seconds", clock_nano(CLOCK_PROCESS_CPUTIME_ID));
    status_seconds(to, "own_cpu_seconds", api->counters.helper_cpu_nano());
    status_write_sampling(serve, to);
    text_add(to, "  \"lowered_by_budget\": %s,\n", control_is_lowered(control) ? "true" : "false");
    text_add(to, "  \"paused_by_program\": %s,\n", api->lifecycle.is_paused() ? "true" : "false");
    text_add(to, "  \"settings\": {");
    control_list(control, status_write_setting, &settings);
    text_add(to, "\n  },\n");
    text_add(to, "  \"shed\": {\n    \"now\": %s,\n    \"seconds\": ",
             control_sheds(control) ? "true" : "false");
    text_add_seconds(to, control_shed_nano(control));
    text_add(to, "\n  },\n");
    status_write_drops(serve, to);
    const char *const problem = serve->of.sender ? sender_problem(serve->of.sender) : "";
    text_add(to, "  \"exports\": {\n    \"delivered\": %llu,\n    \"failed\": %llu,\n",
             (unsigned long long)api->counters.exports_delivered(),
             (unsigned long long)api->counters.exports_failed());
    text_add(to, "    \"problem\": ");
    text_add_json(to, problem);
    text_add(to, "\n  }\n");
    text_add(to, "}\n");
}
