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

/* Writes into a pipe without a reader, in a child under such a filter. Returns the result of
 * quiet_writev(). */
static int written_without_reader(int denied) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        deny_by_eintr(denied);
        struct iovec text = {(char[]){"x"}, 1};
        _exit((int)-quiet_writev(ends[1], &text, 1, false));
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

/* Installs a filter that kills the process for these calls. A thread of the program makes them
 * beside writev(), the helper does not. */
static void forbid(const int *numbers, unsigned count) {
    struct sock_filter steps[16] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    unsigned short length = 1;
    for (unsigned i = 0; i < count; i++)
        steps[length++] = (struct sock_filter)BPF_JUMP(
            BPF_JMP | BPF_JEQ | BPF_K, (unsigned)numbers[i], (unsigned char)(count - i), 0);
    steps[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    steps[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    const struct sock_fprog program = {length, steps};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        _exit(EXIT_FAILURE);
}

static void the_helper_makes_no_call_beside_the_write(void **state) {
    static const int others[] = {SYS_rt_sigpending, SYS_rt_sigprocmask, SYS_rt_sigtimedwait};
    int ends[2];
    (void)state;
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        sigset_t all;
        close(ends[0]);
        sigfillset(&all);
        sigprocmask(SIG_BLOCK, &all, NULL);
        forbid(others, sizeof others / sizeof *others);
        struct iovec text = {(char[]){"x"}, 1};
        _exit((int)-quiet_writev(ends[1], &text, 1, true));
    }
    close(ends[0]);
    close(ends[1]);
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == EPIPE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_write_that_is_always_interrupted_ends),
        cmocka_unit_test(the_helper_makes_no_call_beside_the_write),
        cmocka_unit_test(a_raised_signal_that_cannot_be_taken_back_ends_the_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
