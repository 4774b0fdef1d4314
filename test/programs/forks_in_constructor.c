// flags: -rdynamic
/* Forks while another thread is inside dlopen(), in the constructor of the library that it loads.
 * The child works for a while and exits; so does the parent, which prints the child's status.
 *
 * usage: forks_in_constructor PATH_OF_slow_constructor.so */
#define _GNU_SOURCE
#include "cpu_work.h"

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

sem_t loader_is_held;   /* posted by the constructor */
sem_t loader_may_go_on; /* waited for by the constructor */

BURNER(burns, 200)

static void *load(void *path) {
    return dlopen(path, RTLD_NOW);
}

int main(int argc, char **argv) {
    pthread_t id;
    int status = -1;
    if (argc < 2 || sem_init(&loader_is_held, 0, 0) != 0 || sem_init(&loader_may_go_on, 0, 0) != 0)
        return 1;
    burns(); /* the exporter is loaded meanwhile */
    if (pthread_create(&id, NULL, load, argv[1]) != 0)
        return 1;
    sem_wait(&loader_is_held);
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);
        burns();
        exit(3);
    }
    waitpid(child, &status, 0);
    sem_post(&loader_may_go_on);
    pthread_join(id, NULL);
    burns();
    printf("ended with %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    return 0;
}
