// flags: -rdynamic
/* Ends inside the dynamic loader, while the profiler's helper waits for the loader to load the
 * exporter.
 *
 * usage: ends_in_loader HOW PATH_OF_ends_in_loader.so
 *   term   gets SIGTERM, and prints a line if it goes on
 *   exit   calls exit(7)
 */
#include "cpu_sample.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LIFETIME_MS = 1200 }; /* the helper begins when the process is a second old */

static const char *how;

__attribute__((visibility("default"))) void is_inside_loader(void);
void is_inside_loader(void) {
    WORK_FOR(50 * NS_PER_MS);
    TAKE_CPU_SAMPLE();
    usleep(LIFETIME_MS * 1000);
    if (strcmp(how, "exit") == 0)
        exit(7);
    raise(SIGTERM);
    if (write(STDOUT_FILENO, "goes on\n", 8) != 8)
        exit(1);
}

int main(int argc, char **argv) {
    if (argc < 3)
        return 2;
    how = argv[1];
    if (!dlopen(argv[2], RTLD_NOW))
        return 3;
    for (;;)
        pause();
}
