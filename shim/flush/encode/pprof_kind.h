/* Declares the tables made from pprof_kinds.def. Context: any. */
#ifndef OTELPROF_PPROF_KIND_H
#define OTELPROF_PPROF_KIND_H

#include <stdbool.h>
#include <stddef.h>

enum pprof_kind {
#define PPROF_KIND(constant, name, default_type, profile, begins, period_type, period_unit, help)  \
    constant,
#include "pprof_kinds.def"
    PPROF_KINDS
};

enum pprof_begin { AT_REQUEST, AT_START, NOW };
enum pprof_measure { PLAIN, TIMES_PERIOD };
enum { PPROF_VALUES = 4 }; /* largest number of values of a sample */

struct pprof_value {
    const char *of; /* sample type of the OTLP profile that has the value */
    const char *type;
    const char *unit;
    enum pprof_measure measure;
};

struct pprof_facts {
    const char *name;
    const char *default_type;
    unsigned profiles; /* PROFILE_* bits that provide this kind */
    enum pprof_begin begins;
    const char *period_type;
    const char *period_unit;
    const char *help;
};

const struct pprof_facts *pprof_facts(enum pprof_kind kind);

/* Stores the values of a kind in their order. Returns their number. */
size_t pprof_values(enum pprof_kind kind, struct pprof_value values[static PPROF_VALUES]);

/* Returns the kind whose sums serve this kind, too: `heap` and `allocs` have the same sums. */
enum pprof_kind pprof_kind_summed(enum pprof_kind kind);

/* Returns the kind of that name, or PPROF_KINDS if there is none. */
enum pprof_kind pprof_kind_named(const char *name);

#endif
