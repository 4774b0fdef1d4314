/* Defines the reasons for dropping samples: the enum, the counters and the names are made from one
 * list (drop_reasons.def). */
#ifndef OTELPROF_DROP_REASON_H
#define OTELPROF_DROP_REASON_H

enum drop_reason {
#define DROP(constant, name, meaning) constant,
#include "drop_reasons.def"
#undef DROP
    DROP_REASON_COUNT
};

/* Returns the name of a reason. Context: any. Async-signal-safe: yes. */
static inline const char *drop_reason_name(enum drop_reason reason) {
    static const char *const names[] = {
#define DROP(constant, name, meaning) name,
#include "drop_reasons.def"
#undef DROP
    };
    return names[reason];
}

#endif
