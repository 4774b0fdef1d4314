#include "seccomp_filter.h"

#include "arch_syscall.h"
#include "capture/cpu/libc_signal.h"
#include "capture/kernel/profiler_memory.h"
#include "open_flags.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/close_range.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#ifndef MADV_KEEPONFORK
#define MADV_KEEPONFORK 19
#endif

enum { LARGEST_SIGNAL = 64 };

/* Describes a system call of the profiler's, with the arguments that filters check; pointers are 0.
 */
struct call {
    int number;
    uint64_t arguments[4];
};

/* Turns each line of allowed_calls.def into an element of one of the following tables. */
#define MADE(name, ...) {SYS_##name, {__VA_ARGS__}},

/* Lists calls on the application's threads: in the signal handler, in malloc, at the end of a
 * thread, in fork and exit. */
static const struct call thread_calls[] = {
    {SYS_rt_sigreturn, {0}},
    {SYS_clock_gettime, {CLOCK_MONOTONIC}},
    {SYS_clock_gettime, {CLOCK_MONOTONIC_COARSE}},
    {SYS_clock_gettime, {CLOCK_THREAD_CPUTIME_ID}},
    {SYS_rt_sigprocmask, {SIG_BLOCK, 0, 0, 8}},
    {SYS_rt_sigprocmask, {SIG_UNBLOCK, 0, 0, 8}},
    {SYS_rt_sigprocmask, {SIG_SETMASK, 0, 0, 8}},
    {SYS_rt_sigprocmask, {(uint32_t)-1, 0, 0, 8}}, /* memory_is_readable() makes this call */
    {SYS_sigaltstack, {0}},
    {SYS_mmap, {0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE}},
    {SYS_munmap, {0, 4096}},
    {SYS_madvise, {0, 4096, MADV_DONTNEED}},
    {SYS_madvise, {0, 4096, MADV_NOHUGEPAGE}},
    {SYS_madvise, {0, 4096, MADV_WIPEONFORK}},
    {SYS_futex, {0, FUTEX_WAIT_BITSET_PRIVATE}},
    {SYS_futex, {0, FUTEX_WAKE_PRIVATE, INT32_MAX}},
    {SYS_getpid, {0}},
    {SYS_gettid, {0}},
    {SYS_tgkill, {0}},
    {SYS_nanosleep, {0}},
    {SYS_timer_settime, {0}},
    {SYS_timer_delete, {0}},
    {SYS_rt_sigaction, {SIGPROF, 0, 0, 8}},
    {SYS_prctl, {PR_GET_NAME}},
    {SYS_prctl, {PR_GET_SECCOMP}},
#define THREAD_MAKES MADE
#include "allowed_calls.def"
};

/* Lists calls of an application's thread that logs. */
static const struct call logging_calls[] = {
#define LOGGING_MAKES MADE
#include "allowed_calls.def"
};

/* Lists calls of the helper once it has loaded its libraries, and of glibc below it. */
static const struct call helper_calls[] = {
    {SYS_clock_gettime, {CLOCK_MONOTONIC}},
    {SYS_futex, {0, FUTEX_WAIT_BITSET_PRIVATE}},
    {SYS_futex, {0, FUTEX_WAKE_PRIVATE, INT32_MAX}},
    {SYS_openat, {(uint32_t)-100}},
    {SYS_read, {0}},
    {SYS_pread64, {0}},
    {SYS_newfstatat, {(uint32_t)-100}},
    {SYS_statx, {(uint32_t)-100}},
    {SYS_close, {0}},
    {SYS_fcntl, {0}},
    {SYS_readlink, {0}},
    {SYS_mmap, {0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS}},
    {SYS_mprotect, {0, 4096, PROT_READ | PROT_WRITE}},
    {SYS_munmap, {0, 4096}},
    {SYS_madvise, {0, 4096, MADV_DONTNEED}},
    {SYS_madvise, {0, 4096, MADV_NOHUGEPAGE}},
    {SYS_madvise, {0, 4096, MADV_WIPEONFORK}},
    {SYS_sched_yield, {0}},
    {SYS_getrandom, {0}},
    {SYS_socket, {2, 1}},
    {SYS_socket, {10, 1}},
    {SYS_socketpair, {1, 1}},
    {SYS_connect, {0}},
    {SYS_getsockname, {0}},
    {SYS_getpeername, {0}},
    {SYS_getsockopt, {0}},
    {SYS_setsockopt, {0}},
    {SYS_poll, {0}},
    {SYS_sendto, {0}},
    {SYS_recvfrom, {0}},
    {SYS_rt_sigaction, {SIGPIPE, 0, 0, 8}},
    {SYS_rt_sigprocmask, {SIG_SETMASK, 0, 0, 8}},
};

/* Lists the helper's calls if the process serves requests (OTEL_PROFILER_LISTEN), and the calls of
 * libmicrohttpd below it. */
static const struct call serving_calls[] = {
    {SYS_accept4, {0}},    {SYS_epoll_create1, {0}}, {SYS_epoll_ctl, {0}},
    {SYS_epoll_wait, {0}}, {SYS_eventfd2, {0}},      {SYS_fchmod, {0}},
    {SYS_listen, {0}},     {SYS_newfstatat, {0}}, /* needed for a socket in a folder */
    {SYS_ppoll, {0}},      {SYS_renameat2, {0}},     {SYS_sendmsg, {0}},
    {SYS_shutdown, {0}},   {SYS_socket, {1, 1}},     {SYS_unlinkat, {0}},
#define SERVING_MAKES MADE
#include "allowed_calls.def"
};

/* Lists the helper's calls if lines go to the system's log (OTEL_PROFILER_LOG_FILE=syslog). */
static const struct call syslog_calls[] = {
#define SYSLOG_MAKES MADE
#include "allowed_calls.def"
};

/* Lists calls of the helper that may fail: the helper does without their results, or exports
 * nothing. */
static const struct call spare_calls[] = {
    {SYS_readlinkat, {(uint32_t)-100}},
    /* opened_page.c checks by this call whether a page is writable */
    {SYS_futex, {0, FUTEX_WAKE_OP_PRIVATE}},
    {SYS_geteuid, {0}},
    {SYS_getuid, {0}},
    {SYS_prlimit64, {0}},
    {SYS_getdents64, {0}},
    {SYS_getppid, {0}},
    {SYS_fstat, {0}},
    {SYS_pipe2, {0}},
    {SYS_sysinfo, {0}},
    {SYS_sched_getscheduler, {0}},
    {SYS_lseek, {0}},
    {SYS_write, {0}},
    {SYS_uname, {0}}, /* the resolver makes this call and the following ones */
    {SYS_bind, {0}},
    {SYS_ioctl, {0, FIONREAD}},
    {SYS_recvmsg, {0}},
    {SYS_sendmmsg, {0}},
    {SYS_close_range, {0, UINT32_MAX, CLOSE_RANGE_UNSHARE}}, /* helper_table.h makes this call */
#define HELPER_MAKES MADE
#include "allowed_calls.def"
};

/* Lists calls of a helper thread that ends, and of the thread that takes its place. */
static const struct call start_calls[] = {
    {SYS_futex, {0, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME}},
    {SYS_tgkill, {0}},
    {SYS_nanosleep, {0}},
    {SYS_mmap, {0, 2 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK}},
    {SYS_rt_sigprocmask, {SIG_BLOCK, 0, 0, 8}},
    {SYS_rseq, {0}},
    {SYS_set_robust_list, {0}},
    {SYS_sched_setscheduler, {0}},
    {SYS_prctl, {PR_SET_NAME}},
    {SYS_prctl, {PR_SET_NO_NEW_PRIVS, 1}},
    {SYS_capget, {0}},
    {SYS_capset, {0}},
    {SYS_close_range, {0, UINT32_MAX, CLOSE_RANGE_UNSHARE}},
    {SYS_epoll_create1, {0}},
    {SYS_exit, {0}},
#define START_MAKES MADE
#include "allowed_calls.def"
};

/* Lists the two calls that pthread_create() tries, in this order. */
static const struct call new_thread[] = {{SYS_clone3, {0}}, {SYS_clone, {0x3d0f00}}};

/* Holds the state of the filter's machine. */
struct machine {
    uint32_t a;
    uint32_t x;
    uint32_t memory[BPF_MEMWORDS];
};

static uint32_t filter_arithmetic(uint16_t operation, uint32_t a, uint32_t b) {
    switch (operation) {
    case BPF_ADD:
        return a + b;
    case BPF_SUB:
        return a - b;
    case BPF_MUL:
        return a * b;
    case BPF_DIV:
        return b ? a / b : 0;
    case BPF_AND:
        return a & b;
    case BPF_OR:
        return a | b;
    case BPF_XOR:
        return a ^ b;
    case BPF_LSH:
        return b < 32 ? a << b : 0;
    case BPF_RSH:
        return b < 32 ? a >> b : 0;
    default: /* BPF_NEG */
        return -a;
    }
}

static bool filter_condition_holds(uint16_t condition, uint32_t a, uint32_t b) {
    switch (condition) {
    case BPF_JEQ:
        return a == b;
    case BPF_JGT:
        return a > b;
    case BPF_JGE:
        return a >= b;
    default: /* BPF_JSET */
        return a & b;
    }
}

static uint32_t filter_loaded_word(const struct machine *m, const struct sock_filter *step,
                                   const struct seccomp_data *call) {
    uint32_t word = 0;
    switch (BPF_MODE(step->code)) {
    case BPF_ABS:
        if (step->k <= sizeof *call - sizeof word)
            memcpy(&word, (const char *)call + step->k, sizeof word);
        return word;
    case BPF_LEN:
        return sizeof *call;
    case BPF_MEM:
        return m->memory[step->k % BPF_MEMWORDS];
    default: /* BPF_IMM */
        return step->k;
    }
}

/* Executes all instructions except jumps and returns. */
static void do_step(struct machine *m, const struct sock_filter *step,
                    const struct seccomp_data *call) {
    switch (BPF_CLASS(step->code)) {
    case BPF_LD:
        m->a = filter_loaded_word(m, step, call);
        break;
    case BPF_LDX:
        m->x = filter_loaded_word(m, step, call);
        break;
    case BPF_ST:
        m->memory[step->k % BPF_MEMWORDS] = m->a;
        break;
    case BPF_STX:
        m->memory[step->k % BPF_MEMWORDS] = m->x;
        break;
    case BPF_ALU:
        m->a = filter_arithmetic(BPF_OP(step->code), m->a,
                                 BPF_SRC(step->code) == BPF_X ? m->x : step->k);
        break;
    default: /* BPF_MISC */
        if (BPF_MISCOP(step->code) == BPF_TAX)
            m->x = m->a;
        else
            m->a = m->x;
    }
}

static uint64_t distance(const struct machine *m, const struct sock_filter *step) {
    if (BPF_OP(step->code) == BPF_JA)
        return step->k;
    const uint32_t b = BPF_SRC(step->code) == BPF_X ? m->x : step->k;
    return filter_condition_holds(BPF_OP(step->code), m->a, b) ? step->jt : step->jf;
}

/* Runs the filter. The loop ends, because jumps only go forward. For filters that the kernel
 * refuses the result is arbitrary.
 */
uint32_t seccomp_filter_result(const struct sock_fprog *program, const struct seccomp_data *call) {
    struct machine m = {0};
    for (uint64_t at = 0; at < program->len; at++) {
        const struct sock_filter *const step = &program->filter[at];
        switch (BPF_CLASS(step->code)) {
        case BPF_RET:
            return BPF_RVAL(step->code) == BPF_A ? m.a : step->k;
        case BPF_JMP:
            at += distance(&m, step);
            break;
        default:
            do_step(&m, step, call);
        }
    }
    return SECCOMP_RET_KILL_PROCESS;
}

static uint32_t action_for(const struct sock_fprog *program, const struct call *call) {
    struct seccomp_data data = {.nr = call->number, .arch = ARCH_OF_SYSTEM_CALLS};
    for (size_t i = 0; i < sizeof call->arguments / sizeof *call->arguments; i++)
        data.args[i] = call->arguments[i];
    return seccomp_filter_result(program, &data) & SECCOMP_RET_ACTION_FULL;
}

static bool lets_pass(uint32_t action) {
    return action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_LOG;
}

/* Describes how a filter treats a list of calls. */
struct treatment {
    bool spares; /* it lets each call pass, or fail with an errno; rt_sigreturn must pass */
    bool passes; /* it lets each call pass */
};

static struct treatment treatment_of(const struct sock_fprog *program, const struct call *calls,
                                     size_t count) {
    struct treatment all = {true, true};
    for (size_t i = 0; i < count && all.spares; i++) {
        const uint32_t action = action_for(program, &calls[i]);
        if (lets_pass(action))
            continue;
        all.passes = false;
        all.spares = action == SECCOMP_RET_ERRNO && calls[i].number != SYS_rt_sigreturn;
    }
    all.passes &= all.spares;
    return all;
}
#define TREATMENT_OF(program, calls) treatment_of(program, calls, sizeof(calls) / sizeof *(calls))

/* Returns true if the filter spares the creation of timers, or lets neither a thread nor a child be
 * made: each new thread gets a timer, and each forked child those of the process. `may_create`: the
 * filter allows a call that creates a thread. */
static bool spares_new_threads(const struct sock_fprog *program, bool may_create) {
    static const struct call timers[] = {{SYS_timer_create, {(uint64_t)CLOCK_THREAD_CPUTIME_ID}},
                                         {SYS_timer_create, {(uint64_t)CLOCK_PROCESS_CPUTIME_ID}}};
    static const struct call fork = {SYS_clone, {0x1200011}};
    return TREATMENT_OF(program, timers).spares ||
           (!may_create && !lets_pass(action_for(program, &fork)));
}

static bool kills_threads(const struct sock_fprog *program) {
    for (size_t at = 0; at < program->len; at++) {
        const struct sock_filter *const step = &program->filter[at];
        if (BPF_CLASS(step->code) == BPF_RET &&
            (BPF_RVAL(step->code) == BPF_A ||
             (step->k & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_KILL_THREAD))
            return true;
    }
    return false;
}

/* Returns the verdicts about one application's thread, without those about new threads. */
static unsigned verdicts_of_thread(const struct sock_fprog *program) {
    static const struct call timers[] = {
        {SYS_timer_create, {CLOCK_THREAD_CPUTIME_ID}},
        {SYS_timer_create, {(uint32_t)-2}}, /* the clock of another thread */
        {SYS_rt_sigaction, {LIBC_SIGNAL, 0, 0, 8}},
        {SYS_uname, {0}},
    };
    static const struct call pending[] = {
        {SYS_rt_sigpending, {0, 8}},
        {SYS_rt_sigtimedwait, {0, 0, 0, 8}},
        {SYS_rt_sigqueueinfo, {0, SIGPROF}},
        {SYS_rt_tgsigqueueinfo, {0, 0, SIGPROF}},
        {SYS_kill, {0, SIGPROF}},
        {SYS_tgkill, {0, 0, SIGPROF}},
        /* the call of thread_status_read() */
        {SYS_openat, {(uint32_t)AT_FDCWD, 0, OPEN_TO_READ}},
        {SYS_read, {0}},
        {SYS_close, {0}},
    };
    static const struct call giving_way[] = {
        {SYS_rt_sigpending, {0, 8}},
        {SYS_sched_yield, {0}},
        {SYS_nanosleep, {0}},
    };
    return (TREATMENT_OF(program, thread_calls).spares ? SECCOMP_SPARES_THREAD : 0) |
           (TREATMENT_OF(program, timers).spares ? SECCOMP_SPARES_TIMERS : 0) |
           (TREATMENT_OF(program, pending).spares ? SECCOMP_SPARES_PENDING : 0) |
           (TREATMENT_OF(program, giving_way).spares ? SECCOMP_SPARES_GIVING_WAY : 0) |
           (TREATMENT_OF(program, logging_calls).spares ? SECCOMP_SPARES_LOGGING : 0);
}

/* Returns the verdicts about the helper and its start. */
static unsigned verdicts_of_helper(const struct sock_fprog *program, uint32_t first,
                                   uint32_t second) {
    const struct treatment helper = TREATMENT_OF(program, helper_calls);
    const struct treatment start = TREATMENT_OF(program, start_calls);
    const bool may_fail = TREATMENT_OF(program, spare_calls).spares;
    const bool is_refused = first == SECCOMP_RET_ERRNO;
    const bool spares_start =
        lets_pass(first) || (is_refused && (lets_pass(second) || second == SECCOMP_RET_ERRNO));
    const bool can_start = lets_pass(first) || (is_refused && lets_pass(second));
    return (spares_start && start.spares ? SECCOMP_SPARES_HELPER_START : 0) |
           (helper.spares && may_fail ? SECCOMP_SPARES_HELPER : 0) |
           (can_start && start.passes && helper.passes && may_fail ? SECCOMP_LETS_HELPER_FOLLOW
                                                                   : 0) |
           (TREATMENT_OF(program, serving_calls).spares ? SECCOMP_SPARES_SERVING : 0) |
           (TREATMENT_OF(program, syslog_calls).spares ? SECCOMP_SPARES_SYSLOG : 0);
}

unsigned seccomp_filter_verdicts(const struct sock_fprog *program) {
    const uint32_t first = action_for(program, &new_thread[0]);
    const uint32_t second = action_for(program, &new_thread[1]);
    unsigned verdicts = verdicts_of_thread(program) | verdicts_of_helper(program, first, second);
    if (!spares_new_threads(program, lets_pass(first) || lets_pass(second)))
        verdicts &= ~(unsigned)SECCOMP_SPARES_THREAD;
    return verdicts | (kills_threads(program) ? SECCOMP_KILLS_THREADS : 0);
}
