/* Finds whether a thread of this process waits in the kernel, by its state in /proc. */
#ifndef TEST_THREAD_SLEEPS_H
#define TEST_THREAD_SLEEPS_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static inline bool thread_sleeps(pid_t tid) {
    char path[64], text[256];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
    FILE *const file = fopen(path, "r");
    if (!file)
        return false;
    const size_t size = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[size] = 0;
    const char *const state = strrchr(text, ')');
    return state && state[2] == 'S';
}

static inline void wait_until_it_sleeps(pid_t tid) {
    while (!thread_sleeps(tid))
        usleep(200);
}

#endif
