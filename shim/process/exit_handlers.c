#include "exit_handlers.h"

#include <stdlib.h>

/* Replaces at_quick_exit(), whose statically linked part needs glibc: weak_glibc.h. */
int __cxa_at_quick_exit(void (*function)(void *), void *object);
extern void *__dso_handle __attribute__((visibility("hidden")));

static void (*end_process)(void);

static void end_quickly(void *unused) {
    (void)unused;
    end_process();
}

void exit_handlers_register(void (*end)(void)) {
    end_process = end;
    /* fails only without memory: then the last interval is lost */
    (void)atexit(end);
    (void)__cxa_at_quick_exit(end_quickly, __dso_handle);
}
