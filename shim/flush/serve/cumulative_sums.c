#include "cumulative_sums.h"

void cumulative_sums_open(struct cumulative_sums *sums, unsigned profiles, uint64_t since_unix) {
    if (sums->are_open)
        return;
    sums->are_open = true;
    sums->since_unix = since_unix;
    for (unsigned kind = 0; kind < PPROF_KINDS; kind++) {
        const struct pprof_facts *const facts = pprof_facts(kind);
        if (facts->begins == AT_START && pprof_kind_summed(kind) == kind &&
            (facts->profiles & profiles))
            sums->of[kind] = pprof_sum_open(kind);
    }
}

void cumulative_sums_close(struct cumulative_sums *sums) {
    for (unsigned kind = 0; kind < PPROF_KINDS; kind++)
        pprof_sum_close(sums->of[kind]);
}

void cumulative_sums_add(struct cumulative_sums *sums, const struct otlp_writer *writer,
                         bool first) {
    for (unsigned kind = 0; kind < PPROF_KINDS; kind++) {
        struct pprof_sum *const sum = sums->of[kind];
        if (!sum)
            continue;
        if (first)
            pprof_sum_next_export(sum);
        pprof_sum_add(sum, writer);
    }
}

uint64_t cumulative_sums_bytes(const struct cumulative_sums *sums) {
    uint64_t bytes = 0;
    for (unsigned kind = 0; kind < PPROF_KINDS; kind++)
        bytes += sums->of[kind] ? pprof_sum_bytes(sums->of[kind]) : 0;
    return bytes;
}
