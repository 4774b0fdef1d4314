/* Runs one cycle: harvest, merge, encode, and pass on. */
#include "clock.h"
#include "control/memory_room.h"
#include "encode/contexts.h"
#include "encode/merge.h"
#include "export/console.h"
#include "flush.h"
#include "symbolize/symbolize.h"

#include <stdlib.h>

/* Bounds the difference of the two clocks, which are read a moment apart: a smaller difference does
 * not mean that the wall clock was set. */
enum { CLOCK_WAS_SET_NANO = 100 * 1000 * 1000 };
/* States the most memory, in bytes, that an export needs at once, measured with a program of some
 * hundred threads, and the memory that names of new functions need. Debug information needs more
 * (symbolize.c). If a memory limit leaves less, the kernel would kill the program for the
 * export. */
enum { EXPORT_BYTES = 3 << 20, NAMES_BYTES = 5 << 20 };
/* Bounds the children of one export; no process has more of them at a time. */
enum { MOST_CHILDREN = 32 };

unsigned flush_sent_form(const struct config *config) {
    return config->protocol == PROTOCOL_HTTP_JSON ? FORM_JSON : FORM_PROTOBUF;
}

unsigned flush_written_form(const struct config *config) {
    return config->file_format == FILE_JSON ? FORM_JSON : FORM_PROTOBUF;
}

static struct encoded *in_form(struct encoded_export *export, unsigned form) {
    return form == FORM_JSON ? &export->json : &export->protobuf;
}

static void free_encoded(struct encoded_export *export) {
    otlp_writer_close(export->writer);
    free(export->protobuf.bytes);
    free(export->json.bytes);
}

/* Writes the export to the file, and hands it to the sender if it has samples. */
static void pass_on(struct flush *f, struct encoded_export *export) {
    const struct config *const config = f->api->config;
    if (f->file) {
        const struct encoded *const written = in_form(export, flush_written_form(config));
        if (written->bytes)
            file_export_write(f->file, written->bytes, written->size, export->samples);
        f->has_written |= written->bytes != NULL;
    }
    if (f->sender && !export->is_idle) {
        struct encoded *const sent = in_form(export, flush_sent_form(config));
        if (sent->bytes)
            sender_add(f->sender, sent->bytes, sent->size, export->samples);
        sent->bytes = NULL; /* the sender has taken ownership */
    }
}

/* Exports a part of the interval; splits it if the receiver would refuse it for its size. The
 * recursion depth is bounded by how often the samples can be halved. */
/* NOLINTNEXTLINE(misc-no-recursion) */
static void export_part(struct flush *f, const struct merge *merge, struct export_part part,
                        uint64_t end_unix) {
    const struct config *const config = f->api->config;
    struct export_part halves[2];
    const struct remainders before = f->exporter.remainders;
    struct encoded_export export =
        profile_export(&f->exporter, merge, part, f->interval_start_unix, end_unix);
    const bool is_too_large = export.protobuf.size > config->max_profile_bytes ||
                              export.json.size > config->max_profile_bytes;
    if (is_too_large && export_part_divide(part, halves)) {
        free_encoded(&export);
        f->exporter.remainders = before;
        export_part(f, merge, halves[0], end_unix);
        export_part(f, merge, halves[1], end_unix);
        return;
    }
    if (!export.protobuf.bytes && !export.json.bytes)
        log_debug(f->api->log, "nothing to export: nothing was sampled, and less than a sample's "
                               "worth of CPU time used");
    if (f->serve && f->audience != AUDIENCE_EXPORTERS && export.protobuf.bytes)
        serve_take(f->serve, export.writer, &export.protobuf);
    otlp_writer_close(export.writer); /* frees memory before more is needed */
    export.writer = NULL;
    if (f->audience != AUDIENCE_CLIENTS)
        pass_on(f, &export);
    free_encoded(&export);
}

/* Exports the interval. The interval's end is its start plus the duration by the monotonic clock,
 * so that a step of the wall clock neither stretches nor reverses the interval. */
static void export_interval(struct flush *f, struct merge *merge, bool complete, uint64_t length) {
    const uint64_t end_unix = f->interval_start_unix + length;
    profile_export_begin(&f->exporter, merge, complete);
    if (f->api->config->exporters & EXPORTER_CONSOLE) {
        console_write(f->api, f->symbolizer, merge, (double)length / NANO_PER_SECOND);
        f->api->counters.export_ended(true);
    }
    if (!f->exporter.forms)
        return;
    export_part(f, merge, export_part_whole(merge), end_unix);
}

/* Counts the samples that are lost if they are not exported now. Samples of snapshots do not count,
 * because the next export has them again. */
static uint64_t count_passing_samples(const struct merge *merge) {
    uint64_t count = 0;
    for (size_t i = 0; i < merge->items.count; i++) {
        const struct harvest_sample *const sample = merge->items.items[i];
        count += profile_kinds[sample->kind].time != SNAPSHOT;
    }
    return count;
}

static uint64_t count_passing_of_long_spans(const struct flush *f, const struct merge *merge) {
    uint64_t count = 0;
    for (size_t i = 0; i < merge->items.count; i++) {
        const struct harvest_sample *const sample = merge->items.items[i];
        count +=
            profile_kinds[sample->kind].time != SNAPSHOT && long_spans_has(&f->long_spans, sample);
    }
    return count;
}

/* Exports for the process's own clients only. Exporters must not notice such an export: the
 * remainders of their periods stay unchanged. But a snapshot that the clients get counts as filled,
 * so that a later export reports when it has become empty. */
static void export_for_clients(struct flush *f, struct merge *merge, bool complete,
                               uint64_t length) {
    const struct profile_exporter exported = f->exporter;
    f->audience = AUDIENCE_CLIENTS;
    f->exporter.forms = FORM_PROTOBUF;
    f->exporter.remainders = f->held_remainders;
    profile_export_begin(&f->exporter, merge, complete);
    export_part(f, merge, export_part_whole(merge), f->interval_start_unix + length);
    f->held_remainders = f->exporter.remainders;
    const unsigned filled = f->exporter.filled;
    f->exporter = exported;
    f->exporter.filled |= filled;
    f->audience = AUDIENCE_ALL;
}

/* Exports an interval in which OTEL_PROFILER_CONDITION does not hold: exporters get only the
 * interval's long spans. */
static void hold_back(struct flush *f, struct merge *merge, bool complete, uint64_t length) {
    f->api->counters.count_drop(DROP_CONDITION, count_passing_samples(merge) -
                                                    count_passing_of_long_spans(f, merge));
    if (f->serve && serve_sums(f->serve))
        export_for_clients(f, merge, complete, length);
    /* snapshot samples that this call removes appear in the next export */
    merge_keep(merge, long_spans_has, &f->long_spans);
    if (merge->items.count == 0)
        return;
    f->audience = AUDIENCE_EXPORTERS;
    export_interval(f, merge, false, length);
    f->audience = AUDIENCE_ALL;
}

/* --- children that ended before they had a helper --- */

/* Exports children together. Divides them if the receiver would refuse the export for its size. The
 * recursion depth is bounded by how often their number can be halved. */
/* NOLINTNEXTLINE(misc-no-recursion) */
static void export_children(struct flush *f, struct profile_exporter *exporter,
                            const struct child_export *children, size_t count) {
    const struct remainders before = exporter->remainders;
    const uint64_t most = f->api->config->max_profile_bytes;
    struct encoded_export export = profile_export_children(exporter, children, count);
    otlp_writer_close(export.writer);
    export.writer = NULL;
    const bool is_too_large = export.protobuf.size > most || export.json.size > most;
    if (is_too_large && count > 1) {
        exporter->remainders = before;
        export_children(f, exporter, children, count / 2);
        export_children(f, exporter, children + count / 2, count - count / 2);
    } else
        pass_on(f, &export);
    free_encoded(&export);
}

/* Exports the children that were found ended before this cycle, or counts them as lost: there is no
 * exporter, or the operator's condition does not hold. */
static void take_children(struct flush *f) {
    struct child_export *const children = calloc(MOST_CHILDREN, sizeof *children);
    const bool exports = (f->sender || f->file) && control_exports(f->control);
    size_t count = 0;
    while (children && count < MOST_CHILDREN &&
           merge_ended_child(&children[count].merge, f->api, &children[count].child)) {
        if (!exports)
            f->api->counters.child_is_lost(&children[count].child);
        count++;
    }
    if (exports && count) {
        struct profile_exporter exporter = f->exporter;
        exporter.is_of_children = true;
        exporter.remainders = f->child_remainders;
        export_children(f, &exporter, children, count);
        f->child_remainders = exporter.remainders;
    }
    for (size_t i = 0; i < count; i++)
        merge_free(&children[i].merge);
    free(children);
}

void flush_cycle(struct flush *f) {
    struct merge merge = {.items = {0}};
    const uint64_t now_unix = realtime_nano();
    const uint64_t now = monotonic_nano();
    const uint64_t length = now > f->interval_start ? now - f->interval_start : 1;
    profile_export_cover(&f->exporter, now - length, now);
    control_poll(f->control, length);
    const bool complete = merge_harvest(&merge, f->api);
    long_spans_update(&f->long_spans, &merge, control_span_bound(f->control),
                      (struct span_interval){now - length, now}, f->api);
    resource_update(f->resource);
    if (*f->api->config->labels && contexts_lack_names(&merge, resource_key_names(f->resource)))
        resource_find_key_names(f->resource);
    symbolizer_trim(f->symbolizer);
    f->exporter.shed_nano = control_shed_nano(f->control);
    f->exporter.finished_stacks += merge.finished_stacks;
    if (control_exports(f->control))
        export_interval(f, &merge, complete, length);
    else
        hold_back(f, &merge, complete, length);
    take_children(f);
    const uint64_t end_unix = f->interval_start_unix + length;
    if (f->serve)
        serve_end_export(f->serve, now, end_unix, f->exporter.sampled_nano);
    symbolizer_close_files(f->symbolizer);
    f->merged_bytes = merge.arena.total;
    merge_free(&merge);
    f->interval_start = now;
    /* The next interval starts at the end of this interval, unless the clock was set meanwhile. */
    const uint64_t apart = end_unix > now_unix ? end_unix - now_unix : now_unix - end_unix;
    f->interval_start_unix = apart < CLOCK_WAS_SET_NANO ? end_unix : now_unix;
}

bool flush_has_room(struct flush *f, bool last) {
    const uint64_t room = memory_room();
    f->api->guard.bound_memory(room);
    /* Expects the next export to be as large as the last one. Measured with 3,000 to 8,000 samples
     * of 1,000 threads: it needs twice the memory of its merged samples, and 1.5 MiB. */
    const uint64_t expected = EXPORT_BYTES / 2 + 2 * (uint64_t)f->merged_bytes;
    const uint64_t needed = expected > EXPORT_BYTES ? expected : EXPORT_BYTES;
    const bool named = room >= needed + NAMES_BYTES;
    symbolizer_limit(f->symbolizer, named ? room - needed - NAMES_BYTES : 0, named);
    if (!named)
        f->api->counters.count_drop(DROP_MEMORY, 1);
    return last || room >= needed;
}
