#include "process_tree.h"

#include "given_variables.h"
#include "helper_name.h"
#include "process_file.h"
#include "text_numbers.h"

#include <dirent.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    FURTHEST = 32, /* number of ancestors that are checked */
    /* number of an ancestor's threads that are checked; the helper is among its first */
    MOST_THREADS = 4096,
    ENTRIES_BYTES = 2048,  /* bytes of a folder that are read at a time */
    CHILDREN_BYTES = 4096, /* bytes for the numbers of a thread's children: some 500 numbers */
    THREAD_FILE = 32,      /* size of "task/0000000000/children" */
    /* bytes of /proc/PID/stat up to the parent, the fourth field, after a name of 15 bytes */
    STAT_BYTES = 512,
};

/* --- variables of a process --- */

static bool variable_begins_with(const char *text, const char *beginning) {
    return strncmp(text, beginning, strlen(beginning)) == 0;
}

/* Adds the hash of a variable that settings depend on. The sum is the same in any order of the
 * variables, because shells reorder them. */
static void sum_variable(void *sum, const char *text, uint64_t hash) {
    if (variable_begins_with(text, "OTEL_") || variable_begins_with(text, "LD_PRELOAD="))
        *(uint64_t *)sum += hash;
}

static bool variables_sum(pid_t pid, uint64_t *sum) {
    *sum = 0;
    return given_variables(pid, sum_variable, sum);
}

/* --- kind of process --- */

enum { PARENT_FIELD = 4 };

/* Returns the parent; 0 if it is not known, or outside of this namespace of process ids. */
static pid_t parent_of(pid_t pid) {
    char text[STAT_BYTES];
    uint64_t parent = 0;
    (void)process_file_text(process_file_open(pid, "stat"), text, sizeof text);
    const char *const at = process_stat_field(text, PARENT_FIELD);
    if (at)
        (void)number_read(at, 10, &parent);
    return (pid_t)parent;
}

static void name_thread_file(char name[static THREAD_FILE], uint32_t tid, const char *file) {
    (void)stpcpy(number_write(stpcpy(name, "task/"), 10, tid), file);
}

static bool is_helper_thread(pid_t pid, uint32_t tid, enum process_tree_reporter reporter) {
    char name[THREAD_FILE];
    name_thread_file(name, tid, "/comm");
    return process_file_has(pid, name, HELPER_NAME_UNSENT "\n") ||
           (reporter != REPORTER_UNSENT && process_file_has(pid, name, HELPER_NAME "\n"));
}

/* Returns the record in the format of getdents64(2). */
static const struct dirent64 *directory_entry_at(const char *entries, long at) {
    return (const struct dirent64 *)(const void *)(entries + at);
}

typedef bool is_thread(pid_t pid, uint32_t tid, enum process_tree_reporter reporter);

/* Returns the id of a thread that is of that kind; 0: there is none. */
static uint32_t find_thread(pid_t pid, is_thread *is, enum process_tree_reporter reporter) {
    _Alignas(struct dirent64) char entries[ENTRIES_BYTES];
    const int folder = process_file_open(pid, "task");
    uint32_t found = 0;
    long size = 0;
    int checked = 0;
    uint64_t tid;
    while (folder >= 0 && !found && checked < MOST_THREADS &&
           (size = syscall(SYS_getdents64, folder, entries, sizeof entries)) > 0)
        for (long at = 0; at < size && !found;
             at += directory_entry_at(entries, at)->d_reclen, checked++)
            if (number_read(directory_entry_at(entries, at)->d_name, 10, &tid) &&
                is(pid, (uint32_t)tid, reporter))
                found = (uint32_t)tid;
    if (folder >= 0)
        process_file_close(folder);
    return found;
}

static bool has_thread(pid_t pid, is_thread *is, enum process_tree_reporter reporter) {
    return find_thread(pid, is, reporter) != 0;
}

/* Returns true if a child that this thread has started is such a reporter. */
static bool has_started(pid_t pid, uint32_t tid, enum process_tree_reporter reporter) {
    char name[THREAD_FILE];
    char children[CHILDREN_BYTES];
    uint64_t child;
    bool found = false;
    name_thread_file(name, tid, "/children");
    (void)process_file_text(process_file_open(pid, name), children, sizeof children);
    for (const char *at = children; !found && (at = number_read(at, 10, &child)); at += *at == ' ')
        found = has_thread((pid_t)child, is_helper_thread, reporter);
    return found;
}

static bool is_reporter(pid_t pid, enum process_tree_reporter reporter) {
    return reporter == REPORTER_LOADED ? process_file_has(pid, "maps", "/libotelprof.so")
                                       : has_thread(pid, is_helper_thread, reporter);
}

bool process_tree_has_reported(enum process_tree_reporter reporter) {
    const bool any = reporter == REPORTER_UNSENT || reporter == REPORTER_RELATIVE;
    uint64_t own;
    uint64_t theirs;
    if (!any && !variables_sum(getpid(), &own))
        return false;
    pid_t pid = (pid_t)syscall(SYS_getppid);
    for (int i = 0; i < FURTHEST && pid > 0; i++) {
        if (!any && (!variables_sum(pid, &theirs) || theirs != own))
            return false;
        if (is_reporter(pid, reporter))
            return true;
        pid = parent_of(pid);
    }
    return false;
}

pid_t process_tree_nearest_profiled(uint32_t *tid) {
    pid_t pid = (pid_t)syscall(SYS_getppid);
    for (int i = 0; i < FURTHEST && pid > 0; i++) {
        *tid = find_thread(pid, is_helper_thread, REPORTER_PROFILED);
        if (*tid)
            return pid;
        pid = parent_of(pid);
    }
    return 0;
}

bool process_tree_has_relative(void) {
    return process_tree_has_reported(REPORTER_RELATIVE) ||
           has_thread(getpid(), has_started, REPORTER_RELATIVE);
}
