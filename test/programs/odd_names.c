/* Has threads whose names are markup, control terminals, or are no UTF-8. They burn CPU time in
 * four functions, to which a test gives other names, until a file exists: odd_names FILE. */
/* flags: -lpthread */
#include <pthread.h>
#include <sys/prctl.h>
#include <unistd.h>

static const char *until;
static volatile unsigned long result;

#define BURNS(name)                                                                                \
    __attribute__((noinline)) void name(void) {                                                    \
        for (unsigned long i = 0; i < 2000000; i++)                                                \
            result += i * i;                                                                       \
    }
BURNS(first)
BURNS(second)
BURNS(third)
BURNS(fourth)

static void *burns(void *name) {
    prctl(PR_SET_NAME, name);
    while (access(until, F_OK)) {
        first();
        second();
        third();
        fourth();
    }
    return NULL;
}

int main(int argc, char **argv) {
    static char *const names[] = {"</script><b>x", "\x1b[2J\xe2\x80\xae", "__proto__",
                                  "\xff\xfe\xed\xa0\x80"};
    enum { THREADS = sizeof(names) / sizeof(names[0]) };
    pthread_t threads[THREADS];
    if (argc != 2)
        return 2;
    until = argv[1];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, burns, names[i]);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return 7;
}
