/* The flush side's state, and one cycle of it: from the harvest to exports that are written, handed
 * to the sender and to who has asked. Context of all: flush. */
#ifndef OTELPROF_FLUSH_H
#define OTELPROF_FLUSH_H

#include "control/control.h"
#include "encode/profile_export.h"
#include "export/file_export.h"
#include "export/schedule.h"
#include "export/sender.h"
#include "files/idle_code.h"
#include "harvest.h"
#include "long_spans.h"
#include "memory_alarm.h"
#include "serve/serve.h"

/* See cycle.c. */
enum audience {
    EVERYBODY,
    THOSE_WHO_ASK, /* the process: serve.h */
    EXPORTERS,     /* the others */
};

struct flush {
    struct capture_api own;        /* as it was given, but for the configuration */
    const struct capture_api *api; /* that one */
    struct resource *resource;
    struct symbolizer *symbolizer;
    struct sender *sender;    /* NULL: nothing is sent */
    struct file_export *file; /* NULL: no file is written */
    struct control *control;
    struct memory_alarm alarm;
    struct serve *serve;    /* NULL: the process does not answer */
    struct idle_code *code; /* NULL: stays resident */
    struct profile_exporter exporter;
    enum audience audience;            /* of what is encoded */
    struct remainders held_remainders; /* of what is for those who ask alone */
    struct long_spans long_spans;
    struct schedule schedule;
    uint64_t random;
    uint64_t interval_start_unix;
    uint64_t interval_start; /* CLOCK_MONOTONIC */
    uint64_t refused_at;     /* the last time that there was no memory for an export; the same */
    bool worked;             /* since memory and code were given back */
    size_t merged_bytes;     /* of the samples of the last export */
    uint32_t covered;        /* requests of the program's that the last export follows */
    uint32_t made;           /* the same, and nothing of it waits any more */
};

/* What is sent, and what is written to a file: FORM_*. */
unsigned flush_sent_form(const struct config *config);
unsigned flush_written_form(const struct config *config);

/* Harvests, and exports what was recorded since the last cycle. */
void flush_cycle(struct flush *f);

/* Whether there is memory for a cycle; if there is little, its functions get no names. false: what
 * was recorded waits, within its bounds, for an export that there is memory for. `last`: it is made
 * in any case. */
bool flush_has_room(struct flush *f, bool last);

#endif
