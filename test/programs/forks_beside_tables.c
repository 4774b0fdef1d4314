/* Forks children that load a library, while threads register unwind tables and take them back, as
 * JIT compilers do. Prints how many children ended, up to the first that did not.
 *
 * usage: forks_beside_tables CHILDREN */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 2 };

/* Are libgcc's functions and ours. */
extern void __register_frame(const void *begin);
extern void __deregister_frame(const void *begin);

static _Atomic int is_over;

/* Registers a section that ends at once: the runtime keeps nothing of it, but is called all the
 * same. */
static void *compile(void *unused) {
    static const int section[4];
    (void)unused;
    while (!atomic_load(&is_over)) {
        __register_frame(section);
        __deregister_frame(section);
    }
    return NULL;
}

static int child_main(void) {
    alarm(20);
    return dlopen("libm.so.6", RTLD_NOW | RTLD_GLOBAL) ? 0 : 1;
}

int main(int argc, char **argv) {
    const int children = argc > 1 ? atoi(argv[1]) : 1;
    pthread_t threads[THREADS];
    int ended = 0;
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, compile, NULL);
    for (int i = 0; i < children && ended == i; i++) {
        int status = -1;
        const pid_t child = fork();
        if (child == 0)
            _exit(child_main());
        waitpid(child, &status, 0);
        ended += status == 0;
    }
    atomic_store(&is_over, 1);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("%d children ended\n", ended);
    return ended == children ? 0 : 1;
}
