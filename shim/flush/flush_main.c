/* Implements the main loop of the flush side: harvests at each interval, passes the export on, and
 * lets the sender work between intervals. A transfer never delays a harvest. */
#include "clock.h"
#include "control/memory_room.h"
#include "control/unseen_end.h"
#include "declare/declaration.h"
#include "export/random_seed.h"
#include "files/by_path.h"
#include "flush.h"
#include "libraries/exporter_bindings.h"
#include "libraries/exporter_libraries.h"
#include "libraries/foreign_code.h"
#include "release.h"
#include "symbolize/symbolize.h"

#include <stdlib.h>

/* Bounds, in ns, the time between an export and an export that the program requests, because the
 * program may request exports in a loop. */
enum { LEAST_APART_NANO = 100 * 1000 * 1000 };
/* Sets the time in ns between two attempts without enough memory. */
static const uint64_t refused_apart_nano = NANO_PER_SECOND;
/* Sets the shortest sleep, in ns, before which releasing memory and code pays. */
enum { IDLE_NANO = 200 * 1000 * 1000 };

/* Holds the state that a forked child takes over, because a symbolizer costs megabytes and
 * milliseconds to fill, and the child may be unable to read the configuration file. */
struct kept {
    struct symbolizer *symbolizer;
    struct declaration *declaration; /* NULL: there is no configuration file */
    struct foreign_code foreign;
};

__attribute__((visibility("default"))) int otelprof_flush_main(const struct capture_api *api);
extern __attribute__((visibility("default"))) const char otelprof_flush_release[];
const char otelprof_flush_release[] = OTELPROF_RELEASE;

/* --- the loop ---
 *
 *           otelprof_flush_main()                   ┌──── REQUEST_SUSPEND ────► suspended
 *                    │ open, or resume              │      called again: resumes here
 *                    ▼                              │
 *   ┌────────► wait for a request ──────────────────┤
 *   │   until an export, a poll or a step is due    └──── REQUEST_ABANDON ────► return
 *   │                │
 *   │                ├── REQUEST_STOP, or next_export() is due: export_now()
 *   │                │      harvest, merge, encode ──► file, console, clients, sender
 *   │                │      may_export() is false ─────────────────────────────► return
 *   │                ▼
 *   │          sender_step(): goes on with transfers, without blocking
 *   │                │      0: the quiesce lock is closed ─────────────────────► return
 *   │                │      UINT64_MAX: all is sent; after the last export ────► return
 *   │                ▼
 *   │          flush_poll(), unless the last export is done:
 *   │                │      settings, load, memory limits, requests of clients
 *   └────────────────┘
 *
 * After REQUEST_STOP there is one last export; the loop then only waits for its transfers. */

/* Ends transfers and connections first, because their descriptors are closed with the thread. */
static bool flush_suspend(struct flush *f) {
    if (f->sender)
        sender_pause(f->sender);
    if (f->serve)
        serve_pause(f->serve);
    *f->api->lifecycle.suspended = f;
    return true;
}

/* Returns when the next export is due: by the schedule, by a request of the program or of a client,
 * or before memory runs out. */
static uint64_t next_export(const struct flush *f, uint32_t wanted) {
    const uint64_t apart = f->interval_start + LEAST_APART_NANO;
    const uint64_t again = f->refused_at ? f->refused_at + refused_apart_nano : 0;
    const uint64_t least = apart > again ? apart : again;
    const uint64_t served = f->serve ? serve_next_export(f->serve) : UINT64_MAX;
    const bool at_once = wanted != f->covered || f->alarm.wants_export;
    const uint64_t asked = at_once ? 0 : served;
    return earlier(f->schedule.next, asked > least ? asked : least);
}

/* Returns when the next export, or the next poll between exports, is due. */
static uint64_t next_moment(const struct flush *f, uint32_t wanted) {
    const uint64_t next = earlier(control_next_poll(f->control), f->alarm.next);
    const uint64_t next_poll = f->serve ? earlier(next, serve_next_step(f->serve)) : next;
    return earlier(next_export(f, wanted), next_poll);
}

static void flush_poll(struct flush *f) {
    if (monotonic_nano() >= control_next_poll(f->control))
        control_poll_again(f->control);
    memory_alarm_poll(&f->alarm);
    if (f->serve)
        serve_step(f->serve);
}

/* Exports now. If there is not enough memory, a requested export fails, and is not retried
 * later. */
static void export_now(struct flush *f, uint32_t wanted, bool last) {
    f->worked = true;
    const bool has_room = flush_has_room(f, last);
    f->refused_at = has_room ? 0 : monotonic_nano();
    /* a recording must cover time without samples, too, and so must a file when it ends */
    f->exporter.reports_idle = (f->serve && serve_records(f->serve)) || (last && f->has_written);
    f->exporter.keeps_idle = f->sender != NULL;
    if (has_room)
        flush_cycle(f);
    else if (wanted != f->covered)
        f->api->counters.export_ended(false);
    if (!has_room && f->serve)
        serve_refuse(f->serve);
    f->covered = wanted;
    f->alarm.wants_export = false;
    /* computed after the export, so that intervals that a slow export has missed are skipped */
    schedule_advance(&f->schedule, monotonic_nano());
}

/* Runs the loop above. Returns true if it was suspended. */
static bool flush_run(struct flush *f) {
    int request = f->api->wait.until(0);
    bool ended = false; /* the last export is done */
    while (request != REQUEST_ABANDON) {
        log_send_waiting(f->api->log);
        if (request == REQUEST_SUSPEND)
            return flush_suspend(f);
        const uint64_t now = monotonic_nano();
        const bool last = request == REQUEST_STOP;
        const uint32_t wanted = f->api->lifecycle.exports_wanted();
        if (!ended && (last || now >= next_export(f, wanted))) {
            if (!f->api->lifecycle.may_export())
                return false;
            export_now(f, wanted, last);
            ended = last;
            /* Tries the address again, because the process that held it, for example the parent,
             * may have ended. */
            if (!last && f->serve && serve_try_again(f->serve))
                f->api->lifecycle.libraries_ready(false);
        }
        const uint64_t sent = f->sender ? sender_step(f->sender, last) : UINT64_MAX;
        f->worked |= sent != UINT64_MAX || f->serve;
        if (sent == UINT64_MAX && f->made != f->covered) {
            f->api->lifecycle.exports_made(f->covered);
            f->made = f->covered;
        }
        if (sent == 0 || (ended && sent == UINT64_MAX))
            return false;
        uint64_t moment = sent;
        if (!ended) {
            flush_poll(f);
            moment = earlier(sent, next_moment(f, wanted));
        }
        /* Releases memory and code before the first long sleep after work. Later sleeps release
         * nothing, so the pages that polling once a second needs stay resident. */
        if (!ended && f->worked && moment > monotonic_nano() + IDLE_NANO) {
            f->api->guard.give_back_memory();
            idle_code_drop(f->code);
            f->worked = false;
        }
        request = f->api->wait.until(moment);
    }
    return false;
}

/* --- opening and closing --- */

/* Closes everything but the symbolizer: if a fork is in progress, its child takes the symbolizer
 * over. */
static void close_flush(struct flush *f) {
    serve_close(f->serve);
    control_close(f->control);
    sender_close(f->sender);
    file_export_close(f->file);
    resource_close(f->resource);
    idle_code_close(f->code);
    long_spans_close(&f->long_spans);
    f->api->guard.allow_leaving(NULL, 0);
    if (f->symbolizer)
        symbolizer_set_api(f->symbolizer, NULL);
    free(f);
}

/* The following two functions use the loader, whose lock a forked child must not inherit. */

static void find_idle_code(struct flush *f) {
    if (!f->api->guard.lock_enter())
        return;
    f->code = idle_code_open();
    f->api->guard.lock_leave();
}

static void find_foreign_code(const struct capture_api *api, struct kept *kept) {
    if (kept->foreign.count == 0 && api->guard.lock_enter()) {
        foreign_code_find(&kept->foreign);
        api->guard.lock_leave();
    }
    api->guard.allow_leaving(kept->foreign.ranges, kept->foreign.count);
}

static bool open_exporters(struct flush *f) {
    const struct config *const config = f->api->config;
    if (config->exporters & EXPORTER_OTLP) {
        f->sender = sender_open(f->api);
        f->exporter.forms |= flush_sent_form(config);
    }
    if (config->exporters & EXPORTER_OTLP_FILE) {
        f->file = file_export_open(f->api, resource_find(f->resource, "process.executable.name"));
        f->exporter.forms |= flush_written_form(config);
    }
    return (f->sender || !(config->exporters & EXPORTER_OTLP)) &&
           (f->file || !(config->exporters & EXPORTER_OTLP_FILE));
}

/* Opens the endpoint. Ends the profiler if there is neither an exporter nor a process that listens,
 * now or once its address is free: profiling would be useless. */
static void open_serve(struct flush *f) {
    const struct capture_api *const api = f->api;
    /* libmicrohttpd is loaded here, and its constructor calls GnuTLS by names that the program may
     * define */
    const bool conflicts = *api->config->listen && exporter_bindings_conflict();
    if (conflicts)
        log_warn(api->log,
                 "OTEL_PROFILER_LISTEN: the program exports functions of names that libmicrohttpd "
                 "calls, or that other libraries have; the process serves no requests");
    if (*api->config->listen && !conflicts)
        f->serve = serve_open(&(struct serve_of){api, f->resource, f->control, f->sender});
    if (f->serve)
        f->exporter.forms |= FORM_PROTOBUF;
    else if (!api->config->exporters)
        api->lifecycle.give_up("nothing is sent, and no request is served");
}

static bool open_parts(struct flush *f, const struct capture_api *given, struct kept *kept) {
    const struct declaration *const declaration = kept->declaration;
    const struct capture_api *const api = &f->own;
    f->own = *given;
    f->api = api;
    if (declaration) /* from here on, the configuration includes the file's settings */
        f->own.config = &declaration->config;
    f->resource = resource_open(api->config, api->log, api->executable);
    if (f->resource)
        resource_began(f->resource, api->start_unix_nano);
    if (f->resource && declaration)
        resource_declare(f->resource, &declaration->attributes);
    if (!kept->symbolizer)
        kept->symbolizer = symbolizer_open(api->config->symbols, api->guard.run);
    f->symbolizer = kept->symbolizer;
    f->exporter =
        (struct profile_exporter){.api = api, .resource = f->resource, .symbolizer = f->symbolizer};
    find_idle_code(f);
    if (f->symbolizer)
        symbolizer_set_api(f->symbolizer, api);
    f->control = control_open(api);
    api->guard.bound_memory(memory_room());
    f->alarm = memory_alarm_open(api);
    f->worked = true;
    const bool opened = f->resource && f->symbolizer && f->control && open_exporters(f);
    if (opened)
        open_serve(f);
    const bool is_listening = f->serve && serve_is_listening(f->serve);
    api->lifecycle.libraries_ready(!is_listening && exporter_libraries_outlive_exit());
    if (!opened)
        return false;
    /* the first interval includes samples that were recorded before this code was loaded */
    f->interval_start_unix = api->start_unix_nano;
    f->interval_start = api->start_nano;
    f->random = random_seed();
    f->schedule =
        schedule_begin(f->interval_start, monotonic_nano(),
                       api->config->interval_ms * NANO_PER_MILLI, exits_without_libc(), &f->random);
    return true;
}

/* Opens the flush side, or resumes the suspended one. Returns NULL without memory, if a part cannot
 * be opened, or if the process is ending. */
static struct flush *open_flush(const struct capture_api *api, struct kept *kept) {
    struct flush *const suspended = *api->lifecycle.suspended;
    if (suspended) {
        *api->lifecycle.suspended = NULL;
        if (suspended->serve)
            serve_resume(suspended->serve);
        return suspended;
    }
    struct flush *const f = kept ? calloc(1, sizeof *f) : NULL;
    if (!f || open_parts(f, api, kept))
        return f;
    close_flush(f);
    return NULL;
}

/* --- the configuration file --- */

static void count_sample(void *count, const struct harvest_sample *sample) {
    (void)sample;
    ++*(uint64_t *)count;
}

static void report_disabled(const struct capture_api *api) {
    uint64_t samples = 0;
    api->harvest.visit(count_sample, &samples);
    log_debug(
        api->log,
        "disabled by %s; nothing is profiled, and %llu stacks that were sampled before it was "
        "read are discarded",
        api->config->config_file, (unsigned long long)samples);
}

/* Reads the configuration file before anything that sends is opened. Returns false if nothing must
 * be profiled. */
static bool is_profiling_wanted(const struct capture_api *api, struct kept *kept) {
    if (!api->config->config_file[0] || !kept)
        return true;
    const bool inherited = kept->declaration != NULL;
    if (!inherited)
        kept->declaration = declaration_open(api);
    const struct declaration *const declaration = kept->declaration;
    if (!declaration || declaration->refused)
        return false;
    const struct config *const config = &declaration->config;
    const bool wanted = !declaration->disabled && config_has_receiver(config) && config->types;
    if (!wanted && !inherited)
        report_disabled(api);
    return wanted;
}

/* Returns true if the exporter's libraries call each other only; false, after a warning, if one of
 * them would call into the program. */
static bool is_bound_to_libraries(const struct capture_api *api) {
    const char *const function = exporter_bindings_foreign_function();
    if (function)
        log_warn(api->log,
                 "the program defines %s, and a library that it shares with the exporter calls it; "
                 "nothing is profiled",
                 function);
    return !function;
}

/* Runs before the constructors of the exporter's libraries (-z initfirst). */
__attribute__((constructor)) static void take_over_libraries(void) {
    if (exporter_libraries_protect())
        exporter_bindings_take_over();
}

int otelprof_flush_main(const struct capture_api *api) {
    if (!is_bound_to_libraries(api))
        return FLUSH_DISABLED;
    by_path_set_check(api->lifecycle.may_open_by_path);
    if (!*api->lifecycle.kept)
        *api->lifecycle.kept = calloc(1, sizeof(struct kept));
    struct kept *const kept = *api->lifecycle.kept;
    if (kept)
        find_foreign_code(api, kept);
    if (!is_profiling_wanted(api, kept))
        return FLUSH_DISABLED;
    struct flush *const flush = open_flush(api, kept);
    if (!flush) {
        if (api->wait.until(0) != REQUEST_ABANDON) /* the call closes the quiesce lock for ever */
            log_debug(api->log, "no memory for the exporter; nothing is profiled");
        return -1;
    }
    if (flush_run(flush))
        return FLUSH_SUSPENDED;
    close_flush(flush);
    return 0;
}
