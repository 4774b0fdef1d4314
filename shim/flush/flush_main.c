/* The flush side's one entry: harvest at each interval, hand over to the exporter, and between
 * intervals let the sender get on. A transfer never holds up a harvest. */
#include "clock.h"
#include "declare/declaration.h"
#include "export/random_seed.h"
#include "files/by_path.h"
#include "files/exporter_libraries.h"
#include "files/foreign_code.h"
#include "flush.h"
#include "release.h"
#include "symbolize/symbolize.h"
#include "unseen_end.h"

#include <stdlib.h>

/* Between an export and one that the program asks for: it may ask in a loop. */
enum { LEAST_APART_NANO = 100 * 1000 * 1000 };
/* Between two tries where there is no memory. */
static const uint64_t refused_apart_nano = NANO_PER_SECOND;
/* A sleep that is worth giving memory and code back for. */
enum { IDLE_NANO = 200 * 1000 * 1000 };

/* What a forked child goes on with: a symbolizer costs megabytes and milliseconds to fill, and the
 * configuration file may be out of sight. */
struct kept {
    struct symbolizer *symbolizer;
    struct declaration *declaration; /* NULL: there is no file */
    struct foreign_code foreign;
};

__attribute__((visibility("default"))) int otelprof_flush_main(const struct capture_api *api);
extern __attribute__((visibility("default"))) const char otelprof_flush_release[];
const char otelprof_flush_release[] = OTELPROF_RELEASE;

/* --- the loop --- */

static uint64_t earlier(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* What a look at a file once a second needs stays. */
static int sleep_until(struct flush *f, uint64_t moment) {
    if (f->worked && moment > monotonic_nano() + IDLE_NANO) {
        f->api->give_back_memory();
        idle_code_drop(f->code);
        f->worked = false;
    }
    return f->api->wait(moment);
}

/* A descriptor of a transfer under way would end with the thread. */
static bool suspend(struct flush *f) {
    if (f->sender)
        sender_pause(f->sender);
    if (f->serve)
        serve_pause(f->serve);
    *f->api->suspended = f;
    return true;
}

/* The schedule's, or the program's, or that of somebody who has asked the process, or the one
 * before memory runs out. */
static uint64_t next_export(const struct flush *f, uint32_t wanted) {
    const uint64_t apart = f->interval_start + LEAST_APART_NANO;
    const uint64_t again = f->refused_at ? f->refused_at + refused_apart_nano : 0;
    const uint64_t least = apart > again ? apart : again;
    const uint64_t served = f->serve ? serve_next_export(f->serve) : UINT64_MAX;
    const bool at_once = wanted != f->covered || f->alarm.wants_export;
    const uint64_t asked = at_once ? 0 : served;
    return earlier(f->schedule.next, asked > least ? asked : least);
}

/* What is due between exports: when to look again. */
static uint64_t next_look(const struct flush *f) {
    const uint64_t next = earlier(control_next_look(f->control), f->alarm.next);
    return f->serve ? earlier(next, serve_next_step(f->serve)) : next;
}

static uint64_t next_moment(const struct flush *f, uint32_t wanted) {
    return earlier(next_export(f, wanted), next_look(f));
}

static void look(struct flush *f) {
    if (monotonic_nano() >= control_next_look(f->control))
        control_look_again(f->control);
    memory_alarm_look(&f->alarm);
    if (f->serve)
        serve_step(f->serve);
}

/* What there is no memory for is not made later because of a request. */
static void export_now(struct flush *f, uint32_t wanted, bool last) {
    f->worked = true;
    const bool has_room = flush_has_room(f, last);
    f->refused_at = has_room ? 0 : monotonic_nano();
    if (has_room)
        flush_cycle(f);
    else if (wanted != f->covered)
        f->api->export_ended(false);
    if (!has_room && f->serve)
        serve_refuse(f->serve);
    f->covered = wanted;
    f->alarm.wants_export = false;
    /* when it is over: what it was too slow for is left out, or nothing would be sent */
    schedule_advance(&f->schedule, monotonic_nano());
}

/* The process that answered where this one is to, its parent for one, may have ended. */
static void try_to_answer(struct flush *f) {
    if (f->serve && serve_try_again(f->serve))
        f->api->libraries_ready(false);
}

static void report_made(struct flush *f) {
    if (f->made != f->covered)
        f->api->exports_made(f->covered);
    f->made = f->covered;
}

/* true: only suspended. */
static bool run(struct flush *f) {
    int request = f->api->wait(0);
    bool ended = false; /* the last cycle is done */
    while (request != WAIT_ABANDON) {
        if (request == WAIT_SUSPEND)
            return suspend(f);
        const uint64_t now = monotonic_nano();
        const bool last = request == WAIT_STOP;
        const uint32_t wanted = f->api->exports_wanted();
        if (!ended && (last || now >= next_export(f, wanted))) {
            if (!f->api->may_export())
                return false;
            export_now(f, wanted, last);
            ended = last;
            if (!last)
                try_to_answer(f);
        }
        const uint64_t sent = f->sender ? sender_step(f->sender, last) : UINT64_MAX;
        f->worked |= sent != UINT64_MAX || f->serve;
        if (sent == UINT64_MAX)
            report_made(f);
        if (sent == 0 || (ended && sent == UINT64_MAX))
            return false;
        if (!ended)
            look(f);
        request =
            ended ? f->api->wait(sent) : sleep_until(f, earlier(sent, next_moment(f, wanted)));
    }
    return false;
}

/* --- opening and closing --- */

/* The symbolizer stays: a fork may be under way. */
static void close_flush(struct flush *f) {
    serve_close(f->serve);
    control_close(f->control);
    sender_close(f->sender);
    file_export_close(f->file);
    resource_close(f->resource);
    idle_code_close(f->code);
    long_spans_close(&f->long_spans);
    f->api->allow_leaving(NULL, 0);
    if (f->symbolizer)
        symbolizer_attend(f->symbolizer, NULL);
    free(f);
}

static struct kept *kept_of(const struct capture_api *api) {
    if (!*api->kept)
        *api->kept = calloc(1, sizeof(struct kept));
    return *api->kept;
}

static struct symbolizer *symbolizer_of(const struct capture_api *api, struct kept *kept) {
    if (!kept->symbolizer)
        kept->symbolizer = symbolizer_open(api->config->symbols, api->guarded);
    return kept->symbolizer;
}

/* These two ask the loader, whose lock a forked child must not inherit. */

static void find_idle_code(struct flush *f) {
    if (!f->api->lock_enter())
        return;
    f->code = idle_code_open();
    f->api->lock_leave();
}

static void find_foreign_code(const struct capture_api *api, struct kept *kept) {
    if (kept->foreign.count == 0 && api->lock_enter()) {
        foreign_code_find(&kept->foreign);
        api->lock_leave();
    }
    api->allow_leaving(kept->foreign.ranges, kept->foreign.count);
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

/* From here on the configuration is the file's, too. */
static void follow_declaration(struct flush *f, const struct declaration *declaration) {
    if (!declaration)
        return;
    f->own.config = &declaration->config;
}

static void open_resource(struct flush *f, const struct declaration *declaration) {
    f->resource = resource_open(f->api->config, f->api->log, f->api->executable);
    if (!f->resource)
        return;
    resource_began(f->resource, f->api->start_unix_nano);
    if (declaration)
        resource_declare(f->resource, &declaration->attributes);
}

/* With no exporter beside it there is nothing left to profile for where nobody can ask, now or once
 * its place is free. */
static void open_serve(struct flush *f) {
    const struct capture_api *const api = f->api;
    if (*api->config->listen)
        f->serve = serve_open(&(struct serve_of){api, f->resource, f->control, f->sender});
    if (f->serve)
        f->exporter.forms |= FORM_PROTOBUF;
    else if (!api->config->exporters)
        api->give_up("nothing is sent, and nobody is answered");
}

static bool open_parts(struct flush *f, const struct capture_api *given, struct kept *kept) {
    f->own = *given;
    f->api = &f->own;
    follow_declaration(f, kept->declaration);
    const struct capture_api *const api = f->api;
    open_resource(f, kept->declaration);
    f->symbolizer = symbolizer_of(api, kept);
    f->exporter =
        (struct profile_exporter){.api = api, .resource = f->resource, .symbolizer = f->symbolizer};
    find_idle_code(f);
    if (f->symbolizer)
        symbolizer_attend(f->symbolizer, api);
    f->control = control_open(api);
    f->alarm = memory_alarm_open(api);
    f->worked = true;
    const bool opened = f->resource && f->symbolizer && f->control && open_exporters(f);
    if (opened)
        open_serve(f);
    const bool answers = f->serve && serve_answers(f->serve);
    api->libraries_ready(!answers && exporter_libraries_outlive_exit());
    if (!opened)
        return false;
    /* what was recorded before we were loaded belongs to the first interval */
    f->interval_start_unix = api->start_unix_nano;
    f->interval_start = api->start_nano;
    f->random = random_seed();
    f->schedule = schedule_begin(f->interval_start, monotonic_nano(),
                                 api->config->interval_ms * NANO_PER_MILLI, unseen_end_is_to_come(),
                                 &f->random);
    return true;
}

/* NULL: no memory, or the process ends. */
static struct flush *open_flush(const struct capture_api *api, struct kept *kept) {
    struct flush *const suspended = *api->suspended;
    if (suspended) {
        *api->suspended = NULL;
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
    api->harvest(count_sample, &samples);
    log_debug(
        api->log,
        "disabled by %s; nothing is profiled, and %llu stacks that were sampled before it was "
        "read are discarded",
        api->config->config_file, (unsigned long long)samples);
}

/* Before anything is opened that may be sent to. false: nothing is to be profiled. */
static bool is_wanted(const struct capture_api *api, struct kept *kept) {
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

int otelprof_flush_main(const struct capture_api *api) {
    by_path_ask(api->may_open_by_path);
    struct kept *const kept = kept_of(api);
    if (kept)
        find_foreign_code(api, kept);
    if (!is_wanted(api, kept))
        return FLUSH_DISABLED;
    struct flush *const flush = open_flush(api, kept);
    if (!flush) {
        if (api->wait(0) != WAIT_ABANDON) /* which closes the quiesce lock for good */
            log_debug(api->log, "no memory for the exporter; nothing is profiled");
        return -1;
    }
    if (run(flush))
        return FLUSH_SUSPENDED;
    close_flush(flush);
    return 0;
}
