/* Moves the stack pointer into a block of the heap, as the generated code of oneDNN's matrix
 * products does, and has the profiler's signal come there, three times, with the widest vector
 * registers in use.
 *
 * Prints how many bytes of the block have changed below the red zone, and whether sigaltstack()
 * reports no alternate stack: for the main thread, a thread, a fibre, a forked child, and handlers
 * without SA_ONSTACK in a thread whose stack has SS_AUTODISARM. */
#define _GNU_SOURCE
#include "cpu_sample.h"

#include <pthread.h>
#include <sys/wait.h>
#include <ucontext.h>

enum { BLOCK = 1 << 20, RED_ZONE = 128, TIMES = 3, DISARMS = (int)(1U << 31) };

/* Sends the signal to the calling thread by a bare system call, with the stack pointer at `top`. */
NOIPA static void send_at(char *top, siginfo_t *expiry) {
    const long pid = bare_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
    const long tid = bare_call(SYS_gettid, 0, 0, 0, 0, 0, 0);
    if (__builtin_cpu_supports("avx512f"))
        __asm__ volatile(".byte 0x62, 0xf3, 0x45, 0x48, 0x25, 0xff, 0xff"
                         :
                         :
                         : "memory"); /* vpternlogd $255, %zmm7, %zmm7, %zmm7 */
    register long signal_number __asm__("rdx") = expiry->si_signo;
    register siginfo_t *info __asm__("r10") = expiry;
    long result = SYS_rt_tgsigqueueinfo;
    __asm__ volatile("movq %%rsp, %%r12\n\t"
                     "movq %[top], %%rsp\n\t"
                     "syscall\n\t"
                     "movq %%r12, %%rsp"
                     : "+a"(result)
                     : [top] "r"(top), "D"(pid), "S"(tid), "r"(signal_number), "r"(info)
                     : "rcx", "r11", "r12", "memory");
    if (result != 0)
        abort();
}

static int changed_bytes(void) {
    siginfo_t expiry;
    unsigned char *const block = malloc(BLOCK);
    unsigned char *const top = (unsigned char *)(((uintptr_t)block + BLOCK / 2) & ~(uintptr_t)4095);
    int changed = 0;
    memset(block, 0x5a, BLOCK);
    for (int i = 0; i < TIMES && describe_expiry(&expiry); i++)
        send_at((char *)top, &expiry);
    for (const unsigned char *byte = block; byte < top - RED_ZONE; byte++)
        changed += *byte != 0x5a;
    free(block);
    return changed;
}

static void report(const char *where) {
    stack_t stack;
    const int changed = changed_bytes();
    sigaltstack(NULL, &stack);
    printf("%s: %d changed, %s\n", where, changed,
           stack.ss_flags & SS_DISABLE ? "disabled" : "a stack");
    fflush(stdout);
}

static void *in_thread(void *unused) {
    cpu_samples_await();
    report("thread");
    return unused;
}

/* Runs on the thread's own stack; the kernel disables the alternate one meanwhile. */
static void in_handler(int number) {
    report(number == SIGUSR1 ? "handler" : "handler by signal()");
}

static void *in_disarmed_thread(void *unused) {
    const stack_t stack = {.ss_sp = malloc(BLOCK), .ss_flags = DISARMS, .ss_size = BLOCK};
    cpu_samples_await();
    sigaltstack(&stack, NULL);
    raise(SIGUSR1);
    signal(SIGUSR2, in_handler);
    raise(SIGUSR2);
    return unused;
}

static ucontext_t fibre, before;

static void in_fibre(void) {
    report("fibre");
}

int main(void) {
    pthread_t thread;
    int status = 0;
    const struct sigaction action = {.sa_handler = in_handler};
    sigaction(SIGUSR1, &action, NULL);
    cpu_samples_await();
    report("main");
    pthread_create(&thread, NULL, in_thread, NULL);
    pthread_join(thread, NULL);
    pthread_create(&thread, NULL, in_disarmed_thread, NULL);
    pthread_join(thread, NULL);
    getcontext(&fibre);
    fibre.uc_stack = (stack_t){.ss_sp = malloc(BLOCK), .ss_size = BLOCK};
    fibre.uc_link = &before;
    makecontext(&fibre, in_fibre, 0);
    swapcontext(&before, &fibre);
    const pid_t child = fork();
    if (child == 0) {
        cpu_samples_await();
        report("child");
        return 0;
    }
    waitpid(child, &status, 0);
    return status;
}
