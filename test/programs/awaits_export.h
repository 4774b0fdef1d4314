/* Lets a program wait until the profiler has exported its work so far. The program is profiled with
 * the exporter otlp_file, whose file is in the working directory: otelprof-NAME-PID.jsonl, a line
 * an export (AWAITED in integration/profiled.py). */
#ifndef TEST_AWAITS_EXPORT_H
#define TEST_AWAITS_EXPORT_H

#include "cpu_sample.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static inline long exported_bytes(void) {
    char path[64];
    struct stat file;
    snprintf(path, sizeof path, "otelprof-%s-%d.jsonl", program_invocation_short_name,
             (int)getpid());
    return stat(path, &file) == 0 ? (long)file.st_size : 0;
}

/* Returns when two exports have come since: the first may have begun before the call. Works a bit
 * meanwhile, because an export without a sample is not written. */
static inline void await_export(void) {
    for (int i = 0; i < 2; i++) {
        const long before = exported_bytes();
        while (exported_bytes() == before) {
            WORK_FOR(NS_PER_MS);
            TAKE_CPU_SAMPLE();
            usleep(5000);
        }
    }
}

#endif
