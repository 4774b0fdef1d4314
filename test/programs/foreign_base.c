/* flags: -fno-stack-protector
 *
 * Sets its threads' register for thread-local storage to another value, as Wine's 32-bit code and
 * DynamoRIO do, and computes so while timers expire and a signal of its own arrives. The argument
 * names the memory to which the register then points. With "SIGTERM" behind it, the program gets
 * that signal meanwhile.
 */
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

enum { BYTES = 16384, COMPUTED_MS = 100 };

static char stack[2][1 << 16];
static volatile int handled;
static volatile int on_stack;
static volatile int ended_by;

/* Makes a bare system call: libc's functions would use errno, which is in thread-local storage. The
 * stack protector, which reads its secret there, is off. */
static long raw(long number, long a, long b, long c) {
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c)
                     : "rcx", "r11", "memory");
    return result;
}

static void on_usr1(int number) {
    const char here = 0;
    (void)number;
    handled++;
    on_stack += (uintptr_t)&here - (uintptr_t)stack < sizeof stack;
}

static long cpu_ms(void) {
    struct timespec used;
    raw(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, (long)&used, 0);
    return used.tv_sec * 1000 + used.tv_nsec / 1000000;
}

__attribute__((noinline)) static void compute_with(char *area) {
    uintptr_t own = 0;
    const long process = raw(SYS_getpid, 0, 0, 0);
    const long thread = raw(SYS_gettid, 0, 0, 0);
    const long until = cpu_ms() + COMPUTED_MS;
    raw(SYS_arch_prctl, ARCH_GET_FS, (long)&own, 0);
    raw(SYS_arch_prctl, ARCH_SET_FS, (long)(area + BYTES / 2), 0);
    while (cpu_ms() < until)
        for (volatile int i = 0; i < 100000; i++)
            ;
    raw(SYS_tgkill, process, thread, SIGUSR1);
    if (ended_by)
        raw(SYS_tgkill, process, thread, ended_by);
    raw(SYS_arch_prctl, ARCH_SET_FS, (long)own, 0);
}

static void set_stack(char *memory) {
    const stack_t alternate = {.ss_sp = memory, .ss_size = sizeof stack[0]};
    sigaltstack(&alternate, NULL);
}

static void *thread(void *area) {
    set_stack(stack[1]);
    compute_with(area);
    return NULL;
}

int main(int count, char **words) {
    const struct sigaction action = {.sa_handler = on_usr1, .sa_flags = SA_ONSTACK};
    char *const area =
        mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_t id;
    if (count < 2)
        return 1;
    if (strcmp(words[1], "garbage") == 0)
        memset(area, 0xaa, BYTES);
    if (strcmp(words[1], "lookalike") == 0)
        for (int i = 0; i < 3; i++)
            ((char **)(void *)(area + BYTES / 2))[i] = area + BYTES / 2;
    if (strcmp(words[1], "unmapped") == 0)
        munmap(area, BYTES);
    ended_by = count > 2 ? SIGTERM : 0;
    sigaction(SIGUSR1, &action, NULL);
    set_stack(stack[0]);
    if (!ended_by) {
        pthread_create(&id, NULL, thread, area);
        pthread_join(id, NULL);
    }
    compute_with(area);
    printf("done, handled %d, on the alternate stack %d\n", handled, on_stack);
    return 0;
}
