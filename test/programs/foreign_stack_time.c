/* Uses CPU time between three samples: the second is taken in generated code whose stack pointer
 * points into a block of the heap, and which keeps no frame pointer. So that sample has the time
 * since the first, which the program prints in nanoseconds. */
#define _GNU_SOURCE
#include "cpu_sample.h"

enum { BLOCK = 1 << 16 };

typedef long foreign_call(long pid, long tid, long number, siginfo_t *info, char *top);

/* Makes the system call rt_tgsigqueueinfo with another stack pointer. */
static const unsigned char code[] = {
    0x49, 0x89, 0xca,             /* mov %rcx, %r10 */
    0x49, 0x89, 0xe1,             /* mov %rsp, %r9 */
    0x4c, 0x89, 0xc4,             /* mov %r8, %rsp */
    0x49, 0x89, 0xe8,             /* mov %rbp, %r8 */
    0xbd, 0x01, 0x00, 0x00, 0x00, /* mov $1, %ebp */
    0xb8, 0x29, 0x01, 0x00, 0x00, /* mov $297, %eax */
    0x0f, 0x05,                   /* syscall */
    0x90,                         /* nop */
    0x4c, 0x89, 0xc5,             /* mov %r8, %rbp */
    0x4c, 0x89, 0xcc,             /* mov %r9, %rsp */
    0xc3,                         /* ret */
};

int main(void) {
    siginfo_t expiry;
    foreign_call *send;
    void *const generated = mmap(NULL, sizeof code, PROT_READ | PROT_WRITE | PROT_EXEC,
                                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *const block = malloc(BLOCK);
    memset(block, 0x5a, BLOCK);
    memcpy(generated, code, sizeof code);
    memcpy(&send, &generated, sizeof send);
    cpu_samples_hold();
    WORK_FOR(50 * NS_PER_MS);
    TAKE_CPU_SAMPLE();
    const uint64_t begin = cpu_now();
    WORK_FOR(300 * NS_PER_MS);
    if (describe_expiry(&expiry))
        send(getpid(), gettid(), expiry.si_signo, &expiry, block + BLOCK / 2);
    printf("%llu\n", (unsigned long long)(cpu_now() - begin));
    WORK_FOR(50 * NS_PER_MS);
    TAKE_CPU_SAMPLE();
    return 0;
}
