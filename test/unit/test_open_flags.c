/* Tests that no terminal becomes the controlling one of a process, if the sources open its path as
 * a file. */
#include "unit.h"

#include "open_flags.h"
#include "process/object_file.h"
#include "process_file.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Each of these functions opens a terminal's path and closes it. */
static void by_process_file(const char *path) {
    process_file_close(process_file_open_path(path));
}

static void by_object_file(const char *path) {
    (void)object_file_is_whole(path);
}

static void to_write(const char *path) {
    close(open(path, O_RDWR | OPEN_SAFELY));
}

static void without_the_flags(const char *path) {
    close(open(path, O_RDWR));
}

/* Returns true if a process that leads a new session, without a terminal, has a controlling
 * terminal after the call. */
static bool gives_a_terminal(void (*opens)(const char *path)) {
    int status;
    const int manager = posix_openpt(O_RDWR | O_NOCTTY);
    assert_true(manager >= 0 && grantpt(manager) == 0 && unlockpt(manager) == 0);
    const pid_t child = fork();
    if (child == 0) {
        signal(SIGHUP, SIG_IGN);
        setsid();
        opens(ptsname(manager));
        _exit(open("/dev/tty", O_RDWR | O_NOCTTY) >= 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    close(manager);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status) == 1;
}

static void a_terminal_that_is_opened_never_becomes_the_controlling_one(void **state) {
    (void)state;
    assert_true(gives_a_terminal(without_the_flags));
    assert_false(gives_a_terminal(by_process_file));
    assert_false(gives_a_terminal(by_object_file));
    assert_false(gives_a_terminal(to_write));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_terminal_that_is_opened_never_becomes_the_controlling_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
