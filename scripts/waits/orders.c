/* Is a program that is slow, while its processors are idle: what does it wait for?
 *
 * Workers take orders and write each into a journal. An archiver sends the journal to a backup
 * server every now and then, and holds the journal's lock while it waits for the response. A pool
 * waits for jobs that never come, as pools do.
 *
 *   orders [SECONDS]
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    WORKERS = 4,
    POOL = 3,
    RESPONSE_MS = 40,
    BETWEEN_MS = 10,
    PRICES = 200000,
    LEAST_ARCHIVES = 30
};

static pthread_mutex_t journal_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long journal[1024];
static pthread_mutex_t jobs_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t jobs_come = PTHREAD_COND_INITIALIZER;
static atomic_ulong orders;
static atomic_ulong archives;
static atomic_bool closed;
static int backup[2]; /* a connection: our end, the server's */

static void pause_ms(long ms) {
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

static double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* --- workers --- */

__attribute__((noinline)) static unsigned long price_order(unsigned long order) {
    for (int i = 0; i < PRICES; i++)
        order = order * 6364136223846793005u + 1442695040888963407u;
    return order;
}

__attribute__((noinline)) static void write_journal(unsigned long price) {
    pthread_mutex_lock(&journal_lock);
    journal[atomic_fetch_add(&orders, 1) % 1024] = price;
    pthread_mutex_unlock(&journal_lock);
}

static void *worker(void *name) {
    pthread_setname_np(pthread_self(), name);
    for (unsigned long order = 0; !closed; order++)
        write_journal(price_order(order));
    return NULL;
}

/* --- the archiver, and its server --- */

__attribute__((noinline)) static void ask_backup(void) {
    char answer;
    if (send(backup[0], journal, sizeof journal, 0) < 0 || recv(backup[0], &answer, 1, 0) < 1)
        abort();
}

__attribute__((noinline)) static void archive(void) {
    pthread_mutex_lock(&journal_lock);
    ask_backup(); /* this is the mistake: a copy of the journal would do */
    pthread_mutex_unlock(&journal_lock);
    archives++;
}

static void *archiver(void *name) {
    pthread_setname_np(pthread_self(), name);
    for (; !closed; pause_ms(BETWEEN_MS))
        archive();
    shutdown(backup[0], SHUT_WR);
    return NULL;
}

static void *backup_server(void *name) {
    static char received[sizeof journal];
    pthread_setname_np(pthread_self(), name);
    while (recv(backup[1], received, sizeof received, MSG_WAITALL) > 0) {
        pause_ms(RESPONSE_MS);
        if (send(backup[1], "k", 1, 0) < 0)
            abort();
    }
    return NULL;
}

/* --- a pool --- */

static void *pool(void *name) {
    pthread_setname_np(pthread_self(), name);
    pthread_mutex_lock(&jobs_lock);
    while (!closed)
        pthread_cond_wait(&jobs_come, &jobs_lock);
    pthread_mutex_unlock(&jobs_lock);
    return NULL;
}

int main(int argc, char **argv) {
    static char names[WORKERS][16];
    pthread_t threads[WORKERS + POOL + 2];
    int count = 0;
    unsigned seconds = argc > 1 ? (unsigned)atoi(argv[1]) : 3;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, backup) != 0)
        return 1;
    for (int i = 0; i < WORKERS; i++) {
        snprintf(names[i], sizeof names[i], "worker-%d", i);
        pthread_create(&threads[count++], NULL, worker, names[i]);
    }
    pthread_create(&threads[count++], NULL, archiver, "archiver");
    pthread_create(&threads[count++], NULL, backup_server, "backup");
    for (int i = 0; i < POOL; i++)
        pthread_create(&threads[count++], NULL, pool, "pool");
    const double begin = seconds_now();
    sleep(seconds);
    while (archives < LEAST_ARCHIVES) /* on a busy machine */
        pause_ms(100);
    closed = true;
    pthread_mutex_lock(&jobs_lock);
    pthread_cond_broadcast(&jobs_come);
    pthread_mutex_unlock(&jobs_lock);
    while (count > 0)
        pthread_join(threads[--count], NULL);
    printf("%.0f orders a second\n", (double)orders / (seconds_now() - begin));
    return 0;
}
