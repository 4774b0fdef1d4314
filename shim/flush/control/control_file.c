#include "control_file.h"

#include "clock.h"
#include "declare/declared_file.h"
#include "files/by_path.h"
#include "files/trusted_file.h"
#include "hash.h"
#include "process_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MOST_BYTES = 64 << 10,
    MOST_WRONG = 8,
    /* checks after a change that read the file again: they are a second apart, and FAT counts the
     * time of a change in two seconds */
    REREADS = 3,
};

struct control_file control_file_open(const struct capture_api *api) {
    const char *const path = api->config->control_file;
    return (struct control_file){
        .api = api, .path = path, .seen.error = -1, .next = *path ? 0 : UINT64_MAX};
}

/* --- logging --- */

/* Returns the level of warnings. Only one process of a tree logs them, because its children and
 * siblings have the same file. */
static enum log_level level_of_warnings(struct control_file *file) {
    if (!file->has_chosen_reporter)
        file->reports_problems =
            !process_tree_has_reported(REPORTER_PROFILED) &&
            log_level_in_tree(file->api->log, LOG_CONTROLLED, LOG_WARN) == LOG_WARN;
    file->has_chosen_reporter = true;
    return file->reports_problems ? LOG_WARN : LOG_DEBUG;
}

/* --- reading --- */

struct reading {
    struct control_file *file;
    unsigned wrong;
};

static void report_wrong_line(void *arg, unsigned line, const char *what) {
    struct reading *const reading = arg;
    struct control_file *const file = reading->file;
    if (reading->wrong++ > MOST_WRONG)
        return;
    const enum log_level level = level_of_warnings(file);
    if (reading->wrong <= MOST_WRONG)
        log_write(file->api->log, level,
                  "OTEL_PROFILER_CONTROL_FILE: %s:%u: %s; the line is ignored", file->path, line,
                  what);
    else
        log_write(file->api->log, level,
                  "OTEL_PROFILER_CONTROL_FILE: %s has more such lines; they are ignored",
                  file->path);
}

static const char *open_problem(const char *path) {
    if (*path != '/')
        return "is no absolute path";
    if (faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) != 0)
        return file_problem_text(errno);
    return "is no regular file, or others than root and the user of the process can write it or "
           "put another in its place";
}

static uint64_t control_file_hash(const struct declared_file *read) {
    const uint64_t hash = hash_memory(hash_word(1, read->size), read->text, read->size);
    return hash ? hash : 1;
}

/* Reads the file. Returns NULL, or the reason why the whole file is refused, as a constant text. */
static const char *read_trusted(const struct control_file *file, struct declared_file *read) {
    const int descriptor = trusted_file_open_given(file->path);
    return descriptor < 0 ? open_problem(file->path)
                          : declared_file_take(descriptor, MOST_BYTES, read);
}

static void control_file_read_overlay(struct control_file *file, const struct declared_file *read) {
    struct reading reading = {.file = file};
    file->overlay = (struct overlay){.has = 0};
    overlay_read(&file->overlay, read->text, read->size, file->api->config, report_wrong_line,
                 &reading);
    log_debug(file->api->log, "OTEL_PROFILER_CONTROL_FILE: %s has been read; it sets %d variables",
              file->path, __builtin_popcount(file->overlay.has));
}

/* Returns true if other settings may hold now. Logs why the file is not read; for an unchanged file
 * only if the reason is another than before. */
static bool reload_overlay(struct control_file *file, bool has_changed) {
    struct declared_file read = {NULL, 0};
    const int error = file->seen.error;
    /* a missing file is logged at debug level only, because it may appear and disappear */
    const bool is_missing = error == ENOENT || error == ENOTDIR;
    const uint64_t before = file->contents;
    const char *const problem = error ? file_problem_text(error) : read_trusted(file, &read);
    const bool is_new =
        has_changed || !file->refusal || (problem && strcmp(problem, file->refusal) != 0);
    if (problem && is_new)
        log_write(file->api->log, is_missing ? LOG_DEBUG : level_of_warnings(file),
                  "OTEL_PROFILER_CONTROL_FILE: %s %s; it sets nothing", file->path, problem);
    file->refusal = error ? NULL : problem;
    file->contents = problem ? 0 : control_file_hash(&read);
    if (problem)
        file->overlay = (struct overlay){.has = 0};
    else if (has_changed || file->contents != before)
        control_file_read_overlay(file, &read);
    free(read.text);
    return file->contents != before;
}

/* --- polling --- */

static uint64_t timestamp_nano(struct statx_timestamp time) {
    return (uint64_t)time.tv_sec * NANO_PER_SECOND + time.tv_nsec;
}

static struct file_seen read_identity(const char *path) {
    struct statx status;
    const unsigned wanted = STATX_INO | STATX_SIZE | STATX_MTIME | STATX_CTIME;
    if (statx(AT_FDCWD, path, 0, wanted, &status) != 0)
        return (struct file_seen){.error = errno};
    return (struct file_seen){
        .device = (uint64_t)status.stx_dev_major << 32 | status.stx_dev_minor,
        .inode = status.stx_ino,
        .size = status.stx_size,
        .modified_nano = timestamp_nano(status.stx_mtime),
        .changed_nano = timestamp_nano(status.stx_ctime),
    };
}

static bool is_same_identity(const struct file_seen *a, const struct file_seen *b) {
    return a->device == b->device && a->inode == b->inode && a->size == b->size &&
           a->modified_nano == b->modified_nano && a->changed_nano == b->changed_nano &&
           a->error == b->error;
}

/* Returns true if the program has changed its root or mounts, so that the path leads to another
 * file. */
static bool path_is_hidden(struct control_file *file) {
    const bool before = file->hidden;
    file->hidden = !may_open_by_path();
    if (file->hidden && !before)
        log_debug(file->api->log,
                  "OTEL_PROFILER_CONTROL_FILE: %s cannot be read any more: the program has changed "
                  "its root or its mounts; its last settings stay in force",
                  file->path);
    return file->hidden;
}

bool control_file_poll(struct control_file *file) {
    file->next = monotonic_nano() + NANO_PER_SECOND;
    if (path_is_hidden(file))
        return false;
    const struct file_seen seen = read_identity(file->path);
    const bool has_changed = !is_same_identity(&seen, &file->seen);
    /* a refused file is tried again: its identity does not show that a folder has been repaired */
    if (!has_changed && !file->refusal && !file->rereads)
        return false;
    if (has_changed)
        file->rereads = seen.error ? 0 : REREADS;
    else if (file->rereads)
        file->rereads--;
    file->seen = seen;
    return reload_overlay(file, has_changed) || has_changed;
}
