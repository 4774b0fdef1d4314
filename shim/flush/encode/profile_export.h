/* Encodes one interval's merged samples as one export: selects the profiles, computes their values,
 * and fills the dictionary for them.
 *
 * Values come first, the dictionary second: only samples that are really sent are looked up, so the
 * dictionary has no orphans. CPU time becomes counts of periods; the remainder is carried to the
 * next stack and the next interval, so that count × period always adds up to the CPU clock. The
 * live heap is a snapshot, and receivers keep the last snapshot: when the heap becomes empty, one
 * sample of value 0 without a stack reports that (the Collector drops a request that has no
 * samples). A profile covers the time of its interval in which its kind was sampled. If sampling
 * was off for a part of the interval, the profile is shorter by that part. It begins when sampling
 * was last turned on, or earlier if less time than its length was left then.
 *
 * An interval without samples of values that add up is idle time. It gets a profile without
 * samples, the last of this export or of a later one: without this profile a reader could not
 * distinguish idle time from time that was not recorded. Such a profile makes no export of its own,
 * unless `reports_idle` is set. A profile's samples come thread by thread, in the order of the
 * merge, each thread's largest first.
 *
 * The profiler's own attributes are: on samples those of common/profile_kinds.def, among them
 * `otelprof.stack.truncated` and `otelprof.stack.depth_cut` (the outer frames are missing) and
 * `otelprof.stack.unsampled` (CPU time since a thread's last sample, at its end, under its start
 * routine); on a profile of the heap's peak `otelprof.heap.peak.*`; on the first profile
 * `otelprof.dropped.<reason>` for every reason of common/drop_reasons.def that has occurred since
 * the start, and the totals of write_totals(). The samples of a span have a link, and labels of the
 * program's (contexts.h). The profiler's own CPU time on a program's thread has the stack
 * `[libotelprof]`. Context: flush.
 */
#ifndef OTELPROF_PROFILE_EXPORT_H
#define OTELPROF_PROFILE_EXPORT_H

#include "harvest.h"
#include "merge.h"
#include "otlp_writer.h"
#include "resource.h"
#include "symbolize/symbolize.h"

/* Lists the forms of an export, as bits. */
enum { FORM_PROTOBUF = 1, FORM_JSON = 2 };

/* Describes time in which a kind was sampled: nanoseconds since the epoch; no time if the two are
 * equal. */
struct covered_time {
    uint64_t begin;
    uint64_t end;
    unsigned value; /* index of a value of the kind in profile_values */
};

/* Holds amounts and time that are not reported yet. */
struct remainders {
    uint64_t of[SAMPLE_KINDS]; /* amounts below one period */
    struct covered_time idle;  /* time in which the kind had no sample */
};

struct profile_exporter {
    const struct capture_api *api;
    const struct resource *resource;
    struct symbolizer *symbolizer;
    unsigned forms; /* FORM_* bits that are wanted */
    /* time so far in which nothing was sampled because processors were busy */
    uint64_t shed_nano;
    uint64_t finished_stacks; /* number so far; see merge.h */
    struct remainders remainders;
    unsigned filled;  /* bits of the kinds whose last snapshot has samples */
    unsigned emptied; /* bits of the kinds whose snapshot is empty now, and was not empty before */
    bool is_complete; /* no samples of the interval are missing */
    /* of the interval, in ns: how long each kind was sampled, and how long after the interval's
     * begin that time begins */
    uint64_t sampled_nano[SAMPLE_KINDS];
    uint64_t sampled_after[SAMPLE_KINDS];
    uint64_t sampled_before[SAMPLE_KINDS]; /* total sampled time at the interval's end */
    bool reports_idle;   /* idle time makes an export, if there is nothing else to export */
    bool is_of_children; /* the export is of children: it has no totals of this process */
    /* idle time of an export without other profiles is written again in the next export, because
     * the sender does not get the first
     */
    bool keeps_idle;
};

struct encoded {
    uint8_t *
        bytes; /* malloc'ed; the caller frees it; NULL: not wanted, nothing to send, or no memory */
    size_t size;
};

struct encoded_export {
    struct otlp_writer *writer; /* the writer of these bytes; the caller closes it */
    struct encoded protobuf;
    struct encoded json;
    uint64_t samples;
    bool is_idle; /* all its profiles are without samples: a receiver would drop it */
};

/* Selects a part of an interval for one request: some profiles, and some samples of the merge.
 */
struct export_part {
    unsigned profiles; /* a bit for each profile, in the order of the message */
    size_t first;
    size_t past; /* index after the last sample */
};

/* Selects the whole interval. */
struct export_part export_part_whole(const struct merge *merge);

/* Divides a part that is too large for one request: kinds first (CPU time, allocations, ...), then
 * objects and bytes, and only then a profile's samples. Returns false if it cannot be divided. */
bool export_part_divide(struct export_part part, struct export_part halves[static 2]);

/* Records how much of the interval [begin, end), by CLOCK_MONOTONIC, each kind was sampled. Must be
 * called once for each interval, before profile_export_begin(). */
void profile_export_cover(struct profile_exporter *exporter, uint64_t begin, uint64_t end);

/* Names the contexts of the merge, unless another exporter has done so, and finds the snapshots
 * that have become empty. `complete`: no samples are missing in the merge (merge.h). Must be called
 * once for each interval, before its parts are encoded and after the resource was updated. */
void profile_export_begin(struct profile_exporter *exporter, struct merge *merge, bool complete);

/* Encodes `part` of the interval [start, end), in nanoseconds since the epoch. Parts of CPU time
 * must be encoded in their order; before a part is encoded again, `remainders` must be restored. */
struct encoded_export profile_export(struct profile_exporter *exporter, const struct merge *merge,
                                     struct export_part part, uint64_t start_unix_nano,
                                     uint64_t end_unix_nano);

/* Holds the samples of a forked child that ended before it had a helper. */
struct child_export {
    struct ended_child child;
    struct merge merge;
};

/* Encodes children, each as a resource of its own. CPU time below one period is carried from child
 * to child. Other rules as for profile_export(). */
struct encoded_export profile_export_children(struct profile_exporter *exporter,
                                              const struct child_export *children, size_t count);

#endif
