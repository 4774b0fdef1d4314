#include "process_tree.h"

#include "given_variables.h"
#include "process_file.h"

#include <dirent.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    FURTHEST = 32,        /* ancestors that are looked at */
    MOST_THREADS = 4096,  /* of one of them; ours is among its first */
    ENTRIES_BYTES = 2048, /* of a folder, at a time */
    STAT_BYTES = 512,     /* /proc/PID/stat: the parent stands fourth, behind 15 bytes of a name */
};

/* --- what a process was given --- */

static bool begins_with(const char *text, const char *beginning) {
    return strncmp(text, beginning, strlen(beginning)) == 0;
}

/* The sum does not depend on their order, which shells change. */
static void add_ours(void *sum, const char *text, uint64_t hash) {
    if (begins_with(text, "OTEL_") || begins_with(text, "LD_PRELOAD="))
        *(uint64_t *)sum += hash;
}

static bool sum_of(pid_t pid, uint64_t *sum) {
    *sum = 0;
    return given_variables(pid, add_ours, sum);
}

/* --- what it is --- */

/* 0: not known, or outside of this namespace of process ids. */
static pid_t parent_of(pid_t pid) {
    char text[STAT_BYTES];
    const int file = process_file_open(pid, "stat");
    const ssize_t size = file < 0 ? -1 : read(file, text, sizeof text - 1);
    pid_t parent = 0;
    if (file >= 0)
        close(file);
    text[size < 0 ? 0 : size] = 0;
    const char *at = strrchr(text, ')');
    at = at ? strpbrk(at, "0123456789") : NULL;
    for (; at && *at >= '0' && *at <= '9'; at++)
        parent = parent * 10 + (*at - '0');
    return parent;
}

static bool is_our_thread(pid_t pid, const char *number, enum process_tree_reporter reporter) {
    char name[] = "task/0000000000/comm"; /* a number of ten digits at most */
    const size_t before = sizeof "task/" - 1;
    const size_t most = sizeof "0000000000" - 1;
    const size_t length = strlen(number);
    if (number[0] == '.' || length > most)
        return false;
    for (size_t i = 0; i < sizeof "/comm"; i++)
        name[before + length + i] = "/comm"[i];
    for (size_t i = 0; i < length; i++)
        name[before + i] = number[i];
    return process_file_has(pid, name, PROCESS_TREE_UNSENT "\n") ||
           (reporter != REPORTER_UNSENT && process_file_has(pid, name, PROCESS_TREE_THREAD "\n"));
}

/* As getdents64(2) writes it. */
static const struct dirent64 *entry_at(const char *entries, long at) {
    return (const struct dirent64 *)(const void *)(entries + at);
}

static bool has_thread_of_ours(pid_t pid, enum process_tree_reporter reporter) {
    _Alignas(struct dirent64) char entries[ENTRIES_BYTES];
    const int folder = process_file_open(pid, "task");
    bool found = false;
    long size = 0;
    int looked_at = 0;
    while (folder >= 0 && !found && looked_at < MOST_THREADS &&
           (size = syscall(SYS_getdents64, folder, entries, sizeof entries)) > 0)
        for (long at = 0; at < size && !found; at += entry_at(entries, at)->d_reclen, looked_at++)
            found = is_our_thread(pid, entry_at(entries, at)->d_name, reporter);
    if (folder >= 0)
        close(folder);
    return found;
}

static bool is_reporter(pid_t pid, enum process_tree_reporter reporter) {
    return reporter == REPORTER_LOADED ? process_file_has(pid, "maps", "/libotelprof.so")
                                       : has_thread_of_ours(pid, reporter);
}

bool process_tree_has_reported(enum process_tree_reporter reporter) {
    const bool any = reporter == REPORTER_UNSENT || reporter == REPORTER_KIN;
    uint64_t own;
    uint64_t theirs;
    if (!any && !sum_of(getpid(), &own))
        return false;
    pid_t pid = (pid_t)syscall(SYS_getppid);
    for (int i = 0; i < FURTHEST && pid > 0; i++) {
        if (!any && (!sum_of(pid, &theirs) || theirs != own))
            return false;
        if (is_reporter(pid, reporter))
            return true;
        pid = parent_of(pid);
    }
    return false;
}
