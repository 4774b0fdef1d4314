/* Makes, sets, reads and deletes pthread keys all the time, with destructors: a value that a thread
 * has set is there when it is read again, whatever interrupts the thread (trap 8). The bounds of
 * its stack are read too, which takes a lock of the thread's and allocates (trap 12). */
#define _GNU_SOURCE
#include "torture.h"

enum { KEYS = 40, SHORT_THREADS = 8 };

static atomic_nanoseconds destroyed;

WORK(work_beside_keys)

static void on_destroy(void *value) {
    free(value);
    destroyed++;
}

static void one_round(intptr_t mark) {
    pthread_key_t keys[KEYS];
    for (int i = 0; i < KEYS; i++)
        check(pthread_key_create(&keys[i], NULL) == 0, "pthread_key_create");
    for (int turn = 0; turn < 20; turn++) {
        for (intptr_t i = 0; i < KEYS; i++)
            pthread_setspecific(keys[i], (void *)(mark + i + turn));
        for (intptr_t i = 0; i < KEYS; i++)
            check(pthread_getspecific(keys[i]) == (void *)(mark + i + turn), "a key's value");
    }
    for (int i = 0; i < KEYS; i++)
        pthread_key_delete(keys[i]);
}

static void ask_for_bounds(void) {
    pthread_attr_t attributes;
    void *low = NULL;
    size_t size = 0;
    check(pthread_getattr_np(pthread_self(), &attributes) == 0, "pthread_getattr_np");
    pthread_attr_getstack(&attributes, &low, &size);
    check((uintptr_t)&size - (uintptr_t)low < size, "the stack's bounds");
    pthread_attr_destroy(&attributes);
}

static pthread_key_t lasting;

static void *short_thread(void *unused) {
    pthread_setspecific(lasting, malloc(100));
    return unused;
}

static void *torture(void *number) {
    for (int i = 0; time_left(); i++) {
        one_round(1 + (intptr_t)number * 1000000 + i);
        ask_for_bounds();
        if (i % 100 == 0)
            work_beside_keys(2000);
        if (i % 500 == 0 && number == NULL) {
            const uint64_t before = destroyed;
            run_threads(short_thread, SHORT_THREADS);
            check(destroyed == before + SHORT_THREADS, "every destructor ran");
        }
    }
    return NULL;
}

int main(int argc, char **argv) {
    torture_begin(argc, argv);
    pthread_key_create(&lasting, on_destroy);
    run_threads(torture, THREADS);
    SHARE(work_beside_keys);
    return torture_end();
}
