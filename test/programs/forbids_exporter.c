/* Waits until a file exists, forks if requested, and ends. Before any other exit handler runs, it
 * makes the code of libotelprof-flush.so and of its libraries inaccessible: a thread that runs such
 * code then is killed.
 *
 * usage: forbids_exporter return|exit|child|thread FILE
 */
#define _GNU_SOURCE
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STATUS = 5 };

static int libraries;

static int forbid_code(struct dl_phdr_info *info, size_t size, void *unused) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    (void)size;
    (void)unused;
    if (libraries == 0 && !strstr(info->dlpi_name, "libotelprof-flush.so"))
        return 0;
    libraries++;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *const segment = &info->dlpi_phdr[i];
        const size_t start = (info->dlpi_addr + segment->p_vaddr) & -page;
        const size_t end = info->dlpi_addr + segment->p_vaddr + segment->p_memsz;
        if (segment->p_type == PT_LOAD && (segment->p_flags & PF_X) &&
            mprotect((void *)start, end - start, PROT_READ) != 0)
            _exit(3);
    }
    return 0;
}

static void forbid(void) {
    dl_iterate_phdr(forbid_code, NULL);
    printf("%d libraries\n", libraries);
}

static void *end_thread(void *unused) {
    exit(STATUS);
    return unused;
}

int main(int argc, char **argv) {
    pthread_t thread;
    if (argc != 3)
        return 2;
    const char *const how = argv[1];
    while (access(argv[2], F_OK) != 0)
        usleep(10000);
    if (strcmp(how, "child") == 0) {
        int status = -1;
        const pid_t child = fork();
        if (child > 0)
            return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status)
                                                                            : 4;
    }
    atexit(forbid);
    if (strcmp(how, "thread") == 0 && pthread_create(&thread, NULL, end_thread, NULL) == 0)
        pthread_join(thread, NULL);
    if (strcmp(how, "exit") == 0)
        exit(STATUS);
    return STATUS;
}
