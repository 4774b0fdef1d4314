#include "process_file.h"

#include "arch_syscall.h"
#include "open_flags.h"
#include "text_numbers.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

enum { PATH_BYTES = 64, TEXT_MOST = 256, PIECE_BYTES = 4096 };

int process_file_open_path(const char *path) {
    return (int)arch_system_call(SYS_openat, AT_FDCWD, (long)path, OPEN_TO_READ, 0, 0, 0);
}

static int open_numbered(const char *folder, uint32_t number, const char *name) {
    char path[PATH_BYTES];
    const size_t folder_size = strlen(folder);
    memcpy(path, folder, folder_size);
    char *const at = number_write(path + folder_size, 10, number);
    const size_t room = (size_t)(path + sizeof path - at);
    const size_t size = strlen(name) + 1;
    if (size >= room)
        return -ENAMETOOLONG;
    *at = '/';
    memcpy(at + 1, name, size);
    return process_file_open_path(path);
}

int process_file_open(pid_t pid, const char *name) {
    return open_numbered("/proc/", (uint32_t)pid, name);
}

int process_file_open_thread(uint32_t tid, const char *name) {
    return open_numbered("/proc/self/task/", tid, name);
}

void process_file_close(int file) {
    (void)arch_system_call(SYS_close, file, 0, 0, 0, 0, 0);
}

bool process_file_text(int file, char *text, size_t room) {
    long size = 0;
    if (file >= 0) {
        size = arch_system_call(SYS_read, file, (long)text, (long)(room - 1), 0, 0, 0);
        process_file_close(file);
    }
    text[size > 0 ? size : 0] = 0;
    return size > 0;
}

const char *process_text_value(const char *text, const char *key, char end) {
    const size_t length = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, length) == 0 && line[length] == end)
            return line + length + 1;
    }
    return NULL;
}

const char *process_stat_field(const char *text, int number) {
    enum { STATE = 3 };
    const char *const name_end = strrchr(text, ')');
    const char *at = name_end && name_end[1] == ' ' ? name_end + 2 : NULL;
    for (int field = STATE; at && field < number; field++) {
        at = strchr(at, ' ');
        at = at ? at + 1 : NULL;
    }
    return at;
}

bool process_file_has(pid_t pid, const char *name, const char *text) {
    char piece[TEXT_MOST + PIECE_BYTES] = {0};
    const size_t length = strlen(text);
    size_t kept = 0; /* bytes of the previous piece that are kept, because `text` may begin there */
    bool found = false;
    const int file = length <= TEXT_MOST ? process_file_open(pid, name) : -1;
    while (file >= 0 && !found) {
        const long size =
            arch_system_call(SYS_read, file, (long)(piece + kept), PIECE_BYTES, 0, 0, 0);
        if (size <= 0)
            break;
        const size_t filled = kept + (size_t)size;
        found = memmem(piece, filled, text, length) != NULL;
        kept = filled < length - 1 ? filled : length - 1;
        for (size_t i = 0; i < kept; i++) /* copies by a loop, because musl has no __memmove_chk */
            piece[i] = piece[filled - kept + i];
    }
    if (file >= 0)
        process_file_close(file);
    return found;
}
