/* Tests corner cases of signal handlers with SA_ONSTACK, by argument. Prints only things that a
 * program can see.
 *
 * - fortified: a jump out of a handler on an alternate stack above the thread's, by the checked
 *   siglongjmp() of _FORTIFY_SOURCE
 * - dead frame: such a jump to a function that has returned, on the same alternate stack: ends by
 *   SIGABRT
 * - masked waits: sigsuspend, sigpause, ppoll, pselect, epoll_pwait: the mask in their handlers,
 *   and the signals that are still pending afterwards
 * - plain masked waits: the same for handlers without SA_ONSTACK, behind SS_AUTODISARM
 * - chained: a handler that calls the one before it, whose address the kernel has named
 * - replaced: the old handler that sigaction() returns, for more handlers in turns than there are
 *   entries
 * - rearmed: a stack with SS_AUTODISARM behind a handler that ran on it within a plain handler
 * - forked: a thread's child that returns from a handler without SA_ONSTACK
 * - early: a wait whose mask is open, and a handler that a library has set before main()
 * - stepped: the end of a handler on a stack with SS_AUTODISARM, one instruction at a time
 * - vfork: a child of vfork() sets and runs handlers, and its parent keeps its own
 * - dispatched: system calls pass in libc alone (PR_SET_SYSCALL_USER_DISPATCH) */
#define _GNU_SOURCE
#include "bare_call.h"
#include "noipa.h"

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

enum {
    STACK = 128 << 10,
    DISARMS = (int)(1U << 31),
    STEPS = 3000,
    TRAP_FLAG = 0x100,
    DISPATCH = 59,
    ANSWER = 4242
};

typedef void handler_function(int, siginfo_t *, void *);

static void handle(int number, handler_function *handler, int flags) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = handler;
    action.sa_flags = flags | SA_SIGINFO;
    sigaction(number, &action, NULL);
}

/* --- fortified --- */

void __longjmp_chk(struct __jmp_buf_tag *target, int value) __attribute__((noreturn));

static __thread sigjmp_buf target;

static void jump(int number, siginfo_t *info, void *context) {
    (void)number;
    (void)info;
    (void)context;
    __longjmp_chk(target, 1);
}

static void plain_jump(int number, siginfo_t *info, void *context) {
    (void)number;
    (void)info;
    (void)context;
    siglongjmp(target, 1);
}

static void *jump_thrice(void *stack) {
    const stack_t above = {.ss_sp = stack, .ss_size = STACK};
    sigaltstack(&above, NULL);
    for (volatile int i = 0; i < 3; i++)
        if (sigsetjmp(target, 1) == 0)
            raise(SIGUSR1);
        else
            puts("jumped");
    return NULL;
}

static void jump_from(handler_function *handler) {
    pthread_t thread;
    char *const memory =
        mmap(NULL, 2 * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_attr_t lower;
    pthread_attr_init(&lower);
    pthread_attr_setstack(&lower, memory, STACK);
    handle(SIGUSR1, handler, SA_ONSTACK);
    pthread_create(&thread, &lower, jump_thrice, memory + STACK);
    pthread_join(thread, NULL);
}

static void fortified(void) {
    jump_from(jump);
}

NOIPA static void return_with_target(void) {
    volatile char lower[STACK / 4];
    lower[0] = 0;
    if (sigsetjmp(target, 1) == 0)
        return;
    puts("jumped to a dead frame");
    _exit(lower[0] + 1);
}

static void jump_to_dead_frame(int number, siginfo_t *info, void *context) {
    (void)number;
    (void)info;
    (void)context;
    return_with_target();
    __longjmp_chk(target, 1);
}

static void dead_frame(void) {
    jump_from(jump_to_dead_frame);
}

/* --- masked waits --- */

static int on_stack = SA_ONSTACK;
static char seen[1 << 16];
static int length;

/* The barriers keep the compiler from moving the stores across sigprocmask(), in which it expects
 * no handler to run. */
static void forget_seen(void) {
    __asm__ volatile("" : : : "memory");
    length = 0;
    seen[0] = '\0';
    __asm__ volatile("" : : : "memory");
}

static void note_mask(int number, siginfo_t *info, void *context) {
    sigset_t mask;
    (void)info;
    if (length > (int)sizeof seen / 2)
        length = 0;
    sigprocmask(SIG_BLOCK, NULL, &mask);
    length += snprintf(seen + length, sizeof seen - length, "signal %d blocks", number);
    for (int i = 1; i < NSIG; i++)
        if (sigismember(&mask, i) == 1)
            length += snprintf(seen + length, sizeof seen - length, " %d", i);
    length += snprintf(seen + length, sizeof seen - length, ", before %d\n",
                       sigismember(&((ucontext_t *)context)->uc_sigmask, SIGUSR2));
}

static void report(const char *call, int result) {
    sigset_t pending;
    sigpending(&pending);
    printf("%s%s: %d, pending %d %d\n", seen, call, result, sigismember(&pending, SIGUSR1),
           sigismember(&pending, SIGUSR2));
    forget_seen();
    raise(SIGUSR1);
    raise(SIGUSR2);
}

int __ppoll_chk(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *, size_t);
/* Names sigpause(): <signal.h> has the name of the first for the second, and warns of it. */
int sigpause_of_mask(int mask) __asm__("sigpause");
int sigpause_of_signal(int number) __asm__("__xpg_sigpause");

static void left_by_jump(void);
static void ended_by_plain(void);

static void masked_waits(void) {
    static const int numbers[] = {SIGUSR1, SIGUSR2};
    const struct timespec soon = {0, 1000000};
    const int file = epoll_create1(0);
    struct epoll_event event;
    sigset_t blocked;
    sigset_t none;
    sigset_t all_but_one;
    sigemptyset(&none);
    sigemptyset(&blocked);
    sigfillset(&all_but_one);
    sigdelset(&all_but_one, SIGUSR1);
    for (int i = 0; i < 2; i++) {
        handle(numbers[i], note_mask, on_stack);
        sigaddset(&blocked, numbers[i]);
    }
    sigaddset(&blocked, SIGWINCH);
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    report("nothing", 0);
    report("sigsuspend", sigsuspend(&none));
    report("ppoll", ppoll(NULL, 0, &soon, &all_but_one));
    report("ppoll", ppoll(NULL, 0, &soon, &none));
    report("pselect", pselect(0, NULL, NULL, NULL, &soon, &none));
    report("epoll_pwait", epoll_pwait(file, &event, 1, 1, &none));
    report("epoll_pwait2", epoll_pwait2(file, &event, 1, &soon, &none));
    report("__ppoll_chk", __ppoll_chk(NULL, 0, &soon, &none, 0));
    report("sigpause", sigpause_of_mask(0));
    report("sigpause of SIGUSR1", sigpause_of_signal(SIGUSR1));
    report("sigpause of SIGUSR2", sigpause_of_signal(SIGUSR2));
    report("no sigpause", sigpause_of_signal(NSIG));
    report("ppoll", ppoll(NULL, 0, &soon, NULL));
    forget_seen();
    ended_by_plain();
    left_by_jump();
}

static void plain_masked_waits(void) {
    const stack_t disarmed = {.ss_sp = malloc(STACK), .ss_flags = DISARMS, .ss_size = STACK};
    sigaltstack(&disarmed, NULL);
    on_stack = 0;
    masked_waits();
}

static void raise_second(int number, siginfo_t *info, void *context) {
    (void)number;
    (void)info;
    (void)context;
    raise(SIGUSR2); /* pending until the handler has returned */
}

/* A handler without SA_ONSTACK ends the wait; after it comes a signal that the wait blocked. */
static void ended_by_plain(void) {
    sigset_t waits;
    sigset_t before;
    sigset_t open;
    sigemptyset(&open);
    sigaddset(&open, SIGUSR2);
    sigfillset(&waits);
    sigdelset(&waits, SIGUSR1);
    handle(SIGUSR1, raise_second, 0);
    raise(SIGUSR1); /* blocked outside */
    sigprocmask(SIG_UNBLOCK, &open, &before);
    forget_seen();
    sigsuspend(&waits);
    printf("ended by a plain handler: %s", seen);
    handle(SIGUSR1, note_mask, on_stack);
    sigprocmask(SIG_SETMASK, &before, NULL);
    forget_seen();
}

/* A handler jumps out of a wait with a mask; then a signal ends another call at the same depth. */
static void left_by_jump(void) {
    const struct itimerval often = {.it_interval.tv_usec = 1000, .it_value.tv_usec = 1000};
    const struct itimerval never = {.it_value.tv_usec = 0};
    int ends[2];
    char byte;
    sigset_t none;
    sigemptyset(&none);
    handle(SIGWINCH, plain_jump, 0);
    handle(SIGALRM, note_mask, on_stack);
    raise(SIGWINCH);
    if (sigsetjmp(target, 1) == 0)
        sigsuspend(&none);
    if (pipe(ends) != 0)
        return;
    setitimer(ITIMER_REAL, &often, NULL);
    const ssize_t size = read(ends[0], &byte, 1);
    setitimer(ITIMER_REAL, &never, NULL);
    *strchr(seen, '\n') = '\0'; /* the timer may have come before, too */
    printf("left by a jump, read: %zd, %s\n", size, seen);
}

/* --- chained --- */

static struct {
    handler_function *handler;
    unsigned long flags;
    void *restorer;
    unsigned long mask;
} kernels;

static void first(int number, siginfo_t *info, void *context) {
    printf("first: %d, %d, %d\n", number, info->si_signo, context != NULL);
}

static void second(int number, siginfo_t *info, void *context) {
    volatile long kept = 0x1234;
    kernels.handler(number, info, context);
    printf("second: %lx\n", kept);
}

static void chained(void) {
    handle(SIGUSR1, first, SA_ONSTACK);
    bare_call(SYS_rt_sigaction, SIGUSR1, 0, (long)&kernels, sizeof kernels.mask, 0, 0);
    handle(SIGUSR1, second, SA_ONSTACK);
    raise(SIGUSR1);
    handle(SIGUSR1, second, 0);
    raise(SIGUSR1);
}

/* --- replaced --- */

static void replaced(void) {
    struct sigaction base;
    struct sigaction other;
    struct sigaction old;
    memset(&base, 0, sizeof base);
    base.sa_sigaction = first;
    base.sa_flags = SA_ONSTACK | SA_SIGINFO;
    other = base;
    other.sa_sigaction = second;
    sigaction(SIGUSR1, &base, NULL);
    for (int i = 0; i < 10; i++) { /* each handler has a mask of its own */
        sigaddset(&other.sa_mask, SIGRTMIN + i);
        sigaction(SIGUSR1, &other, &old);
        printf("%s", old.sa_sigaction == first ? "base " : "another ");
        sigaction(SIGUSR1, &old, NULL);
    }
    printf("\n");
}

/* --- rearmed --- */

static void nothing(int number, siginfo_t *info, void *context) {
    (void)number;
    (void)info;
    (void)context;
}

static void raise_within(int number, siginfo_t *info, void *context) {
    (void)number;
    (void)info;
    (void)context;
    raise(SIGUSR2);
}

static char *volatile place;

static void note_place(int number, siginfo_t *info, void *context) {
    (void)number;
    (void)info;
    (void)context;
    place = __builtin_frame_address(0);
}

static void rearmed(void) {
    static char memory[STACK];
    const stack_t disarms = {.ss_sp = memory, .ss_size = sizeof memory, .ss_flags = DISARMS};
    stack_t after;
    int on_it = 0;
    handle(SIGUSR1, raise_within, 0);
    handle(SIGUSR2, nothing, SA_ONSTACK);
    sigaltstack(&disarms, NULL);
    for (int i = 0; i < 3; i++) {
        raise(SIGUSR1);
        sigaltstack(NULL, &after);
        printf("rearmed %d %x\n", after.ss_sp == memory, (unsigned)after.ss_flags);
    }
    handle(SIGUSR2, note_place, SA_ONSTACK);
    for (int i = 0; i < 3; i++) { /* no call queries the stack in between */
        raise(SIGUSR2);
        on_it += place - memory < STACK;
    }
    printf("on it %d times\n", on_it);
}

/* --- forked --- */

static volatile pid_t forked_child;

static void fork_within(int number, siginfo_t *info, void *context) {
    (void)number;
    (void)info;
    (void)context;
    forked_child = fork();
}

static void report_stack(const char *where) {
    stack_t present;
    sigaltstack(NULL, &present);
    printf("%s: %x, %zu bytes\n", where, (unsigned)present.ss_flags, present.ss_size);
}

static void *report_thread(void *unused) {
    report_stack("child's thread");
    return unused;
}

static void *return_in_child(void *unused) {
    pthread_t thread;
    raise(SIGUSR1);
    if (forked_child != 0) {
        waitpid(forked_child, NULL, 0);
        report_stack("parent");
        return unused;
    }
    report_stack("child");
    for (int i = 0; i < 3; i++) {
        pthread_create(&thread, NULL, report_thread, NULL);
        pthread_join(thread, NULL);
    }
    report_stack("child");
    _exit(0);
}

static void forked(void) {
    pthread_t thread;
    handle(SIGUSR1, fork_within, 0);
    pthread_create(&thread, NULL, return_in_child, NULL);
    pthread_join(thread, NULL);
}

/* --- early --- */

static void early(void) {
    sigset_t blocked;
    sigset_t none;
    sigemptyset(&none);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    sigaddset(&blocked, SIGUSR2);
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    raise(SIGUSR1);
    sigsuspend(&none);
}

/* --- stepped --- */

static volatile int steps;

static void step(int number, siginfo_t *info, void *context) {
    volatile char overwritten[20000];
    (void)number;
    (void)info;
    memset((void *)overwritten, 0xee, sizeof overwritten);
    if (++steps > STEPS)
        ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
}

static void begin_steps(int number, siginfo_t *info, void *context) {
    (void)number;
    (void)info;
    (void)context;
    __asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" : : : "memory", "cc");
}

static void stepped(void) {
    static char memory[STACK];
    const stack_t disarms = {.ss_sp = memory, .ss_size = sizeof memory, .ss_flags = DISARMS};
    stack_t after;
    sigaltstack(&disarms, NULL);
    handle(SIGTRAP, step, SA_ONSTACK);
    handle(SIGUSR1, begin_steps, SA_ONSTACK);
    raise(SIGUSR1);
    sigaltstack(NULL, &after);
    printf("stepped, as set %d %x\n", after.ss_sp == memory, (unsigned)after.ss_flags);
}

/* --- vfork --- */

static volatile int ran;

static void in_parent(int number, siginfo_t *info, void *context) {
    (void)number;
    (void)info;
    (void)context;
    ran = 1;
}

static void in_child(int number, siginfo_t *info, void *context) {
    (void)number;
    (void)info;
    (void)context;
    ran = 2;
}

static void act_in_child(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = in_child;
    action.sa_flags = SA_ONSTACK | SA_SIGINFO;
    kill(getpid(), SIGUSR1);
    for (int i = 0; i < 6; i++) { /* more than the profiler has entries of a signal */
        sigaddset(&action.sa_mask, SIGRTMIN + i);
        sigaction(SIGUSR1, &action, NULL);
        kill(getpid(), SIGUSR1);
    }
}

static void vforked(void) {
    static char memory[STACK];
    const stack_t disarms = {.ss_sp = memory, .ss_size = sizeof memory, .ss_flags = DISARMS};
    stack_t after;
    sigaltstack(&disarms, NULL);
    handle(SIGUSR1, in_parent, SA_ONSTACK);
    const pid_t child = vfork();
    if (child == 0) {
        act_in_child();
        _exit(ran);
    }
    raise(SIGUSR1);
    sigaltstack(NULL, &after);
    printf("parent ran %d, as set %d %x\n", ran, after.ss_sp == memory, (unsigned)after.ss_flags);
}

/* --- dispatched --- */

static volatile char dispatches;

static void answer(int number, siginfo_t *info, void *context) {
    (void)number;
    (void)info;
    dispatches = 0;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RAX] = ANSWER;
    dispatches = 1;
}

static void dispatched(void) {
    unsigned long low = 0;
    unsigned long high = 0;
    char line[512];
    int answered = 0;
    FILE *const maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        if (strstr(line, "libc.so") && strstr(line, "r-xp"))
            sscanf(line, "%lx-%lx", &low, &high);
    fclose(maps);
    handle(SIGSYS, answer, SA_ONSTACK);
    if (prctl(DISPATCH, 1, low, high - low, &dispatches) != 0) { /* before Linux 5.11 */
        puts("not here");
        return;
    }
    dispatches = 1;
    for (int i = 0; i < 10; i++)
        answered += bare_call(SYS_getpid, 0, 0, 0, 0, 0, 0) == ANSWER;
    dispatches = 0;
    printf("answered %d\n", answered);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } ways[] = {{"fortified", fortified},
                {"dead frame", dead_frame},
                {"masked waits", masked_waits},
                {"chained", chained},
                {"replaced", replaced},
                {"rearmed", rearmed},
                {"forked", forked},
                {"early", early},
                {"stepped", stepped},
                {"vfork", vforked},
                {"dispatched", dispatched},
                {"plain masked waits", plain_masked_waits}};
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (size_t i = 0; argc == 2 && i < sizeof ways / sizeof *ways; i++)
        if (strcmp(argv[1], ways[i].name) == 0) {
            ways[i].run();
            return 0;
        }
    return 2;
}
