/* flags: -D_GNU_SOURCE -Ishim/hooks -rdynamic -Wl,--no-as-needed -lgcc_s -lstdc++
 *
 * Calls every function of hooked.def with a stack that is 8 bytes off, as hand-written assembler
 * and old compilers do, each in a child, and prints the call's number and how it ended. With
 * arguments, makes only the calls of these numbers, one after the other, in this process, except
 * for those that change it.
 */
#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

enum { ARGUMENTS = 7, BYTES = 64 << 10, STATUS = 7 };

/* Calls `function` with the seven arguments, the last on the stack. */
long call_askew(void *function, const long *arguments);
__asm__(".text\n"
        "call_askew:\n\t"
        ".cfi_startproc\n\t"
        "pushq %rbp\n\t"
        ".cfi_adjust_cfa_offset 8\n\t"
        ".cfi_rel_offset %rbp, 0\n\t"
        "movq %rsp, %rbp\n\t"
        ".cfi_def_cfa_register %rbp\n\t"
        "andq $-16, %rsp\n\t"
        "subq $24, %rsp\n\t"
        "movq %rdi, %rax\n\t"
        "movq %rsi, %r10\n\t"
        "movq 48(%r10), %rcx\n\t"
        "movq %rcx, (%rsp)\n\t"
        "movq 0(%r10), %rdi\n\t"
        "movq 8(%r10), %rsi\n\t"
        "movq 16(%r10), %rdx\n\t"
        "movq 24(%r10), %rcx\n\t"
        "movq 32(%r10), %r8\n\t"
        "movq 40(%r10), %r9\n\t"
        "movq %rax, %r11\n\t"
        "xorl %eax, %eax\n\t"
        "call *%r11\n\t"
        "leave\n\t"
        "ret\n\t"
        ".cfi_endproc\n");

/* Defines a function that jumps to `name` through the program's own table: such a function is
 * hooked at its call sites. */
#define BOUND(name)                                                                                \
    void via_##name(void);                                                                         \
    __asm__(".text\nvia_" #name ":\n\tjmp " #name "@PLT\n");
BOUND(read)
BOUND(write)
BOUND(poll)
BOUND(select)
BOUND(nanosleep)
BOUND(sem_timedwait)
BOUND(pthread_cond_timedwait)
BOUND(pthread_mutex_lock)
BOUND(pthread_mutex_timedlock)
BOUND(pthread_rwlock_timedwrlock)
BOUND(syscall)

/* --- arguments --- */

static int mapped_marker;
#define AN_OBJECT ((long)objects)        /* stands for a fresh object of malloc */
#define A_MAPPING ((long)&mapped_marker) /* stands for fresh pages */
#define TO_HERE   ((long)jump)
#define A_HANDLE  ((long)&handle)
#define SMALL     32
static char objects[1];
static char buffer[BYTES] __attribute__((aligned(16)));
static char stack[BYTES] __attribute__((aligned(16)));
static void *handle;
static long result[8];
static sigset_t usr1;
static sigset_t nothing;
static const uint32_t no_tables[4];
static const void *const list_of_tables[] = {no_tables, NULL};
static struct sigaction action;
static stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
static const struct itimerval no_timer;
static const struct timespec at_once;
static struct timeval no_time;
static struct pollfd file = {.fd = -1};
static struct epoll_event event;
static int polls;
static int futex = 1;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static sem_t semaphore;
static jmp_buf jump;
static struct sock_filter allows[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
static struct sock_fprog filter = {1, allows};
static char *words[] = {"any_stack", NULL};

static void ignore(int number) {
    (void)number;
}

static void *thread(void *argument) {
    return argument;
}

static int child(void *argument) {
    (void)argument;
    syscall(SYS_exit_group, 0);
    return 0;
}

static int second_main(int count, char **arguments, char **environment) {
    (void)count, (void)arguments, (void)environment;
    return STATUS;
}

/* --- the calls --- */

enum number {
#define HOOKED(family, context, next, number, call, versions, result, name, parameters) HAS_##name,
#include "hooked.def"
    FUNCTIONS
};

struct call {
    const char *name; /* of the function, or of a second call of the function */
    long arguments[ARGUMENTS];
    enum number number;
    bool alone; /* changes the process */
    void *function;
};

#define CALL(name, ...)  {#name, {__VA_ARGS__}, HAS_##name, false, NULL},
#define ALONE(name, ...) {#name, {__VA_ARGS__}, HAS_##name, true, NULL},
#define ALSO(name, ...)  {#name, {__VA_ARGS__}, FUNCTIONS, false, (void *)via_##name},
#define L(pointer)       ((long)(pointer))

static struct call calls[] = {
    CALL(malloc, SMALL) CALL(free, AN_OBJECT) CALL(calloc, 1, SMALL) CALL(
        realloc, AN_OBJECT, 2 * SMALL) CALL(memalign, 64, SMALL) CALL(aligned_alloc, 64, SMALL)
        CALL(posix_memalign, L(result), 64,
             SMALL) CALL(reallocarray, AN_OBJECT, 2, SMALL) CALL(valloc, SMALL) CALL(pvalloc, SMALL)
#define NEW(function, symbol, parameters, arguments, fallback)   CALL(symbol, SMALL, 64, 64)
#define DELETE(function, version, symbol, parameters, arguments) CALL(symbol, AN_OBJECT, SMALL, 64)
#include "operator_new.def"
#undef NEW
#undef DELETE
            CALL(mmap, 0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS,
                 -1) CALL(mmap64, 0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1)
                CALL(munmap, A_MAPPING, 4096) CALL(mremap, A_MAPPING, 4096, 8192, MREMAP_MAYMOVE)
                    CALL(pthread_create, L(result), 0, L(thread)) CALL(
                        thrd_create, L(result), L(thread)) CALL(dlopen, L("libm.so.6"), RTLD_NOW)
                        CALL(dlmopen, LM_ID_BASE, L("libm.so.6"), RTLD_NOW) CALL(dlclose, A_HANDLE)
                            CALL(__register_frame,
                                 L(no_tables)) CALL(__register_frame_info,
                                                    L(no_tables), L(buffer)) CALL(__register_frame_info_bases, L(no_tables), L(buffer)) CALL(__register_frame_table, L(list_of_tables)) CALL(__register_frame_info_table, L(list_of_tables), L(buffer)) CALL(__register_frame_info_table_bases, L(list_of_tables), L(buffer)) CALL(__deregister_frame, L(no_tables)) CALL(__deregister_frame_info,
                                                                                                                                                                                                                                                                                                                                                                          L(no_tables)) CALL(__deregister_frame_info_bases,
                                                                                                                                                                                                                                                                                                                                                                                             L(no_tables)) CALL(sigaction,
                                                                                                                                                                                                                                                                                                                                                                                                                SIGUSR2,
                                                                                                                                                                                                                                                                                                                                                                                                                L(&action),
                                                                                                                                                                                                                                                                                                                                                                                                                L(buffer)) CALL(__sigaction, SIGUSR2, L(&action), L(buffer)) CALL(signal,
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                  SIGUSR2, L(ignore)) CALL(bsd_signal, SIGUSR2, L(ignore)) CALL(ssignal,
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                SIGUSR2,
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                L(
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                    ignore)) CALL(sysv_signal,
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                  SIGUSR2, L(ignore)) CALL(__sysv_signal,
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                           SIGUSR2,
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                           L(
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                               ignore)) CALL(sigset,
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                             SIGUSR2, L(ignore)) CALL(sigignore,
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                      SIGUSR2) CALL(siginterrupt,
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                    SIGUSR2,
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                    1) CALL(setitimer,
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                            ITIMER_REAL, L(&no_timer), L(buffer)) CALL(sigwaitinfo, L(&usr1), L(buffer)) CALL(sigtimedwait,
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                              L(&usr1),
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                              L(buffer),
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                              L(
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                  &at_once)) CALL(sigwait, L(&usr1), L(result)) CALL(signalfd, -1, L(&usr1)) CALL(sigaltstack,
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                  L(&alternate),
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                  L(buffer)) CALL(sigprocmask,
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                  SIG_BLOCK,
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                  L(&usr1),
                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                  L(buffer))
                                CALL(pthread_sigmask, SIG_BLOCK, L(&usr1), L(buffer)) CALL(sigsuspend, L(&nothing)) CALL(sigpause, 0) CALL(__xpg_sigpause, SIGUSR1) CALL(
                                    __ppoll_chk,
                                    L(&file), 1,
                                    L(&at_once),
                                    0,
                                    sizeof file) CALL(epoll_pwait2, L(&polls), L(&event), 1, L(&at_once))
                                    CALL(ppoll, L(&file), 1, L(&at_once)) CALL(pselect, 0, 0, 0, 0, L(&at_once)) CALL(
                                        epoll_pwait,
                                        L(&polls),
                                        L(&event), 1) CALL(__longjmp_chk, TO_HERE,
                                                           1) CALL(setuid,
                                                                   -1) CALL(seteuid, -1)
                                        CALL(setreuid, -1, -1) CALL(setresuid, -1, -1, -1) CALL(
                                            setgid,
                                            -1) CALL(setegid, -1)
                                            CALL(setregid, -1, -1) CALL(
                                                setresgid, -1, -1, -1) CALL(setgroups, 1 << 20)
                                                CALL(initgroups, L("nobody"), -1) CALL(prctl, PR_GET_DUMPABLE) CALL(prctl, PR_SET_NO_NEW_PRIVS, 1) ALONE(
                                                    prctl, PR_SET_SECCOMP,
                                                    2,
                                                    L(
                                                        &filter)) CALL(capset) CALL(syscall, SYS_getpid) CALL(syscall, SYS_setuid, -1)
                                                    CALL(syscall, SYS_unshare) CALL(syscall, SYS_fork) CALL(
                                                        syscall,
                                                        SYS_clone,
                                                        SIGCHLD) CALL(syscall,
                                                                      SYS_clone3) CALL(syscall, SYS_rt_sigaction, SIGUSR2, 0, L(buffer), 8)
                                                        ALONE(syscall, SYS_exit_group, STATUS) ALONE(
                                                            syscall, SYS_exit,
                                                            STATUS) ALONE(syscall, SYS_seccomp, 1, 0, L(&filter))
                                                            CALL(unshare) CALL(setns, -1) ALONE(
                                                                chroot,
                                                                L("/")) CALL(fork) CALL(clone, L(child), L(stack + BYTES), SIGCHLD)
                                                                ALONE(__libc_start_main,
                                                                      L(second_main),
                                                                      1,
                                                                      L(words)) ALONE(exit, STATUS)
                                                                    ALONE(quick_exit, STATUS) ALONE(
                                                                        _exit,
                                                                        STATUS) ALONE(_Exit, STATUS)
                                                                        CALL(accept4, -1) CALL(
                                                                            epoll_wait,
                                                                            L(&polls),
                                                                            L(&event), 1) CALL(recvfrom,
                                                                                               -1) CALL(recvmsg, -1)
                                                                            CALL(waitpid, -1, 0, WNOHANG) CALL(getenv, L("HOME")) CALL(
                                                                                secure_getenv,
                                                                                L("HOME")) CALL(mincore, L(stack), 0, L(buffer))
                                                                                ALSO(read, -1) ALSO(write, -1) ALSO(
                                                                                    poll, L(&file),
                                                                                    1) ALSO(select, 0, 0, 0, 0, L(&no_time))
                                                                                    ALSO(nanosleep, L(&at_once)) ALSO(
                                                                                        sem_timedwait,
                                                                                        L(&semaphore),
                                                                                        L(&at_once))
                                                                                        ALSO(
                                                                                            pthread_cond_timedwait,
                                                                                            L(&condition),
                                                                                            L(&mutex),
                                                                                            L(&at_once)) ALSO(pthread_mutex_timedlock,
                                                                                                              L(&mutex),
                                                                                                              L(&at_once))
                                                                                            ALSO(
                                                                                                pthread_rwlock_timedwrlock,
                                                                                                L(&rwlock),
                                                                                                L(&at_once))
                                                                                                ALSO(
                                                                                                    syscall,
                                                                                                    SYS_futex,
                                                                                                    L(&futex),
                                                                                                    FUTEX_WAIT)
                                                                                                    ALSO(
                                                                                                        syscall,
                                                                                                        SYS_futex,
                                                                                                        L(&futex),
                                                                                                        FUTEX_LOCK_PI,
                                                                                                        0,
                                                                                                        L(&at_once))
                                                                                                        ALSO(
                                                                                                            syscall,
                                                                                                            SYS_futex,
                                                                                                            L(&futex),
                                                                                                            FUTEX_WAIT,
                                                                                                            2)};
enum { CALLS = sizeof calls / sizeof *calls };

static bool each_function_is_called(void) {
    static const char *const names[] = {
#define HOOKED(family, context, next, number, call, versions, result, name, parameters) #name,
#include "hooked.def"
    };
    bool called[FUNCTIONS + 1] = {false};
    bool all = true;
    for (int i = 0; i < CALLS; i++)
        called[calls[i].number] = true;
    for (int i = 0; i < FUNCTIONS; i++) {
        if (!called[i])
            printf("%s: no call of it here\n", names[i]);
        all = all && called[i];
    }
    return all;
}

static long real_argument(long argument) {
    if (argument == AN_OBJECT)
        return (long)aligned_alloc(64, 64);
    if (argument == A_MAPPING)
        return (long)mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (argument == A_HANDLE)
        return (long)dlopen("libm.so.6", RTLD_NOW);
    return argument == (long)&polls ? polls : argument;
}

static void prepare(void) {
    polls = epoll_create1(0);
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    sigemptyset(&nothing);
    action.sa_handler = ignore;
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR1, &action, NULL);
    sigprocmask(SIG_BLOCK, &usr1, NULL);
    pthread_mutex_lock(&mutex);
    pthread_rwlock_wrlock(&rwlock);
    sem_init(&semaphore, 0, 0);
}

/* Makes the call. Ends the child if the call was a fork. */
static void make(const struct call *call) {
    const long process = syscall(SYS_getpid);
    void *const function = call->function ? call->function : dlsym(RTLD_DEFAULT, call->name);
    long arguments[ARGUMENTS];
    if (!function)
        return;
    for (int i = 0; i < ARGUMENTS; i++)
        arguments[i] = real_argument(call->arguments[i]);
    raise(SIGUSR1); /* ends a call that waits for a signal */
    if (setjmp(jump) == 0)
        (void)call_askew(function, arguments);
    if (syscall(SYS_getpid) != process)
        syscall(SYS_exit_group, 0);
}

static void make_in_child(const struct call *call) {
    int status = 0;
    fflush(stdout);
    const pid_t id = fork();
    if (id == 0) {
        free(malloc(SMALL)); /* makes the thread a sampled one */
        make(call);
        syscall(SYS_exit_group, 0);
    }
    waitpid(id, &status, 0);
    if (WIFSIGNALED(status))
        printf("%d %s: signal %d\n", (int)(call - calls), call->name, WTERMSIG(status));
    else
        printf("%d %s: %d\n", (int)(call - calls), call->name, WEXITSTATUS(status));
}

int main(int count, char **numbers) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!each_function_is_called())
        return 1;
    prepare();
    for (int i = 0; count == 1 && i < CALLS; i++)
        make_in_child(&calls[i]);
    for (int i = 1; i < count; i++) {
        const struct call *const call = &calls[atoi(numbers[i])];
        if (call->alone)
            continue;
        printf("%s\n", call->name);
        make(call);
    }
    puts("done");
    return 0;
}
