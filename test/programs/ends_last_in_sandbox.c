/* A thread puts itself, beside main, into a sandbox that kills for the creation of a timer, and
 * ends a little after main has ended by pthread_exit. The process ends with this thread, with
 * status 0. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

static sem_t in_sandbox;

static void *ends_last(void *unused) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_timer_create, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0) {
        puts("in a sandbox");
        fflush(stdout);
    }
    sem_post(&in_sandbox);
    nanosleep(&(struct timespec){0, 200000000}, NULL);
    return unused;
}

int main(void) {
    pthread_t id;
    sem_init(&in_sandbox, 0, 0);
    pthread_create(&id, NULL, ends_last, NULL);
    sem_wait(&in_sandbox);
    pthread_exit(NULL);
}
