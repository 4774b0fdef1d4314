/* Defines the kinds of profiles. The kinds of samples, their attributes, the profiles, and the
 * words and bits of OTEL_PROFILER_TYPES are made from one list (profile_kinds.def). */
#ifndef OTELPROF_PROFILE_KIND_H
#define OTELPROF_PROFILE_KIND_H

enum sample_kind {
#define KIND(constant, profile, name, title, time, period, period_type, period_unit, attributes)   \
    constant,
#include "profile_kinds.def"
    SAMPLE_KINDS
};

/* Lists the words of OTEL_PROFILER_TYPES, in the order of profile_kinds.def; these are bits of
 * config.types. */
enum profile_word {
#define KIND(constant, profile, name, title, time, period, period_type, period_unit, attributes)   \
    profile##_WORD,
#define SOURCE(profile, name, of) profile##_WORD,
#include "profile_kinds.def"
    PROFILE_WORDS
};
enum {
#define KIND(constant, profile, name, title, time, period, period_type, period_unit, attributes)   \
    profile = 1 << profile##_WORD,
#define SOURCE(profile, name, of) profile = 1 << profile##_WORD,
#include "profile_kinds.def"
};

/* Lists the attributes that samples can have; sets of them are bits. */
enum sample_attribute {
#define ATTRIBUTE(constant, flag, key, meaning) constant##_INDEX,
#include "profile_kinds.def"
    SAMPLE_ATTRIBUTES
};
enum {
#define ATTRIBUTE(constant, flag, key, meaning) constant = 1 << constant##_INDEX,
#include "profile_kinds.def"
};

/* Lists the indexes of a kind's measurements in harvest_sample.values. */
enum {
    MEASURED_NANO = 0,
    MEASURED_OBJECTS = 0,
    MEASURED_BYTES = 1,
    MEASURED_DELAY = 1,
    SAMPLE_VALUES = 2
};

enum profile_time { DELTA, SNAPSHOT };
enum profile_period { CPU_PERIOD, ALLOC_INTERVAL, WAIT_PERIOD, LOCK_INTERVAL, EACH_ONE };
enum profile_measure { ROUNDED, PERIODS };

struct profile_attribute {
    const char *key;
    unsigned flag; /* bit of harvest_sample.flags; 0: another field has the attribute */
};

struct profile_kind {
    unsigned profile; /* PROFILE_* bit that selects the kind */
    const char *title;
    enum profile_time time;
    enum profile_period period;
    const char *period_type;
    const char *period_unit;
    unsigned attributes; /* ATTRIBUTE_* bits that samples of the kind can have */
};

/* Describes a profile: one value of the samples of a kind. */
struct profile_value {
    enum sample_kind kind;
    unsigned index; /* index in harvest_sample.values */
    enum profile_measure measure;
    const char *type;
    const char *unit;
};

enum profile_number {
#define VALUE(kind, index, measure, type, unit, meaning) PROFILE_OF_##kind##_##index,
#include "profile_kinds.def"
    PROFILE_VALUES
};

extern const struct profile_attribute profile_attributes[SAMPLE_ATTRIBUTES];
extern const struct profile_kind profile_kinds[SAMPLE_KINDS];
/* in the order in which the message has the profiles */
extern const struct profile_value profile_values[PROFILE_VALUES];

/* Return the value of a kind that tables for people show, and the unit of that value. */
const struct profile_value *profile_shown(enum sample_kind kind);
const char *profile_shown_unit(enum sample_kind kind);

#endif
