/* A thread leaves sleep() by a longjmp out of a signal handler. Then it works, and sleeps by a
 * system call of its own: from then on it makes no call that a profiler can hook. */
#define _GNU_SOURCE

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static sigjmp_buf way_out;

static void leave(int signal_number) {
    siglongjmp(way_out, signal_number);
}

static double cpu_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

__attribute__((noinline)) static void sleeps_before(void) {
    sleep(100);
    __asm__ volatile("");
}

__attribute__((noinline)) static void works(void) {
    const double end = cpu_seconds() + 1.5;
    while (cpu_seconds() < end)
        continue;
    __asm__ volatile("");
}

__attribute__((noinline)) static void sleeps_by_itself(void) {
    const struct timespec time = {.tv_sec = 2};
#if defined(__x86_64__)
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "0"(SYS_nanosleep), "D"(&time), "S"(0)
                     : "rcx", "r11", "memory");
#elif defined(__aarch64__)
    register long number __asm__("x8") = SYS_nanosleep;
    register const struct timespec *requested __asm__("x0") = &time;
    register long left __asm__("x1") = 0;
    __asm__ volatile("svc 0" : "+r"(requested) : "r"(number), "r"(left) : "memory");
#endif
}

static void *leaves(void *unused) {
    pthread_setname_np(pthread_self(), "leaves");
    if (!sigsetjmp(way_out, 1))
        sleeps_before();
    works();
    sleeps_by_itself();
    return unused;
}

int main(void) {
    pthread_t thread;
    signal(SIGUSR1, leave);
    if (pthread_create(&thread, NULL, leaves, NULL) != 0)
        return 1;
    usleep(700000);
    pthread_kill(thread, SIGUSR1);
    pthread_join(thread, NULL);
    return 0;
}
