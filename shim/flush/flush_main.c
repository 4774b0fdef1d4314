/* The flush side's one entry: harvest at each interval, hand over to the exporter, and between
 * intervals let the sender get on. A transfer never holds up a harvest. */
#include "clock.h"
#include "declare/declaration.h"
#include "encode/contexts.h"
#include "encode/merge.h"
#include "encode/profile_export.h"
#include "export/console.h"
#include "export/file_export.h"
#include "export/random_seed.h"
#include "export/schedule.h"
#include "export/sender.h"
#include "files/by_path.h"
#include "files/exporter_libraries.h"
#include "files/foreign_code.h"
#include "files/idle_code.h"
#include "harvest.h"
#include "memory_room.h"
#include "release.h"
#include "symbolize/symbolize.h"
#include "unseen_end.h"

#include <stdlib.h>

/* The steady clock and the other are read a moment apart. */
enum { CLOCK_WAS_SET_NANO = 100 * 1000 * 1000 };
/* What an export takes at most for a moment, measured: of a program of some hundred threads, and
 * the names of new functions on top. Debug information comes on top of that (symbolize.c). Under a
 * limit of memory that leaves less the kernel would end the program. */
enum { EXPORT_BYTES = 3 << 20, NAMES_BYTES = 5 << 20 };
/* Between an export and one that the program asks for: it may ask in a loop. */
enum { LEAST_APART_NANO = 100 * 1000 * 1000 };
/* A sleep that is worth giving memory and code back for. */
enum { IDLE_NANO = 200 * 1000 * 1000 };

/* What a forked child goes on with: a symbolizer costs megabytes and milliseconds to fill, and the
 * configuration file may be out of sight. */
struct kept {
    struct symbolizer *symbolizer;
    struct declaration *declaration; /* NULL: there is no file */
    struct foreign_code foreign;
};

struct flush {
    struct capture_api own;        /* as it was given, but for the configuration */
    const struct capture_api *api; /* that one */
    bool settings_wait;            /* for capture to follow them */
    struct resource *resource;
    struct symbolizer *symbolizer;
    struct sender *sender;    /* NULL: nothing is sent */
    struct file_export *file; /* NULL: no file is written */
    struct idle_code *code;   /* NULL: stays resident */
    struct profile_exporter exporter;
    struct schedule schedule;
    uint64_t random;
    uint64_t interval_start_unix;
    uint64_t interval_start; /* CLOCK_MONOTONIC */
    size_t merged_bytes;     /* of the samples of the last export */
    uint32_t covered;        /* requests of the program's that the last export follows */
    uint32_t made;           /* the same, and nothing of it waits any more */
};

__attribute__((visibility("default"))) int otelprof_flush_main(const struct capture_api *api);
extern __attribute__((visibility("default"))) const char otelprof_flush_release[];
const char otelprof_flush_release[] = OTELPROF_RELEASE;

/* --- one cycle --- */

static unsigned sent_form(const struct config *config) {
    return config->protocol == PROTOCOL_HTTP_JSON ? FORM_JSON : FORM_PROTOBUF;
}

static unsigned written_form(const struct config *config) {
    return config->file_format == FILE_JSON ? FORM_JSON : FORM_PROTOBUF;
}

static struct encoded *in_form(struct encoded_export *export, unsigned form) {
    return form == FORM_JSON ? &export->json : &export->protobuf;
}

static void write_to_file(struct flush *f, struct encoded_export *export) {
    const struct encoded *const encoded = in_form(export, written_form(f->api->config));
    if (encoded->bytes)
        file_export_write(f->file, encoded->bytes, encoded->size, export->samples);
}

/* The sender takes the bytes over. */
static void send_on(struct flush *f, struct encoded_export *export) {
    struct encoded *const encoded = in_form(export, sent_form(f->api->config));
    if (encoded->bytes)
        sender_add(f->sender, encoded->bytes, encoded->size, export->samples);
    encoded->bytes = NULL;
}

static bool is_too_large(const struct flush *f, const struct encoded_export *export) {
    const uint64_t max = f->api->config->max_profile_bytes;
    return export->protobuf.size > max || export->json.size > max;
}

static void free_export(struct encoded_export *export) {
    free(export->protobuf.bytes);
    free(export->json.bytes);
}

/* What would be refused for its size goes in parts. At most as deep as samples can be halved. */
/* NOLINTNEXTLINE(misc-no-recursion) */
static void export_part(struct flush *f, const struct merge *merge, struct export_part part,
                        uint64_t end_unix) {
    struct export_part halves[2];
    const struct remainders before = f->exporter.remainders;
    struct encoded_export export =
        profile_export(&f->exporter, merge, part, f->interval_start_unix, end_unix);
    if (is_too_large(f, &export) && export_part_divide(part, halves)) {
        free_export(&export);
        f->exporter.remainders = before;
        export_part(f, merge, halves[0], end_unix);
        export_part(f, merge, halves[1], end_unix);
        return;
    }
    if (!export.protobuf.bytes && !export.json.bytes)
        log_debug(f->api->log, "nothing to export: nothing was sampled, and less than a sample's "
                               "worth of CPU time used");
    if (f->file)
        write_to_file(f, &export);
    if (f->sender)
        send_on(f, &export);
    free_export(&export);
}

static void write_to_console(struct flush *f, const struct merge *merge, uint64_t length) {
    console_write(f->api, f->symbolizer, merge, (double)length / NANO_PER_SECOND);
    f->api->export_ended(true);
}

/* The end of an interval is its start plus what the steady clock measured, so that a step of the
 * wall clock neither stretches nor reverses it. */
static void export_interval(struct flush *f, const struct merge *merge, uint64_t length) {
    const uint64_t end_unix = f->interval_start_unix + length;
    if (f->api->config->exporters & EXPORTER_CONSOLE)
        write_to_console(f, merge, length);
    if (!f->exporter.forms)
        return;
    export_part(f, merge, export_part_whole(merge), end_unix);
}

/* Where one interval ends the next begins, unless the clock was set meanwhile. */
static uint64_t start_behind(uint64_t end_unix, uint64_t now_unix) {
    const uint64_t apart = end_unix > now_unix ? end_unix - now_unix : now_unix - end_unix;
    return apart < CLOCK_WAS_SET_NANO ? end_unix : now_unix;
}

static void change_settings(struct flush *f) {
    const struct settings_values wanted = settings_configured(f->api->config);
    if (f->settings_wait)
        f->settings_wait = !f->api->change_settings(&wanted);
}

static void update_resource(struct flush *f, const struct merge *merge) {
    resource_update(f->resource);
    if (*f->api->config->labels && contexts_lack_names(merge, resource_key_names(f->resource)))
        resource_find_key_names(f->resource);
}

static void cycle(struct flush *f) {
    struct merge merge = {.items = {0}};
    const uint64_t now_unix = realtime_nano();
    const uint64_t now = monotonic_nano();
    const uint64_t length = now > f->interval_start ? now - f->interval_start : 1;
    change_settings(f);
    const bool complete = merge_harvest(&merge, f->api);
    update_resource(f, &merge);
    profile_export_begin(&f->exporter, &merge, complete);
    symbolizer_trim(f->symbolizer);
    export_interval(f, &merge, length);
    symbolizer_rest(f->symbolizer);
    f->merged_bytes = merge.arena.total;
    merge_free(&merge);
    f->interval_start = now;
    f->interval_start_unix = start_behind(f->interval_start_unix + length, now_unix);
}

/* The next export is about as large as the last. Measured from 3,000 samples to 8,000, of 1,000
 * threads: it takes twice what its merged samples do, and 1.5 MiB. */
static uint64_t export_bytes(const struct flush *f) {
    const uint64_t expected = EXPORT_BYTES / 2 + 2 * (uint64_t)f->merged_bytes;
    return expected > EXPORT_BYTES ? expected : EXPORT_BYTES;
}

/* false: what was recorded waits, within its bounds, for an export that there is memory for. */
static bool has_room(struct flush *f, bool last) {
    const uint64_t room = memory_room();
    const uint64_t needed = export_bytes(f);
    const bool named = room >= needed + NAMES_BYTES;
    symbolizer_limit(f->symbolizer, named ? room - needed - NAMES_BYTES : 0, named);
    if (!named)
        f->api->count_drop(DROP_MEMORY, 1);
    return last || room >= needed;
}

/* --- the loop --- */

static uint64_t earlier(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static int sleep_until(struct flush *f, uint64_t moment) {
    if (moment > monotonic_nano() + IDLE_NANO) {
        f->api->give_back_memory();
        idle_code_drop(f->code);
    }
    return f->api->wait(moment);
}

/* A descriptor of a transfer under way would end with the thread. */
static bool suspend(struct flush *f) {
    if (f->sender)
        sender_pause(f->sender);
    *f->api->suspended = f;
    return true;
}

static uint64_t next_export(const struct flush *f, uint32_t wanted) {
    if (wanted == f->covered)
        return f->schedule.next;
    return earlier(f->schedule.next, f->interval_start + LEAST_APART_NANO);
}

/* What there is no memory for is not made later because of a request. */
static void export_now(struct flush *f, uint32_t wanted, bool last) {
    if (has_room(f, last))
        cycle(f);
    else if (wanted != f->covered)
        f->api->export_ended(false);
    f->covered = wanted;
    /* when it is over: what it was too slow for is left out, or nothing would be sent */
    schedule_advance(&f->schedule, monotonic_nano());
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
        }
        const uint64_t look = f->sender ? sender_step(f->sender, last) : UINT64_MAX;
        if (look == UINT64_MAX)
            report_made(f);
        if (look == 0 || (ended && look == UINT64_MAX))
            return false;
        request =
            ended ? f->api->wait(look) : sleep_until(f, earlier(look, next_export(f, wanted)));
    }
    return false;
}

/* --- opening and closing --- */

/* The symbolizer stays: a fork may be under way. */
static void close_flush(struct flush *f) {
    sender_close(f->sender);
    file_export_close(f->file);
    resource_close(f->resource);
    idle_code_close(f->code);
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
        f->exporter.forms |= sent_form(config);
    }
    if (config->exporters & EXPORTER_OTLP_FILE) {
        f->file = file_export_open(f->api, resource_find(f->resource, "process.executable.name"));
        f->exporter.forms |= written_form(config);
    }
    return (f->sender || !(config->exporters & EXPORTER_OTLP)) &&
           (f->file || !(config->exporters & EXPORTER_OTLP_FILE));
}

/* From here on the configuration is the file's, too. */
static void follow_declaration(struct flush *f, const struct declaration *declaration) {
    if (!declaration)
        return;
    f->own.config = &declaration->config;
    f->settings_wait = true;
    change_settings(f);
}

static void open_resource(struct flush *f, const struct declaration *declaration) {
    f->resource = resource_open(f->api->config, f->api->log, f->api->executable);
    if (!f->resource)
        return;
    resource_began(f->resource, f->api->start_unix_nano);
    if (declaration)
        resource_declare(f->resource, &declaration->attributes);
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
    const bool opened = f->resource && f->symbolizer && open_exporters(f);
    api->libraries_ready(exporter_libraries_outlive_exit());
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
    const bool wanted =
        !declaration->disabled && declaration->config.exporters && declaration->config.types;
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
