/* What shells and daemons rely on: who closes a number and opens a file gets that number. For so
 * many seconds of CPU as the argument says; prints how often another came. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static double cpu_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(int argc, char **argv) {
    const double seconds = argc > 1 ? atof(argv[1]) : 1;
    long wrong = 0;
    while (cpu_seconds() < seconds) {
        for (int i = 0; i < 1000; i++) {
            close(STDIN_FILENO);
            const int got = open("/dev/null", O_RDONLY);
            wrong += got != STDIN_FILENO;
            if (got != STDIN_FILENO) {
                dup2(got, STDIN_FILENO);
                close(got);
            }
        }
    }
    printf("%ld\n", wrong);
    return 0;
}
