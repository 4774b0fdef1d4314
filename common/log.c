#include "log.h"

#include "descriptors.h"
#include "helper_name.h"
#include "private_file.h"
#include "process_tree.h"
#include "quiet_write.h"
#include "shown_text.h"
#include "syslog_lines.h"
#include "text_numbers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LINE_BYTES = 1024 };

struct line {
    char text[LINE_BYTES];
    size_t length;
};

void log_init(struct log *log, enum log_level level, const char *file) {
    *log = (struct log){
        .level = level, .file = file, .standard_error = file_identity_of(STDERR_FILENO)};
}

/* --- once per tree of processes --- */

static uint32_t log_topic_bit(enum log_topic topic) {
    return UINT32_C(1) << topic;
}

enum log_level log_level_in_tree(const struct log *log, enum log_topic topic,
                                 enum log_level level) {
    _Atomic uint32_t *const logged = atomic_load(&log->logged);
    if (logged && (atomic_fetch_or(logged, log_topic_bit(topic)) & log_topic_bit(topic)))
        return LOG_DEBUG;
    if (topic > LOG_UNSENT)
        return level;
    if (process_tree_has_reported(REPORTER_UNSENT))
        return LOG_DEBUG;
    prctl(PR_SET_NAME, HELPER_NAME_UNSENT);
    return level;
}

void log_forget(const struct log *log, enum log_topic topic) {
    _Atomic uint32_t *const logged = atomic_load(&log->logged);
    if (logged)
        atomic_fetch_and(logged, ~log_topic_bit(topic));
    prctl(PR_SET_NAME, HELPER_NAME);
}

/* --- formatting --- */

/* Adds bytes to the line, but leaves one byte free for the newline. */
static void line_add_bytes(struct line *line, const char *bytes, size_t count) {
    const size_t room = LINE_BYTES - 1 - line->length;
    if (count > room)
        count = room;
    memcpy(line->text + line->length, bytes, count);
    line->length += count;
}

static void add_text(struct line *line, const char *text) {
    line_add_bytes(line, text, strlen(text));
}

/* Adds any text of the caller's, made printable: see shown_text.h. */
static void log_add_shown(struct line *line, const char *text, size_t size) {
    const size_t room = LINE_BYTES - 1 - line->length;
    line->length +=
        shown_text(line->text + line->length, room < SHOWN_MOST ? room : SHOWN_MOST, text, size);
}

static void add_unsigned(struct line *line, uint64_t value, unsigned base) {
    char digits[NUMBER_BYTES];
    const char *const end = number_write(digits, base, value);
    line_add_bytes(line, digits, (size_t)(end - digits));
}

static void add_signed(struct line *line, int64_t value) {
    if (value < 0)
        add_text(line, "-");
    add_unsigned(line, value < 0 ? -(uint64_t)value : (uint64_t)value, 10);
}

static uint64_t take_unsigned(va_list *arguments, int longs) {
    return longs ? va_arg(*arguments, unsigned long) : va_arg(*arguments, unsigned int);
}

static int64_t take_signed(va_list *arguments, int longs) {
    return longs ? va_arg(*arguments, long) : va_arg(*arguments, int);
}

static void add_slice(struct line *line, va_list *arguments) {
    const int precision = va_arg(*arguments, int);
    const char *const text = va_arg(*arguments, const char *);
    log_add_shown(line, text, precision > 0 ? (size_t)precision : 0);
}

/* Formats the conversion at `at`, just behind the percent sign. Returns the rest of the format. */
static const char *add_conversion(struct line *line, const char *at, va_list *arguments) {
    int longs = 0;
    if (strncmp(at, ".*s", 3) == 0) {
        add_slice(line, arguments);
        return at + 3;
    }
    for (; *at == 'l' || *at == 'z'; at++)
        longs++;
    const char *text;
    const char character = *at == 'c' ? (char)va_arg(*arguments, int) : '%';
    switch (*at) {
    case 's':
        text = va_arg(*arguments, const char *);
        log_add_shown(line, text ? text : "(null)", SIZE_MAX);
        break;
    case 'd':
        add_signed(line, take_signed(arguments, longs));
        break;
    case 'u':
        add_unsigned(line, take_unsigned(arguments, longs), 10);
        break;
    case 'x':
        add_unsigned(line, take_unsigned(arguments, longs), 16);
        break;
    case 'p':
        add_text(line, "0x");
        add_unsigned(line, (uintptr_t)va_arg(*arguments, void *), 16);
        break;
    case 0:
        return at;
    default:
        line_add_bytes(line, &character, 1);
    }
    return at + 1;
}

static void add_format(struct line *line, const char *format, va_list *arguments) {
    while (*format) {
        const size_t plain = strcspn(format, "%");
        line_add_bytes(line, format, plain);
        format += plain;
        if (*format == '%')
            format = add_conversion(line, format + 1, arguments);
    }
}

/* --- writing --- */

bool log_thread_is_separate(const struct log *log) {
    const pid_t separate = log->separate_thread;
    return separate && separate == (pid_t)syscall(SYS_gettid);
}

int log_open_stderr(const struct log *log) {
    if (!log->standard_error.known)
        return -1;
    const int descriptor =
        log_thread_is_separate(log) ? descriptors_borrow(STDERR_FILENO) : STDERR_FILENO;
    if (descriptor >= 0 && file_identity_is(&log->standard_error, descriptor))
        return descriptor;
    log_close_stderr(descriptor);
    return -1;
}

void log_close_stderr(int descriptor) {
    if (descriptor > STDERR_FILENO)
        close(descriptor);
}

static void write_line(const struct log *log, const struct line *line) {
    const bool has_file = log->file && log->file[0];
    const int descriptor =
        has_file ? private_file_open(log->file, O_WRONLY | O_CREAT) : log_open_stderr(log);
    if (descriptor < 0)
        return;
    const struct iovec text = {(void *)(uintptr_t)line->text, line->length};
    (void)quiet_writev(descriptor, &text, 1, log_thread_is_separate(log));
    if (has_file)
        close(descriptor);
    else
        log_close_stderr(descriptor);
}

/* Writes the line without its newline. */
static void write_to_syslog(const struct log *log, enum log_level level, const struct line *line) {
    syslog_line_write(log->syslog, log_thread_is_separate(log), level, line->text,
                      line->length - 1);
}

void log_forget_waiting(const struct log *log) {
    if (log->syslog)
        syslog_lines_forget(log->syslog);
}

void log_send_waiting(const struct log *log) {
    const int saved = errno;
    if (log->syslog && log_thread_is_separate(log))
        syslog_lines_send_waiting(log->syslog);
    errno = saved;
}

void log_write(const struct log *log, enum log_level level, const char *format, ...) {
    static const char *const names[] = {"", "error", "warn", "info", "debug"};
    if (level > log->level || level == LOG_NONE)
        return;
    const int saved = errno;
    if (log->helper_only && !log_thread_is_separate(log)) {
        errno = saved;
        return;
    }
    struct line line = {.length = 0};
    add_text(&line, "libotelprof[");
    add_unsigned(&line, (uint64_t)getpid(), 10);
    add_text(&line, "] ");
    add_text(&line, names[level]);
    add_text(&line, ": ");
    va_list arguments;
    va_start(arguments, format);
    add_format(&line, format, &arguments);
    va_end(arguments);
    line.text[line.length++] = '\n';
    if (log->syslog)
        write_to_syslog(log, level, &line);
    else
        write_line(log, &line);
    errno = saved;
}
