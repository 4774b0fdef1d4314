#include "crash_guard.h"

#include "bare_syscall.h"
#include "capture/kernel/first_page.h"
#include "clock.h"
#include "crash_record.h"
#include "hash.h"
#include "private_file.h"
#include "process_stat.h"
#include "program_path.h"
#include "text_numbers.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NAME_BYTES = 32 };

/* Holds the state of the guard in this process, of which children have a copy. */
IN_FIRST_PAGE static struct crash_guard {
    /* points into `record`; NULL: there is no start to mark as completed */
    struct timespec *_Atomic completed;
    struct crash_record *record; /* the mapped file */
    pid_t pid;
    uint64_t due_nano; /* CLOCK_MONOTONIC: when the process is old enough to complete its start */
    bool sees_others;  /* /proc shows the pids of this process's namespace */
} guard;

/* --- this process --- */

static uint64_t hash_of_executable(void) {
    char path[PATH_MAX];
    struct stat status;
    const char *const file =
        program_is_run_by_loader() && program_path(path, sizeof path) ? path : "/proc/self/exe";
    if (syscall(SYS_newfstatat, AT_FDCWD, file, &status, 0) != 0)
        return 0;
    const uint64_t words[] = {status.st_dev, status.st_ino, (uint64_t)status.st_mtim.tv_sec,
                              (uint64_t)status.st_mtim.tv_nsec};
    /* a hash that is not 0, which means that there is none */
    return hash_words(1, words, sizeof words / sizeof *words) | 1;
}

static uint64_t pid_namespace(void) {
    struct stat status;
    if (syscall(SYS_newfstatat, AT_FDCWD, "/proc/self/ns/pid", &status, 0) != 0)
        return 0;
    return status.st_ino;
}

static bool crash_guard_describe(struct crash_start *own) {
    struct process_stat stat;
    guard.pid = (pid_t)syscall(SYS_getpid);
    *own = (struct crash_start){.executable = hash_of_executable(),
                                .pid_namespace = pid_namespace(),
                                .began_nano = (int64_t)clock_nano(CLOCK_BOOTTIME),
                                .pid = (uint64_t)guard.pid};
    if (!own->executable || !own->pid_namespace || !process_stat_read(&stat))
        return false;
    own->process_started = stat.started;
    guard.sees_others = stat.pid == own->pid;
    crash_record_seal(own);
    return true;
}

/* --- other processes --- */

/* Returns true if the start is too old. The caller uses this where the start's process cannot be
 * checked. */
static bool is_overdue(const struct crash_start *start, const struct crash_start *own) {
    return own->began_nano - start->began_nano > CRASH_OVERDUE_S * (int64_t)NANO_PER_SECOND;
}

/* Returns true if the process of the start has ended; if that cannot be checked, returns true if
 * the start is overdue. Also checks by kill(), because /proc may hide processes (hidepid). */
static bool start_is_gone(const struct crash_start *start, const struct crash_start *own) {
    struct process_stat stat;
    if (start->pid_namespace != own->pid_namespace || start->pid == 0 || start->pid > INT_MAX)
        return is_overdue(start, own);
    if (syscall(SYS_kill, (pid_t)start->pid, 0) != 0 && errno == ESRCH)
        return true;
    if (!guard.sees_others || !process_stat_read_of((pid_t)start->pid, &stat))
        return is_overdue(start, own);
    return stat.started != start->process_started || stat.is_dead;
}

/* --- the file --- */

/* Builds a name such as "1000.starts". */
static void name_record(char name[NAME_BYTES]) {
    static const char end[] = ".starts";
    memcpy(number_write(name, 10, (uint32_t)syscall(SYS_geteuid)), end, sizeof end);
}

/* Returns true if the record's path holds another user's file, or no regular file. EACCES may also
 * mean an unwritable folder, so the file's owner is checked then. */
static bool is_taken(int error, const char *name) {
    char path[sizeof CRASH_GUARD_FOLDER + NAME_BYTES] = CRASH_GUARD_FOLDER "/";
    struct stat status;
    if (error != -EACCES)
        return error == -ELOOP || error == -EISDIR || error == -ENOTSUP ||
               error == -PRIVATE_FILE_OF_ANOTHER || error == -PRIVATE_FILE_LINKED;
    memcpy(path + sizeof CRASH_GUARD_FOLDER, name, strlen(name) + 1);
    return syscall(SYS_newfstatat, AT_FDCWD, path, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           status.st_uid != (uid_t)syscall(SYS_geteuid);
}

/* Reads the record. Fills up a short file with zeros, which are empty entries. */
static bool read_record(int file, struct crash_record *record) {
    const long size = syscall(SYS_pread64, file, record, sizeof *record, 0L);
    if (size < 0)
        return false;
    if ((size_t)size == sizeof *record)
        return true;
    memset((char *)record + size, 0, sizeof *record - (size_t)size);
    return syscall(SYS_ftruncate, file, (off_t)sizeof *record) == 0;
}

static bool write_part(int file, const void *part, size_t size, size_t at) {
    return syscall(SYS_lseek, file, (off_t)at, SEEK_SET) == (long)at &&
           syscall(SYS_write, file, part, size) == (long)size;
}

/* --- the verdict --- */

/* Enters a pause for the executable, and logs the verdict, if this process gets the lock and no
 * pause was entered meanwhile. Otherwise the process that holds the lock does both. */
static void crash_guard_report(int file, struct crash_record *record, struct crash_start *own,
                               const struct log *log) {
    char path[PATH_MAX];
    if (syscall(SYS_flock, file, LOCK_EX | LOCK_NB) != 0 || !read_record(file, record))
        return;
    own->began_nano =
        /* read after the lock's previous holder has written its time */
        (int64_t)clock_nano(CLOCK_BOOTTIME);
    if (crash_record_judge(record, own, start_is_gone) != CRASH_FAILS)
        return;
    const struct crash_pause pause = {own->executable, own->began_nano};
    const size_t place = crash_record_pause_place(record, own->executable, own->began_nano);
    (void)write_part(file, &pause, sizeof pause,
                     offsetof(struct crash_record, pauses) + place * sizeof pause);
    (void)program_path(path, sizeof path);
    log_warn(log,
             "%s did not get through its first %d s in %d starts within ten minutes; it is not "
             "profiled for an hour (crash guard)",
             path, CRASH_COMPLETED_S, CRASH_MOST_FAILURES);
}

/* Enters the start. Returns false if there is no disk space or memory: then this start has no
 * guard. */
static bool crash_guard_enter(int file, const struct crash_record *record,
                              const struct crash_start *own) {
    const uint32_t place = crash_record_place(record, own);
    void *const memory = (void *)syscall(SYS_mmap, NULL, sizeof *record, PROT_READ | PROT_WRITE,
                                         MAP_SHARED | MAP_POPULATE, file, 0L);
    if (memory == MAP_FAILED)
        return false;
    if (!write_part(file, own, sizeof *own,
                    offsetof(struct crash_record, starts) + place * sizeof *own)) {
        syscall(SYS_munmap, memory, sizeof *record);
        return false;
    }
    guard.record = memory;
    guard.due_nano = monotonic_nano() + CRASH_COMPLETED_S * (uint64_t)NANO_PER_SECOND;
    atomic_store(&guard.completed, &guard.record->starts[place].completed);
    return true;
}

static bool ask_record(int file, const struct log *log) {
    struct crash_record record;
    struct crash_start own;
    struct rlimit limit;
    /* the kernel ends a process that writes beyond this limit (SIGXFSZ) */
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur < sizeof record) {
        log_debug(log, "no crash guard: RLIMIT_FSIZE forbids to write its record");
        return true;
    }
    if (!crash_guard_describe(&own) || !read_record(file, &record)) {
        log_debug(log, "no crash guard: /proc or the record cannot be read");
        return true;
    }
    const enum crash_verdict verdict = crash_record_judge(&record, &own, start_is_gone);
    if (verdict == CRASH_FAILS)
        crash_guard_report(file, &record, &own, log);
    else if (verdict == CRASH_LEFT_ALONE)
        log_debug(log, "left alone by the crash guard, which has said so within the last hour");
    else if (!crash_guard_enter(file, &record, &own))
        log_debug(log, "no crash guard: its record cannot be written");
    return verdict == CRASH_ADMITTED;
}

bool crash_guard_admits(bool host_wide, const struct log *log) {
    char name[NAME_BYTES];
    if (!host_wide)
        return true;
    name_record(name);
    const int file = private_file_open_in(CRASH_GUARD_FOLDER, name, O_RDWR | O_CREAT);
    if (file >= 0) {
        const bool admitted = ask_record(file, log);
        close(file);
        return admitted;
    }
    if (!is_taken(file, name)) {
        log_debug(log, "no crash guard: %s cannot be written (error %d)", CRASH_GUARD_FOLDER,
                  -file);
        return true;
    }
    log_debug(log, "%s/%s is no file of this user; nothing is profiled", CRASH_GUARD_FOLDER, name);
    return false;
}

/* --- the end of the start --- */

void crash_guard_mark_started(void) {
    if (!atomic_load(&guard.completed) || (pid_t)syscall(SYS_getpid) != guard.pid)
        return;
    struct timespec *const completed = atomic_exchange(&guard.completed, NULL);
    const int saved = errno;
    if (completed) /* makes a bare call, because another preload may replace syscall() and refuse */
        (void)bare_syscall(SYS_clock_gettime, CLOCK_MONOTONIC, (long)completed, 0, 0, 0, 0);
    errno = saved;
}

void crash_guard_after_fork(void) {
    /* checks first, because otherwise each child would write, and so copy, the page */
    if (atomic_load(&guard.completed))
        atomic_store(&guard.completed, NULL);
}

uint64_t crash_guard_next_poll(void) {
    return atomic_load(&guard.completed) ? guard.due_nano : UINT64_MAX;
}

void crash_guard_poll(void) {
    if (!atomic_load(&guard.completed) || monotonic_nano() < guard.due_nano)
        return;
    crash_guard_mark_started();
}
