#include "host_files.h"

#include "bare_syscall.h"
#include "capture/kernel/first_page.h"
#include "open_flags.h"
#include "sentence.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define FOLDER "/etc/opentelemetry/otelprof"
#define MORE   "conf.d"

enum {
    NAME_BYTES = NAME_MAX + 1,
    ENTRIES_BYTES = 2048, /* at most so many bytes of a folder are read at a time */
    LINK_OR_FOLDER = O_NOFOLLOW | O_CLOEXEC,
};

IN_FIRST_PAGE static struct host_files {
    struct config_lines lines;
    size_t used;  /* number of bytes of the texts */
    size_t count; /* number of names */
    bool more;    /* some names did not fit */
    bool unknown; /* some files could not be checked, and may have more settings */
} files;

/* Holds the texts. Left untouched if there is no file, so that it takes no memory. */
static struct host_text {
    const char *entries[HOST_LINES_MOST];
    char text[HOST_TEXT_MOST + 1];
    char names[HOST_FILES_MOST][NAME_BYTES]; /* names in conf.d, in descending order */
} host;

struct reports {
    config_warn *warn;
    config_warn *note;
};

/* --- system calls --- */

static int open_at(int folder, const char *name, int flags) {
    return (int)bare_syscall(SYS_openat, folder, (long)name, flags | LINK_OR_FOLDER, 0, 0, 0);
}

static void close_it(int descriptor) {
    bare_syscall(SYS_close, descriptor, 0, 0, 0, 0, 0);
}

/* --- the kill switch --- */

/* Returns true for an error that comes from a lack of descriptors or memory, so that the file's
 * state is not known. */
static bool is_of_this_process(int error) {
    return error == EMFILE || error == ENFILE || error == ENOMEM;
}

static bool host_path_is_there(int folder, const char *path) {
    struct stat status;
    return bare_syscall(SYS_newfstatat, folder, (long)path, (long)&status, AT_SYMLINK_NOFOLLOW, 0,
                        0) == 0;
}

int host_files_open(void) {
    const int folder = open_at(AT_FDCWD, FOLDER, O_PATH | O_DIRECTORY);
    if (folder < 0 && is_of_this_process(errno))
        return host_path_is_there(AT_FDCWD, FOLDER) ? -EMFILE : -ENOENT;
    return folder < 0 ? -errno : folder;
}

void host_files_close(int folder) {
    if (folder >= 0)
        close_it(folder);
}

/* Returns true if the path exists. Opens it by O_PATH, which needs no right to read. Follows links
 * to the folder; a link in the place of the file exists, wherever it leads.
 */
static bool exists(int folder, const char *path) {
    const int place = open_at(folder, path, O_PATH);
    if (place >= 0)
        close_it(place);
    return place >= 0 || (is_of_this_process(errno) && host_path_is_there(folder, path));
}

const char *host_files_kill_switch(int folder) {
    static const char always[] = FOLDER "/disabled";
    static const char until_boot[] = "/run/opentelemetry/otelprof/disabled";
    if (folder >= 0 ? exists(folder, "disabled") : folder != -ENOENT && exists(AT_FDCWD, always))
        return always;
    return exists(AT_FDCWD, until_boot) ? until_boot : NULL;
}

/* --- reports of files that were not read --- */

static struct sentence about(const char *folder, const char *name, const char *what) {
    struct sentence sentence = {.length = 0};
    sentence_add(&sentence, folder);
    sentence_add(&sentence, *name ? "/" : "");
    sentence_add_value(&sentence, name, strlen(name));
    sentence_add(&sentence, " ");
    sentence_add(&sentence, what);
    return sentence;
}

static void host_files_report_refused(const struct reports *reports, const char *folder,
                                      const char *name, const char *why) {
    struct sentence sentence = about(folder, name, why);
    sentence_add(&sentence, "; it is not read");
    reports->warn(NULL, sentence.text);
}

static void report_note(const struct reports *reports, const char *folder, const char *name,
                        const char *what) {
    reports->note(NULL, about(folder, name, what).text);
}

/* Returns the reason why the file could not be opened, or NULL if that is no problem. */
static const char *opening_problem(int error) {
    switch (error) {
    case ELOOP:
        return "is a symbolic link, which is not followed";
    case ENOTDIR:
        return "is a symbolic link or no folder";
    case ENXIO: /* the path leads to a socket */
        return "is no regular file";
    default:
        return NULL;
    }
}

static const char *owner_problem(const struct stat *status) {
    if (status->st_uid != 0)
        return "does not belong to root";
    return status->st_mode & (S_IWGRP | S_IWOTH) ? "can be written by others than root" : NULL;
}

static const char *host_file_problem(const struct stat *status) {
    if (!S_ISREG(status->st_mode))
        return "is no regular file";
    if (status->st_size > HOST_FILE_MOST)
        return "is larger than 16384 bytes";
    return files.used + (size_t)status->st_size > HOST_TEXT_MOST
               ? "is beyond the 65536 bytes that are read of all files"
               : owner_problem(status);
}

static const char *host_folder_problem(int folder) {
    struct stat status = {0};
    return bare_syscall(SYS_fstat, folder, (long)&status, 0, 0, 0, 0) == 0 ? owner_problem(&status)
                                                                           : "cannot be read";
}

static void report_unopened(const struct reports *reports, int error, const char *folder,
                            const char *name) {
    const char *const problem = opening_problem(error);
    files.unknown = files.unknown || is_of_this_process(error);
    if (problem)
        host_files_report_refused(reports, folder, name, problem);
    else if (error != ENOENT)
        report_note(reports, folder, name, "cannot be read by this user");
}

/* --- a file --- */

/* Returns the number of bytes read, at most the file's size, or -1 if it cannot be read. */
static long read_settings_text(int file, char *text, size_t size) {
    size_t filled = 0;
    while (filled < size) {
        const long got =
            bare_syscall(SYS_read, file, (long)(text + filled), (long)(size - filled), 0, 0, 0);
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        filled += (size_t)got;
    }
    return (long)filled;
}

static void parse_file(const struct reports *reports, const char *folder, const char *name,
                       size_t size) {
    struct sentence path = {.length = 0};
    sentence_add(&path, folder);
    sentence_add(&path, "/");
    sentence_add_value(&path, name, strlen(name));
    config_file_parse(host.text + files.used, size, path.text, &files.lines, reports->warn, NULL);
    files.used += size + 1;
    report_note(reports, folder, name, "was read");
}

static void read_open_file(int file, const struct reports *reports, const char *folder,
                           const char *name) {
    struct stat status = {0};
    const bool known = bare_syscall(SYS_fstat, file, (long)&status, 0, 0, 0, 0) == 0;
    const char *const problem = known ? host_file_problem(&status) : "cannot be read";
    if (problem) {
        host_files_report_refused(reports, folder, name, problem);
        return;
    }
    const long size = read_settings_text(file, host.text + files.used, (size_t)status.st_size);
    if (size < 0)
        host_files_report_refused(reports, folder, name, "cannot be read");
    else
        parse_file(reports, folder, name, (size_t)size);
}

static void read_settings_file(int parent, const struct reports *reports, const char *folder,
                               const char *name) {
    const int file = open_at(parent, name, OPEN_TO_READ);
    if (file < 0) {
        report_unopened(reports, errno, folder, name);
        return;
    }
    read_open_file(file, reports, folder, name);
    close_it(file);
}

/* --- conf.d --- */

static bool is_configuration(const char *name) {
    static const char ending[] = ".conf";
    const size_t length = strlen(name);
    return length >= sizeof ending && length < NAME_BYTES && name[0] != '.' &&
           strcmp(name + length - (sizeof ending - 1), ending) == 0;
}

/* Adds a name, and keeps the names in descending order, because the last name counts most. If there
 * are too many, drops the first names. */
static void add_name(const char *name) {
    size_t at = files.count;
    while (at && strcmp(host.names[at - 1], name) < 0)
        at--;
    files.more = files.more || files.count == HOST_FILES_MOST;
    if (at == HOST_FILES_MOST)
        return;
    for (size_t i = files.count < HOST_FILES_MOST ? files.count++ : HOST_FILES_MOST - 1; i > at;
         i--)
        memcpy(host.names[i], host.names[i - 1], NAME_BYTES);
    memcpy(host.names[at], name, strlen(name) + 1);
}

/* Returns the entry in the format of getdents64(2). */
static const struct dirent64 *entry_at(const char *entries, long at) {
    return (const struct dirent64 *)(const void *)(entries + at);
}

static void list_names(int folder) {
    /* initialized because analysers do not know what the system call writes */
    _Alignas(struct dirent64) char entries[ENTRIES_BYTES] = {0};
    long size;
    while ((size = bare_syscall(SYS_getdents64, folder, (long)entries, sizeof entries, 0, 0, 0)) >
           0)
        for (long at = 0; at < size; at += entry_at(entries, at)->d_reclen)
            if (is_configuration(entry_at(entries, at)->d_name))
                add_name(entry_at(entries, at)->d_name);
}

static void read_files_of(int folder, const struct reports *reports) {
    static const char path[] = FOLDER "/" MORE;
    const char *const problem = host_folder_problem(folder);
    if (problem) {
        host_files_report_refused(reports, path, "", problem);
        return;
    }
    list_names(folder);
    for (size_t i = 0; i < files.count; i++)
        read_settings_file(folder, reports, path, host.names[i]);
    if (files.more)
        reports->warn(NULL, about(path, host.names[HOST_FILES_MOST - 1],
                                  "is the first of 32 files; those before it are not read")
                                .text);
}

static void read_more(int parent, const struct reports *reports) {
    const int folder = open_at(parent, MORE, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
    if (folder < 0) {
        report_unopened(reports, errno, FOLDER, MORE);
        return;
    }
    read_files_of(folder, reports);
    close_it(folder);
}

/* --- all files --- */

const struct config_lines *host_files_read(int folder, config_warn *warn, config_warn *note) {
    const struct reports reports = {warn, note};
    files.lines = (struct config_lines){.entries = host.entries, .most = HOST_LINES_MOST};
    if (folder < 0) {
        report_unopened(&reports, -folder, FOLDER, "");
        return &files.lines;
    }
    const char *const problem = host_folder_problem(folder);
    if (problem) {
        host_files_report_refused(&reports, FOLDER, "", problem);
        return &files.lines;
    }
    read_more(folder, &reports);
    read_settings_file(folder, &reports, FOLDER, "otelprof.conf");
    return &files.lines;
}

bool host_files_are_known(void) {
    return !files.unknown;
}
