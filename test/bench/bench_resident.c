/* Prints the resident memory of a program of THREADS threads that have allocated a little and now
 * wait: "RESIDENT ANONYMOUS" in KiB, as the kernel counts it, after SECONDS.
 * usage: bench_resident THREADS SECONDS
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PAIRS = 20000, STACK_BYTES = 256 << 10 };

static void *allocate_and_wait(void *unused) {
    (void)unused;
    for (int i = 0; i < PAIRS; i++) {
        void *p = malloc((size_t)(i % 500) + 1);
        __asm__ volatile("" : "+r"(p) : : "memory");
        free(p);
    }
    for (;;)
        pause();
    return NULL;
}

static long kib_of(const char *name) {
    char line[256];
    long kib = -1;
    FILE *const status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        if (strncmp(line, name, strlen(name)) == 0)
            kib = atol(line + strlen(name));
    if (status)
        fclose(status);
    return kib;
}

int main(int argc, char **argv) {
    pthread_t id;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    for (int i = 1; i < (argc > 1 ? atoi(argv[1]) : 10); i++) /* main is one of the threads */
        if (pthread_create(&id, &attributes, allocate_and_wait, NULL) != 0)
            return 1;
    usleep((useconds_t)((argc > 2 ? atof(argv[2]) : 2) * 1e6));
    printf("%ld %ld\n", kib_of("VmRSS:"), kib_of("RssAnon:"));
    fflush(stdout);
    return 0;
}
