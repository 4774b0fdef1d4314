/* Started with some of descriptors 0, 1, 2 closed: opens a file, which gets such a number, writes
 * to it, works long enough to be profiled, and lists its descriptors at the end into the file.
 *
 * usage: closed_stdio FILE
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long sink;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void say(int fd, const char *text) {
    if (write(fd, text, strlen(text)) < 0)
        abort();
}

int main(int argc, char **argv) {
    char line[64];
    const int fd = open(argc > 1 ? argv[1] : "/dev/null", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    snprintf(line, sizeof line, "descriptor %d\n", fd);
    say(fd, line);
    for (const double start = now(); now() - start < 1.0;)
        for (int i = 0; i < 100000; i++)
            sink += (unsigned long)i;
    say(fd, "done\n");
    return 0;
}
