/* Has threads with masks that no hook sees, or that were there before main.
 *
 * usage: masked MODE
 *   partly   a thread blocks SIGPROF and all real-time signals by an instruction of its own
 *   wholly   a thread blocks all signals so, including those of libc's; these two print the
 *            nanoseconds that the thread has used
 *   spared   threads that block every signal but SIGPROF, as HAProxy's
 *   main     the main thread works under the mask that it was started with
 *   ids      threads that block every signal work while the main thread changes the user. As root:
 *            prints which threads have not followed
 */
#define _GNU_SOURCE
#include "awaits_export.h"
#include "cpu_sample.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { THREADS = 3, CHANGES = 40, NOBODY = 65534, LINE_BYTES = 256 };

static atomic_bool over;

/* Burns time; a profiler that has exported it has seen the thread's mask. */
#define AWAITED_BURNER(name)                                                                       \
    NOIPA static void name(void) {                                                                 \
        WORK_FOR(25 * NS_PER_MS);                                                                  \
        await_export();                                                                            \
        WORK_FOR(25 * NS_PER_MS);                                                                  \
        TAKE_CPU_SAMPLE();                                                                         \
    }

AWAITED_BURNER(burn_partly)
AWAITED_BURNER(burn_wholly)
SAMPLED_BURNER(burn_spared, 40)
SAMPLED_BURNER(burn_main, 40)

static uint64_t bit(int number) {
    return UINT64_C(1) << (number - 1);
}

static void *partly(void *unused) {
    bare_sigprocmask(SIG_BLOCK, bit(SIGPROF) | UINT64_MAX << (SIGRTMIN - 1));
    burn_partly();
    printf("%llu\n", (unsigned long long)cpu_now());
    return unused;
}

static void *wholly(void *unused) {
    bare_sigprocmask(SIG_BLOCK, UINT64_MAX);
    burn_wholly();
    printf("%llu\n", (unsigned long long)cpu_now());
    atomic_store(&over, true);
    return unused;
}

static void *spared(void *unused) {
    burn_spared();
    return unused;
}

static void block_all_but(int number) {
    sigset_t set;
    sigfillset(&set);
    if (number)
        sigdelset(&set, number);
    pthread_sigmask(SIG_SETMASK, &set, NULL);
}

static void run_thread(void *(*run)(void *)) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, NULL) == 0)
        pthread_join(thread, NULL);
}

/* Takes samples while the thread works, which has none itself: without a sample there would be no
 * export. */
static void run_wholly(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, wholly, NULL) != 0)
        return;
    while (!atomic_load(&over))
        await_export();
    pthread_join(thread, NULL);
}

/* --- ids --- */

NOIPA static void burn_until_over(void) {
    while (!atomic_load(&over))
        WORK_FOR(NS_PER_MS);
}

static void *burn_as_others(void *unused) {
    block_all_but(0);
    burn_until_over();
    return unused;
}

static bool thread_has_user(const char *id, unsigned user) {
    char path[LINE_BYTES];
    char line[LINE_BYTES];
    unsigned real = 0;
    unsigned effective = user + 1;
    snprintf(path, sizeof path, "/proc/self/task/%s/status", id);
    FILE *const file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "Uid: %u %u", &real, &effective) == 2)
            break;
    if (file)
        fclose(file);
    return effective == user;
}

static void check_user(unsigned user) {
    DIR *const folder = opendir("/proc/self/task");
    struct dirent *entry;
    while (folder && (entry = readdir(folder)))
        if (entry->d_name[0] != '.' && !thread_has_user(entry->d_name, user))
            printf("a thread is not of user %u\n", user);
    if (folder)
        closedir(folder);
}

static void change_ids(void) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, burn_as_others, NULL) != 0)
            exit(1);
    WORK_FOR(10 * NS_PER_MS);
    for (int i = 0; i < CHANGES; i++) {
        const uid_t user = i % 2 ? 0 : NOBODY;
        if (seteuid(user) != 0)
            printf("seteuid\n");
        if (i % 10 < 2)
            check_user(user);
    }
    if (setuid(NOBODY) != 0)
        printf("setuid\n");
    check_user(NOBODY);
    WORK_FOR(10 * NS_PER_MS);
    atomic_store(&over, true);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

int main(int argc, char **argv) {
    const char *const mode = argc > 1 ? argv[1] : "";
    if (strcmp(mode, "partly") == 0)
        run_thread(partly);
    else if (strcmp(mode, "wholly") == 0)
        run_wholly();
    else if (strcmp(mode, "spared") == 0) {
        block_all_but(SIGPROF);
        run_thread(spared);
    } else if (strcmp(mode, "main") == 0)
        burn_main();
    else if (strcmp(mode, "ids") == 0)
        change_ids();
    else
        return 2;
    printf("done\n");
    return 0;
}
