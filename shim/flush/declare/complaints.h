/* What is wrong in a configuration file, and in which line: kept while it is read, said afterwards.
 * Values are not shown: they may be secrets. Context: flush.
 */
#ifndef OTELPROF_COMPLAINTS_H
#define OTELPROF_COMPLAINTS_H

#include "log.h"

#include <stddef.h>

enum { MAX_COMPLAINTS = 32, SUBJECT_BYTES = 96 };

struct complaint {
    size_t line;                 /* 0: of no line */
    char subject[SUBJECT_BYTES]; /* the key; cut if it is longer */
    const char *what;            /* a constant: what is wrong, and what happens now */
};

struct complaints {
    size_t count; /* also of those that were not kept */
    struct complaint items[MAX_COMPLAINTS];
};

/* `section`: "" or what stands before the key, with its dot. */
void complain(struct complaints *complaints, size_t line, const char *section, const char *key,
              const char *what);

/* Writes each in a line of its own. */
void complaints_log(const struct complaints *complaints, const char *path, const struct log *log,
                    enum log_level level);

#endif
