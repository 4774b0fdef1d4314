/* Prints all that signal handlers, and the threads that they interrupt, can see of alternate signal
 * stacks.
 *
 * For each kind of thread (main, another, a fibre, a forked child, one that exits), of alternate
 * stack and of handler, it prints where the handler runs, what its ucontext and sigaltstack()
 * report in it and behind it, and what the interrupted code finds again. Addresses are printed as
 * distances, so that two runs print the same, with any profiler or without one. */
#define _GNU_SOURCE
#include "noipa.h"

#include <errno.h>
#include <execinfo.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

enum { ROOM = 1 << 16, DISARMS = (int)(1U << 31), OUTER = SIGUSR1, INNER = SIGUSR2 };

static __thread char *room;
static __thread sigjmp_buf out;
static __thread int depth;
static __thread int wants; /* what else the handler does: enum below */
static __thread int has_onstack;
enum { NOTHING, JUMPS, RAISES, SETS, DISABLES, CHANGES, FORKS };

/* --- what a program sees --- */

static const char *place_of(const void *address, uintptr_t interrupted) {
    static __thread char text[4][64];
    static __thread int next;
    char *const place = text[next++ % 4];
    const uintptr_t at = (uintptr_t)address;
    if (at > (uintptr_t)room && at <= (uintptr_t)room + ROOM)
        snprintf(place, sizeof text[0], "alternate, %zu below its top",
                 (size_t)((uintptr_t)room + ROOM - at));
    else if (interrupted && at < interrupted && interrupted - at < 64 << 10)
        snprintf(place, sizeof text[0], "%zu below the interrupted", (size_t)(interrupted - at));
    else
        snprintf(place, sizeof text[0], "%s", at ? "elsewhere" : "nowhere");
    return place;
}

static void print_stack(const char *when, const stack_t *stack) {
    printf("  %s: %s, flags %x, %zu bytes\n", when,
           !stack->ss_sp                  ? "NULL"
           : (char *)stack->ss_sp == room ? "ours"
                                          : "another",
           (unsigned)stack->ss_flags, stack->ss_size);
}

static void print_present(const char *when) {
    stack_t present;
    if (sigaltstack(NULL, &present) != 0)
        printf("  %s: error %d\n", when, errno);
    else
        print_stack(when, &present);
}

static int set_stack(int flags, size_t size) {
    const stack_t stack = {.ss_sp = room, .ss_flags = flags, .ss_size = size};
    return sigaltstack(&stack, NULL) == 0 ? 0 : errno;
}

/* --- the handlers --- */

static void print_frames(void) {
    void *frames[32];
    const int count = backtrace(frames, 32);
    printf("  %s frames\n", count > 4 ? "whole" : "few");
}

static void print_mask(const sigset_t *interrupted) {
    sigset_t now;
    pthread_sigmask(SIG_BLOCK, NULL, &now);
    printf("  mask:");
    for (int number = 1; number < SIGRTMIN; number++)
        if (sigismember(&now, number) == 1)
            printf(" %d%s", number, sigismember(interrupted, number) == 1 ? " before" : "");
    printf("\n");
}

static void on_signal(int number, siginfo_t *info, void *context) {
    ucontext_t *const interrupted = context;
    const uintptr_t sp = (uintptr_t)interrupted->uc_mcontext.gregs[REG_RSP];
    depth++;
    printf("  signal %d, code %d, depth %d: ucontext %s; siginfo %+ld; state %ld mod 64\n", number,
           info->si_code, depth, place_of(context, sp), (long)((char *)info - (char *)context),
           (long)((uintptr_t)interrupted->uc_mcontext.fpregs % 64));
    if (has_onstack)
        print_stack("its ucontext", &interrupted->uc_stack);
    print_present("inside");
    print_mask(&interrupted->uc_sigmask);
    print_frames();
    const int wanted = wants;
    wants = NOTHING;
    if (wanted == RAISES)
        raise(INNER);
    if (wanted == SETS)
        printf("  set inside: %d\n", set_stack(0, ROOM / 2));
    if (wanted == DISABLES)
        printf("  disabled inside: %d\n", set_stack(SS_DISABLE, 0));
    if (wanted == CHANGES)
        interrupted->uc_mcontext.gregs[REG_RBX] += 1;
    fflush(stdout);
    if (wanted == FORKS && fork() == 0) {
        print_present("in a child inside");
        fflush(stdout);
        _exit(0);
    }
    if (wanted == FORKS)
        wait(NULL);
    depth--;
    if (wanted == JUMPS)
        siglongjmp(out, 1);
}

static void on_plain(int number) {
    char here;
    printf("  plain handler of %d: %s\n", number,
           &here > room && &here < room + ROOM ? "alternate" : "elsewhere");
}

/* --- the interrupted code --- */

/* Raises the signal with values in registers, which it must find again. */
NOIPA static void raise_among_values(int number) {
    _Alignas(64) uint64_t state[4] = {1, 2, 3, 4}; /* makes sp the same modulo 64 in each run */
    uint64_t rbx = 0x1234567890, after[4];
    __asm__ volatile(
        "movups %[s0], %%xmm6\n\t"
        "movups %[s1], %%xmm7\n\t"
        "movl $39, %%eax\n\tsyscall\n\t" /* getpid */
        "movl %%eax, %%edi\n\t"
        "movl $186, %%eax\n\tsyscall\n\t" /* gettid */
        "movl %%eax, %%esi\n\t"
        "movl %[number], %%edx\n\t"
        "movl $234, %%eax\n\tsyscall\n\t" /* tgkill */
        "movups %%xmm6, %[a0]\n\t"
        "movups %%xmm7, %[a1]\n\t"
        : "+b"(rbx), [a0] "=m"(*(char(*)[16]) & after[0]), [a1] "=m"(*(char(*)[16]) & after[2])
        : [s0] "m"(*(char(*)[16]) & state[0]), [s1] "m"(*(char(*)[16]) & state[2]),
          [number] "r"(number)
        : "rax", "rcx", "rdi", "rsi", "rdx", "r11", "xmm6", "xmm7", "memory");
    printf("  registers: %lx, %s\n", (unsigned long)rbx,
           memcmp(state, after, sizeof state) == 0 ? "kept" : "lost");
}

static void handle(int number, int flags) {
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | flags};
    struct sigaction old;
    sigaddset(&action.sa_mask, SIGALRM);
    sigaction(number, &action, NULL);
    sigaction(number, NULL, &old);
    printf("  handler %s, mask %s, flags %x\n",
           old.sa_sigaction == on_signal ? "as set" : "another",
           memcmp(&old.sa_mask, &action.sa_mask, 8) == 0 ? "as set" : "another",
           (unsigned)old.sa_flags & ~0x04000000u);
}

static void take(const char *what, int wanted, int flags) {
    printf(" %s%s\n", what, flags & SA_ONSTACK ? ", SA_ONSTACK" : "");
    handle(OUTER, flags);
    handle(INNER, flags);
    wants = wanted;
    has_onstack = !!(flags & SA_ONSTACK);
    if (sigsetjmp(out, 1) == 0)
        raise_among_values(OUTER);
    else
        printf("  left by a jump\n");
    print_present("behind");
}

/* Unblocks two pending signals at once: the kernel then interrupts one handler at its first
 * instruction by the other. */
static void take_both_at_once(int flags) {
    _Alignas(64) sigset_t both; /* as in raise_among_values() */
    sigset_t old;
    printf(" both at once%s\n", flags & SA_ONSTACK ? ", SA_ONSTACK" : "");
    handle(OUTER, flags);
    handle(INNER, flags);
    has_onstack = !!(flags & SA_ONSTACK);
    sigemptyset(&both);
    sigaddset(&both, OUTER);
    sigaddset(&both, INNER);
    pthread_sigmask(SIG_BLOCK, &both, &old);
    raise(OUTER);
    raise(INNER);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    print_present("behind");
}

static void take_each(int flags) {
    take_both_at_once(flags);
    take("returns", NOTHING, flags);
    take("another within it", RAISES, flags);
    take("jumps", JUMPS, flags);
    take("changes a register", CHANGES, flags);
    take("forks", FORKS, flags);
    take("once", NOTHING, flags | SA_RESETHAND);
    struct sigaction old;
    sigaction(OUTER, NULL, &old);
    printf("  then: %s\n", old.sa_handler == SIG_DFL ? "default" : "a handler");
    take("among others", RAISES, flags | SA_NODEFER | SA_RESTART);
}

static void take_plain(void) {
    struct sigaction action = {.sa_handler = on_plain, .sa_flags = SA_ONSTACK};
    sigaction(OUTER, &action, NULL);
    raise_among_values(OUTER);
    struct sigaction old;
    action.sa_handler = SIG_IGN;
    sigaction(OUTER, &action, &old);
    printf("  was %s\n", old.sa_handler == on_plain ? "it" : "another");
    sigaction(OUTER, NULL, &old);
    printf("  is %s\n", old.sa_handler == SIG_IGN ? "ignored" : "another");
    printf("  signal() says %s\n", signal(OUTER, on_plain) == SIG_IGN ? "ignored" : "another");
    action.sa_handler = on_plain;
    sigaction(OUTER, &action, NULL);
    printf("  signal() says %s\n", signal(OUTER, SIG_DFL) == on_plain ? "it" : "another");
}

static void visit(const char *where) {
    room = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    printf("%s: none set\n", where);
    print_present("at first");
    take_each(SA_ONSTACK);
    take("sets one", SETS, SA_ONSTACK);
    printf("%s: refused\n", where);
    printf("  %d %d %d\n", set_stack(0, 100), set_stack(7, ROOM),
           sigaltstack((void *)8, NULL) == 0 ? 0 : errno);
    print_present("still");
    printf("%s: set\n", where);
    printf("  %d\n", set_stack(0, ROOM));
    print_present("set");
    take_each(0);
    take_each(SA_ONSTACK);
    take("sets another on it", SETS, SA_ONSTACK);
    take("takes it away on it", DISABLES, SA_ONSTACK);
    take_plain();
    printf("%s: disarmed\n", where);
    printf("  %d\n", set_stack(DISARMS, ROOM));
    print_present("set");
    take("returns", NOTHING, SA_ONSTACK);
    take("sets another", SETS, SA_ONSTACK);
    take("another within it", RAISES, SA_ONSTACK);
    take("jumps", JUMPS, SA_ONSTACK);
    printf("%s: taken away\n", where);
    printf("  %d\n", set_stack(SS_DISABLE, 0));
    print_present("none");
    take("returns", NOTHING, SA_ONSTACK);
    printf("%s: set as on it\n", where);
    printf("  %d\n", set_stack(SS_ONSTACK, ROOM));
    print_present("set");
    take("returns", NOTHING, SA_ONSTACK);
    fflush(stdout);
}

static ucontext_t fibre, before;

static void in_fibre(void) {
    set_stack(SS_DISABLE, 0);
    visit("fibre");
}

/* Runs at exit, before the profiler's end. */
static void at_exit(void) {
    set_stack(SS_DISABLE, 0);
    visit("exit");
}

static void *in_thread(void *unused) {
    visit("thread");
    return unused;
}

int main(void) {
    pthread_t thread;
    setvbuf(stdout, NULL, _IOFBF, 1 << 20);
    atexit(at_exit);
    visit("main");
    pthread_create(&thread, NULL, in_thread, NULL);
    pthread_join(thread, NULL);
    getcontext(&fibre);
    fibre.uc_stack = (stack_t){.ss_sp = malloc(1 << 18), .ss_size = 1 << 18};
    fibre.uc_link = &before;
    makecontext(&fibre, in_fibre, 0);
    swapcontext(&before, &fibre);
    print_present("main before fork");
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        set_stack(SS_DISABLE, 0);
        visit("child");
        exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    printf("%d\n", status);
    return 0;
}
