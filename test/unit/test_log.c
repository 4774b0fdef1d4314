/* Tests that log lines cost the program nothing: not its life, not its time, not its errno, not its
 * files. */
#include "unit.h"

#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/otelprof-log-XXXXXX";
static char path[64];

static struct log log_to_file(enum log_level level) {
    struct log log;
    unlink(path);
    log_init(&log, level, path);
    return log;
}

/* Returns the file's text behind "libotelprof[PID] "; "" if nothing was written. */
static const char *written(char text[4096]) {
    char prefix[64];
    const int file = open(path, O_RDONLY);
    if (file < 0)
        return "";
    const ssize_t size = read(file, text, 4095);
    close(file);
    text[size > 0 ? size : 0] = 0;
    const int length = snprintf(prefix, sizeof prefix, "libotelprof[%d] ", (int)getpid());
    assert_memory_equal(text, prefix, (size_t)length);
    return text + length;
}

static void each_level_has_its_name(void **state) {
    (void)state;
    static const char *const expected[] = {"", "error: x\n", "warn: x\n", "info: x\n",
                                           "debug: x\n"};
    for (enum log_level level = LOG_ERROR; level <= LOG_DEBUG; level++) {
        char text[4096];
        const struct log log = log_to_file(LOG_DEBUG);
        log_write(&log, level, "x");
        assert_string_equal(written(text), expected[level]);
    }
}

static void a_level_silences_those_behind_it(void **state) {
    (void)state;
    for (enum log_level enabled = LOG_NONE; enabled <= LOG_DEBUG; enabled++)
        for (enum log_level level = LOG_NONE; level <= LOG_DEBUG; level++) {
            char text[4096];
            const struct log log = log_to_file(enabled);
            log_write(&log, level, "x");
            const bool expected = level != LOG_NONE && level <= enabled;
            assert_int_equal(written(text)[0] != 0, expected);
        }
}

/* Logs a message in a child first: its parent then logs it for debugging only, and as a warning
 * again once log_forget() was called because the cause has gone. */
static void a_message_for_a_tree_is_logged_once_by_forked_processes(void **state) {
    (void)state;
    int status = -1;
    struct log log = log_to_file(LOG_DEBUG);
    _Atomic uint32_t *const shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(shared != MAP_FAILED);
    log.logged = shared;
    const pid_t child = fork();
    if (child == 0)
        _exit(log_level_in_tree(&log, LOG_AWAY, LOG_WARN) == LOG_WARN ? 0 : 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(log_level_in_tree(&log, LOG_AWAY, LOG_WARN), LOG_DEBUG);
    assert_int_equal(log_level_in_tree(&log, LOG_REFUSED, LOG_WARN), LOG_WARN);
    log_forget(&log, LOG_AWAY);
    assert_int_equal(log_level_in_tree(&log, LOG_AWAY, LOG_WARN), LOG_WARN);
    munmap(shared, sizeof *shared);
}

static void every_conversion(void **state) {
    (void)state;
    char text[4096];
    const struct log log = log_to_file(LOG_INFO);
    log_info(&log, "%d %d %u %ld %lu %lld %llu %zu %x %lx %c %% %s %.*s|", -2147483647 - 1, 0,
             4294967295u, -9223372036854775807L - 1, 18446744073709551615ul, -1ll, 7ull, (size_t)8,
             0xdeadbeefu, 0xful, 'c', "text", 2, "abc");
    assert_string_equal(written(text),
                        "info: -2147483648 0 4294967295 -9223372036854775808 18446744073709551615 "
                        "-1 7 8 deadbeef f c % text ab|\n");
}

static void errno_is_left_alone(void **state) {
    (void)state;
    struct log log;
    log_init(&log, LOG_INFO, "/nonexistent/folder/file");
    errno = 77;
    log_info(&log, "x");
    assert_int_equal(errno, 77);
}

static void only_the_owner_may_read_the_file(void **state) {
    (void)state;
    struct stat status;
    const struct log log = log_to_file(LOG_INFO);
    log_info(&log, "x");
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 077, 0);
}

static void a_symbolic_link_is_not_followed(void **state) {
    (void)state;
    char target[96];
    const struct log log = log_to_file(LOG_INFO);
    snprintf(target, sizeof target, "%s/target", folder);
    assert_int_equal(symlink(target, path), 0);
    log_info(&log, "x");
    assert_int_equal(access(target, F_OK), -1);
}

/* Returns the status of a child that does `work`. The alarm only turns a hang into a failure. */
static int in_child(void (*work)(void)) {
    int status;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(30);
        work();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void log_to_pipe_without_reader(void) {
    struct log log;
    int ends[2];
    sigset_t pending;
    if (pipe(ends) != 0 || dup2(ends[1], STDERR_FILENO) < 0)
        _exit(1);
    close(ends[0]);
    signal(SIGPIPE, SIG_DFL);
    log_init(&log, LOG_INFO, "");
    log_info(&log, "x");
    if (sigpending(&pending) != 0 || sigismember(&pending, SIGPIPE))
        _exit(2);
}

static void a_reader_that_has_gone_does_not_end_the_program(void **state) {
    (void)state;
    assert_int_equal(in_child(log_to_pipe_without_reader), 0);
}

/* Logs while a SIGPIPE of the program's own is pending. The exit status shows whether it still
 * is. */
static void log_with_sigpipe_pending(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    sigprocmask(SIG_BLOCK, &set, NULL);
    raise(SIGPIPE);
    log_to_pipe_without_reader();
}

static void a_pending_signal_of_the_program_is_kept(void **state) {
    (void)state;
    const int status = in_child(log_with_sigpipe_pending);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 2); /* 2: SIGPIPE is pending */
}

static void log_to_fifo(void) {
    struct log log;
    log_init(&log, LOG_INFO, path);
    log_info(&log, "x");
}

static void a_pipe_without_a_reader_does_not_hang_the_program(void **state) {
    (void)state;
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(in_child(log_to_fifo), 0);
}

static void log_to_closed_stderr(void) {
    struct log log;
    close(STDERR_FILENO);
    log_init(&log, LOG_INFO, "");
    unlink(path);
    if (open(path, O_CREAT | O_RDWR, 0600) != STDERR_FILENO) /* the program's own file */
        _exit(1);
    log_info(&log, "x");
    if (lseek(STDERR_FILENO, 0, SEEK_END) != 0)
        _exit(2);
}

static void a_file_in_place_of_stderr_stays_empty(void **state) {
    (void)state;
    assert_int_equal(in_child(log_to_closed_stderr), 0);
}

static int start(void **state) {
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/log", folder);
    return 0;
}

static int stop(void **state) {
    (void)state;
    unlink(path);
    return rmdir(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_level_has_its_name),
        cmocka_unit_test(a_level_silences_those_behind_it),
        cmocka_unit_test(a_message_for_a_tree_is_logged_once_by_forked_processes),
        cmocka_unit_test(every_conversion),
        cmocka_unit_test(errno_is_left_alone),
        cmocka_unit_test(only_the_owner_may_read_the_file),
        cmocka_unit_test(a_symbolic_link_is_not_followed),
        cmocka_unit_test(a_reader_that_has_gone_does_not_end_the_program),
        cmocka_unit_test(a_pending_signal_of_the_program_is_kept),
        cmocka_unit_test(a_pipe_without_a_reader_does_not_hang_the_program),
        cmocka_unit_test(a_file_in_place_of_stderr_stays_empty),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
