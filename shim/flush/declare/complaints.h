/* Collects the errors of a configuration file, with their lines, while the file is read, and logs
 * them afterwards. Values are not shown, because they may be secrets. Context: flush. */
#ifndef OTELPROF_COMPLAINTS_H
#define OTELPROF_COMPLAINTS_H

#include "log.h"

#include <stddef.h>

enum { MAX_COMPLAINTS = 32, SUBJECT_BYTES = 96 };

struct complaint {
    size_t line;                 /* 0: the error has no single line */
    char subject[SUBJECT_BYTES]; /* the key; cut if too long */
    const char *what;            /* a constant: the error and its consequence */
};

struct complaints {
    size_t count; /* number of errors, including errors that were not kept */
    struct complaint items[MAX_COMPLAINTS];
};

/* Adds an error. `section` is "" or the path before the key, with a trailing dot. */
void complain(struct complaints *complaints, size_t line, const char *section, const char *key,
              const char *what);

/* Logs each error on a line of its own. */
void complaints_log(const struct complaints *complaints, const char *path, const struct log *log,
                    enum log_level level);

#endif
