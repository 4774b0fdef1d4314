/* Cancels a thread in each call that is a cancellation point and may block (pthreads(7)).
 *
 * usage: cancels_waits
 * Prints for each call whether its thread was cancelled, and how many of its cleanup handlers have
 * run. Each thread publishes that it is about to call; once it sleeps in the kernel, it is
 * cancelled. */
#define _GNU_SOURCE
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

static int stream[2];
static int full[2];
static int listener;
static int epoll;
static int queue;
static mqd_t messages;
static pid_t child;
static sigset_t none;
static sigset_t user;
static char data[64];
static sem_t semaphore;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_t first;
static struct aiocb request;

static const struct timespec hour = {3600, 0};
static const struct iovec part = {data, 1};
static struct timespec until(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_sec += 3600;
    return t;
}

static void in_poll(void) {
    struct pollfd file = {stream[0], POLLIN, 0};
    poll(&file, 1, -1);
}
static void in_ppoll(void) {
    struct pollfd file = {stream[0], POLLIN, 0};
    ppoll(&file, 1, &hour, NULL);
}
static void in_select(void) {
    select(0, NULL, NULL, NULL, NULL);
}
static void in_pselect(void) {
    pselect(0, NULL, NULL, NULL, &hour, NULL);
}
static void in_epoll_wait(void) {
    struct epoll_event event;
    epoll_wait(epoll, &event, 1, -1);
}
static void in_epoll_pwait(void) {
    struct epoll_event event;
    epoll_pwait(epoll, &event, 1, -1, &none);
}
static void in_read(void) {
    (void)!read(stream[0], data, 1);
}
static void in_readv(void) {
    (void)!readv(stream[0], &part, 1);
}
static void in_write(void) {
    (void)!write(full[1], data, 1);
}
static void in_writev(void) {
    (void)!writev(full[1], &part, 1);
}
static void in_recv(void) {
    recv(stream[0], data, 1, 0);
}
static void in_recvfrom(void) {
    recvfrom(stream[0], data, 1, 0, NULL, NULL);
}
static void in_recvmsg(void) {
    struct msghdr message = {.msg_iov = (struct iovec *)&part, .msg_iovlen = 1};
    recvmsg(stream[0], &message, 0);
}
static void in_recvmmsg(void) {
    struct mmsghdr message = {{.msg_iov = (struct iovec *)&part, .msg_iovlen = 1}, 0};
    recvmmsg(stream[0], &message, 1, 0, NULL);
}
static void in_send(void) {
    send(full[1], data, 1, 0);
}
static void in_sendto(void) {
    sendto(full[1], data, 1, 0, NULL, 0);
}
static void in_sendmsg(void) {
    struct msghdr message = {.msg_iov = (struct iovec *)&part, .msg_iovlen = 1};
    sendmsg(full[1], &message, 0);
}
static void in_accept(void) {
    accept(listener, NULL, NULL);
}
static void in_accept4(void) {
    accept4(listener, NULL, NULL, 0);
}
static void in_nanosleep(void) {
    nanosleep(&hour, NULL);
}
static void in_clock_nanosleep(void) {
    clock_nanosleep(CLOCK_MONOTONIC, 0, &hour, NULL);
}
static void in_sleep(void) {
    sleep(3600);
}
static void in_usleep(void) {
    usleep(3600000000u);
}
static void in_pause(void) {
    pause();
}
static void in_sigsuspend(void) {
    sigsuspend(&none);
}
static void in_sigwait(void) {
    int number;
    sigwait(&user, &number);
}
static void in_sigwaitinfo(void) {
    sigwaitinfo(&user, NULL);
}
static void in_sigtimedwait(void) {
    sigtimedwait(&user, NULL, &hour);
}
static void unlock(void *unused) {
    (void)unused;
    pthread_mutex_unlock(&mutex);
}
static void in_pthread_cond_wait(void) {
    pthread_mutex_lock(&mutex);
    pthread_cleanup_push(unlock, NULL);
    for (;;)
        pthread_cond_wait(&cond, &mutex);
    pthread_cleanup_pop(0);
}
static void in_pthread_cond_timedwait(void) {
    const struct timespec end = until();
    pthread_mutex_lock(&mutex);
    pthread_cleanup_push(unlock, NULL);
    pthread_cond_timedwait(&cond, &mutex, &end);
    pthread_cleanup_pop(1);
}
static void in_cnd_wait(void) {
    pthread_mutex_lock(&mutex);
    pthread_cleanup_push(unlock, NULL);
    for (;;)
        cnd_wait((cnd_t *)&cond, (mtx_t *)&mutex);
    pthread_cleanup_pop(0);
}
static void in_sem_wait(void) {
    sem_wait(&semaphore);
}
static void in_sem_timedwait(void) {
    const struct timespec end = until();
    sem_timedwait(&semaphore, &end);
}
static void in_pthread_join(void) {
    pthread_join(first, NULL);
}
static void in_waitpid(void) {
    waitpid(child, NULL, 0);
}
static void in_waitid(void) {
    siginfo_t info;
    waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT);
}
static void in_wait4(void) {
    wait4(child, NULL, 0, NULL);
}
static void in_msgrcv(void) {
    msgrcv(queue, data, 8, 0, 0);
}
static void in_mq_receive(void) {
    (void)!mq_receive(messages, data, sizeof data, NULL);
}
static void in_mq_timedreceive(void) {
    const struct timespec end = until();
    (void)!mq_timedreceive(messages, data, sizeof data, NULL, &end);
}
static void in_aio_suspend(void) {
    const struct aiocb *const list[] = {&request};
    aio_suspend(list, 1, NULL);
}

#define CALL(name)                                                                                 \
    { #name, in_##name, 0, 0 }
static struct call {
    const char *name;
    void (*make)(void);
    atomic_int tid;
    atomic_int cleaned;
} calls[] = {
    CALL(poll),
    CALL(ppoll),
    CALL(select),
    CALL(pselect),
    CALL(epoll_wait),
    CALL(epoll_pwait),
    CALL(read),
    CALL(readv),
    CALL(write),
    CALL(writev),
    CALL(recv),
    CALL(recvfrom),
    CALL(recvmsg),
    CALL(recvmmsg),
    CALL(send),
    CALL(sendto),
    CALL(sendmsg),
    CALL(accept),
    CALL(accept4),
    CALL(nanosleep),
    CALL(clock_nanosleep),
    CALL(sleep),
    CALL(usleep),
    CALL(pause),
    CALL(sigsuspend),
    CALL(sigwait),
    CALL(sigwaitinfo),
    CALL(sigtimedwait),
    CALL(pthread_cond_wait),
    CALL(pthread_cond_timedwait),
    CALL(cnd_wait),
    CALL(sem_wait),
    CALL(sem_timedwait),
    CALL(pthread_join),
    CALL(waitpid),
    CALL(waitid),
    CALL(wait4),
    CALL(msgrcv),
    CALL(mq_receive),
    CALL(mq_timedreceive),
    CALL(aio_suspend),
};
enum { CALLS = sizeof calls / sizeof *calls };

static void prepare(void) {
    const struct mq_attr attributes = {.mq_maxmsg = 1, .mq_msgsize = 8};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int pipe_[2];
    char name[32];
    snprintf(name, sizeof name, "/cancels.%d", (int)getpid());
    messages = mq_open(name, O_RDWR | O_CREAT, 0600, &attributes);
    mq_unlink(name);
    queue = msgget(IPC_PRIVATE, 0600);
    epoll = epoll_create1(0);
    first = pthread_self();
    sem_init(&semaphore, 0, 0);
    sigemptyset(&none);
    sigemptyset(&user);
    sigaddset(&user, SIGUSR1);
    sigprocmask(SIG_BLOCK, &user, NULL);
    (void)!socketpair(AF_UNIX, SOCK_STREAM, 0, stream);
    (void)!socketpair(AF_UNIX, SOCK_STREAM, 0, full);
    while (send(full[1], data, sizeof data, MSG_DONTWAIT) > 0)
        ;
    listener = socket(AF_INET, SOCK_STREAM, 0);
    bind(listener, (struct sockaddr *)&address, sizeof address);
    listen(listener, 1);
    (void)!pipe(pipe_);
    request = (struct aiocb){.aio_fildes = pipe_[0], .aio_buf = data, .aio_nbytes = 1};
    aio_read(&request);
    child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
}

static void clean(void *argument) {
    struct call *const call = argument;
    atomic_fetch_add(&call->cleaned, 1);
}

static void *run(void *argument) {
    struct call *const call = argument;
    pthread_cleanup_push(clean, call);
    atomic_store(&call->tid, (int)gettid());
    for (;;)
        call->make();
    pthread_cleanup_pop(0);
    return NULL;
}

static int is_asleep(int tid) {
    char path[64];
    char text[256] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
    FILE *const file = fopen(path, "r");
    if (file) {
        (void)!fgets(text, sizeof text, file);
        fclose(file);
    }
    const char *const end = strrchr(text, ')');
    return end && end[2] == 'S';
}

int main(void) {
    pthread_t threads[CALLS];
    prepare();
    for (int i = 0; i < CALLS; i++)
        pthread_create(&threads[i], NULL, run, &calls[i]);
    for (int i = 0; i < CALLS; i++) {
        void *result = NULL;
        for (int tries = 0; tries < 1000 && !(calls[i].tid && is_asleep(calls[i].tid)); tries++)
            usleep(1000);
        pthread_cancel(threads[i]);
        pthread_join(threads[i], &result);
        printf("%s %s, %d cleaned\n", calls[i].name,
               result == PTHREAD_CANCELED ? "cancelled" : "came back", calls[i].cleaned);
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    msgctl(queue, IPC_RMID, NULL);
    return 0;
}
