/* Implements OTEL_PROFILER_REDACT: hides names that must not leave the process, in every exporter.
 *
 * The setting is a list of globs (glob.h). They apply to functions, both in readable form and as
 * the file has them, source files, modules and the executable, threads, and labels. A matching name
 * is sent as REDACTED; addresses and build ids stay, so stacks keep their shape, and a reader with
 * the file itself can name them again. If one of a function's two names matches, both are hidden. A
 * path is hidden if the whole path or its base name matches. A mangled name that cannot be decoded
 * is hidden, too, because it may contain a matching name.
 *
 * redact_name() and redact_path() return their argument, or REDACTED, which is static. An empty
 * text means "not known" and stays so. The profiler's own words in brackets ("[other]") are not
 * names and are not passed here. Context: flush.
 */
#ifndef OTELPROF_REDACT_H
#define OTELPROF_REDACT_H

#include "symbolize/symbolize.h"

#define REDACTED "[REDACTED]"

const char *redact_name(const char *globs, const char *name);
const char *redact_path(const char *globs, const char *path);

/* Returns the value of a label, or REDACTED if the value or its key matches. */
const char *redact_label(const char *globs, const char *key, const char *value);

/* Hides the names of `*line` in place. */
void redact_line(const char *globs, struct symbol_line *line);

#endif
