/* Whether this process is one to profile: OTEL_PROFILER_INCLUDE and OTEL_PROFILER_EXCLUDE.
 *
 * A preload set for a whole container comes into every shell and every `ls` of every script. Those
 * are told apart by name, before anything of the profiler is set up: in a process that is not
 * chosen the hooks forward and nothing else happens.
 *
 * A program has two names: of the file that runs (the interpreter, where a script was started) and
 * the one it was started by (the script, a symbolic link). A glob of the user's fits if it fits one
 * of them: the base names, or the paths if it contains a slash. INCLUDE wins over EXCLUDE; in
 * EXCLUDE the word `default` stands for our own list (default_excludes.def), and `none` for
 * nothing.
 *
 * Host-wide (preload_source.h) it is the other way round, because every process of the machine has
 * us: nothing is profiled but what INCLUDE names, and of that neither what EXCLUDE names, nor our
 * own list, nor what keeps a machine running, whatever the two variables say.
 */
#ifndef OTELPROF_CHOICE_H
#define OTELPROF_CHOICE_H

#include <stdbool.h>
#include <stddef.h>

struct program {
    const char *file;       /* absolute path of the executable; "" = not known */
    const char *started_by; /* as exec was given it, perhaps relative; "" = not known */
};

enum choice {
    CHOICE_PROFILED,
    CHOICE_EXCLUDED,            /* by a glob of the user's */
    CHOICE_EXCLUDED_BY_DEFAULT, /* by our own list */
    CHOICE_NOT_INCLUDED,        /* host-wide: by no glob of INCLUDE */
    CHOICE_NEVER,               /* host-wide: by our own list, or as what keeps a machine running */
};

/* What the two lists say of `program`, and host-wide. Context: any. Async-signal-safe: yes. */
enum choice choice_of(const struct program *program, const char *include, const char *exclude);
enum choice choice_of_host_wide(const struct program *program, const char *include,
                                const char *exclude);

/* Whether EXCLUDE leaves alone what we do of our own accord: it holds the word `default`.
 * Context: any. Async-signal-safe: yes. */
bool choice_has_default(const char *exclude);

/* The running program's choice; `*program` is told as far as it was needed, its strings in `buffer`
 * of `size` bytes and in the kernel's own. Asking for the executable costs more than all the rest
 * (/proc makes its entries for this process when it is first asked), so what was started as a
 * command of the system's, with nothing configured, is judged by that name.
 * Context: calm, at start. */
enum choice choice_of_this_process(const char *include, const char *exclude,
                                   struct program *program, char *buffer, size_t size);

/* The same, host-wide. Where INCLUDE names nothing, nothing is asked. Context: likewise. */
enum choice choice_host_wide(const char *include, const char *exclude, struct program *program,
                             char *buffer, size_t size);

/* Whether the running program was started as a command of the system's that our own list names. No
 * system call. Context: calm. */
bool choice_is_command(void);

#endif
