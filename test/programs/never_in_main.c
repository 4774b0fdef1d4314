/* Does its work in a constructor, until the profiler's exporter is loaded; main is never called.
 * usage: never_in_main works|sleeps */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is_loaded(void) {
    char line[512];
    int found = 0;
    FILE *const maps = fopen("/proc/self/maps", "r");
    while (maps && !found && fgets(line, sizeof line, maps))
        found = strstr(line, "/libotelprof-flush.so") != NULL;
    if (maps)
        fclose(maps);
    return found;
}

__attribute__((constructor)) static void construct(int count, char **arguments) {
    const int sleeps = count > 1 && strcmp(arguments[1], "sleeps") == 0;
    alarm(120); /* by then the test has failed */
    while (!is_loaded())
        if (sleeps)
            usleep(200000);
    puts("loaded");
    exit(0);
}

int main(void) {
    return 1;
}
