/* Sends log lines to the socket of the system's log, /dev/log (OTEL_PROFILER_LOG_FILE=syslog): for
 * daemons, whose stderr leads nowhere.
 *
 * Only the helper sends, because it has a descriptor table of its own: so the program never sees
 * the socket among its descriptors. Lines of other threads wait for the helper, in few places; a
 * line that finds no place is lost. The helper sends each line as one record, a datagram or a part
 * of a stream, without waiting: if the log is away, or does not read, the line is lost. The next
 * line that arrives has the number of lost lines.
 *
 * A record is "<PRI>PROGRAM[PID]: TEXT" as in RFC 3164, without a time, which the log adds: the
 * zone of the machine cannot be read without locks. The facility is daemon. The text was made
 * printable before, so that no record can begin within another. Async-signal-safe: no.
 */
#ifndef OTELPROF_SYSLOG_LINES_H
#define OTELPROF_SYSLOG_LINES_H

#include "config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { SYSLOG_LINE_BYTES = 1024, SYSLOG_WAITING = 4, SYSLOG_PROGRAM_BYTES = 33 };

struct syslog_lines {
    char program[SYSLOG_PROGRAM_BYTES];
    _Atomic uint32_t lost;
    struct syslog_waiting {
        _Atomic uint32_t state; /* enum syslog_state */
        uint32_t level;
        uint32_t size;
        char text[SYSLOG_LINE_BYTES];
    } waiting[SYSLOG_WAITING];
};

/* Returns true if the setting requests the system's log. */
bool syslog_is_wanted(const char *log_file);

/* Stores the program's name, by which exec was called. Context: calm, before main. */
void syslog_lines_open(struct syslog_lines *lines);

/* Sends the line, or keeps it for the helper. `is_helper`: the calling thread has a descriptor
 * table of its own. Never blocks. errno is changed. */
void syslog_line_write(struct syslog_lines *lines, bool is_helper, enum log_level level,
                       const char *text, size_t size);

/* Forgets, in a forked child, the lines that its parent had written or lost. Context: fork
 * handler. */
void syslog_lines_forget(struct syslog_lines *lines);

/* Sends the lines that wait. Context: the helper, with a descriptor table of its own. errno is
 * changed. */
void syslog_lines_send_waiting(struct syslog_lines *lines);

#endif
