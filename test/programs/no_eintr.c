/* Runs threads in every call that a signal can interrupt and SA_RESTART does not cover (signal(7)).
 *
 * usage: no_eintr idle|busy|masked|ring
 * idle: each thread waits in one call for nearly a second, twice, while another burns CPU. busy:
 * each thread works for 0.1 ms between waits of 0.2 ms, for a second.
 * masked: likewise, in threads that block every signal, and in more calls; not in io_uring_enter.
 * ring: such a thread in io_uring_enter.
 * Prints for each call whether there were any waits, and how many of them ended with EINTR.
 */
#define _GNU_SOURCE
#include "cpu_work.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { IDLE_US = 900000, BUSY_US = 200, IDLE_TURNS = 2, BUSY_TURNS = 2500, WORK_US = 100 };

static int wait_us;
static int turns;
static bool busy;
static bool masked;
static atomic_bool over;

static struct timespec in(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    t.tv_nsec += wait_us * 1000L;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}

static struct timespec for_so_long(void) {
    return (struct timespec){0, wait_us * 1000L};
}

static struct timeval for_so_many_us(void) {
    return (struct timeval){0, wait_us};
}

static int milliseconds(void) {
    return (wait_us + 999) / 1000;
}

static void time_out(int socket_, int option) {
    const struct timeval t = for_so_many_us();
    setsockopt(socket_, SOL_SOCKET, option, &t, sizeof t);
}

/* Holds the objects that a thread makes once, at its begin, for its call. */
struct things {
    int files[2];
    int id;
    sem_t semaphore;
    mqd_t queue;
    pthread_mutex_t mutex;
    pthread_cond_t condition;
    struct sockaddr_in address;
    pthread_t self; /* the waiting thread, for the one that wakes it */
    pthread_t waker;
    atomic_bool done;
};

/* --- the calls: each returns -1 with errno, or anything else --- */

static void make_pair(struct things *t) {
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, t->files) != 0)
        t->files[0] = -1;
    time_out(t->files[0], SO_RCVTIMEO);
    time_out(t->files[0], SO_SNDTIMEO);
}

static int in_poll(struct things *t) {
    struct pollfd file = {.fd = t->files[0], .events = POLLIN};
    return poll(&file, 1, milliseconds());
}

static int in_ppoll(struct things *t) {
    struct pollfd file = {.fd = t->files[0], .events = POLLIN};
    const struct timespec time = for_so_long();
    return ppoll(&file, 1, &time, NULL);
}

static int in_select(struct things *t) {
    struct timeval time = for_so_many_us();
    fd_set set;
    FD_ZERO(&set);
    FD_SET(t->files[0], &set);
    return select(t->files[0] + 1, &set, NULL, NULL, &time);
}

static int in_pselect(struct things *t) {
    const struct timespec time = for_so_long();
    (void)t;
    return pselect(0, NULL, NULL, NULL, &time, NULL);
}

static void make_epoll(struct things *t) {
    t->id = epoll_create1(EPOLL_CLOEXEC);
}

static int in_epoll(struct things *t) {
    struct epoll_event event;
    return epoll_wait(t->id, &event, 1, milliseconds());
}

static int in_nanosleep(struct things *t) {
    const struct timespec time = for_so_long();
    (void)t;
    return nanosleep(&time, NULL);
}

static int in_clock_nanosleep(struct things *t) {
    const struct timespec time = for_so_long();
    (void)t;
    errno = clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
    return errno ? -1 : 0;
}

static int in_recv(struct things *t) {
    char byte;
    return (int)recv(t->files[0], &byte, 1, 0);
}

static void make_full(struct things *t) {
    static char bytes[4096];
    make_pair(t);
    while (send(t->files[0], bytes, sizeof bytes, MSG_DONTWAIT) > 0)
        ;
}

static int in_send(struct things *t) {
    char byte = 0;
    return (int)send(t->files[0], &byte, 1, 0);
}

static void make_listener(struct things *t) {
    socklen_t size = sizeof t->address;
    t->address.sin_family = AF_INET;
    t->address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    t->files[0] = socket(AF_INET, SOCK_STREAM, 0);
    bind(t->files[0], (struct sockaddr *)&t->address, sizeof t->address);
    listen(t->files[0], 0);
    getsockname(t->files[0], (struct sockaddr *)&t->address, &size);
    time_out(t->files[0], SO_RCVTIMEO);
}

static int in_accept(struct things *t) {
    return accept(t->files[0], NULL, NULL);
}

/* Makes a listener whose queue is full, and accepts nothing: the next connection waits. */
static void make_full_listener(struct things *t) {
    make_listener(t);
    for (int i = 0; i < 2; i++) {
        const int other = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)!connect(other, (struct sockaddr *)&t->address, sizeof t->address);
    }
}

static int in_connect(struct things *t) {
    const int file = socket(AF_INET, SOCK_STREAM, 0);
    time_out(file, SO_SNDTIMEO);
    const int result = connect(file, (struct sockaddr *)&t->address, sizeof t->address);
    const int error = errno;
    close(file);
    errno = error;
    return result;
}

static void make_semaphore(struct things *t) {
    sem_init(&t->semaphore, 0, 0);
}

static int in_sem_timedwait(struct things *t) {
    const struct timespec until = in(CLOCK_REALTIME);
    return sem_timedwait(&t->semaphore, &until);
}

static int in_futex(struct things *t) {
    const struct timespec time = for_so_long();
    return (int)syscall(SYS_futex, &t->id, FUTEX_WAIT_PRIVATE, t->id, &time, NULL, 0);
}

static void make_condition(struct things *t) {
    pthread_mutex_init(&t->mutex, NULL);
    pthread_cond_init(&t->condition, NULL);
}

static int in_cond_timedwait(struct things *t) {
    const struct timespec until = in(CLOCK_REALTIME);
    pthread_mutex_lock(&t->mutex);
    errno = pthread_cond_timedwait(&t->condition, &t->mutex, &until);
    pthread_mutex_unlock(&t->mutex);
    return errno ? -1 : 0;
}

static int in_sigtimedwait(struct things *t) {
    const struct timespec time = for_so_long();
    sigset_t set;
    (void)t;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    return sigtimedwait(&set, NULL, &time);
}

static void make_sysv_semaphore(struct things *t) {
    t->id = semget(IPC_PRIVATE, 1, 0600);
}

static int in_semtimedop(struct things *t) {
    struct sembuf take = {.sem_op = -1};
    const struct timespec time = for_so_long();
    return semtimedop(t->id, &take, 1, &time);
}

static void remove_sysv_semaphore(struct things *t) {
    semctl(t->id, 0, IPC_RMID);
}

static void make_queue(struct things *t) {
    char name[32];
    const struct mq_attr attributes = {.mq_maxmsg = 1, .mq_msgsize = 8};
    snprintf(name, sizeof name, "/no_eintr.%d", (int)getpid());
    t->queue = mq_open(name, O_RDWR | O_CREAT, 0600, &attributes);
    mq_unlink(name);
}

static int in_mq_timedreceive(struct things *t) {
    char bytes[8];
    const struct timespec until = in(CLOCK_REALTIME);
    return (int)mq_timedreceive(t->queue, bytes, sizeof bytes, NULL, &until);
}

static void make_ring(struct things *t) {
    struct io_uring_params parameters = {0};
    t->id = (int)syscall(SYS_io_uring_setup, 4, &parameters);
}

static int in_io_uring(struct things *t) {
    struct __kernel_timespec time = {0, wait_us * 1000L};
    const struct io_uring_getevents_arg argument = {.ts = (uint64_t)(uintptr_t)&time};
    return (int)syscall(SYS_io_uring_enter, t->id, 0, 1,
                        IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG, &argument, sizeof argument);
}

/* --- more calls, for threads that block every signal --- */

static sigset_t every_signal(void) {
    sigset_t set;
    sigfillset(&set);
    return set;
}

static int in_masked_ppoll(struct things *t) {
    const struct timespec time = for_so_long();
    const sigset_t all = every_signal();
    (void)t;
    return ppoll(NULL, 0, &time, &all);
}

static int in_masked_pselect(struct things *t) {
    const struct timespec time = for_so_long();
    const sigset_t all = every_signal();
    (void)t;
    return pselect(0, NULL, NULL, NULL, &time, &all);
}

static int in_epoll_pwait(struct things *t) {
    struct epoll_event event;
    const sigset_t all = every_signal();
    return epoll_pwait(t->id, &event, 1, milliseconds(), &all);
}

static void make_timer(struct things *t) {
    t->id = timerfd_create(CLOCK_MONOTONIC, 0);
}

static int in_read(struct things *t) {
    const struct itimerspec once = {.it_value = for_so_long()};
    uint64_t expiries;
    timerfd_settime(t->id, 0, &once, NULL);
    return (int)read(t->id, &expiries, sizeof expiries);
}

static void wake_by(struct things *t, void *(*wake)(void *)) {
    t->self = pthread_self();
    pthread_create(&t->waker, NULL, wake, t);
}

static void join_waker(struct things *t) {
    atomic_store(&t->done, true);
    pthread_join(t->waker, NULL);
}

static void *wake_semaphore(void *argument) {
    struct things *const t = argument;
    struct sembuf give = {.sem_op = 1};
    while (!atomic_load(&t->done)) {
        usleep((useconds_t)wait_us);
        if (semctl(t->id, 0, GETVAL) == 0)
            semop(t->id, &give, 1);
    }
    return NULL;
}

static void make_woken_semaphore(struct things *t) {
    make_sysv_semaphore(t);
    wake_by(t, wake_semaphore);
}

static int in_semop(struct things *t) {
    struct sembuf take = {.sem_op = -1};
    return semop(t->id, &take, 1);
}

static void remove_woken_semaphore(struct things *t) {
    join_waker(t);
    remove_sysv_semaphore(t);
}

struct message {
    long type;
    char text[8];
};

static void *wake_queue(void *argument) {
    struct things *const t = argument;
    const struct message message = {.type = 1};
    struct msqid_ds state;
    while (!atomic_load(&t->done)) {
        usleep((useconds_t)wait_us);
        if (msgctl(t->id, IPC_STAT, &state) == 0 && state.msg_qnum == 0)
            msgsnd(t->id, &message, sizeof message.text, 0);
    }
    return NULL;
}

static void make_woken_queue(struct things *t) {
    t->id = msgget(IPC_PRIVATE, 0600);
    wake_by(t, wake_queue);
}

static int in_msgrcv(struct things *t) {
    struct message message;
    return (int)msgrcv(t->id, &message, sizeof message.text, 0, 0);
}

static void remove_woken_queue(struct things *t) {
    join_waker(t);
    msgctl(t->id, IPC_RMID, NULL);
}

static __thread volatile sig_atomic_t caught;

static void catch (int number) {
    (void)number;
    caught = 1;
}

static void *wake_by_signal(void *argument) {
    struct things *const t = argument;
    while (!atomic_load(&t->done)) {
        usleep((useconds_t)wait_us);
        pthread_kill(t->self, SIGUSR2);
    }
    return NULL;
}

static void make_suspended(struct things *t) {
    signal(SIGUSR2, catch);
    wake_by(t, wake_by_signal);
}

/* Counts as interrupted only where the signal has not come: sigsuspend always ends with EINTR. */
static int in_sigsuspend(struct things *t) {
    sigset_t others = every_signal();
    (void)t;
    sigdelset(&others, SIGUSR2);
    caught = 0;
    sigsuspend(&others);
    return caught ? 0 : -1;
}

/* --- */

enum kind { ANYWHERE, ONLY_MASKED, RING };

static struct call {
    const char *name;
    int (*wait)(struct things *);
    void (*make)(struct things *);
    void (*remove)(struct things *);
    int waits;
    int interrupted;
    enum kind kind;
} calls[] = {
    {"poll", in_poll, make_pair, NULL, 0, 0, ANYWHERE},
    {"ppoll", in_ppoll, make_pair, NULL, 0, 0, ANYWHERE},
    {"select", in_select, make_pair, NULL, 0, 0, ANYWHERE},
    {"pselect", in_pselect, NULL, NULL, 0, 0, ANYWHERE},
    {"epoll_wait", in_epoll, make_epoll, NULL, 0, 0, ANYWHERE},
    {"nanosleep", in_nanosleep, NULL, NULL, 0, 0, ANYWHERE},
    {"clock_nanosleep", in_clock_nanosleep, NULL, NULL, 0, 0, ANYWHERE},
    {"recv", in_recv, make_pair, NULL, 0, 0, ANYWHERE},
    {"send", in_send, make_full, NULL, 0, 0, ANYWHERE},
    {"accept", in_accept, make_listener, NULL, 0, 0, ANYWHERE},
    {"connect", in_connect, make_full_listener, NULL, 0, 0, ANYWHERE},
    {"sem_timedwait", in_sem_timedwait, make_semaphore, NULL, 0, 0, ANYWHERE},
    {"futex", in_futex, NULL, NULL, 0, 0, ANYWHERE},
    {"pthread_cond_timedwait", in_cond_timedwait, make_condition, NULL, 0, 0, ANYWHERE},
    {"sigtimedwait", in_sigtimedwait, NULL, NULL, 0, 0, ANYWHERE},
    {"semtimedop", in_semtimedop, make_sysv_semaphore, remove_sysv_semaphore, 0, 0, ANYWHERE},
    {"mq_timedreceive", in_mq_timedreceive, make_queue, NULL, 0, 0, ANYWHERE},
    {"read", in_read, make_timer, NULL, 0, 0, ONLY_MASKED},
    {"ppoll with a mask", in_masked_ppoll, NULL, NULL, 0, 0, ONLY_MASKED},
    {"pselect with a mask", in_masked_pselect, NULL, NULL, 0, 0, ONLY_MASKED},
    {"epoll_pwait", in_epoll_pwait, make_epoll, NULL, 0, 0, ONLY_MASKED},
    {"semop", in_semop, make_woken_semaphore, remove_woken_semaphore, 0, 0, ONLY_MASKED},
    {"msgrcv", in_msgrcv, make_woken_queue, remove_woken_queue, 0, 0, ONLY_MASKED},
    {"sigsuspend", in_sigsuspend, make_suspended, join_waker, 0, 0, ONLY_MASKED},
    {"io_uring_enter", in_io_uring, make_ring, NULL, 0, 0, RING},
};
enum { CALLS = sizeof calls / sizeof *calls };

static void block_every_signal(void) {
    const sigset_t all = every_signal();
    if (masked)
        pthread_sigmask(SIG_SETMASK, &all, NULL);
}

static void *wait_often(void *argument) {
    struct call *const call = argument;
    struct things things = {.files = {-1, -1}};
    block_every_signal();
    if (call->make)
        call->make(&things);
    for (int i = 0; i < turns && !atomic_load(&over); i++) {
        if (busy)
            WORK_FOR(WORK_US * NS_PER_US);
        const int result = call->wait(&things);
        call->waits++;
        call->interrupted += result < 0 && errno == EINTR;
    }
    if (call->remove)
        call->remove(&things);
    return NULL;
}

BURNER(burn_for_long, 1500)

static void *burn(void *unused) {
    block_every_signal();
    burn_for_long();
    atomic_store(&over, true);
    return unused;
}

static bool is_run(const struct call *call, bool ring) {
    if (ring)
        return call->kind == RING;
    return masked ? call->kind != RING : call->kind != ONLY_MASKED;
}

int main(int argc, char **argv) {
    pthread_t threads[CALLS + 1];
    const char *const mode = argc > 1 ? argv[1] : "idle";
    const bool ring = strcmp(mode, "ring") == 0;
    masked = ring || strcmp(mode, "masked") == 0;
    busy = masked || strcmp(mode, "busy") == 0;
    wait_us = busy ? BUSY_US : IDLE_US;
    turns = busy ? BUSY_TURNS : IDLE_TURNS;
    for (int i = 0; i < CALLS; i++)
        if (is_run(&calls[i], ring))
            pthread_create(&threads[i], NULL, wait_often, &calls[i]);
    pthread_create(&threads[CALLS], NULL, burn, NULL);
    for (int i = 0; i <= CALLS; i++)
        if (i == CALLS || is_run(&calls[i], ring))
            pthread_join(threads[i], NULL);
    for (int i = 0; i < CALLS; i++)
        if (is_run(&calls[i], ring))
            printf("%s: %s, %d interrupted\n", calls[i].name, calls[i].waits ? "waited" : "no wait",
                   calls[i].interrupted);
    return 0;
}
