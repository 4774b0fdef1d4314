/* Lets a thread wait as Rust's condition variables do: for a futex that counts, whatever its value.
 */
#define _GNU_SOURCE

#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { WAKES = 4 };

static _Atomic uint32_t count;

__attribute__((noinline)) static void waits_for_work(uint32_t seen) {
    while (atomic_load(&count) == seen)
        syscall(SYS_futex, &count, FUTEX_WAIT_PRIVATE, seen, NULL);
    __asm__ volatile("");
}

static void *works(void *unused) {
    for (uint32_t seen = 0; seen < WAKES; seen++)
        waits_for_work(seen);
    return unused;
}

int main(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, works, NULL) != 0)
        return 1;
    for (int i = 0; i < WAKES; i++) {
        usleep(400000);
        atomic_fetch_add(&count, 1);
        syscall(SYS_futex, &count, FUTEX_WAKE_PRIVATE, 1);
    }
    pthread_join(thread, NULL);
    return 0;
}
