#include "process_stat.h"

#include "process_file.h"

#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

/* Numbers of the file's fields. The name before the state may contain any character. */
enum { STATE = 3, THREADS = 20, STARTED = 22, EXIT_STATUS = 52, TEXT_BYTES = 1024 };

/* Returns NULL if there are fewer fields. */
static const char *find_field(const char *state, int number) {
    const char *at = state;
    for (int i = STATE; at && i < number; i++) {
        at = strchr(at, ' ');
        at = at ? at + 1 : NULL;
    }
    return at;
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool process_stat_number(const char *at, uint64_t *number) {
    *number = 0;
    if (!at || !is_digit(*at))
        return false;
    for (; is_digit(*at); at++)
        *number = *number * 10 + (uint64_t)(*at - '0');
    return true;
}

bool process_stat_parse(const char *text, struct process_stat *stat) {
    const char *const name_end = strrchr(text, ')');
    uint64_t pid;
    uint64_t threads;
    uint64_t status;
    if (!name_end || name_end[1] != ' ' || !process_stat_number(text, &pid) ||
        !process_stat_number(find_field(name_end + 2, THREADS), &threads) ||
        !process_stat_number(find_field(name_end + 2, STARTED), &stat->started) ||
        !process_stat_number(find_field(name_end + 2, EXIT_STATUS), &status))
        return false;
    stat->pid = (uint32_t)pid;
    stat->is_dead = strchr("ZXx", name_end[2]) && name_end[2] && threads <= 1;
    stat->threads = (uint32_t)threads;
    stat->exit_status = (int)status;
    return true;
}

static bool read_all(int file, struct process_stat *stat) {
    char text[TEXT_BYTES];
    if (file < 0)
        return false;
    const ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    if (length <= 0)
        return false;
    text[length] = '\0';
    return process_stat_parse(text, stat);
}

bool process_stat_read(struct process_stat *stat) {
    return read_all(open("/proc/self/stat", O_RDONLY | O_CLOEXEC | O_NONBLOCK), stat);
}

bool process_stat_read_of(pid_t pid, struct process_stat *stat) {
    return read_all(process_file_open(pid, "stat"), stat);
}
