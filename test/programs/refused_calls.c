/* Makes every call of shim/hooks/blocking_calls.def, most of them with arguments for which they
 * return at once. Prints each result, and errno.
 *
 * usage: refused_calls */
#define _GNU_SOURCE
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <termios.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

ssize_t __read_chk(int, void *, size_t, size_t);
ssize_t __pread_chk(int, void *, size_t, off_t, size_t);
ssize_t __pread64_chk(int, void *, size_t, off_t, size_t);
ssize_t __recv_chk(int, void *, size_t, size_t, int);
ssize_t __recvfrom_chk(int, void *, size_t, size_t, int, struct sockaddr *, socklen_t *);
int __poll_chk(struct pollfd *, nfds_t, int, size_t);
int __ppoll_chk(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *, size_t);

#define SHOW(call)                                                                                 \
    do {                                                                                           \
        errno = 7;                                                                                 \
        const long answer_ = (long)(call);                                                         \
        printf("%s: %ld %d\n", #call, answer_, errno);                                             \
    } while (0)

enum { NONE = -1 };

static struct pollfd *volatile nowhere = (struct pollfd *)8;
static const struct aiocb *const *volatile no_requests;
static char data[64];
static const struct iovec parts[2] = {{data, 1}, {data, 1}};
static const struct timespec never = {0, -1};
static const struct timespec past = {1, 0};
static const struct timespec none = {0, 0};
static struct timespec left;
static sigset_t user;

static void show_polls(void) {
    struct timeval wrong = {-1, 0};
    struct epoll_event event;
    SHOW(poll(nowhere, 1, 0));
    SHOW(__poll_chk(nowhere, 1, 0, 8));
    SHOW(ppoll(nowhere, 1, &none, NULL));
    SHOW(__ppoll_chk(nowhere, 1, &none, NULL, 8));
    SHOW(select(0, NULL, NULL, NULL, &wrong));
    SHOW(pselect(0, NULL, NULL, NULL, &never, &user));
    SHOW(epoll_wait(NONE, &event, 1, 0));
    SHOW(epoll_pwait(NONE, &event, 1, 0, &user));
    SHOW(epoll_pwait2(NONE, &event, 1, &none, &user));
}

static void show_files(void) {
    off_t from = 0;
    off_t to = 0;
    SHOW(read(NONE, data, 1));
    SHOW(__read_chk(NONE, data, 1, 1));
    SHOW(readv(NONE, parts, 2));
    SHOW(pread(NONE, data, 1, 5));
    SHOW(pread64(NONE, data, 1, 5));
    SHOW(__pread_chk(NONE, data, 1, 5, 1));
    SHOW(__pread64_chk(NONE, data, 1, 5, 1));
    SHOW(preadv(NONE, parts, 2, 5));
    SHOW(preadv64(NONE, parts, 2, 5));
    SHOW(preadv2(NONE, parts, 2, 5, 0));
    SHOW(preadv64v2(NONE, parts, 2, 5, 0));
    SHOW(write(NONE, data, 1));
    SHOW(writev(NONE, parts, 2));
    SHOW(pwrite(NONE, data, 1, 5));
    SHOW(pwrite64(NONE, data, 1, 5));
    SHOW(pwritev(NONE, parts, 2, 5));
    SHOW(pwritev64(NONE, parts, 2, 5));
    SHOW(pwritev2(NONE, parts, 2, 5, 0));
    SHOW(pwritev64v2(NONE, parts, 2, 5, 0));
    SHOW(sendfile(NONE, NONE, &from, 1));
    SHOW(sendfile64(NONE, NONE, &from, 1));
    SHOW(splice(NONE, &from, NONE, &to, 1, 0));
    SHOW(tee(NONE, NONE, 1, 0));
    SHOW(vmsplice(NONE, parts, 2, 0));
    SHOW(copy_file_range(NONE, &from, NONE, &to, 1, 0));
    SHOW(tcdrain(NONE));
    SHOW(aio_suspend(no_requests, -1, &none));
    SHOW(aio_suspend64((void *)no_requests, -1, &none));
}

/* Makes calls that succeed: the values of all arguments must arrive, and the data. */
static void show_data(void) {
    int ends[2];
    char bytes[8] = "";
    off_t at = 1;
    FILE *const file = tmpfile();
    const int number = fileno(file);
    const struct iovec one[2] = {{bytes, 2}, {bytes + 2, 2}};
    SHOW(pwrite(number, "abcdef", 6, 0));
    SHOW(pread(number, bytes, 2, 3));
    SHOW(preadv2(number, one, 2, 2, 0));
    SHOW(bytes[0] * 256 + bytes[3]);
    SHOW(pipe(ends));
    SHOW(splice(number, &at, ends[1], NULL, 3, SPLICE_F_NONBLOCK));
    SHOW(at);
    SHOW(read(ends[0], bytes, 8));
    SHOW(bytes[0] * 256 + bytes[2]);
    fclose(file);
}

static void show_sockets(void) {
    struct sockaddr address = {0};
    socklen_t size = sizeof address;
    struct msghdr message = {0};
    struct mmsghdr messages[1] = {{{0}, 0}};
    struct addrinfo *found = NULL;
    int ends[2];
    SHOW(recv(NONE, data, 1, 0));
    SHOW(__recv_chk(NONE, data, 1, 1, 0));
    SHOW(recvfrom(NONE, data, 1, 0, &address, &size));
    SHOW(__recvfrom_chk(NONE, data, 1, 1, 0, &address, &size));
    SHOW(recvmsg(NONE, &message, 0));
    SHOW(recvmmsg(NONE, messages, 1, 0, &left));
    SHOW(send(NONE, data, 1, 0));
    SHOW(sendto(NONE, data, 1, 0, &address, size));
    SHOW(sendmsg(NONE, &message, 0));
    SHOW(sendmmsg(NONE, messages, 1, 0));
    SHOW(connect(NONE, &address, size));
    SHOW(getaddrinfo(NULL, NULL, NULL, &found));
    SHOW(accept(NONE, &address, &size));
    SHOW(accept4(NONE, &address, &size, 0));
    SHOW(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends));
    SHOW(sendto(ends[0], "abc", 3, MSG_DONTWAIT, NULL, 0));
    SHOW(recvfrom(ends[1], data, 8, MSG_DONTWAIT, &address, &size));
}

static void nothing(int number) {
    (void)number;
}

static void show_sleeps(void) {
    siginfo_t info;
    int number = 0;
    sigset_t others;
    sigemptyset(&others);
    signal(SIGUSR1, nothing);
    SHOW(nanosleep(&never, &left));
    SHOW(clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &past, NULL));
    SHOW(clock_nanosleep(CLOCK_MONOTONIC, 0, &never, &left));
    SHOW(sleep(0));
    SHOW(usleep(0));
    SHOW(thrd_sleep(&never, &left));
    SHOW(sigtimedwait(&user, &info, &none));
    SHOW(raise(SIGUSR1));
    SHOW(sigwait(&user, &number));
    SHOW(number);
    SHOW(raise(SIGUSR1));
    SHOW(sigwaitinfo(&user, &info));
    SHOW(raise(SIGUSR1));
    SHOW(sigsuspend(&others));
}

/* Is ended by a handler. The signal comes again, because the first may come too early. */
static void show_pause(void) {
    struct sigaction action = {.sa_handler = nothing};
    const struct itimerval often = {{0, 20000}, {0, 20000}};
    const struct itimerval off = {{0, 0}, {0, 0}};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    SHOW(pause());
    setitimer(ITIMER_REAL, &off, NULL);
}

static void *end(void *argument) {
    return argument;
}

static int end_with(void *argument) {
    return *(const int *)argument;
}

static void show_threads(void) {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
    pthread_barrier_t barrier;
    pthread_t thread;
    thrd_t other;
    sem_t semaphore;
    void *result = NULL;
    int five = 5;
    int number = 0;
    pthread_barrier_init(&barrier, NULL, 1);
    sem_init(&semaphore, 0, 1);
    pthread_mutex_lock(&mutex);
    SHOW(pthread_cond_timedwait(&cond, &mutex, &past));
    SHOW(pthread_cond_timedwait(&cond, &mutex, &never));
    SHOW(pthread_cond_clockwait(&cond, &mutex, CLOCK_MONOTONIC, &past));
    SHOW(cnd_timedwait((cnd_t *)&cond, (mtx_t *)&mutex, &past));
    SHOW(pthread_mutex_unlock(&mutex));
    SHOW(sem_wait(&semaphore));
    SHOW(sem_timedwait(&semaphore, &past));
    SHOW(sem_clockwait(&semaphore, CLOCK_MONOTONIC, &past));
    SHOW(pthread_barrier_wait(&barrier));
    SHOW(pthread_join(pthread_self(), NULL));
    SHOW(pthread_timedjoin_np(pthread_self(), NULL, &past));
    SHOW(pthread_clockjoin_np(pthread_self(), NULL, CLOCK_MONOTONIC, &past));
    pthread_create(&thread, NULL, end, &five);
    SHOW(pthread_join(thread, &result));
    SHOW(result == &five);
    thrd_create(&other, end_with, &five);
    SHOW(thrd_join(other, &number));
    SHOW(number);
}

struct waiting {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    int turn;
};

static void *take_turns(void *argument) {
    struct waiting *const waiting = argument;
    pthread_mutex_lock(&waiting->mutex);
    waiting->turn = 1;
    pthread_cond_signal(&waiting->cond);
    while (waiting->turn == 1)
        cnd_wait((cnd_t *)&waiting->cond, (mtx_t *)&waiting->mutex);
    pthread_mutex_unlock(&waiting->mutex);
    return NULL;
}

/* Makes the waits for a condition without a timeout: two threads signal to each other. */
static void show_turns(void) {
    static struct waiting waiting = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};
    pthread_t thread;
    long last = 0;
    pthread_mutex_lock(&waiting.mutex);
    pthread_create(&thread, NULL, take_turns, &waiting);
    while (waiting.turn == 0)
        last = pthread_cond_wait(&waiting.cond, &waiting.mutex);
    SHOW(last);
    waiting.turn = 2;
    pthread_cond_signal(&waiting.cond);
    pthread_mutex_unlock(&waiting.mutex);
    SHOW(pthread_join(thread, NULL));
}

static void show_processes(void) {
    char *const words[] = {(char *)"true", NULL};
    pid_t child;
    struct rusage usage;
    siginfo_t info;
    int status = 0;
    FILE *pipe_;
    SHOW(wait(&status));
    SHOW(waitpid(-1, &status, WNOHANG));
    SHOW(waitid(P_ALL, 0, &info, WEXITED | WNOHANG));
    SHOW(wait3(&status, WNOHANG, &usage));
    SHOW(wait4(-1, &status, WNOHANG, &usage));
    SHOW(posix_spawn(&child, "/nonexistent", NULL, NULL, words, environ));
    SHOW(posix_spawnp(&child, "nonexistent-program", NULL, NULL, words, environ));
    SHOW(system("exit 3"));
    pipe_ = popen("exit 4", "r");
    SHOW(pclose(pipe_));
}

static void show_locks_of_files(void) {
    struct flock lock = {.l_type = F_WRLCK};
    FILE *const file = tmpfile();
    const int number = fileno(file);
    SHOW(fsync(NONE));
    SHOW(fdatasync(NONE));
    SHOW(syncfs(NONE));
    SHOW(sync_file_range(NONE, 0, 1, 0));
    SHOW(msync((void *)1, 1, MS_SYNC));
    SHOW(fallocate(NONE, 0, 0, 1));
    SHOW(fallocate64(NONE, 0, 0, 1));
    SHOW(flock(NONE, LOCK_EX));
    SHOW(lockf(NONE, F_LOCK, 1));
    SHOW(lockf64(NONE, F_LOCK, 1));
    SHOW(fcntl(NONE, F_SETLKW, &lock));
    SHOW(fcntl64(NONE, F_SETLKW, &lock));
    SHOW(fcntl(number, F_SETLKW, &lock));
    lock.l_type = F_UNLCK;
    SHOW(fcntl(number, F_SETLKW, &lock));
    SHOW(fcntl(number, F_OFD_SETLKW, &lock));
    SHOW(fcntl(number, F_GETFD));
    SHOW(fcntl(number, F_SETFD, FD_CLOEXEC));
    SHOW(fcntl64(number, F_GETFD));
    fclose(file);
}

static void show_queues(void) {
    struct sembuf take = {.sem_op = -1};
    SHOW(mq_send(NONE, data, 1, 0));
    SHOW(mq_timedsend(NONE, data, 1, 0, &past));
    SHOW(mq_receive(NONE, data, 1, NULL));
    SHOW(mq_timedreceive(NONE, data, 1, NULL, &past));
    SHOW(msgsnd(NONE, data, 1, 0));
    SHOW(msgrcv(NONE, data, 1, 3, 0));
    SHOW(semop(NONE, &take, 1));
    SHOW(semtimedop(NONE, &take, 1, &none));
}

static void show_numbers(void) {
    static int word = 2;
    SHOW(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 3, NULL, NULL, 0));
    SHOW(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 2, &none, NULL, 0));
    SHOW(syscall(SYS_futex, &word, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, 2, &past, NULL, 1));
    SHOW(syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0));
    SHOW(syscall(449, NULL, 0, 8, NULL, 0));          /* futex_waitv */
    SHOW(syscall(441, NONE, data, 1, NULL, NULL, 0)); /* epoll_pwait2 */
    SHOW(syscall(SYS_getpid) == getpid());
    SHOW(syscall(-1));
}

int main(void) {
    setvbuf(stdout, NULL, _IOFBF, 1 << 16);
    sigemptyset(&user);
    sigaddset(&user, SIGUSR1);
    sigprocmask(SIG_BLOCK, &user, NULL);
    show_polls();
    show_files();
    show_data();
    show_sockets();
    show_sleeps();
    show_pause();
    show_threads();
    show_turns();
    show_processes();
    show_locks_of_files();
    show_queues();
    show_numbers();
    return 0;
}
