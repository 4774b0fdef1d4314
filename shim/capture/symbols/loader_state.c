#include "loader_state.h"

#include "dynamic_object.h"
#include "kernel/first_page.h"
#include "kernel/signals_blocked.h"
#include "kernel/wait.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stddef.h>
#include <unistd.h>

/* declared weak, because musl does not define it */
#pragma weak _r_debug

enum {
    EXTENDED_VERSION = 2
}; /* r_version of struct r_debug: glibc 2.35 sets it, and later versions if there are namespaces */

enum { VISIT_ROUNDS = 2000 }; /* a visit waits for the locks for at most so many rounds of wait.h */

/* Repeats struct r_debug_extended of glibc's <link.h> for older headers. */
struct debug_state {
    struct r_debug base;
    /* the state of the next namespace; valid from EXTENDED_VERSION on */
    const struct debug_state *next;
};

IN_FIRST_PAGE static struct {
    const struct debug_state *debug; /* the loader's own state, of the first namespace */
    pthread_mutex_t *list;           /* held by dl_iterate_phdr(); NULL: not known */
    pthread_mutex_t *main;           /* held by dlopen(), dlclose() and dlsym() */
} loader;                            /* written once, before there is a second thread */

/* --- finding the locks --- */

/* Returns the loader's own state. An executable may have a copy of _r_debug, made at relocation;
 * its dynamic section leads to the original. */
static const struct debug_state *debug_of_loader(void) {
    const struct link_map *const executable = &_r_debug ? _r_debug.r_map : NULL;
    if (!executable)
        return NULL;
    const struct dynamic_object dynamic = dynamic_object_of_map(executable);
    return (const void *)dynamic_number(&dynamic, DT_DEBUG);
}

static bool is_lock(const pthread_mutex_t *mutex) {
    return mutex->__data.__kind == PTHREAD_MUTEX_RECURSIVE_NP;
}

/* Tests the owner first, because that rules out nearly all words that are no lock. */
static bool is_held_by(const pthread_mutex_t *mutex, int tid) {
    return mutex->__data.__owner == tid && is_lock(mutex) && mutex->__data.__count == 1 &&
           mutex->__data.__lock != 0;
}

static bool mutex_is_free(const pthread_mutex_t *mutex) {
    return is_lock(mutex) && mutex->__data.__owner == 0 && mutex->__data.__count == 0 &&
           mutex->__data.__lock == 0;
}

/* Searches for the loader's locks. In glibc's struct rtld_global the main lock lies right before
 * the lock of the list: the words there are taken as the main lock if they form a free lock of the
 * same kind. Both locks are in the second half of the struct, so the search runs from its end. */
static void loader_search_locks(uintptr_t start, uintptr_t end, int tid) {
    const size_t step = _Alignof(pthread_mutex_t);
    const size_t size = sizeof(pthread_mutex_t);
    const uintptr_t first = (start + size + step - 1) & -step;
    for (uintptr_t at = (end - size) & -step; at >= first; at -= step) {
        pthread_mutex_t *const mutex = (void *)at;
        if (!is_held_by(mutex, tid) || !mutex_is_free(mutex - 1))
            continue;
        loader.list = mutex;
        loader.main = mutex - 1;
        return;
    }
}

/* Returns the end of that part of the loader's data that it has made read-only. */
static uintptr_t relro_end(const struct dl_phdr_info *info) {
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_GNU_RELRO)
            return info->dlpi_addr + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
    return 0;
}

static int search_loader(struct dl_phdr_info *info, size_t size, void *unused) {
    (void)size;
    (void)unused;
    if (info->dlpi_addr != loader.debug->base.r_ldbase)
        return 0;
    const uintptr_t first = relro_end(info);
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *const segment = &info->dlpi_phdr[i];
        const uintptr_t start = info->dlpi_addr + segment->p_vaddr;
        const uintptr_t end = start + segment->p_memsz;
        if (segment->p_type == PT_LOAD && (segment->p_flags & PF_W))
            loader_search_locks(start < first && first < end ? first : start, end, getpid());
    }
    return 1;
}

void loader_state_learn(void) {
    loader.debug = debug_of_loader();
    if (loader.debug)
        dl_iterate_phdr(search_loader, NULL);
}

bool loader_state_is_known(void) {
    return loader.list != NULL;
}

/* --- queries --- */

static uint32_t user_of(const pthread_mutex_t *lock) {
    const int owner = __atomic_load_n(&lock->__data.__owner, __ATOMIC_RELAXED);
    if (owner)
        return (uint32_t)owner;
    return __atomic_load_n(&lock->__data.__lock, __ATOMIC_RELAXED) ? LOADER_USER_UNKNOWN : 0;
}

uint32_t loader_state_user(void) {
    if (!loader_state_is_known())
        return LOADER_USER_UNKNOWN;
    const uint32_t user = user_of(loader.main);
    return user ? user : user_of(loader.list);
}

bool loader_state_is_used_by(uint32_t tid) {
    return loader_state_is_known() && (user_of(loader.main) == tid || user_of(loader.list) == tid);
}

static bool is_of_another(uint32_t user, uint32_t tid) {
    return user != 0 && user != LOADER_USER_UNKNOWN && user != tid;
}

bool loader_state_is_used_beside(uint32_t tid) {
    return loader_state_is_known() &&
           (is_of_another(user_of(loader.main), tid) || is_of_another(user_of(loader.list), tid));
}

/* Takes the loader's locks by glibc's own functions. The list's lock is taken, too, because a
 * program's callback of dl_iterate_phdr() holds it and may wait for the main lock (dladdr() in the
 * callback). If this thread held the main lock and waited for the list's in dl_iterate_phdr(), the
 * two would wait for each other. Both locks are recursive. */
bool loader_state_try_enter(void) {
    if (!loader_state_is_known() || pthread_mutex_trylock(loader.main) != 0)
        return false;
    if (pthread_mutex_trylock(loader.list) == 0)
        return true;
    pthread_mutex_unlock(loader.main);
    return false;
}

void loader_state_leave(void) {
    pthread_mutex_unlock(loader.list);
    pthread_mutex_unlock(loader.main);
}

static bool loader_is_entered(void *unused) {
    (void)unused;
    return loader_state_try_enter();
}

void loader_state_visit(int (*visit)(struct dl_phdr_info *, size_t, void *), void *arg) {
    const int saved = errno;
    signal_mask before;
    const bool blocked = signals_block(&before);
    const bool entered =
        loader_state_is_known() && wait_for_rounds(loader_is_entered, NULL, VISIT_ROUNDS);
    dl_iterate_phdr(visit, arg);
    if (entered)
        loader_state_leave();
    if (blocked)
        signals_restore(&before);
    errno = saved;
}

static const struct debug_state *next_namespace(const struct debug_state *state) {
    return state->base.r_version >= EXTENDED_VERSION ? state->next : NULL;
}

bool loader_state_has_namespaces(void) {
    const struct debug_state *state = loader.debug;
    while (state && (state = next_namespace(state)))
        if (state->base.r_map)
            return true;
    return false;
}

bool loader_state_is_whole(void) {
    if (loader_state_is_known() && user_of(loader.list))
        return false;
    const struct debug_state *state = loader.debug;
    for (; state; state = next_namespace(state))
        if (state->base.r_state != RT_CONSISTENT)
            return false;
    return loader.debug != NULL;
}
