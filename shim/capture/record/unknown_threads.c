#include "unknown_threads.h"

#include "arch_memory.h"
#include "clock.h"
#include "helper_name.h"
#include "kernel/profiler_memory.h"
#include "kernel_workers.h"
#include "symbols/libc_threads.h"
#include "text_numbers.h"
#include "thread_files.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    MOST_LISTED = 4096,
    LIST_BYTES = 4096,
    PAGE_BYTES = ARCH_LARGEST_PAGE_BYTES,
    /* equals a sampling period at the usual 100 Hz; between its creation and its registration a
     * thread uses some 50 us */
    USED_NANO = 10 * 1000 * 1000,
};

/* --- threads of the table --- */

/* Holds thread ids by open addressing; 0 marks a free place. */
struct tid_set {
    uint32_t *tids;
    uint32_t mask;
    size_t bytes;
};

/* Returns the place where the id is, or would be. */
static uint32_t *tid_place(const struct tid_set *set, uint32_t tid) {
    uint32_t i = tid * UINT32_C(0x9e3779b1) & set->mask;
    while (set->tids[i] && set->tids[i] != tid)
        i = (i + 1) & set->mask;
    return &set->tids[i];
}

/* Returns the id of the slot's thread, or 0. The acquire orders this read before the next reads of
 * count_thread(); pairs with the store in thread_begin(). */
static uint32_t tid_at(const struct thread_table *table, uint32_t index) {
    return atomic_load_explicit(&thread_table_at(table, index)->tid, memory_order_acquire);
}

/* Opens a set with the ids of the table's first `count` slots; half of it stays free. Returns false
 * if there is no memory. */
static bool open_set(struct tid_set *set, const struct thread_table *table, uint32_t count) {
    uint32_t places = PAGE_BYTES / sizeof *set->tids;
    while (places < 2 * count)
        places *= 2;
    set->mask = places - 1;
    set->bytes = places * sizeof *set->tids;
    set->tids = profiler_memory_map(set->bytes);
    for (uint32_t i = 0; set->tids && i < count; i++) {
        const uint32_t tid = tid_at(table, i);
        if (tid)
            *tid_place(set, tid) = tid;
    }
    return set->tids;
}

/* Searches the table itself, because it has threads that have begun since the set was opened. */
static bool is_registered(const struct thread_table *table, uint32_t tid) {
    uint32_t i = 0;
    while (i < thread_table_count(table) && tid_at(table, i) != tid)
        i++;
    return i < thread_table_count(table);
}

static uint32_t live_threads(const struct thread_table *table) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < thread_table_count(table); i++)
        count += tid_at(table, i) != 0;
    return count;
}

/* --- threads that the kernel knows --- */

static bool unknown_threads_has(const struct unknown_threads *unknown, uint32_t tid) {
    uint32_t i = 0;
    while (i < unknown->count && unknown->tids[i] != tid)
        i++;
    return i < unknown->count;
}

/* Recognizes the helper's thread, and threads of its libraries, by name, because they are in no
 * table. */
static bool has_profiler_name(uint32_t tid) {
    char name[THREAD_NAME_BYTES];
    thread_name_read(tid, name);
    return helper_name_is(name);
}

struct count {
    struct unknown_threads *unknown;
    const struct thread_table *known;
};

/* Reads in this order: the thread's clock, the table, the thread's existence. A thread of the table
 * registers before it has used USED_NANO, and leaves its slot after its end. So if the thread had
 * used that time at the first read, and exists at the last, then it was in the table at the second,
 * or it never registers. */
static void count_thread(void *arg, uint32_t tid) {
    const struct count *const count = arg;
    struct unknown_threads *const unknown = count->unknown;
    bool runs;
    if (unknown->count == UNKNOWN_MOST || unknown_threads_has(unknown, tid))
        return;
    const int file = listed_thread_open(tid);
    const bool is_unknown =
        clock_nano(cpu_clock_of(tid)) >= USED_NANO && !is_registered(count->known, tid);
    if (listed_thread_close(file, &runs) == LISTED_OF_PROGRAM && is_unknown)
        unknown->tids[unknown->count++] = tid;
}

/* Describes an entry as getdents64(2) writes it. */
struct entry {
    uint64_t inode;
    int64_t next;
    uint16_t bytes;
    uint8_t type;
    char name[];
};

struct listing {
    const struct tid_set *known;
    const struct thread_table *table;
    void (*visit)(void *arg, uint32_t tid);
    void *arg;
};

static void visit_all_unknown(const struct listing *listing) {
    _Alignas(struct entry) char list[LIST_BYTES];
    uint32_t listed = 0;
    long size;
    const int folder = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return;
    while (listed < MOST_LISTED && (size = syscall(SYS_getdents64, folder, list, LIST_BYTES)) > 0)
        for (long at = 0; at < size; listed++) {
            const struct entry *const entry = (const struct entry *)(list + at);
            uint64_t number;
            (void)number_read(entry->name, 10, &number); /* gives 0 for "." and ".." */
            const uint32_t tid = (uint32_t)number;
            if (tid && !*tid_place(listing->known, tid) && !is_registered(listing->table, tid) &&
                !has_profiler_name(tid))
                listing->visit(listing->arg, tid);
            at += entry->bytes;
        }
    close(folder);
}

void unknown_threads_visit(const struct thread_table *known, void (*visit)(void *arg, uint32_t tid),
                           void *arg) {
    struct tid_set set;
    /* adds 1, because the kernel also counts the calling thread, which is the profiler's */
    if (libc_threads_count() == live_threads(known) + 1 ||
        !open_set(&set, known, thread_table_count(known)))
        return;
    visit_all_unknown(&(struct listing){&set, known, visit, arg});
    profiler_memory_unmap(set.tids, set.bytes);
}

uint32_t unknown_threads_count(struct unknown_threads *unknown, const struct thread_table *known,
                               pid_t process) {
    if (unknown->process != process)
        *unknown = (struct unknown_threads){.process = process};
    unknown_threads_visit(known, count_thread, &(struct count){unknown, known});
    return unknown->count;
}
