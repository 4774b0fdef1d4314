/* What shells and daemons rely on: who closes a number and opens a file gets that number. For so
 * many seconds of CPU as the argument says; prints how often another came. */
#include "cpu_work.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv) {
    const double seconds = argc > 1 ? atof(argv[1]) : 1;
    const uint64_t end = (uint64_t)(seconds * 1e9);
    long wrong = 0;
    while (cpu_now() < end) {
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
