#include "process_file.h"

#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 64, TEXT_MOST = 256, PIECE_BYTES = 4096 };

/* Puts "/proc/PID/" at the beginning of `path`; returns its length. */
static size_t put_folder(char *path, pid_t pid) {
    static const char proc[] = "/proc/";
    char digits[16];
    size_t at = sizeof digits;
    size_t length = sizeof proc - 1;
    memcpy(path, proc, length);
    digits[--at] = '/';
    for (unsigned rest = (unsigned)pid; rest || at == sizeof digits - 1; rest /= 10)
        digits[--at] = (char)('0' + rest % 10);
    memcpy(path + length, digits + at, sizeof digits - at);
    return length + sizeof digits - at;
}

int process_file_open(pid_t pid, const char *name) {
    char path[PATH_BYTES];
    const size_t folder = put_folder(path, pid);
    const size_t size = strlen(name) + 1;
    if (folder + size > sizeof path)
        return -1;
    memcpy(path + folder, name, size);
    return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* in another root it may be a pipe */
}

bool process_file_has(pid_t pid, const char *name, const char *text) {
    char piece[TEXT_MOST + PIECE_BYTES];
    const size_t length = strlen(text);
    size_t kept = 0; /* bytes of the previous piece, in which `text` may begin */
    bool found = false;
    const int file = length <= TEXT_MOST ? process_file_open(pid, name) : -1;
    while (file >= 0 && !found) {
        const ssize_t size = read(file, piece + kept, PIECE_BYTES);
        if (size <= 0)
            break;
        const size_t filled = kept + (size_t)size;
        found = memmem(piece, filled, text, length) != NULL;
        kept = filled < length - 1 ? filled : length - 1;
        for (size_t i = 0; i < kept; i++) /* musl has no __memmove_chk */
            piece[i] = piece[filled - kept + i];
    }
    if (file >= 0)
        close(file);
    return found;
}
