/* The sums of one kind of profile (pprof_kinds.def) over several exports, and their form for pprof.
 *
 * What exports say of a time adds up; what they say of a moment (the live heap, threads) holds
 * until the next one says it. Above 16 MiB new stacks are counted under `[other]`, so that sums
 * stay whole. Where there is no memory, a sum begins anew, and says that it is incomplete.
 *
 * A difference is a sum of a time between two moments. Values of a moment are those of its end less
 * those of its begin: they are negative where less is there in the end, as Go's are.
 * Context of all: flush.
 */
#ifndef OTELPROF_PPROF_SUM_H
#define OTELPROF_PPROF_SUM_H

#include "pprof_kind.h"
#include "pprof_tables.h"

#include <profiles_service.pb-c.h>
#include <stdint.h>

typedef Opentelemetry__Proto__Collector__Profiles__V1development__ExportProfilesServiceRequest
    otlp_request;

struct pprof_sum;

/* NULL: no memory. */
struct pprof_sum *pprof_sum_open(enum pprof_kind kind);
/* A difference, whose time has not begun: of what is added, values of a moment count until it does.
 * Threads are told apart by texts alone in it, not by what differs from moment to moment.
 */
struct pprof_sum *pprof_sum_open_difference(enum pprof_kind kind);
void pprof_sum_close(struct pprof_sum *sum); /* NULL will do */

/* The first request of another export follows: what the last one said of a moment is over. */
void pprof_sum_next_export(struct pprof_sum *sum);
/* The time of a difference begins: the last export was the one before it. Other sums do not change.
 */
void pprof_sum_begin(struct pprof_sum *sum);
/* Adds what is of the kind. */
void pprof_sum_add(struct pprof_sum *sum, const otlp_request *request);
/* What could not be added, because there was no memory to read it: the profile says so. */
void pprof_sum_miss(struct pprof_sum *sum);

/* When it was: begin and length of a time. What sums up since a start has none, as Go's: scrapers
 * sort it in by the moment at which it is asked for, and see by the length that it is no
 * difference. */
struct pprof_times {
    uint64_t unix_nano;
    uint64_t duration_nano;
    uint64_t since_unix_nano; /* 0: no such start */
};

/* gzip'd, malloc'ed, the caller's; NULL: no memory, or there was none for a part of a difference of
 * moments, which would be wrong without it. `kind`: another with the same values will do. */
uint8_t *pprof_sum_encode(struct pprof_sum *sum, enum pprof_kind kind,
                          const struct pprof_times *times, size_t *size);

/* Of memory, at present. */
size_t pprof_sum_bytes(const struct pprof_sum *sum);

/* --- for text --- */

struct pprof_label {
    const char *key;
    const char *text; /* NULL: it is a number */
    int64_t number;
};

enum { PPROF_LABELS = 12 }; /* of a sample, at most */

struct pprof_sample {
    int32_t stack;
    int64_t values[PPROF_VALUES];
    struct pprof_label labels[PPROF_LABELS];
    size_t label_count;
};

/* How many samples there are, those without values among them; one. */
size_t pprof_sum_count(const struct pprof_sum *sum);
void pprof_sum_sample(const struct pprof_sum *sum, size_t number, struct pprof_sample *sample);
const struct pprof_tables *pprof_sum_tables(const struct pprof_sum *sum);

#endif
