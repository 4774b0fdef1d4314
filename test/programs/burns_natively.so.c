/* Has functions that test programs of Python call by ctypes: they burn time in native code while
 * Python's frames do not change, and call back into Python from a native frame. */
#include <time.h>

static long long thread_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* Burns so many microseconds of the thread's CPU time. */
__attribute__((noinline)) int known_burn(int microseconds) {
    const long long end = thread_ns() + microseconds * 1000LL;
    int rounds = 0;
    while (thread_ns() < end)
        rounds++;
    return rounds;
}

/* Calls back; the multiplication keeps the frame. */
__attribute__((noinline)) int known_call(int (*function)(int), int argument) {
    return function(argument) * 3 + 1;
}
