#include "thread_status.h"

#include "arch_syscall.h"

#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

/* The line may begin in one piece and end in the next: so much of each stays. */
enum { PIECE_BYTES = 512, OVERLAP_BYTES = 64, MOST_PIECES = 256 };

static bool is_hex_digit(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* The line is found only if its end is there, too. */
static bool thread_status_find(const char *text, size_t size, const char *title, char *value) {
    const char *at = memmem(text, size, title, strlen(title));
    size_t length = 0;
    if (!at)
        return false;
    for (at += strlen(title); at < text + size && is_hex_digit(*at); at++)
        if (length < THREAD_STATUS_BYTES - 1)
            value[length++] = *at;
    value[length] = 0;
    return at < text + size;
}

static bool read_pieces(long file, const char *title, char *value) {
    char text[OVERLAP_BYTES + PIECE_BYTES];
    size_t kept = 0;
    for (int i = 0; i < MOST_PIECES; i++) {
        const long got =
            arch_system_call(SYS_read, file, (long)(text + kept), PIECE_BYTES, 0, 0, 0);
        if (got <= 0)
            return false;
        const size_t size = kept + (size_t)got;
        if (thread_status_find(text, size, title, value))
            return true;
        kept = size < OVERLAP_BYTES ? size : OVERLAP_BYTES;
        memmove(text, text + size - kept, kept);
    }
    return false;
}

bool thread_status_read(const char *title, char value[static THREAD_STATUS_BYTES]) {
    const long file = arch_system_call(SYS_openat, AT_FDCWD, (long)"/proc/thread-self/status",
                                       O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0, 0, 0);
    if (file < 0)
        return false;
    const bool found = read_pieces(file, title, value);
    (void)arch_system_call(SYS_close, file, 0, 0, 0, 0, 0);
    return found;
}
