#include "file_export.h"

#include "append_file.h"
#include "clock.h"
#include "files/by_path.h"
#include "private_file.h"
#include "standard_output.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    /* Bounds the wait for another process that writes to the same file: one second in all. */
    LOCK_TRIES = 200,
    LOCK_PAUSE_NANO = 5 * NANO_PER_MILLI,
};

struct file_export {
    const struct capture_api *api;
    char *path;       /* NULL: standard output */
    bool away;        /* the last write failed */
    bool loss_logged; /* a loss was logged, at any level */
    /* a loss was logged at a level that is shown by default, so recovery is logged, too */
    bool loss_shown;
    bool is_unfinished; /* the last line on standard output is incomplete */
};

/* --- the file's name --- */

static bool is_json(const struct file_export *f) {
    return f->api->config->file_format == FILE_JSON;
}

static char *file_export_name(const struct file_export *f, const char *executable) {
    const char *const configured = f->api->config->file;
    char *name = NULL;
    if (configured[0])
        return strdup(configured);
    const int length =
        asprintf(&name, "otelprof-%s-%d.%s", executable && *executable ? executable : "unknown",
                 (int)getpid(), is_json(f) ? "jsonl" : "otlp");
    return length < 0 ? NULL : name;
}

/* Returns the absolute path of the file. Takes ownership of `name`, which may be NULL, and returns
 * it if it is absolute already or the folder of the start is unknown. Returns NULL without
 * memory. */
static char *absolute(const struct file_export *f, char *name) {
    const char *const folder = f->api->origin->folder;
    char *path = NULL;
    if (!name || name[0] == '/' || !folder[0])
        return name;
    const int length = asprintf(&path, "%s/%s", strcmp(folder, "/") == 0 ? "" : folder, name);
    free(name);
    return length < 0 ? NULL : path;
}

struct file_export *file_export_open(const struct capture_api *api, const char *executable) {
    struct file_export *const f = calloc(1, sizeof *f);
    if (!f)
        return NULL;
    f->api = api;
    if (config_writes_to_output(api->config))
        return f;
    f->path = absolute(f, file_export_name(f, executable));
    if (f->path)
        return f;
    free(f);
    return NULL;
}

void file_export_close(struct file_export *f) {
    if (!f)
        return;
    free(f->path);
    free(f);
}

/* --- reporting --- */

static const char *failure_reason(int error) {
    const char *const refused = private_file_problem(error);
    if (refused)
        return refused;
    switch (error) {
    case -EWOULDBLOCK: /* EAGAIN has the same value */
        return "other processes keep it busy, or none reads it";
    case -EXDEV:
        return "the program has changed its root or its mounts";
    case -EBADF:
        return "it is not open, or was replaced by the program";
    default:
        return strerrordesc_np(-error);
    }
}

static void report_lost(struct file_export *f, int error) {
    const char *const name = f->path ? f->path : "standard output";
    const char *const it = private_file_problem(error) ? "it " : "";
    const char *const why = failure_reason(error);
    f->away = true;
    if (f->loss_logged) {
        log_debug(f->api->log, "profiles still cannot be written to %s: %s%s", name, it,
                  why ? why : "unknown error");
        return;
    }
    const enum log_level level = log_level_in_tree(f->api->log, LOG_UNWRITTEN, LOG_WARN);
    f->loss_logged = true;
    f->loss_shown = level != LOG_DEBUG;
    log_write(f->api->log, level,
              "OTEL_PROFILER_FILE: profiles cannot be written to %s (%s%s); they are dropped until "
              "that is possible",
              name, it, why ? why : "unknown error");
}

static void report_written(struct file_export *f) {
    if (f->away)
        log_write(f->api->log, f->loss_shown ? LOG_INFO : LOG_DEBUG,
                  "OTEL_PROFILER_FILE: profiles are being written again");
    if (f->away)
        f->loss_shown = false;
    f->away = false;
    f->api->lifecycle.endpoint_responded(true);
}

/* --- writing --- */

static int file_export_write_file(struct file_export *f, const struct iovec *pieces, int count) {
    int error = -EWOULDBLOCK;
    for (int i = 0; error == -EWOULDBLOCK && i < LOCK_TRIES; i++) {
        if (i > 0)
            nanosleep(&(struct timespec){0, LOCK_PAUSE_NANO}, NULL);
        if (!may_open_by_path())
            return -EXDEV;
        if (!f->api->guard.lock_enter())
            return -ECANCELED;
        error = append_file(f->path, is_json(f), pieces, count);
        f->api->guard.lock_leave();
    }
    return error;
}

/* Writes to standard output, where a partial record cannot be removed again. So after an unfinished
 * line the next record begins on a new line. After a partial message with a length prefix nothing
 * more is written (-EPIPE), because a reader could not find the next message. */
static int file_export_write_output(struct file_export *f, const struct iovec *pieces, int count) {
    char newline[] = "\n";
    struct iovec all[MAX_PIECES + 1] = {{newline, 1}};
    const int first = f->is_unfinished && is_json(f);
    size_t written;
    if (f->is_unfinished && !is_json(f))
        return -EPIPE;
    memcpy(all + first, pieces, (size_t)count * sizeof *pieces);
    const int error =
        standard_output_write(f->api->log, f->api->origin, all, first + count, &written);
    if (written)
        f->is_unfinished = error != 0 && written > (size_t)first;
    return error;
}

void file_export_write(struct file_export *f, const void *bytes, size_t size, uint64_t samples) {
    char newline[] = "\n";
    uint32_t length = htonl((uint32_t)size);
    const struct iovec body = {(void *)(uintptr_t)bytes, size};
    const struct iovec line[] = {body, {newline, 1}};
    const struct iovec message[] = {{&length, sizeof length}, body};
    const struct iovec *const pieces = is_json(f) ? line : message;
    int error = -EFBIG;
    if (is_json(f) || size <= UINT32_MAX)
        error =
            f->path ? file_export_write_file(f, pieces, 2) : file_export_write_output(f, pieces, 2);
    f->api->counters.export_ended(!error);
    if (!error) {
        report_written(f);
        return;
    }
    if (error != -ECANCELED) /* -ECANCELED means that the process is ending, which is no failure */
        report_lost(f, error);
    f->api->counters.count_drop(DROP_FILE, samples);
}
