/* Is linked into a libotelprof.so of its own (Makefile, `--wrap`): makes allocations of the helper
 * thread fail: its own, those of the libraries that it loads, and the loader's.
 *
 * FAIL_ALLOCATION=N     the N-th fails, from 1; 0: none
 * FAIL_ALLOCATION=N-    the N-th and all after it
 * FAIL_ALLOCATION_LOG   a file. With FAIL_ALLOCATION, "failed" is appended for each that fails;
 *                       without, for each "NUMBER OBJECT+OFFSET": where in the code it is
 */
#define _GNU_SOURCE
#include "../../../common/helper_name.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

void *__real_helper_heap_take(size_t size, size_t alignment);
void *__real_helper_heap_take_zeroed(size_t size);

enum { FRAMES = 12 };

static _Atomic long seen;
static long chosen;
static bool and_after;
static const char *log_path;
static __thread bool busy; /* allocations of our own do not count */

__attribute__((constructor)) static void configure(void) {
    const char *const text = getenv("FAIL_ALLOCATION");
    char *end = NULL;
    void *frame;
    chosen = text ? strtol(text, &end, 10) : 0;
    and_after = end && *end == '-';
    log_path = getenv("FAIL_ALLOCATION_LOG");
    (void)backtrace(&frame, 1); /* makes backtrace() load its library now */
}

static void write_line(const char *line) {
    const int file = open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (file < 0 || write(file, line, strlen(line)) < 0)
        abort();
    close(file);
}

/* --- where --- */

static bool is_passed_through(const char *object) {
    static const char *const names[] = {"libotelprof.so", "libc.so", "ld-linux"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(object, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

/* Writes the number, and the nearest frame outside libc, the loader and objects that only forward;
 * "?" if there is none. */
static void write_site(long number) {
    void *frames[FRAMES];
    char line[256];
    const int count = backtrace(frames, FRAMES);
    snprintf(line, sizeof line, "%ld ?\n", number);
    for (int i = 0; i < count; i++) {
        Dl_info object;
        const char *const path = dladdr(frames[i], &object) ? object.dli_fname : "?";
        const char *const slash = strrchr(path, '/');
        const char *const name = slash ? slash + 1 : path;
        if (is_passed_through(name))
            continue;
        snprintf(line, sizeof line, "%ld %s+%lx\n", number, name,
                 (unsigned long)((char *)frames[i] - (char *)object.dli_fbase));
        break;
    }
    write_line(line);
}

/* --- whether --- */

static bool is_helper(void) {
    char name[16];
    return prctl(PR_GET_NAME, name) == 0 && helper_name_is(name);
}

static bool is_chosen(long number) {
    return number == chosen || (and_after && number > chosen);
}

static bool fails(void) {
    if (!log_path || busy || !is_helper())
        return false;
    busy = true;
    const long number = atomic_fetch_add(&seen, 1) + 1;
    const bool fail = chosen && is_chosen(number);
    if (fail)
        write_line("failed\n");
    if (!chosen)
        write_site(number);
    busy = false;
    if (fail)
        errno = ENOMEM;
    return fail;
}

/* --- the allocator: shim/capture/helper_heap/helper_heap.h --- */

void *__wrap_helper_heap_take(size_t size, size_t alignment) {
    return fails() ? NULL : __real_helper_heap_take(size, alignment);
}

void *__wrap_helper_heap_take_zeroed(size_t size) {
    return fails() ? NULL : __real_helper_heap_take_zeroed(size);
}

/* Refuses to resize an object, so that every realloc calls helper_heap_take(). */
bool __wrap_helper_heap_resize(void *object, size_t size) {
    (void)object, (void)size;
    return false;
}
