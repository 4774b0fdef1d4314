/* OTEL_PROFILER_REDACT: names that must not leave the process, in no exporter.
 *
 * A list of globs (glob.h) on functions as they are read and as the file has them, on source files,
 * modules and the executable, on threads, on labels. What fits is sent as REDACTED; addresses and
 * build ids stay, so stacks keep their shape, and whoever has the file itself can name them again.
 * Where a function has two names, both go if one fits. A path goes if it fits as a whole or by its
 * base name. When in doubt the name goes: a mangled name that nobody could read may hide anything.
 *
 * The functions return their argument, or REDACTED, which is static; an empty text is not known and
 * stays so. Our own words in brackets ("[other]") are not names and do not come here. Context:
 * flush.
 */
#ifndef OTELPROF_REDACT_H
#define OTELPROF_REDACT_H

#include "symbolize/symbolize.h"

#define REDACTED "[REDACTED]"

const char *redact_name(const char *globs, const char *name);
const char *redact_path(const char *globs, const char *path);

/* The value of a label, which goes if it or its key fits. */
const char *redact_label(const char *globs, const char *key, const char *value);

/* The names of `*line`, in place. */
void redact_line(const char *globs, struct symbol_line *line);

#endif
