/* Is started with some of descriptors 0, 1, 2 closed: opens a file, which gets such a number, and
 * writes "descriptor" and the number to the file. Then it works long enough to be profiled, and
 * writes the numbers of its descriptors.
 *
 * usage: closed_stdio FILE
 */
#include "cpu_work.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void say(int fd, const char *text) {
    if (write(fd, text, strlen(text)) < 0)
        abort();
}

/* Leaves out the descriptor by which it reads the list. */
static void list_descriptors(int fd) {
    char line[64];
    DIR *const folder = opendir("/proc/self/fd");
    for (const struct dirent *entry; folder && (entry = readdir(folder));) {
        if (entry->d_name[0] == '.' || atoi(entry->d_name) == dirfd(folder))
            continue;
        snprintf(line, sizeof line, "has %.16s\n", entry->d_name);
        say(fd, line);
    }
}

int main(int argc, char **argv) {
    char line[64];
    const int fd = open(argc > 1 ? argv[1] : "/dev/null", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    snprintf(line, sizeof line, "descriptor %d\n", fd);
    say(fd, line);
    WORK_FOR(1000 * NS_PER_MS);
    list_descriptors(fd);
    return 0;
}
