#include "pprof_kind.h"

#include "profile_kind.h"

#include <string.h>

const struct pprof_facts *pprof_facts(enum pprof_kind kind) {
    static const struct pprof_facts facts[] = {
#define PPROF_KIND(constant, name, default_type, profile, begins, period_type, period_unit, help)  \
    {name, default_type, profile, begins, period_type, period_unit, help},
#include "pprof_kinds.def"
    };
    return &facts[kind];
}

size_t pprof_values(enum pprof_kind kind, struct pprof_value values[static PPROF_VALUES]) {
    static const struct {
        enum pprof_kind kind;
        struct pprof_value value;
    } all[] = {
#define PPROF_VALUE(kind, of, type, unit, measure) {kind, {of, type, unit, measure}},
#include "pprof_kinds.def"
    };
    size_t count = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].kind == kind)
            values[count++] = all[i].value;
    return count;
}

enum pprof_kind pprof_kind_summed(enum pprof_kind kind) {
    return kind == PPROF_ALLOCS ? PPROF_HEAP : kind;
}

enum pprof_kind pprof_kind_named(const char *name) {
    unsigned kind = 0;
    while (kind < PPROF_KINDS && strcmp(pprof_facts(kind)->name, name) != 0)
        kind++;
    return kind;
}
