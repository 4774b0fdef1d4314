/* Tests writes that a filter denies by EINTR, each time. */
#include "unit.h"

#include "quiet_write.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void deny_by_eintr(int number) {
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINTR),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof steps / sizeof *steps, steps};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        _exit(EXIT_FAILURE);
}

/* Writes into a pipe that nothing reads, in a child under such a filter; returns the write's
 * result. */
static int written_without_reader(int denied) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        deny_by_eintr(denied);
        struct iovec text = {(char[]){"x"}, 1};
        _exit((int)-quiet_writev(ends[1], &text, 1));
    }
    close(ends[0]);
    close(ends[1]);
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return -WEXITSTATUS(status);
}

static void a_write_that_is_always_interrupted_ends(void **state) {
    (void)state;
    assert_int_equal(written_without_reader(SYS_writev), -EINTR);
}

static void a_raised_signal_that_cannot_be_taken_back_ends_the_wait(void **state) {
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    assert_int_equal(written_without_reader(SYS_rt_sigtimedwait), -EPIPE);
    signal(SIGPIPE, SIG_DFL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_write_that_is_always_interrupted_ends),
        cmocka_unit_test(a_raised_signal_that_cannot_be_taken_back_ends_the_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
