#include "thread_files.h"

#include "arch_syscall.h"

#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

enum { PATH_BYTES = 48, NAME_BYTES = 16, STATUS_BYTES = 4096 /* usually some 1,500 */ };

/* Makes "/proc/self/task/TID/comm" without stdio. */
static void make_path(char path[static PATH_BYTES], uint32_t tid, const char *name) {
    char digits[12];
    int count = 0;
    do {
        digits[count++] = (char)('0' + tid % 10);
        tid /= 10;
    } while (tid);
    char *at = stpcpy(path, "/proc/self/task/");
    while (count)
        *at++ = digits[--count];
    memcpy(at, name, strnlen(name, NAME_BYTES - 1) + 1);
}

/* Sets `text` to "" if the file cannot be read. */
static void read_thread_file(uint32_t tid, const char *name, char *text, size_t bytes) {
    char path[PATH_BYTES];
    make_path(path, tid, name);
    text[0] = 0;
    const long file = arch_system_call(SYS_openat, AT_FDCWD, (long)path,
                                       O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0, 0, 0);
    if (file < 0)
        return;
    const long size = arch_system_call(SYS_read, file, (long)text, (long)(bytes - 1), 0, 0, 0);
    (void)arch_system_call(SYS_close, file, 0, 0, 0, 0, 0);
    text[size > 0 ? size : 0] = 0;
}

void thread_name_read(uint32_t tid, char name[static THREAD_NAME_BYTES]) {
    read_thread_file(tid, "/comm", name, THREAD_NAME_BYTES);
    name[strcspn(name, "\n")] = 0;
}

static uint64_t hexadecimal_at(const char *at) {
    uint64_t number = 0;
    for (; (*at >= '0' && *at <= '9') || (*at >= 'a' && *at <= 'f'); at++)
        number = number << 4 | (uint64_t)(*at <= '9' ? *at - '0' : *at - 'a' + 10);
    return number;
}

bool thread_mask_read(uint32_t tid, uint64_t *mask) {
    static const char title[] = "\nSigBlk:\t";
    char text[STATUS_BYTES];
    read_thread_file(tid, "/status", text, sizeof text);
    const char *const line = strstr(text, title);
    if (line)
        *mask = hexadecimal_at(line + sizeof title - 1);
    return line;
}
