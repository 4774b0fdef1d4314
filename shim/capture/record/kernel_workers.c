#include "kernel_workers.h"

#include "clock.h"
#include "process_file.h"
#include "text_numbers.h"
#include "unknown_threads.h"

/* include/linux/sched.h: PF_IO_WORKER (Linux 5.12) and PF_USER_WORKER (6.4). In older kernels such
 * threads belonged to no process. */
enum { IO_WORKER = 0x10, USER_WORKER = 0x4000 };
enum { STATE = 3, FLAGS = 9, STAT_BYTES = 256 }; /* fields of a stat file: proc(5) */

int listed_thread_open(uint32_t tid) {
    return process_file_open_thread(tid, "stat");
}

enum listed_thread listed_thread_close(int file, bool *runs) {
    char text[STAT_BYTES];
    uint64_t flags;
    if (!process_file_text(file, text, sizeof text))
        return LISTED_ENDED;
    const char *const state = process_stat_field(text, STATE);
    const char *const at = process_stat_field(text, FLAGS);
    *runs = state && *state == 'R';
    return at && number_read(at, 10, &flags) && (flags & (IO_WORKER | USER_WORKER))
               ? LISTED_OF_KERNEL
               : LISTED_OF_PROGRAM;
}

bool kernel_worker_is(uint32_t tid, bool *runs) {
    return listed_thread_close(listed_thread_open(tid), runs) == LISTED_OF_KERNEL;
}

struct visit {
    struct kernel_workers *workers;
    void (*visit)(void *arg, uint32_t tid, uint64_t nano);
    void *arg;
};

/* Returns the entry of the thread, or a new entry; NULL: there is no room. */
static struct kernel_worker *kernel_worker_at(struct kernel_workers *workers, uint32_t tid) {
    for (uint32_t i = 0; i < workers->count; i++)
        if (workers->workers[i].tid == tid)
            return &workers->workers[i];
    if (workers->count == KERNEL_WORKERS)
        return NULL;
    workers->workers[workers->count] = (struct kernel_worker){.tid = tid};
    return &workers->workers[workers->count++];
}

static void visit_worker(void *arg, uint32_t tid) {
    const struct visit *const visit = arg;
    bool runs;
    if (!kernel_worker_is(tid, &runs))
        return;
    struct kernel_worker *const worker = kernel_worker_at(visit->workers, tid);
    const uint64_t used = clock_nano(cpu_clock_of(tid));
    if (!worker)
        return;
    /* a clock that has fallen belongs to another thread, which has the id now */
    const uint64_t before = used < worker->cpu_ns ? 0 : worker->cpu_ns;
    worker->is_listed = true;
    worker->cpu_ns = used;
    if (used > before)
        visit->visit(visit->arg, tid, used - before);
}

static void forget_ended(struct kernel_workers *workers) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < workers->count; i++)
        if (workers->workers[i].is_listed)
            workers->workers[kept++] = workers->workers[i];
    workers->count = kept;
    for (uint32_t i = 0; i < kept; i++)
        workers->workers[i].is_listed = false;
}

void kernel_workers_visit(struct kernel_workers *workers, const struct thread_table *known,
                          pid_t process, void (*visit)(void *arg, uint32_t tid, uint64_t nano),
                          void *arg) {
    if (workers->process != process)
        *workers = (struct kernel_workers){.process = process};
    unknown_threads_visit(known, visit_worker, &(struct visit){workers, visit, arg});
    forget_ended(workers);
}
