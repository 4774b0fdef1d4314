#include "thread_files.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* "/proc/self/task/TID/comm" without stdio. */
static void comm_path(char path[static 48], uint32_t tid) {
    char digits[12];
    int count = 0;
    do {
        digits[count++] = (char)('0' + tid % 10);
        tid /= 10;
    } while (tid);
    char *at = stpcpy(path, "/proc/self/task/");
    while (count)
        *at++ = digits[--count];
    memcpy(at, "/comm", sizeof "/comm");
}

void thread_name_read(uint32_t tid, char name[static THREAD_NAME_BYTES]) {
    char path[48];
    comm_path(path, tid);
    name[0] = 0;
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0)
        return;
    const ssize_t size = read(file, name, THREAD_NAME_BYTES - 1);
    close(file);
    name[size > 0 ? size : 0] = 0;
    name[strcspn(name, "\n")] = 0;
}
