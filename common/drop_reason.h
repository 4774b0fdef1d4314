/* Defines the reasons for dropping samples: one list (drop_reasons.def) makes the enum, the
 * counters, the names. */
#ifndef OTELPROF_DROP_REASON_H
#define OTELPROF_DROP_REASON_H

enum drop_reason {
#define DROP(constant, name, meaning) constant,
#include "drop_reasons.def"
#undef DROP
    DROP_REASON_COUNT
};

/* Context: any. Async-signal-safe: yes. */
static inline const char *drop_reason_name(enum drop_reason reason) {
    static const char *const names[] = {
#define DROP(constant, name, meaning) name,
#include "drop_reasons.def"
#undef DROP
    };
    return names[reason];
}

#endif
