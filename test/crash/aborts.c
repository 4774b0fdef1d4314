/* Linked into a libotelprof.so of its own (`--wrap`): a profiled process with TEST_ABORTS in its
 * environment ends by SIGABRT some milliseconds after the start of the profiler, and before
 * main. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

bool __real_helper_start(void);
bool __wrap_helper_start(void);

static bool is_to_abort(void) {
    static const char name[] = "TEST_ABORTS=";
    for (char **at = environ; *at; at++)
        if (strncmp(*at, name, sizeof name - 1) == 0)
            return true;
    return false;
}

bool __wrap_helper_start(void) {
    static const struct timespec some = {0, 5000000};
    const bool started = __real_helper_start();
    if (is_to_abort()) {
        nanosleep(&some, NULL);
        abort();
    }
    return started;
}
