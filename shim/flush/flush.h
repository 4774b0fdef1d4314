/* Declares the state of the flush side, and one cycle: from the harvest to exports that are written
 * to a file, handed to the sender, and passed to the process's clients. Context of all: flush. */
#ifndef OTELPROF_FLUSH_H
#define OTELPROF_FLUSH_H

#include "control/control.h"
#include "control/long_spans.h"
#include "control/memory_alarm.h"
#include "encode/profile_export.h"
#include "export/file_export.h"
#include "export/schedule.h"
#include "export/sender.h"
#include "harvest.h"
#include "libraries/idle_code.h"
#include "serve/serve.h"

/* Lists the recipients of an export: see cycle.c. */
enum audience {
    AUDIENCE_ALL,
    AUDIENCE_CLIENTS,   /* the process itself, for its clients: serve.h */
    AUDIENCE_EXPORTERS, /* the sender and the file only */
};

struct flush {
    struct capture_api own;        /* the interface from capture, with the merged configuration */
    const struct capture_api *api; /* points to `own` */
    struct resource *resource;
    struct symbolizer *symbolizer;
    struct sender *sender;    /* NULL: nothing is sent */
    struct file_export *file; /* NULL: no file is written */
    struct control *control;
    struct memory_alarm alarm;
    struct serve *serve;    /* NULL: the process does not listen */
    struct idle_code *code; /* NULL: idle code stays resident */
    struct profile_exporter exporter;
    enum audience audience;             /* recipients of the export being encoded */
    struct remainders held_remainders;  /* remainders of exports for the process's clients only */
    struct remainders child_remainders; /* remainders of exports of children */
    struct long_spans long_spans;
    struct schedule schedule;
    uint64_t random;
    uint64_t interval_start_unix;
    uint64_t interval_start; /* CLOCK_MONOTONIC: begin of the present interval */
    /* when an export last failed for lack of memory; 0: the last one had memory */
    uint64_t refused_at;
    bool has_written;    /* an export was written to the file */
    bool worked;         /* work was done since memory and code were released */
    size_t merged_bytes; /* bytes of merged samples in the last export */
    uint32_t covered;    /* number of the last request of the program that an export has followed */
    uint32_t made; /* number of the last request of the program whose export was sent completely */
};

/* Return the formats of exports that are sent, and of exports that are written to a file:
 * FORM_*. */
unsigned flush_sent_form(const struct config *config);
unsigned flush_written_form(const struct config *config);

/* Harvests and exports everything that was recorded since the last cycle. */
void flush_cycle(struct flush *f);

/* Returns true if there is memory for a cycle; with little memory, new functions get no names. If
 * it returns false, recorded data is kept, within its bounds, for an export that has memory.
 * `last`: always returns true. */
bool flush_has_room(struct flush *f, bool last);

#endif
