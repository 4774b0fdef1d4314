#include "pprof_sum.h"

#include "clock.h"
#include "compress.h"
#include "profile_kind.h"
#include "utc_time.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 16 << 20, SINCE_BYTES = 16 + UTC_TIME_BYTES };

/* Describes a label, which is part of a sample's key. */
struct label {
    int64_t number;
    int32_t key;
    int32_t text; /* 0: the label is a number */
};

/* Holds the key of a sample. Keys are compared byte by byte, so they must have no padding. */
struct sample_key {
    int32_t stack;
    int32_t label_count;
    struct label labels[PPROF_LABELS]; /* the first label_count are part of the key */
};

struct pprof_sum {
    struct pprof_value values[PPROF_VALUES];
    bool of_moment[PPROF_VALUES];
    size_t value_count;
    struct pprof_tables tables;
    struct intern samples;
    int64_t (*sums)[PPROF_VALUES]; /* sums of each sample */
    size_t capacity;
    uint64_t period;     /* period of the profile that was added last */
    bool whole_identity; /* numeric labels are kept, too, for lists of single threads */
    bool is_early;       /* this is a difference whose time has not begun */
    bool is_of_moments;  /* this is a difference, and its values are of one moment */
    uint64_t missed;
    int64_t (*begun)[PPROF_VALUES]; /* values of each sample when the difference began */
    int32_t begun_count;
    int32_t other; /* number of the sample [other], once the sum is full; -1: not full */
};

/* Lists field numbers of pprof's messages, as in pprof_tables.c. */
enum { PROFILE_TYPE = 1, PROFILE_SAMPLE = 2, PROFILE_TIME = 9, PROFILE_DURATION = 10 };
enum { PROFILE_PERIOD_TYPE = 11, PROFILE_PERIOD = 12, PROFILE_COMMENT = 13, PROFILE_DEFAULT = 14 };
enum { TYPE_TYPE = 1, TYPE_UNIT = 2 };
enum { SAMPLE_LOCATIONS = 1, SAMPLE_VALUE_LIST = 2, SAMPLE_LABEL = 3 };
enum { LABEL_KEY = 1, LABEL_TEXT = 2, LABEL_NUMBER = 3 };

/* Returns true if the OTLP profile with sample type `of` describes one moment. */
static bool is_of_moment(const char *of) {
    for (unsigned i = 0; i < PROFILE_VALUES; i++)
        if (strcmp(profile_values[i].type, of) == 0)
            return profile_kinds[profile_values[i].kind].time == SNAPSHOT;
    return false;
}

struct pprof_sum *pprof_sum_open(enum pprof_kind kind) {
    struct pprof_sum *const sum = calloc(1, sizeof *sum);
    if (!sum)
        return NULL;
    sum->other = -1;
    sum->value_count = pprof_values(kind, sum->values);
    sum->whole_identity = pprof_facts(kind)->begins == NOW;
    for (size_t i = 0; i < sum->value_count; i++)
        sum->of_moment[i] = is_of_moment(sum->values[i].of);
    return sum;
}

struct pprof_sum *pprof_sum_open_difference(enum pprof_kind kind) {
    struct pprof_sum *const sum = pprof_sum_open(kind);
    if (!sum)
        return NULL;
    sum->is_early = true;
    sum->whole_identity = false;
    for (size_t i = 0; i < sum->value_count; i++)
        sum->is_of_moments |= sum->of_moment[i];
    return sum;
}

void pprof_sum_close(struct pprof_sum *sum) {
    if (!sum)
        return;
    pprof_tables_free(&sum->tables);
    free(sum->sums);
    free(sum->begun);
    free(sum);
}

size_t pprof_sum_bytes(const struct pprof_sum *sum) {
    return sum->tables.arena.total + sum->capacity * sizeof *sum->sums +
           (size_t)sum->begun_count * sizeof *sum->begun;
}

/* --- adding --- */

/* Drops everything and starts again from zero, after a failed allocation, because the tables may
 * lack a part of the data added last. */
static void pprof_sum_reset(struct pprof_sum *sum) {
    pprof_tables_free(&sum->tables);
    free(sum->sums);
    free(sum->begun);
    sum->samples = (struct intern){.count = 0};
    sum->sums = NULL;
    sum->begun = NULL;
    sum->begun_count = 0;
    sum->capacity = 0;
    sum->other = -1;
    sum->missed++;
}

void pprof_sum_next_export(struct pprof_sum *sum) {
    for (size_t value = 0; value < sum->value_count; value++)
        for (int32_t i = 0; sum->of_moment[value] && i < sum->samples.count; i++)
            sum->sums[i][value] = 0;
}

void pprof_sum_begin(struct pprof_sum *sum) {
    if (!sum->is_early)
        return;
    sum->is_early = false;
    const size_t count = (size_t)sum->samples.count;
    if (count == 0)
        return;
    sum->begun = calloc(count, sizeof *sum->begun);
    if (!sum->begun) {
        sum->missed++;
        return;
    }
    memcpy(sum->begun, sum->sums, count * sizeof *sum->begun);
    memset(sum->sums, 0, count * sizeof *sum->sums);
    sum->begun_count = (int32_t)count;
}

/* Marks the sum as incomplete. Has no effect on a difference whose time has not begun, unless its
 * values are of one moment, because only such values are read before the begin. */
void pprof_sum_mark_incomplete(struct pprof_sum *sum) {
    sum->missed += !sum->is_early || sum->is_of_moments;
}

static bool has_room_for(struct pprof_sum *sum, size_t count) {
    if (count <= sum->capacity)
        return true;
    const size_t capacity = count < 256 ? 256 : 2 * count;
    int64_t(*const larger)[PPROF_VALUES] = realloc(sum->sums, capacity * sizeof *larger);
    if (!larger)
        return false;
    memset(larger + sum->capacity, 0, (capacity - sum->capacity) * sizeof *larger);
    sum->sums = larger;
    sum->capacity = capacity;
    return true;
}

static bool label_number(const struct listed_attribute *attribute, int64_t *number) {
    double real;
    memcpy(&real, &attribute->number, sizeof real);
    *number = attribute->form == ANY_DOUBLE ? (int64_t)real : attribute->number;
    return attribute->form == ANY_INT || attribute->form == ANY_DOUBLE;
}

/* Reads one label of a sample; its numbers are -1 if it cannot be stored. Returns false if samples
 * in pprof's format do not have the attribute. */
static bool pprof_read_label(struct pprof_sum *sum, struct pprof_reading *reading, int32_t index,
                             struct label *label) {
    const struct listed_attribute *const attribute = reading->writer->attributes.keys[index].bytes;
    const char *const key = listed_text(reading->writer, attribute->key);
    *label = (struct label){.number = 0};
    /* skips texts such as addresses of locks and stacks of holders, which would make almost every
     * sample unique */
    if (attribute->form == ANY_STRING && *attribute->text &&
        strcmp(key, "otelprof.lock.address") != 0 && strcmp(key, "otelprof.lock.holder.stack") != 0)
        label->text = pprof_string(&sum->tables, attribute->text);
    else if (!sum->whole_identity || !label_number(attribute, &label->number))
        return false;
    label->key = pprof_string(&sum->tables, key);
    return true;
}

static int compare_labels(const void *a, const void *b) {
    const struct label *const first = a;
    const struct label *const second = b;
    return first->key != second->key ? (first->key > second->key) - (first->key < second->key)
                                     : (first->text > second->text) - (first->text < second->text);
}

/* Reads the labels of a sample. Returns false if a label cannot be stored. */
static bool read_labels(struct pprof_sum *sum, struct pprof_reading *reading,
                        const struct intern_key *identity, struct sample_key *key) {
    const int32_t *const numbers = identity->bytes;
    const size_t count = identity->size / sizeof *numbers;
    for (size_t i = IDENTITY_ATTRIBUTES; i < count && key->label_count < PPROF_LABELS; i++) {
        struct label *const label = &key->labels[key->label_count];
        key->label_count += pprof_read_label(sum, reading, numbers[i], label);
        if (label->key < 0 || label->text < 0)
            return false;
    }
    qsort(key->labels, (size_t)key->label_count, sizeof *key->labels, compare_labels);
    return true;
}

/* Returns the number of the key's sample, and makes room for it in `sums`; -1: no memory, or the
 * key is new and the sum is full. */
static int32_t intern_key_of_sample(struct pprof_sum *sum, const struct sample_key *key) {
    const size_t size =
        offsetof(struct sample_key, labels) + (size_t)key->label_count * sizeof *key->labels;
    if (key->stack < 0 || !has_room_for(sum, (size_t)sum->samples.count + 1))
        return -1;
    return pprof_number(&sum->tables, &sum->samples, key, size);
}

/* Returns the number of the sample, or of [other] once the sum is full; -1 without memory. */
static int32_t sample_number(struct pprof_sum *sum, struct pprof_reading *reading,
                             const struct intern_key *identity) {
    struct sample_key key = {.stack = -1};
    /* when the sum is full, new stacks are counted under [other] */
    if (sum->other < 0 && sum->tables.arena.total > MOST_BYTES) {
        const struct sample_key other = {.stack = pprof_named_stack(&sum->tables, "[other]")};
        sum->other = intern_key_of_sample(sum, &other);
        sum->tables.frozen = sum->other >= 0;
    }
    const int32_t *const numbers = identity->bytes;
    key.stack = pprof_read_stack(&sum->tables, reading, numbers[IDENTITY_STACK]);
    const bool listed = key.stack >= 0 && read_labels(sum, reading, identity, &key);
    const int32_t number = listed ? intern_key_of_sample(sum, &key) : -1;
    return number < 0 ? sum->other : number;
}

static void add_sample(struct pprof_sum *sum, struct pprof_reading *reading,
                       const struct otlp_profile *profile, int32_t sample, unsigned wanted) {
    const int64_t value = profile->values[sample];
    if (value == 0)
        return;
    const int32_t number = sample_number(sum, reading, &profile->identities.keys[sample]);
    if (number < 0) {
        sum->missed++;
        return;
    }
    for (size_t i = 0; i < sum->value_count; i++)
        if (wanted & 1U << i)
            sum->sums[number][i] +=
                value * (sum->values[i].measure == TIMES_PERIOD ? profile->period : 1);
}

/* Reserves room for the first export, for one sample a stack. A stack has more samples if labels
 * distinguish threads, but most sums have no such labels. */
static void reserve(struct pprof_sum *sum, int32_t samples, int32_t stacks) {
    const size_t expected = (size_t)(samples < stacks ? samples : stacks);
    intern_reserve(&sum->tables.arena, &sum->tables.stacks, expected);
    intern_reserve(&sum->tables.arena, &sum->samples, expected);
}

static void add_profile(struct pprof_sum *sum, struct pprof_reading *reading,
                        const struct otlp_profile *profile) {
    const char *const type = listed_text(reading->writer, profile->type.type);
    unsigned wanted = 0;
    for (size_t i = 0; i < sum->value_count; i++)
        if (strcmp(sum->values[i].of, type) == 0 && (!sum->is_early || sum->of_moment[i]))
            wanted |= 1U << i;
    if (!wanted)
        return;
    sum->period = (uint64_t)profile->period;
    if (sum->samples.count == 0)
        reserve(sum, profile->identities.count, reading->writer->stacks.count);
    for (int32_t i = 0; i < profile->identities.count; i++)
        add_sample(sum, reading, profile, i, wanted);
}

void pprof_sum_add(struct pprof_sum *sum, const struct otlp_writer *writer) {
    struct pprof_reading reading;
    const bool opened = pprof_reading_open(&reading, writer);
    if (!opened)
        pprof_sum_mark_incomplete(sum);
    for (size_t i = 0; opened && i < writer->profiles.count; i++)
        add_profile(sum, &reading, writer->profiles.items[i]);
    pprof_reading_close(&reading);
    if (sum->tables.arena.failed)
        pprof_sum_reset(sum);
}

/* --- reading --- */

size_t pprof_sum_count(const struct pprof_sum *sum) {
    return (size_t)sum->samples.count;
}

const struct pprof_tables *pprof_sum_tables(const struct pprof_sum *sum) {
    return &sum->tables;
}

static void sum_values(const struct pprof_sum *sum, int32_t number,
                       int64_t values[static PPROF_VALUES]) {
    for (size_t i = 0; i < PPROF_VALUES; i++)
        values[i] = sum->sums[number][i] - (number < sum->begun_count ? sum->begun[number][i] : 0);
}

void pprof_sum_sample(const struct pprof_sum *sum, size_t number, struct pprof_sample *sample) {
    const struct sample_key *const key = sum->samples.keys[number].bytes;
    *sample = (struct pprof_sample){.stack = key->stack, .label_count = (size_t)key->label_count};
    sum_values(sum, (int32_t)number, sample->values);
    for (size_t i = 0; i < sample->label_count; i++) {
        const struct label *const label = &key->labels[i];
        sample->labels[i] = (struct pprof_label){
            .key = sum->tables.strings.keys[label->key].bytes,
            .text = label->text ? sum->tables.strings.keys[label->text].bytes : NULL,
            .number = label->number};
    }
}

/* --- writing --- */

static void write_type(struct wire *wire, unsigned field, int32_t type, int32_t unit) {
    const size_t begun = wire_begin(wire, field);
    wire_number(wire, TYPE_TYPE, (uint64_t)type);
    wire_number(wire, TYPE_UNIT, (uint64_t)unit);
    wire_end(wire, begun);
}

static void pprof_write_sample(const struct pprof_sum *sum, int32_t number, struct wire *wire) {
    const struct sample_key *const key = sum->samples.keys[number].bytes;
    int64_t values[PPROF_VALUES];
    sum_values(sum, number, values);
    if (!values[0] && !values[1] && !values[2] && !values[3])
        return;
    const size_t begun = wire_begin(wire, PROFILE_SAMPLE);
    pprof_write_stack(&sum->tables, wire, SAMPLE_LOCATIONS, key->stack);
    const size_t list = wire_begin(wire, SAMPLE_VALUE_LIST);
    for (size_t i = 0; i < sum->value_count; i++)
        wire_varint(wire, (uint64_t)values[i]);
    wire_end(wire, list);
    for (int32_t i = 0; i < key->label_count; i++) {
        const size_t label = wire_begin(wire, SAMPLE_LABEL);
        wire_number(wire, LABEL_KEY, (uint64_t)key->labels[i].key);
        wire_number(wire, LABEL_TEXT, (uint64_t)key->labels[i].text);
        wire_number(wire, LABEL_NUMBER, (uint64_t)key->labels[i].number);
        wire_end(wire, label);
    }
    wire_end(wire, begun);
}

/* Holds string numbers of the profile's own texts, which must be interned before the string table
 * is written. */
struct names {
    int32_t types[PPROF_VALUES];
    int32_t units[PPROF_VALUES];
    int32_t period_type;
    int32_t period_unit;
    int32_t default_type;
    int32_t comments[2]; /* 0: no comment */
};

static struct names intern_names(struct pprof_sum *sum, enum pprof_kind kind,
                                 const struct pprof_times *times) {
    static const char since[] = "sums since ";
    const struct pprof_facts *const facts = pprof_facts(kind);
    struct pprof_tables *const tables = &sum->tables;
    const bool frozen = tables->frozen;
    const char *const incomplete =
        sum->missed       ? "incomplete: there was too little memory to read all exports"
        : sum->other >= 0 ? "stacks that were new above 16 MiB are in [other]"
                          : "";
    char start[SINCE_BYTES] = "";
    struct names names;
    if (times->since_unix_nano) { /* a profile of cumulative sums has no duration */
        memcpy(start, since, sizeof since);
        utc_time((uint32_t)(times->since_unix_nano / NANO_PER_SECOND), start + sizeof since - 1);
    }
    tables->frozen = false;
    for (size_t i = 0; i < sum->value_count; i++) {
        names.types[i] = pprof_string(tables, sum->values[i].type);
        names.units[i] = pprof_string(tables, sum->values[i].unit);
    }
    names.period_type = pprof_string(tables, facts->period_type);
    names.period_unit = pprof_string(tables, facts->period_unit);
    names.default_type = pprof_string(tables, facts->default_type);
    names.comments[0] = pprof_string(tables, start);
    names.comments[1] = pprof_string(tables, incomplete);
    tables->frozen = frozen;
    return names;
}

static void pprof_write_profile(struct pprof_sum *sum, enum pprof_kind kind,
                                const struct pprof_times *times, struct wire *wire) {
    const struct names names = intern_names(sum, kind, times);
    const bool counts = strcmp(pprof_facts(kind)->period_unit, "count") == 0;
    for (size_t i = 0; i < sum->value_count; i++)
        write_type(wire, PROFILE_TYPE, names.types[i], names.units[i]);
    for (int32_t i = 0; i < sum->samples.count; i++)
        pprof_write_sample(sum, i, wire);
    pprof_write_tables(&sum->tables, wire);
    wire_number(wire, PROFILE_TIME, times->unix_nano);
    wire_number(wire, PROFILE_DURATION, times->duration_nano);
    write_type(wire, PROFILE_PERIOD_TYPE, names.period_type, names.period_unit);
    wire_number(wire, PROFILE_PERIOD, counts ? 1 : sum->period);
    for (size_t i = 0; i < sizeof names.comments / sizeof *names.comments; i++)
        wire_number(wire, PROFILE_COMMENT, (uint64_t)names.comments[i]);
    wire_number(wire, PROFILE_DEFAULT, (uint64_t)names.default_type);
}

uint8_t *pprof_sum_encode(struct pprof_sum *sum, enum pprof_kind kind,
                          const struct pprof_times *times, size_t *size) {
    struct wire wire = {.bytes = NULL};
    if (sum->is_of_moments && sum->missed)
        return NULL; /* otherwise live objects would seem to have been freed */
    pprof_write_profile(sum, kind, times, &wire);
    wire.failed |= sum->tables.arena.failed;
    sum->tables.arena.failed = false; /* only one of the profile's own texts is missing */
    uint8_t *bytes = wire_take(&wire, size);
    if (bytes && compress_in_place(COMPRESSION_GZIP, &bytes, size))
        return bytes;
    free(bytes);
    return NULL;
}
