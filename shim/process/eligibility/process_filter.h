/* Decides by OTEL_PROFILER_INCLUDE and OTEL_PROFILER_EXCLUDE whether this process is profiled.
 *
 * A preload set for a whole container reaches every shell and every `ls` of every script. These
 * processes are recognised by name, before any part of the profiler is set up: in an excluded
 * process the hooks only forward.
 *
 * A program has two names: the name of the file that runs (the interpreter, if a script was
 * started) and the name by which it was started (the script, or a symbolic link). A glob of the
 * user's fits the program if it fits one of the two: the base names, or the paths if the glob
 * contains a slash. INCLUDE wins over EXCLUDE; in EXCLUDE the word `default` means the built-in
 * list (default_excludes.def), and `none` means no program.
 *
 * Host-wide (preload_source.h) every process of the machine has the profiler, so the default is the
 * reverse: only programs that INCLUDE names are profiled. Of these, programs that EXCLUDE or the
 * built-in list names are not profiled, and never those that keep a machine running.
 */
#ifndef OTELPROF_PROCESS_FILTER_H
#define OTELPROF_PROCESS_FILTER_H

#include <stdbool.h>
#include <stddef.h>

struct program {
    const char *file;       /* absolute path of the executable; "": not known */
    const char *started_by; /* the name given to exec, perhaps relative; "": not known */
};

enum filter_result {
    PROCESS_PROFILED,
    PROCESS_EXCLUDED,            /* a glob of EXCLUDE fits */
    PROCESS_EXCLUDED_BY_DEFAULT, /* the built-in list names the program */
    PROCESS_NOT_INCLUDED,        /* host-wide: no glob of INCLUDE fits */
    /* host-wide: the built-in list names the program, or it keeps a machine running */
    PROCESS_NEVER_PROFILED,
};

/* Apply the two lists to `program`; the second function applies them by the host-wide rule.
 * Context: any. Async-signal-safe: yes. */
enum filter_result process_filter_apply(const struct program *program, const char *include,
                                        const char *exclude);
enum filter_result process_filter_apply_host_wide(const struct program *program,
                                                  const char *include, const char *exclude);

/* Returns true if EXCLUDE contains the word `default`, which enables the built-in exclusions.
 * Context: any. Async-signal-safe: yes. */
bool process_filter_has_default(const char *exclude);

/* Decides for the running program. Fills in `*program` as far as it was needed, with strings in
 * `buffer` of `size` bytes and in the kernel's memory. Reading the executable's path costs more
 * than all other steps (at the first access /proc creates its entries for this process). So without
 * configuration a system command is recognised by the name by which it was started. Context: calm,
 * at start.
 */
enum filter_result process_filter_this_process(const char *include, const char *exclude,
                                               struct program *program, char *buffer, size_t size);

/* Decides as process_filter_this_process() does, for the host-wide case. Makes no system call if
 * INCLUDE is empty. Context: calm, at start. */
enum filter_result process_filter_this_process_host_wide(const char *include, const char *exclude,
                                                         struct program *program, char *buffer,
                                                         size_t size);

/* Returns true if the running program was started as a system command that the built-in list names.
 * Makes no system call. Context: calm. */
bool process_filter_is_command(void);

#endif
