/* Tests memory_is_readable(), which has the kernel check whether memory can be read. */
#include "unit.h"
#include "unwind/stack_memory.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096 };

static void test_mapped_memory_is_readable(void **state) {
    char *const pages = mmap(NULL, 2 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)state;
    assert_ptr_not_equal(pages, MAP_FAILED);
    assert_int_equal(mprotect(pages + PAGE, PAGE, PROT_NONE), 0);
    errno = EINVAL;
    assert_true(memory_is_readable((uintptr_t)pages));
    assert_true(memory_is_readable((uintptr_t)pages + PAGE - 1));
    assert_false(memory_is_readable((uintptr_t)pages + PAGE));
    assert_false(memory_is_readable(0));
    assert_int_equal(errno, EINVAL);
    munmap(pages, 2 * PAGE);
}

static void refuse_the_call(void) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigprocmask, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        _exit(2);
}

/* A walk must end where it cannot check memory: the next page may not be mapped. */
static void test_in_a_sandbox_nothing_is_readable(void **state) {
    int status;
    (void)state;
    const pid_t child = fork();
    if (child == 0) {
        refuse_the_call();
        _exit(memory_is_readable((uintptr_t)&status));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mapped_memory_is_readable),
        cmocka_unit_test(test_in_a_sandbox_nothing_is_readable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
