/* Tests the evaluation of seccomp filters before they are installed: its result equals the
 * kernel's. */
#include "unit.h"

#include "process/seccomp_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/close_range.h>
#include <netinet/in.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 300, STEPS = 24, HEAD = 3, TAIL = 3 };

static const uint64_t arguments[] = {0x123456789abcdef0, 7, UINT64_MAX, 0x80000001};

/* --- against the kernel --- */

static uint64_t seed = 88172645463325252u;

static uint32_t some(uint32_t limit) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed >> 32) % limit;
}

static struct sock_filter some_load(void) {
    static const uint16_t codes[] = {
        BPF_LD | BPF_W | BPF_ABS, BPF_LD | BPF_IMM, BPF_LDX | BPF_IMM, BPF_LD | BPF_MEM,
        BPF_LDX | BPF_MEM,        BPF_ST,           BPF_STX,           BPF_LD | BPF_W | BPF_LEN,
        BPF_LDX | BPF_W | BPF_LEN};
    const uint16_t code = codes[some(sizeof codes / sizeof *codes)];
    if (code == (BPF_LD | BPF_W | BPF_ABS)) /* loads an argument: the other words of the data are
                                             * not the same in our evaluation and in the kernel */
        return (struct sock_filter){code, 0, 0, offsetof(struct seccomp_data, args) + 4 * some(8)};
    if (BPF_MODE(code) == BPF_MEM || BPF_CLASS(code) == BPF_ST || BPF_CLASS(code) == BPF_STX)
        return (struct sock_filter){code, 0, 0, some(2)};
    return (struct sock_filter){code, 0, 0, BPF_MODE(code) == BPF_LEN ? 0 : some(UINT32_MAX)};
}

static struct sock_filter some_calculation(void) {
    static const uint16_t operations[] = {BPF_ADD, BPF_SUB, BPF_MUL, BPF_DIV, BPF_AND,
                                          BPF_OR,  BPF_XOR, BPF_LSH, BPF_RSH, BPF_NEG};
    const uint16_t operation = operations[some(sizeof operations / sizeof *operations)];
    const bool shifts = operation == BPF_LSH || operation == BPF_RSH;
    /* by X the kernel's results for too large shifts differ, and a division by 0 ends the filter */
    const bool by_x = !shifts && operation != BPF_DIV && operation != BPF_NEG && some(2);
    return (struct sock_filter){(uint16_t)(BPF_ALU | operation | (by_x ? BPF_X : BPF_K)), 0, 0,
                                shifts ? some(32) : 1 + some(UINT32_MAX - 1)};
}

static struct sock_filter some_jump(unsigned left) {
    static const uint16_t conditions[] = {BPF_JEQ, BPF_JGT, BPF_JGE, BPF_JSET};
    const uint16_t source = some(2) ? BPF_X : BPF_K;
    if (some(5) == 0)
        return (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, some(left));
    return (struct sock_filter){(uint16_t)(BPF_JMP | conditions[some(4)] | source),
                                (uint8_t)some(left), (uint8_t)some(left), some(UINT32_MAX)};
}

static struct sock_filter some_step(unsigned left) {
    switch (some(4)) {
    case 0:
        return some_load();
    case 1:
        return some_jump(left);
    case 2:
        return (struct sock_filter)BPF_STMT(BPF_MISC | (some(2) ? BPF_TAX : BPF_TXA), 0);
    default:
        return some_calculation();
    }
}

/* Makes a filter that computes a number for getppid() and refuses the call with that; every other
 * call passes. */
static void make_filter(struct sock_filter filter[HEAD + STEPS + TAIL + 2]) {
    unsigned n = 0;
    filter[n++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 1, 0);
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    /* memory must be written before it is read */
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_ST, 0);
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_ST, 1);
    for (unsigned left = STEPS; left > 0; left--)
        filter[n++] = some_step(left);
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0x7ff);
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_OR | BPF_K, SECCOMP_RET_ERRNO | 0x800);
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_A, 0);
}

static void refuse_and_report(const struct sock_fprog *program, int to) {
    int answer = -1;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program) == 0 &&
        syscall(SYS_getppid, arguments[0], arguments[1], arguments[2], arguments[3]) == -1)
        answer = errno;
    (void)!write(to, &answer, sizeof answer);
    _exit(0);
}

static int asked_of_the_kernel(const struct sock_fprog *program) {
    int ends[2];
    int answer = -2;
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0)
        refuse_and_report(program, ends[1]);
    assert_int_equal(read(ends[0], &answer, sizeof answer), sizeof answer);
    waitpid(child, NULL, 0);
    close(ends[0]);
    close(ends[1]);
    return answer;
}

static void filters_decide_as_in_the_kernel(void **state) {
    (void)state;
    struct seccomp_data call = {.nr = SYS_getppid, .arch = AUDIT_ARCH_X86_64};
    memcpy(call.args, arguments, sizeof arguments);
    for (int round = 0; round < ROUNDS; round++) {
        struct sock_filter filter[HEAD + STEPS + TAIL + 2];
        make_filter(filter);
        const struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
        assert_int_equal(seccomp_filter_result(&program, &call),
                         SECCOMP_RET_ERRNO | (uint32_t)asked_of_the_kernel(&program));
        const struct seccomp_data other = {.nr = SYS_getpid, .arch = AUDIT_ARCH_X86_64};
        assert_int_equal(seccomp_filter_result(&program, &other), SECCOMP_RET_ALLOW);
    }
}

/* --- verdicts --- */

/* Makes a filter in `filter` that returns `action` for these three calls, and lets others pass. */
static struct sock_fprog refuses(struct sock_filter *filter, uint32_t action, int first, int second,
                                 int third) {
    const struct sock_filter made[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)first, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)second, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)third, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, action),
    };
    memcpy(filter, made, sizeof made);
    return (struct sock_fprog){sizeof made / sizeof *made, filter};
}

static bool verdicts(const struct sock_fprog *program, enum seccomp_verdict verdict) {
    return seccomp_filter_verdicts(program) & verdict;
}

static bool thread_spared(uint32_t action, int first, int second, int third) {
    struct sock_filter filter[8];
    const struct sock_fprog program = refuses(filter, action, first, second, third);
    return verdicts(&program, SECCOMP_SPARES_THREAD);
}

static bool helper_spared(uint32_t action, int number) {
    struct sock_filter filter[8];
    const struct sock_fprog program = refuses(filter, action, number, number, number);
    return verdicts(&program, SECCOMP_SPARES_HELPER);
}

static bool helper_follows(uint32_t action, int number) {
    struct sock_filter filter[8];
    const struct sock_fprog program = refuses(filter, action, number, number, number);
    return verdicts(&program, SECCOMP_LETS_HELPER_FOLLOW);
}

static void threads_are_spared_where_no_call_of_theirs_kills(void **state) {
    (void)state;
    assert_true(thread_spared(SECCOMP_RET_KILL_PROCESS, SYS_execve, SYS_ptrace, SYS_socket));
    static const int ours[] = {SYS_rt_sigreturn, SYS_clock_gettime, SYS_rt_sigprocmask, SYS_mmap,
                               SYS_getpid,       SYS_futex,         SYS_prctl};
    static const uint32_t deadly[] = {SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_KILL_THREAD,
                                      SECCOMP_RET_TRAP};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
        for (size_t k = 0; k < sizeof deadly / sizeof *deadly; k++)
            assert_false(thread_spared(deadly[k], ours[i], SYS_ptrace, SYS_ptrace));
        assert_true(thread_spared(SECCOMP_RET_LOG, ours[i], SYS_ptrace, SYS_ptrace));
        assert_int_equal(thread_spared(SECCOMP_RET_ERRNO | 1, ours[i], SYS_ptrace, SYS_ptrace),
                         ours[i] != SYS_rt_sigreturn);
    }
}

/* Returns true if the verdict holds for a filter that kills for this call if the low half of this
 * argument has this value, and that lets other calls pass. */
static bool spares_argument(enum seccomp_verdict verdict, int number, unsigned argument,
                            uint32_t value) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 2),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + 8 * argument),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    const struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    return verdicts(&program, verdict);
}

static void each_of_the_values_that_we_pass_is_tried(void **state) {
    (void)state;
    static const uint32_t masks[] = {SIG_BLOCK, SIG_UNBLOCK, SIG_SETMASK, (uint32_t)-1};
    static const uint32_t advice[] = {MADV_DONTNEED, MADV_NOHUGEPAGE, MADV_WIPEONFORK};
    for (size_t i = 0; i < sizeof masks / sizeof *masks; i++)
        assert_false(spares_argument(SECCOMP_SPARES_THREAD, SYS_rt_sigprocmask, 0, masks[i]));
    for (size_t i = 0; i < sizeof advice / sizeof *advice; i++) {
        assert_false(spares_argument(SECCOMP_SPARES_THREAD, SYS_madvise, 2, advice[i]));
        assert_false(spares_argument(SECCOMP_SPARES_HELPER, SYS_madvise, 2, advice[i]));
    }
    assert_true(spares_argument(SECCOMP_SPARES_THREAD, SYS_madvise, 2, MADV_HUGEPAGE));
}

/* Uses filters as sandboxes write them: a call is known, and one of its flags or options is not. */
static void each_flag_that_we_pass_is_tried(void **state) {
    (void)state;
    static const struct made {
        int number;
        unsigned argument;
        uint32_t value;
    } helpers[] = {
        {SYS_fcntl, 1, F_DUPFD_CLOEXEC},
        {SYS_fcntl, 1, F_SETFL},
        {SYS_madvise, 2, MADV_DONTDUMP},
        {SYS_clock_gettime, 0, CLOCK_BOOTTIME},
        {SYS_prlimit64, 1, RLIMIT_NOFILE},
        {SYS_getsockopt, 2, SO_ERROR},
        {SYS_setsockopt, 1, IPPROTO_TCP},
        {SYS_sendto, 3, MSG_NOSIGNAL},
        {SYS_socket, 1, SOCK_STREAM | SOCK_CLOEXEC},
        {SYS_openat, 2, O_PATH | O_CLOEXEC | O_NOFOLLOW},
        {SYS_newfstatat, 3, AT_EMPTY_PATH},
        {SYS_munmap, 1, 1 << 30},
        {SYS_close_range, 2, CLOSE_RANGE_UNSHARE},
    };
    for (size_t i = 0; i < sizeof helpers / sizeof *helpers; i++)
        assert_false(spares_argument(SECCOMP_SPARES_HELPER, helpers[i].number, helpers[i].argument,
                                     helpers[i].value));
    assert_false(spares_argument(SECCOMP_SPARES_THREAD, SYS_madvise, 2, MADV_DONTDUMP));
    assert_false(spares_argument(SECCOMP_SPARES_THREAD, SYS_munmap, 1, 1 << 30));
    assert_false(spares_argument(SECCOMP_SPARES_SERVING, SYS_getsockopt, 2, SO_PEERCRED));
    assert_true(spares_argument(SECCOMP_SPARES_HELPER, SYS_fcntl, 1, F_SETLK));
}

/* Only a helper that sends its lines to the system's log needs a socket for it. */
static void the_helper_is_spared_where_only_syslogs_socket_kills(void **state) {
    (void)state;
    const uint32_t kind = SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 5),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_UNIX, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + 8),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kind, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    assert_false(verdicts(&program, SECCOMP_SPARES_SYSLOG));
    assert_true(verdicts(&program, SECCOMP_SPARES_HELPER));
    assert_true(verdicts(&program, SECCOMP_SPARES_SERVING));
    assert_true(verdicts(&program, SECCOMP_LETS_HELPER_FOLLOW));
}

static void a_thread_is_spared_where_only_giving_way_kills(void **state) {
    (void)state;
    static const int calls[] = {SYS_rt_sigpending, SYS_sched_yield};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        assert_false(spares_argument(SECCOMP_SPARES_GIVING_WAY, calls[i], 2, 0));
        assert_true(spares_argument(SECCOMP_SPARES_THREAD, calls[i], 2, 0));
    }
    assert_true(spares_argument(SECCOMP_SPARES_GIVING_WAY, SYS_rt_sigtimedwait, 0, 0));
}

static void a_timer_may_kill_where_no_thread_can_come(void **state) {
    (void)state;
    const uint32_t kill = SECCOMP_RET_KILL_PROCESS;
    assert_false(thread_spared(kill, SYS_timer_create, SYS_ptrace, SYS_ptrace));
    assert_false(thread_spared(kill, SYS_timer_create, SYS_clone3, SYS_ptrace));
    assert_true(thread_spared(kill, SYS_timer_create, SYS_clone3, SYS_clone));
    assert_true(thread_spared(SECCOMP_RET_ERRNO | 1, SYS_timer_create, SYS_ptrace, SYS_ptrace));
}

static void the_helper_is_spared_where_no_call_of_its_kills(void **state) {
    (void)state;
    assert_true(helper_spared(SECCOMP_RET_KILL_PROCESS, SYS_execve));
    assert_true(helper_spared(SECCOMP_RET_KILL_PROCESS, SYS_rt_sigreturn));
    assert_false(helper_spared(SECCOMP_RET_KILL_PROCESS, SYS_socket));
    assert_true(helper_spared(SECCOMP_RET_ERRNO | 1, SYS_socket));
}

static void evaluation_ends_early_where_no_call_kills(void **state) {
    (void)state;
    static const int calls[] = {SYS_accept4, SYS_epoll_wait, SYS_epoll_ctl, SYS_ppoll, SYS_sendmsg};
    struct sock_filter filter[8];
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        struct sock_fprog program =
            refuses(filter, SECCOMP_RET_KILL_PROCESS, calls[i], SYS_execve, SYS_execve);
        assert_false(verdicts(&program, SECCOMP_SPARES_SERVING));
        assert_true(verdicts(&program, SECCOMP_SPARES_HELPER)); /* the helper need not serve */
        program = refuses(filter, SECCOMP_RET_ERRNO | 1, calls[i], SYS_execve, SYS_execve);
        assert_true(verdicts(&program, SECCOMP_SPARES_SERVING));
    }
    static const int others[] = {SYS_epoll_create1, SYS_eventfd2, SYS_fchmod, SYS_listen,
                                 SYS_newfstatat,    SYS_shutdown, SYS_socket, SYS_unlinkat};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        const struct sock_fprog program =
            refuses(filter, SECCOMP_RET_KILL_PROCESS, others[i], SYS_execve, SYS_execve);
        assert_false(verdicts(&program, SECCOMP_SPARES_SERVING));
    }
}

/* Refuses calls that the helper can do without, such as those that find the owner of a file, or a
 * limit: the helper bears an error, but not to be killed. */
static void calls_that_the_helper_can_do_without_may_fail_and_not_kill(void **state) {
    (void)state;
    static const int calls[] = {SYS_readlinkat, SYS_geteuid, SYS_prlimit64, SYS_sendmmsg,
                                SYS_write,      SYS_fstat,   SYS_sysinfo};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        assert_false(helper_spared(SECCOMP_RET_KILL_PROCESS, calls[i]));
        assert_false(helper_follows(SECCOMP_RET_KILL_PROCESS, calls[i]));
        assert_true(helper_spared(SECCOMP_RET_ERRNO | 1, calls[i]));
        assert_true(helper_follows(SECCOMP_RET_ERRNO | 1, calls[i]));
    }
}

static void the_helper_follows_where_all_of_its_calls_pass(void **state) {
    (void)state;
    assert_true(helper_follows(SECCOMP_RET_KILL_PROCESS, SYS_execve));
    assert_false(helper_follows(SECCOMP_RET_KILL_PROCESS, SYS_socket));
    assert_false(helper_follows(SECCOMP_RET_ERRNO | 1, SYS_socket));
    assert_false(helper_follows(SECCOMP_RET_ERRNO | 1, SYS_close_range));
    assert_true(helper_follows(SECCOMP_RET_ERRNO | ENOSYS, SYS_clone3));
    assert_false(helper_follows(SECCOMP_RET_KILL_PROCESS, SYS_clone3));
    assert_true(helper_follows(SECCOMP_RET_KILL_PROCESS, SYS_clone));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_helper_follows_where_all_of_its_calls_pass),
        cmocka_unit_test(filters_decide_as_in_the_kernel),
        cmocka_unit_test(threads_are_spared_where_no_call_of_theirs_kills),
        cmocka_unit_test(each_of_the_values_that_we_pass_is_tried),
        cmocka_unit_test(each_flag_that_we_pass_is_tried),
        cmocka_unit_test(the_helper_is_spared_where_only_syslogs_socket_kills),
        cmocka_unit_test(a_thread_is_spared_where_only_giving_way_kills),
        cmocka_unit_test(a_timer_may_kill_where_no_thread_can_come),
        cmocka_unit_test(calls_that_the_helper_can_do_without_may_fail_and_not_kill),
        cmocka_unit_test(the_helper_is_spared_where_no_call_of_its_kills),
        cmocka_unit_test(evaluation_ends_early_where_no_call_kills),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
