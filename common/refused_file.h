/* Spaces out the attempts to open files of /proc that the kernel refuses.
 *
 * A process that has changed its user is not dumpable: files that show its memory, stacks or system
 * calls (/proc/self/task/TID/syscall, pagemap) belong to root from then on. An attempt for each
 * thread and poll would fail again each time. So a refusal pauses the attempts on all files of that
 * name, for 100 ms at first, and twice as long after each further refusal, up to a minute. A call
 * that may change the decision ends the pause at once, if a hook sees the call:
 * prctl(PR_SET_DUMPABLE), a change of ids or capabilities. A new program (exec) begins without
 * pauses.
 */
#ifndef OTELPROF_REFUSED_FILE_H
#define OTELPROF_REFUSED_FILE_H

#include <stdbool.h>
#include <stdint.h>

/* Describes the attempts to open files of one name. Zero: none was refused. Only the helper uses
 * it. */
struct refused_file {
    uint64_t until_ns; /* clock.h, monotonic */
    uint64_t pause_ns;
    uint32_t changes; /* number of refused_files_ask_again() calls before the last refusal */
};

/* Returns true if no file of this name is to be opened now. Context: the helper. */
bool refused_file_pauses(const struct refused_file *refused, uint64_t now_ns);

/* Notes the result of an attempt: a descriptor, a number of bytes, or a negative errno. EACCES and
 * EPERM are refusals; other errors change nothing; a success ends the pause. Context: the
 * helper. */
void refused_file_note(struct refused_file *refused, long result, uint64_t now_ns);

/* Ends all pauses of the calling object (libotelprof.so), because the process may be dumpable
 * again, or have its rights again. Context: any. Async-signal-safe: yes. */
void refused_files_ask_again(void);

#endif
