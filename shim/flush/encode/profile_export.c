#include "profile_export.h"

#include "clock.h"
#include "contexts.h"
#include "dictionary.h"
#include "otlp_writer.h"
#include "sample_identity.h"
#include "sample_values.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

struct build {
    struct profile_exporter *exporter;
    struct otlp_writer *writer;
    struct dictionary *dictionary;
    const struct merge *merge;
    struct sample_identities identities;
    uint64_t start;
    uint64_t end;
    uint64_t samples;
    bool first;    /* no profile has been written yet */
    bool has_sums; /* a profile of values that add up has been written */
};

/* Names the conventions of all attributes but the profiler's own, which begin with "otelprof.". */
static const char schema_url[] = "https://opentelemetry.io/schemas/1.44.0";

/* --- samples --- */

static void encode_sample(struct build *b, struct otlp_profile *profile,
                          const struct valued_sample *valued) {
    int32_t attributes[IDENTITY_ATTRIBUTES];
    const struct otlp_identity identity = sample_identity(&b->identities, valued, attributes);
    otlp_sample(b->writer, profile, &identity, valued->value);
    b->samples++;
}

/* --- totals since the start --- */

static void write_total(struct build *b, struct otlp_profile *profile, const char *key,
                        uint64_t total, const char *unit) {
    otlp_profile_attribute(b->writer, profile,
                           otlp_attribute_int(b->writer, key, (int64_t)total, unit));
}

/* Writes the losses, and the times and counts that explain an export's samples, as attributes of
 * its first profile. */
static void write_totals(struct build *b, struct otlp_profile *profile) {
    const struct profile_exporter *const exporter = b->exporter;
    const uint64_t foreign_nano = exporter->api->counters.foreign_stack_nano();
    const uint64_t short_child_nano = exporter->api->counters.short_child_nano();
    uint64_t counts[DROP_REASON_COUNT];
    exporter->api->counters.dropped(counts);
    for (int reason = 0; reason < DROP_REASON_COUNT; reason++) {
        char key[64];
        if (!counts[reason])
            continue;
        snprintf(key, sizeof key, "otelprof.dropped.%s",
                 drop_reason_name((enum drop_reason)reason));
        write_total(b, profile, key, counts[reason], "1");
    }
    /* reports the helper's CPU time: getrusage counts it for the process, but no sample has it */
    write_total(b, profile, "otelprof.self.cpu_time", exporter->api->counters.helper_cpu_nano(),
                "ns");
    if (exporter->shed_nano) /* time without samples because of OTEL_PROFILER_CPU_THRESHOLD */
        write_total(b, profile, "otelprof.shed.time", exporter->shed_nano, "ns");
    if (foreign_nano) /* CPU time of the samples that otelprof.dropped.foreign_stack counts */
        write_total(b, profile, "otelprof.foreign_stack.cpu_time", foreign_nano, "ns");
    if (short_child_nano)
        write_total(b, profile, "otelprof.short_child.cpu_time", short_child_nano, "ns");
    if (exporter->finished_stacks) /* the walker had left these stacks to libunwind */
        write_total(b, profile, "otelprof.stacks.finished_by_libunwind", exporter->finished_stacks,
                    "1");
}

/* --- profiles --- */

/* Returns the part of the interval in which the kind was sampled: all time of a child, and 1 ns for
 * samples that were taken just before the interval's begin, as 0 means sums since the start. */
static struct covered_time covered_of(const struct build *b, unsigned value) {
    const enum sample_kind kind = profile_values[value].kind;
    const uint64_t begin = b->start + b->exporter->sampled_after[kind];
    const uint64_t nano = b->exporter->sampled_nano[kind];
    if (b->exporter->is_of_children)
        return (struct covered_time){b->start, b->end, value};
    return (struct covered_time){begin, begin + (nano ? nano : 1), value};
}

static struct otlp_profile *open_profile(const struct build *b, struct covered_time time,
                                         size_t samples) {
    const struct profile_value *const d = &profile_values[time.value];
    const struct profile_kind *const kind = &profile_kinds[d->kind];
    const bool snapshot = kind->time == SNAPSHOT;
    const struct otlp_profile_type type = {
        .type = d->type,
        .unit = d->unit,
        /* Pyroscope puts the type into the name: "memory:alloc_space:bytes:..." as for Go */
        .period_type = kind->period_type,
        .period_unit = kind->period_unit,
        .period = (int64_t)b->exporter->api->harvest.period(kind->period)};
    uint8_t id[16];
    if (getrandom(id, sizeof id, GRND_NONBLOCK) != (ssize_t)sizeof id) {
        const uint64_t fallback[] = {monotonic_nano(), realtime_nano()};
        memcpy(id, fallback, sizeof id);
    }
    return otlp_profile(b->writer, &type, id, snapshot ? b->end : time.begin,
                        snapshot ? 0 : time.end - time.begin, samples);
}

/* Writes when the peak was read, and the highest value it may have reached before or after. */
static void write_peak_facts(struct build *b, struct otlp_profile *profile) {
    const struct heap_peak_facts facts = b->exporter->api->harvest.heap_peak();
    otlp_profile_attribute(b->writer, profile,
                           otlp_attribute_int(b->writer, "otelprof.heap.peak.highest",
                                              (int64_t)facts.highest_bytes, "By"));
    otlp_profile_attribute(
        b->writer, profile,
        otlp_attribute_int(b->writer, "otelprof.heap.peak.time", (int64_t)facts.unix_nano, "ns"));
}

static void encode_profile(struct build *b, const struct merge *merge, struct export_part part,
                           const struct profile_value *d) {
    struct sample_values values = sample_values_collect(b->exporter, merge, part, d);
    /* a part that was divided has samples, so only the first half may mark the kind as empty */
    const bool empty =
        values.count == 0 && (b->exporter->emptied >> d->kind & 1) && part.first == 0;
    struct otlp_profile *const profile =
        values.count || empty
            ? open_profile(b, covered_of(b, (unsigned)(d - profile_values)), values.count + 1)
            : NULL;
    if (profile && empty)
        otlp_sample(b->writer, profile, &(struct otlp_identity){0}, 0);
    for (size_t i = 0; profile && i < values.count; i++)
        encode_sample(b, profile, &values.items[i]);
    if (profile && d->kind == SAMPLE_HEAP_PEAK)
        write_peak_facts(b, profile);
    if (profile && b->first && !b->exporter->is_of_children)
        write_totals(b, profile);
    b->first = b->first && !profile;
    b->has_sums |= profile && profile_kinds[d->kind].time == DELTA;
    free(values.items);
}

/* --- time without samples --- */

/* Adds the part of the interval in which the kind of `value` was sampled, and had no sample.
 * Earlier idle time that does not end where this part begins is lost. */
static void add_idle_time(struct covered_time *idle, const struct build *b, unsigned value) {
    const struct covered_time more = covered_of(b, value);
    const bool goes_on = idle->end == more.begin && idle->value == value && idle->begin < idle->end;
    *idle = (struct covered_time){goes_on ? idle->begin : more.begin, more.end, value};
}

/* Returns the index of the value that adds up and whose kind was sampled for the longest time of
 * the interval, the first of several; PROFILE_VALUES: there is none, or samples are missing. */
static unsigned longest_covered(const struct profile_exporter *exporter) {
    unsigned longest = PROFILE_VALUES;
    uint64_t nano = 0;
    for (unsigned i = 0; exporter->is_complete && i < PROFILE_VALUES; i++) {
        const enum sample_kind kind = profile_values[i].kind;
        if (profile_kinds[kind].time != DELTA || exporter->sampled_nano[kind] <= nano)
            continue;
        nano = exporter->sampled_nano[kind];
        longest = i;
    }
    return longest;
}

/* Writes the profile of idle time, if any: beside other profiles, or alone if reports_idle is set.
 * Only a whole interval adds idle time: an interval that was divided has samples. */
static void encode_idle_time(struct build *b, struct export_part part) {
    const struct export_part whole = export_part_whole(b->merge);
    const bool is_whole = part.profiles == whole.profiles && part.past == whole.past;
    struct profile_exporter *const exporter = b->exporter;
    struct covered_time *const idle = &exporter->remainders.idle;
    const unsigned value = longest_covered(exporter);
    if (is_whole && !b->has_sums && value < PROFILE_VALUES)
        add_idle_time(idle, b, value);
    const bool is_alone = b->first;
    if (idle->begin == idle->end || (is_alone && !exporter->reports_idle))
        return;
    struct otlp_profile *const profile = open_profile(b, *idle, 0);
    if (!profile)
        return;
    if (is_alone)
        write_totals(b, profile);
    b->first = false;
    if (!(is_alone && exporter->keeps_idle))
        *idle = (struct covered_time){0, 0, 0};
}

/* Writes the scope, then the message in each form that is wanted. */
static void encode_forms(const struct build *b, struct encoded_export *result) {
    const unsigned forms = b->exporter->forms;
    otlp_schema(b->writer, schema_url);
    otlp_scope(b->writer, "libotelprof", OTELPROF_VERSION);
    result->samples = b->samples;
    if (forms & FORM_PROTOBUF)
        result->protobuf.bytes = otlp_writer_pack(b->writer, &result->protobuf.size);
    if (forms & FORM_JSON)
        result->json.bytes = otlp_writer_json(b->writer, &result->json.size);
    if (((forms & FORM_PROTOBUF) && !result->protobuf.bytes) ||
        ((forms & FORM_JSON) && !result->json.bytes))
        b->exporter->api->counters.count_drop(DROP_ENCODE, b->samples);
}

/* --- intervals and their parts --- */

/* Returns a bit for each kind that is profiled at present: only for these does a lack of samples
 * mean an empty snapshot. */
static unsigned kinds_profiled(const struct profile_exporter *exporter) {
    const unsigned types = exporter->api->harvest.types();
    unsigned found = 0;
    for (unsigned kind = 0; kind < SAMPLE_KINDS; kind++)
        if (profile_kinds[kind].profile & types)
            found |= 1u << kind;
    return found;
}

static struct sampled_time sampled_until(const struct profile_exporter *exporter, unsigned kind,
                                         uint64_t now) {
    const enum profile_word type = (enum profile_word)__builtin_ctz(profile_kinds[kind].profile);
    return exporter->api->harvest.sampled(type, now);
}

void profile_export_cover(struct profile_exporter *exporter, uint64_t begin, uint64_t end) {
    const uint64_t length = end - begin;
    for (unsigned kind = 0; kind < SAMPLE_KINDS; kind++) {
        const struct sampled_time time = sampled_until(exporter, kind, end);
        uint64_t *const before = &exporter->sampled_before[kind];
        /* the account may have changed since `end`: then the sum may exceed the interval's time, or
         * be less than before */
        const uint64_t nano = time.nano > *before ? earlier(time.nano - *before, length) : 0;
        const uint64_t after = time.begun > begin ? time.begun - begin : 0;
        exporter->sampled_nano[kind] = nano;
        exporter->sampled_after[kind] = earlier(after, length - nano);
        *before = time.nano > *before ? time.nano : *before;
    }
}

void profile_export_begin(struct profile_exporter *exporter, struct merge *merge, bool complete) {
    const unsigned profiled = kinds_profiled(exporter);
    if (merge->contexts.count == 0) {
        const uint64_t left_out =
            contexts_name(merge, resource_key_names(exporter->resource), exporter->api->config);
        if (left_out)
            exporter->api->counters.count_drop(DROP_CONTEXT_KEY, left_out);
    }
    const unsigned filled = merge_snapshots(merge);
    exporter->emptied = complete ? exporter->filled & ~filled & profiled : 0;
    exporter->filled = filled | (complete ? 0 : exporter->filled);
    exporter->is_complete = complete;
}

struct export_part export_part_whole(const struct merge *merge) {
    return (struct export_part){(1u << PROFILE_VALUES) - 1, 0, merge->items.count};
}

/* Returns the lowest set bits that belong to one kind of sample. */
static unsigned first_kind(unsigned profiles) {
    unsigned found = 0;
    enum sample_kind kind = SAMPLE_CPU;
    for (unsigned i = 0; i < PROFILE_VALUES; i++) {
        if (!(profiles >> i & 1) || (found && profile_values[i].kind != kind))
            continue;
        found |= 1u << i;
        kind = profile_values[i].kind;
    }
    return found;
}

bool export_part_divide(struct export_part part, struct export_part halves[static 2]) {
    unsigned first = first_kind(part.profiles);
    if (first == part.profiles)
        first &= ~first + 1; /* keeps the lowest bit alone */
    halves[0] = halves[1] = part;
    if (first != part.profiles) {
        halves[0].profiles = first;
        halves[1].profiles = part.profiles & ~first;
        return true;
    }
    halves[0].past = halves[1].first = part.first + (part.past - part.first) / 2;
    return part.past - part.first > 1;
}

/* Encodes the profiles of one merge. Returns false if it has none, or if there is no memory. */
static bool encode_merge(struct build *b, const struct merge *merge, struct export_part part) {
    b->merge = merge;
    b->first = true;
    b->has_sums = false;
    const bool can_encode = sample_identities_begin(&b->identities, merge);
    for (unsigned i = 0; can_encode && i < PROFILE_VALUES; i++) {
        const unsigned type = profile_kinds[profile_values[i].kind].profile;
        if ((b->exporter->api->config->types & type) && (part.profiles >> i & 1))
            encode_profile(b, merge, part, &profile_values[i]);
    }
    sample_identities_end(&b->identities);
    return !b->first;
}

static struct build open_build(struct profile_exporter *exporter, uint64_t start, uint64_t end) {
    struct build b = {.exporter = exporter,
                      .writer = otlp_writer_open(),
                      .first = true,
                      .start = start,
                      .end = end};
    if (b.writer)
        b.dictionary = dictionary_open(b.writer, exporter->api, exporter->symbolizer);
    b.identities = sample_identities_open(exporter, b.writer, b.dictionary);
    return b;
}

struct encoded_export profile_export(struct profile_exporter *exporter, const struct merge *merge,
                                     struct export_part part, uint64_t start_unix_nano,
                                     uint64_t end_unix_nano) {
    struct build b = open_build(exporter, start_unix_nano, end_unix_nano);
    struct encoded_export result = {.writer = b.writer};
    b.merge = merge;
    if (b.dictionary)
        (void)encode_merge(&b, merge, part);
    result.is_idle = b.first;
    /* only the first of an interval's parts has the lowest profile of the first samples */
    if (b.dictionary && (part.profiles & 1) && part.first == 0)
        encode_idle_time(&b, part);
    if (!b.first) {
        resource_write(exporter->resource, b.writer);
        encode_forms(&b, &result);
    }
    dictionary_close(b.dictionary);
    return result;
}

/* --- children --- */

/* Sets the time of the child's profiles, as far as the child's report can be true. */
static void set_time_of_child(struct build *b, const struct ended_child *child) {
    const uint64_t now = realtime_nano(), reported = child->start_unix_nano;
    b->start = reported < b->exporter->api->start_unix_nano || reported > now ? now : reported;
    b->end = child->lived_nano < now - b->start ? b->start + child->lived_nano : now;
}

struct encoded_export profile_export_children(struct profile_exporter *exporter,
                                              const struct child_export *children, size_t count) {
    struct build b = open_build(exporter, 0, 0);
    struct encoded_export result = {.writer = b.writer, .is_idle = true};
    for (size_t i = 0; b.dictionary && i < count; i++) {
        set_time_of_child(&b, &children[i].child);
        if (!encode_merge(&b, &children[i].merge, export_part_whole(&children[i].merge)))
            continue;
        struct ended_child shown = children[i].child;
        shown.start_unix_nano = b.start;
        resource_write_child(exporter->resource, &shown, b.writer);
        otlp_next_resource(b.writer);
        result.is_idle = false;
    }
    if (!result.is_idle)
        encode_forms(&b, &result);
    dictionary_close(b.dictionary);
    return result;
}
