#include "process_stat.h"

#include "process_file.h"
#include "text_numbers.h"

#include <stddef.h>
#include <string.h>

/* Lists the numbers of the file's fields. */
enum { STATE = 3, PARENT = 4, FLAGS = 9, THREADS = 20, STARTED = 22, EXIT_STATUS = 52 };
enum { TEXT_BYTES = 1024 };
/* The kernel's PF_FORKNOEXEC (include/linux/sched.h), which ps(1) shows, too: set by fork, cleared
 * by exec. */
enum { FORKED_WITHOUT_EXEC = 0x40 };

static bool process_stat_number(const char *at, uint64_t *number) {
    return at && number_read(at, 10, number);
}

bool process_stat_parse(const char *text, struct process_stat *stat) {
    const char *const state = process_stat_field(text, STATE);
    uint64_t pid;
    uint64_t parent;
    uint64_t flags;
    uint64_t threads;
    uint64_t status;
    if (!state || !process_stat_number(text, &pid) ||
        !process_stat_number(process_stat_field(text, PARENT), &parent) ||
        !process_stat_number(process_stat_field(text, FLAGS), &flags) ||
        !process_stat_number(process_stat_field(text, THREADS), &threads) ||
        !process_stat_number(process_stat_field(text, STARTED), &stat->started) ||
        !process_stat_number(process_stat_field(text, EXIT_STATUS), &status))
        return false;
    stat->pid = (uint32_t)pid;
    stat->parent = (uint32_t)parent;
    stat->is_dead = *state && strchr("ZXx", *state) && threads <= 1;
    /* gVisor shows no flags */
    stat->has_called_exec = flags && !(flags & FORKED_WITHOUT_EXEC);
    stat->threads = (uint32_t)threads;
    stat->exit_status = (int)status;
    return true;
}

static bool process_stat_take(int file, struct process_stat *stat) {
    char text[TEXT_BYTES];
    return process_file_text(file, text, sizeof text) && process_stat_parse(text, stat);
}

bool process_stat_read(struct process_stat *stat) {
    return process_stat_take(process_file_open_path("/proc/self/stat"), stat);
}

bool process_stat_read_of(pid_t pid, struct process_stat *stat) {
    return process_stat_take(process_file_open(pid, "stat"), stat);
}
