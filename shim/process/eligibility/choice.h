/* Decides by OTEL_PROFILER_INCLUDE and OTEL_PROFILER_EXCLUDE if this process is profiled.
 *
 * A preload set for a whole container reaches every shell and every `ls` of every script. Those are
 * recognised by name, before any part of the profiler is set up: in a process that is not chosen
 * the hooks forward and nothing else happens.
 *
 * A program has two names: that of the file that runs (the interpreter, if a script was started)
 * and the one it was started by (the script, or a symbolic link). A glob of the user's fits if it
 * fits one of them: the base names, or the paths if it contains a slash. INCLUDE wins over EXCLUDE;
 * in EXCLUDE the word `default` means the built-in list (default_excludes.def), and `none` for
 * nothing.
 *
 * Host-wide (preload_source.h) it is the other way round, because every process of the machine has
 * the profiler: only programs named by INCLUDE are profiled, except those that EXCLUDE or the
 * built-in list names, and, whatever the two variables say, those that keep a machine running.
 */
#ifndef OTELPROF_CHOICE_H
#define OTELPROF_CHOICE_H

#include <stdbool.h>
#include <stddef.h>

struct program {
    const char *file;       /* absolute path of the executable; "" = not known */
    const char *started_by; /* as given to exec, perhaps relative; "" = not known */
};

enum choice {
    CHOICE_PROFILED,
    CHOICE_EXCLUDED,            /* by a glob of the user's */
    CHOICE_EXCLUDED_BY_DEFAULT, /* by the built-in list */
    CHOICE_NOT_INCLUDED,        /* host-wide: by no glob of INCLUDE */
    CHOICE_NEVER, /* host-wide: by the built-in list, or because it keeps a machine running */
};

/* Apply the two lists to `program`; the second host-wide. Context: any. Async-signal-safe: yes. */
enum choice choice_of(const struct program *program, const char *include, const char *exclude);
enum choice choice_of_host_wide(const struct program *program, const char *include,
                                const char *exclude);

/* Returns true if EXCLUDE contains the word `default`, which enables the built-in exclusions.
 * Context: any. Async-signal-safe: yes. */
bool choice_has_default(const char *exclude);

/* Decides for the running program. Fills in `*program` as far as it was needed, with strings in
 * `buffer` of `size` bytes and in the kernel's memory. Reading the executable's path costs more
 * than all the rest (at the first access /proc creates its entries for this process), so without
 * configuration a system command is judged by the name it was started by. Context: calm, at start.
 */
enum choice choice_of_this_process(const char *include, const char *exclude,
                                   struct program *program, char *buffer, size_t size);

/* Does the same host-wide. Makes no system call if INCLUDE is empty. Context: likewise. */
enum choice choice_host_wide(const char *include, const char *exclude, struct program *program,
                             char *buffer, size_t size);

/* Returns true if the running program was started as a system command that the built-in list names.
 * No system call. Context: calm. */
bool choice_is_command(void);

#endif
