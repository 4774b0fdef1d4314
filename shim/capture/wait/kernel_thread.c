#include "kernel_thread.h"

#include "bare_syscall.h"
#include "clock.h"
#include "process_file.h"
#include "text_numbers.h"

#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>

enum {
    MOST_OPEN = 400, /* largest number of open files: those of 200 threads */
    /* largest part of the process's descriptor limit: libraries need descriptors, too */
    OPEN_SHARE = 4,
    PATH_BYTES = 64,
    TEXT_BYTES = 256,
};

/* --- files --- */

/* Returns the number of bytes, or a negative errno. */
static long read_text(int file, char text[static TEXT_BYTES]) {
    const long size = arch_system_call(SYS_pread64, file, (long)text, TEXT_BYTES - 1, 0, 0, 0);
    text[size > 0 ? size : 0] = 0;
    return size;
}

static void close_kept(struct kernel_view *view, int *kept) {
    if (!*kept)
        return;
    process_file_close(*kept);
    *kept = 0;
    view->open--;
}

/* Describes a file that each thread has in /proc. */
struct thread_file {
    const char *name;
    int *kept;
    struct refused_file *refused;
};

static struct thread_file call_file(struct kernel_view *view, struct thread_files *files) {
    return (struct thread_file){"syscall", &files->call, &view->refused_call};
}

static struct thread_file times_file(struct kernel_view *view, struct thread_files *files) {
    return (struct thread_file){"schedstat", &files->times, &view->refused_times};
}

/* Returns as read_text(). Keeps the file open if there is room, and it could be read. */
static long open_and_read(struct kernel_view *view, uint32_t tid, const struct thread_file *file,
                          char text[static TEXT_BYTES]) {
    const int opened = process_file_open_thread(tid, file->name);
    if (opened < 0)
        return opened;
    const long size = read_text(opened, text);
    if (view->open < view->most && size > 0) {
        *file->kept = opened;
        view->open++;
    } else
        process_file_close(opened);
    return size;
}

static bool kernel_read_file(struct kernel_view *view, uint32_t tid, struct thread_file file,
                             char text[static TEXT_BYTES]) {
    if (!view->sees_threads)
        return false;
    if (*file.kept)
        return read_text(*file.kept, text) > 0;
    const uint64_t now = monotonic_nano();
    if (refused_file_pauses(file.refused, now))
        return false;
    const long size = open_and_read(view, tid, &file, text);
    refused_file_note(file.refused, size, now);
    return size > 0;
}

/* --- the view of /proc --- */

/* Returns true if the calling thread is `tid` in /proc, which names it as in "1234/task/1240". */
static bool is_own_number(pid_t tid) {
    char text[PATH_BYTES];
    uint64_t number;
    const long size = bare_syscall(SYS_readlinkat, AT_FDCWD, (long)"/proc/thread-self", (long)text,
                                   PATH_BYTES - 1, 0, 0);
    if (size <= 0)
        return false;
    text[size] = 0;
    const char *const found = strstr(text, "/task/");
    const char *const end = found ? number_read(found + strlen("/task/"), 10, &number) : NULL;
    return end && !*end && number == (uint64_t)tid;
}

static uint32_t most_open(void) {
    struct rlimit limit = {0, 0};
    if (bare_syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, (long)&limit, 0, 0) != 0)
        return 0;
    const rlim_t share = limit.rlim_cur / OPEN_SHARE;
    return share < MOST_OPEN ? (uint32_t)share : MOST_OPEN;
}

bool kernel_view_follow(struct kernel_view *view, bool is_separate) {
    const pid_t tid = (pid_t)bare_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0);
    if (view->helper == tid)
        return false;
    *view = (struct kernel_view){.helper = tid, .is_separate = is_separate};
    view->sees_threads = is_separate && is_own_number(tid);
    view->most = view->sees_threads ? most_open() : 0;
    return true;
}

/* --- a thread --- */

enum thread_run_state kernel_thread_run_state(struct kernel_view *view, uint32_t tid,
                                              struct thread_files *files,
                                              struct blocked_call *call) {
    char text[TEXT_BYTES];
    if (!kernel_read_file(view, tid, call_file(view, files), text))
        return RUN_UNKNOWN;
    return blocked_call_parse(text, call) ? RUN_BLOCKED : RUN_RUNNING;
}

/* Parses the first two of three numbers: time on a processor, time on its queue, and number of time
 * slices (Documentation/scheduler/sched-stats.rst). */
static void parse_times(const char *text, struct thread_times *times) {
    const char *const behind = number_read(text, 10, &times->cpu_ns);
    if (behind && *behind == ' ')
        (void)number_read(behind + 1, 10, &times->delay_ns);
}

/* Prefers the CPU clock to the file: the clock is exact while the thread runs, the file counts only
 * up to the last tick. */
bool kernel_thread_times(struct kernel_view *view, uint32_t tid, struct thread_files *files,
                         struct thread_times *times) {
    char text[TEXT_BYTES];
    times->delay_ns = 0;
    if (kernel_read_file(view, tid, times_file(view, files), text))
        parse_times(text, times);
    times->cpu_ns = clock_nano(cpu_clock_of(tid));
    return times->cpu_ns != 0;
}

bool kernel_thread_delay(struct kernel_view *view, uint32_t tid, struct thread_files *files,
                         uint64_t *delay_ns) {
    char text[TEXT_BYTES];
    struct thread_times times = {0, 0};
    if (!kernel_read_file(view, tid, times_file(view, files), text))
        return false;
    parse_times(text, &times);
    *delay_ns = times.delay_ns;
    return true;
}

void kernel_own_times(struct thread_times *times, bool may_open) {
    char text[TEXT_BYTES];
    times->delay_ns = 0;
    if (may_open &&
        process_file_text(process_file_open_path("/proc/thread-self/schedstat"), text, TEXT_BYTES))
        parse_times(text, times);
    times->cpu_ns = thread_cpu_nano();
}

void kernel_thread_close(struct kernel_view *view, struct thread_files *files) {
    close_kept(view, &files->call);
    close_kept(view, &files->times);
}
