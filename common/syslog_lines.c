#include "syslog_lines.h"

#include "bare_syscall.h"
#include "text_numbers.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

/* Lists the states of a place for a waiting line: free, being written, complete, being sent. */
enum syslog_state { PLACE_FREE, PLACE_WRITTEN, PLACE_COMPLETE, PLACE_SENT };

enum {
    DAEMON = 3 << 3,      /* RFC 3164: facility 3, in the upper bits */
    HEAD_BYTES = 96,      /* "<27>PROGRAM[4194304]: (4294967295 lines were lost) " */
    STREAM_END_BYTES = 1, /* a stream's records end in a zero byte */
};

bool syslog_is_wanted(const char *log_file) {
    return log_file && strcmp(log_file, "syslog") == 0;
}

/* --- the program's name --- */

static bool is_of_a_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '+' || c == '_';
}

/* Replaces unusual characters of the name, because a log takes the text before "[" or ":" for the
 * name. */
void syslog_lines_open(struct syslog_lines *lines) {
    const char *const path = (const char *)(uintptr_t)getauxval(AT_EXECFN);
    const char *const slash = path ? strrchr(path, '/') : NULL;
    const char *const name = slash ? slash + 1 : path ? path : "";
    size_t length = 0;
    for (; length < SYSLOG_PROGRAM_BYTES - 1 && name[length]; length++)
        lines->program[length] = is_of_a_name(name[length]) ? name[length] : '_';
    lines->program[length] = 0;
}

/* --- sending --- */

static size_t severity_of(enum log_level level) {
    enum { ERROR = 3, WARNING = 4, INFORMATIONAL = 6, DEBUG = 7 }; /* RFC 3164, table 2 */
    static const uint8_t severities[] = {
        [LOG_ERROR] = ERROR, [LOG_WARN] = WARNING, [LOG_INFO] = INFORMATIONAL, [LOG_DEBUG] = DEBUG};
    return level < sizeof severities ? severities[level] : DEBUG;
}

static char *syslog_add_words(char *to, const char *text) {
    const size_t length = strlen(text);
    memcpy(to, text, length);
    return to + length;
}

static size_t write_head(char head[static HEAD_BYTES], const struct syslog_lines *lines,
                         uint32_t lost, enum log_level level) {
    char *at = syslog_add_words(head, "<");
    at = number_write(at, 10, DAEMON + severity_of(level));
    at = syslog_add_words(syslog_add_words(at, ">"), lines->program);
    at = number_write(syslog_add_words(at, "["), 10, (uint64_t)getpid());
    at = syslog_add_words(at, "]: ");
    if (lost)
        at = syslog_add_words(number_write(syslog_add_words(at, "("), 10, lost),
                              " lines were lost) ");
    return (size_t)(at - head);
}

/* Returns a connected socket of that type, or -errno. Does not wait. */
static long open_log_socket(int type) {
    const struct sockaddr_un place = {.sun_family = AF_UNIX, .sun_path = "/dev/log"};
    const long file =
        arch_system_call(SYS_socket, AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, 0, 0, 0);
    if (file < 0)
        return file;
    const long failed = arch_system_call(SYS_connect, file, (long)&place, sizeof place, 0, 0, 0);
    if (failed >= 0)
        return file;
    arch_system_call(SYS_close, file, 0, 0, 0, 0, 0);
    return failed;
}

/* Returns false if the log did not take the whole record. */
static bool send_record(const char *record, size_t size) {
    size_t sent_bytes = size;
    long file = open_log_socket(SOCK_DGRAM);
    if (file == -EPROTOTYPE) { /* the log listens for streams */
        file = open_log_socket(SOCK_STREAM);
        sent_bytes += STREAM_END_BYTES;
    }
    if (file < 0)
        return false;
    const long sent =
        arch_system_call(SYS_sendto, file, (long)record, (long)sent_bytes, MSG_NOSIGNAL, 0, 0);
    arch_system_call(SYS_close, file, 0, 0, 0, 0, 0);
    return sent == (long)sent_bytes;
}

static void send_line(struct syslog_lines *lines, enum log_level level, const char *text,
                      size_t size) {
    char record[HEAD_BYTES + SYSLOG_LINE_BYTES + STREAM_END_BYTES];
    const uint32_t lost = atomic_exchange(&lines->lost, 0);
    const size_t head = write_head(record, lines, lost, level);
    const size_t fits = size < SYSLOG_LINE_BYTES ? size : SYSLOG_LINE_BYTES;
    memcpy(record + head, text, fits);
    record[head + fits] = 0;
    if (!send_record(record, head + fits))
        atomic_fetch_add(&lines->lost, lost + 1);
}

/* --- lines that wait for the helper --- */

static bool take_place(struct syslog_waiting *place, uint32_t from, uint32_t to) {
    /* pairs with the release in leave_place() */
    return atomic_compare_exchange_strong_explicit(&place->state, &from, to, memory_order_acquire,
                                                   memory_order_relaxed);
}

static void leave_place(struct syslog_waiting *place, uint32_t state) {
    /* pairs with the acquire in take_place() */
    atomic_store_explicit(&place->state, state, memory_order_release);
}

static void syslog_keep_line(struct syslog_lines *lines, enum log_level level, const char *text,
                             size_t size) {
    for (int i = 0; i < SYSLOG_WAITING; i++) {
        struct syslog_waiting *const place = &lines->waiting[i];
        if (!take_place(place, PLACE_FREE, PLACE_WRITTEN))
            continue;
        place->level = level;
        place->size = (uint32_t)(size < SYSLOG_LINE_BYTES ? size : SYSLOG_LINE_BYTES);
        memcpy(place->text, text, place->size);
        leave_place(place, PLACE_COMPLETE);
        return;
    }
    atomic_fetch_add(&lines->lost, 1);
}

void syslog_lines_forget(struct syslog_lines *lines) {
    for (int i = 0; i < SYSLOG_WAITING; i++)
        leave_place(&lines->waiting[i], PLACE_FREE);
    atomic_store(&lines->lost, 0);
}

void syslog_lines_send_waiting(struct syslog_lines *lines) {
    for (int i = 0; i < SYSLOG_WAITING; i++) {
        struct syslog_waiting *const place = &lines->waiting[i];
        if (!take_place(place, PLACE_COMPLETE, PLACE_SENT))
            continue;
        send_line(lines, (enum log_level)place->level, place->text, place->size);
        leave_place(place, PLACE_FREE);
    }
}

void syslog_line_write(struct syslog_lines *lines, bool is_helper, enum log_level level,
                       const char *text, size_t size) {
    if (!is_helper) {
        syslog_keep_line(lines, level, text, size);
        return;
    }
    syslog_lines_send_waiting(lines);
    send_line(lines, level, text, size);
}
