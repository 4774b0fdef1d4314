/* Records what the kernel reports of a program's waits: each moment at which a thread of the
 * program leaves a processor or comes back to one, and the stack that it leaves with. The program
 * runs on undisturbed; nothing stops it, as a tracer of system calls would.
 *
 * Usage: switches [-s] FILE COMMAND [ARGUMENT ...]    -s: with stacks
 *
 * Writes into FILE, in nanoseconds:
 * - thread PID TID FIRST LAST OFF PREEMPTED NAME. OFF: it waited; PREEMPTED: it was ready, another
 *   ran
 * - stack PID TID NANOSECONDS FRAME;FRAME... of OFF, leaf first: see walk.h
 * - lost COUNT: records that the kernel had no room for
 *
 * Ends as the command does, when all that it started has ended.
 */
#include <asm/perf_regs.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <search.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "walk.h"

enum {
    PROCESSORS = 256,
    RING_BYTES = 64 << 20,
    STACK_BYTES = 16 << 10,
    ROUND_MS = 20,
};

/* Maps perf's numbers of registers to DWARF's order; the kernel writes them in the order of its
 * numbers
 */
static const uint8_t dwarf_order[WALK_REGISTERS] = {
    PERF_REG_X86_AX,  PERF_REG_X86_DX,  PERF_REG_X86_CX,  PERF_REG_X86_BX,  PERF_REG_X86_SI,
    PERF_REG_X86_DI,  PERF_REG_X86_BP,  PERF_REG_X86_SP,  PERF_REG_X86_R8,  PERF_REG_X86_R9,
    PERF_REG_X86_R10, PERF_REG_X86_R11, PERF_REG_X86_R12, PERF_REG_X86_R13, PERF_REG_X86_R14,
    PERF_REG_X86_R15, PERF_REG_X86_IP,
};

struct thread {
    int pid, tid;
    uint64_t first, last, off, preempted, times;
    uint64_t out; /* 0: the thread runs */
    bool was_preempted;
    char name[16];
    char *stack; /* stack that it left with; NULL: not known */
};

struct wait {
    struct thread *thread;
    char *stack;
    uint64_t off;
};

struct ring {
    int fd;
    struct perf_event_mmap_page *page;
};

struct record {
    uint64_t time;
    uint64_t order;
    unsigned char *bytes;
};

static struct ring rings[PROCESSORS];
static int ring_count;
static struct record *records;
static size_t record_count, record_room;
static void *threads, *waits; /* tsearch's */
static uint64_t lost, arrived;
static bool with_stacks;

static void give_up(const char *what) {
    fprintf(stderr, "switches: %s: %s\n", what, strerror(errno));
    exit(2);
}

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* --- accounts --- */

static int by_tid(const void *a, const void *b) {
    const struct thread *const x = a, *const y = b;
    return x->pid != y->pid ? (x->pid > y->pid) - (x->pid < y->pid)
                            : (x->tid > y->tid) - (x->tid < y->tid);
}

static int by_wait(const void *a, const void *b) {
    const struct wait *const x = a, *const y = b;
    const int order = by_tid(x->thread, y->thread);
    return order ? order : strcmp(x->stack, y->stack);
}

static void *found(const void *key, size_t size, void **root,
                   int (*compare)(const void *, const void *)) {
    void **const node = tsearch(key, root, compare);
    if (!node)
        give_up("tsearch");
    if (*node == key) {
        void *const own = malloc(size);
        if (!own)
            give_up("malloc");
        *node = memcpy(own, key, size);
    }
    return *node;
}

static struct thread *thread_of(int pid, int tid) {
    return found(&(struct thread){.pid = pid, .tid = tid}, sizeof(struct thread), &threads, by_tid);
}

static void account(struct thread *thread, uint64_t time) {
    const uint64_t gone = time - thread->out;
    if (thread->was_preempted)
        thread->preempted += gone;
    else
        thread->off += gone;
    if (!thread->was_preempted && thread->stack) {
        const struct wait key = {.thread = thread, .stack = thread->stack};
        struct wait *const wait = found(&key, sizeof key, &waits, by_wait);
        if (wait->stack != thread->stack)
            free(thread->stack);
        wait->off += gone;
        thread->stack = NULL;
    }
    thread->out = 0;
}

static void seen(struct thread *thread, uint64_t time) {
    if (!thread->first)
        thread->first = time;
    thread->last = time;
}

/* --- records: sample_id_all has {pid, tid}, {time} at the end of each but samples --- */

static void take_switch(const struct perf_event_header *record, struct thread *thread,
                        uint64_t time) {
    seen(thread, time);
    if (record->misc & PERF_RECORD_MISC_SWITCH_OUT) {
        thread->out = time;
        thread->times++;
        thread->was_preempted = record->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;
    } else if (thread->out) {
        account(thread, time);
    }
}

/* {pid, tid}, {time}, registers: {abi}, values; stack: {size}, bytes, {used} */
static void take_sample(const uint64_t *word) {
    const int pid = (int)(uint32_t)word[0], tid = (int)(word[0] >> 32);
    if (!with_stacks || word[2] != PERF_SAMPLE_REGS_ABI_64)
        return;
    struct walk_sample sample = {.pid = pid};
    const uint64_t *const values = word + 3;
    for (int i = 0; i < WALK_REGISTERS; i++) {
        int place = 0;
        for (int j = 0; j < WALK_REGISTERS; j++)
            place += dwarf_order[j] < dwarf_order[i];
        sample.registers[i] = values[place];
    }
    const uint64_t *const stack = values + WALK_REGISTERS;
    sample.stack = (const unsigned char *)(stack + 1);
    sample.stack_size = stack[0] ? stack[1 + stack[0] / 8] : 0;
    static char text[1 << 15];
    struct thread *const thread = thread_of(pid, tid);
    free(thread->stack);
    thread->stack = strdup(walk_text(&sample, text, sizeof text));
}

static void take(const struct record *from) {
    const struct perf_event_header *const record = (const void *)from->bytes;
    const uint64_t *const end = (const void *)(from->bytes + record->size),
                          *const body = (const void *)(record + 1);
    const int pid = (int)(uint32_t)end[-2], tid = (int)(end[-2] >> 32);
    switch (record->type) {
    case PERF_RECORD_SAMPLE:
        take_sample(body);
        return;
    case PERF_RECORD_SWITCH:
        take_switch(record, thread_of(pid, tid), from->time);
        return;
    case PERF_RECORD_LOST:
        lost += body[1];
        return;
    case PERF_RECORD_MMAP2:
        walk_forget(pid);
        return;
    case PERF_RECORD_COMM: {
        struct thread *const thread = thread_of(pid, tid);
        snprintf(thread->name, sizeof thread->name, "%s", (const char *)(body + 1));
        return;
    }
    case PERF_RECORD_FORK: /* {pid, ppid}, {tid, ptid}: the thread has its creator's name */
        memcpy(thread_of((int)(uint32_t)body[0], (int)(uint32_t)body[1])->name,
               thread_of((int)(body[0] >> 32), (int)(body[1] >> 32))->name, 16);
        return;
    default:
        return;
    }
}

static int by_time(const void *a, const void *b) {
    const struct record *const x = a, *const y = b;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

/* Processes what came before `until`, in the order of time. */
static void take_until(uint64_t until) {
    qsort(records, record_count, sizeof *records, by_time);
    size_t done = 0;
    for (; done < record_count && records[done].time < until; done++) {
        take(&records[done]);
        free(records[done].bytes);
    }
    record_count -= done;
    memmove(records, records + done, record_count * sizeof *records);
}

/* --- rings --- */

static uint64_t time_of(const struct perf_event_header *record) {
    const uint64_t *const end = (const void *)((const char *)record + record->size);
    return record->type == PERF_RECORD_SAMPLE ? ((const uint64_t *)(record + 1))[1] : end[-1];
}

static void keep(const unsigned char *data, uint64_t at) {
    const size_t place = at % RING_BYTES,
                 size = ((const struct perf_event_header *)(data + place))->size;
    const size_t to_end = RING_BYTES - place < size ? RING_BYTES - place : size;
    unsigned char *const bytes = malloc(size);
    if (!bytes)
        give_up("malloc");
    memcpy(bytes, data + place, to_end);
    memcpy(bytes + to_end, data, size - to_end);
    if (record_count == record_room) {
        record_room = record_room ? 2 * record_room : 4096;
        records = reallocarray(records, record_room, sizeof *records);
        if (!records)
            give_up("reallocarray");
    }
    const struct perf_event_header *const record = (const void *)bytes;
    records[record_count++] =
        (struct record){.time = time_of(record), .order = arrived++, .bytes = bytes};
}

static void drain(struct ring *ring) {
    const unsigned char *const data = (const unsigned char *)ring->page + ring->page->data_offset;
    const uint64_t head =
        atomic_load_explicit((_Atomic(__u64) *)&ring->page->data_head, memory_order_acquire);
    uint64_t tail = ring->page->data_tail;
    while (tail < head) {
        keep(data, tail);
        tail += ((const struct perf_event_header *)(data + tail % RING_BYTES))->size;
    }
    atomic_store_explicit((_Atomic(__u64) *)&ring->page->data_tail, tail, memory_order_release);
}

/* Opens events of `pid` and all that it will start, on one processor; from its exec on. */
static struct ring opened(int pid, int processor) {
    struct perf_event_attr about = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof about,
        .config = with_stacks ? PERF_COUNT_SW_CONTEXT_SWITCHES : PERF_COUNT_SW_DUMMY,
        .sample_period = 1,
        .sample_type =
            PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
        .disabled = 1,
        .enable_on_exec = 1,
        .inherit = 1,
        .context_switch = 1,
        .comm = 1,
        .task = 1,
        .mmap = 1,
        .mmap2 = 1,
        .sample_id_all = 1,
        .use_clockid = 1,
        .clockid = CLOCK_MONOTONIC,
        .sample_stack_user = STACK_BYTES,
        .watermark = 1,
        .wakeup_watermark = RING_BYTES / 4,
    };
    for (int i = 0; i < WALK_REGISTERS; i++)
        about.sample_regs_user |= 1ULL << dwarf_order[i];
    struct ring ring = {
        .fd = (int)syscall(SYS_perf_event_open, &about, pid, processor, -1, PERF_FLAG_FD_CLOEXEC)};
    if (ring.fd < 0)
        give_up("perf_event_open");
    ring.page = mmap(NULL, (size_t)RING_BYTES + (size_t)sysconf(_SC_PAGESIZE),
                     PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd, 0);
    if (ring.page == MAP_FAILED)
        give_up("mmap");
    return ring;
}

/* Starts the command, held before its exec until `*go` is written to. */
static int started(char **command, int *go) {
    int gate[2];
    if (pipe(gate))
        give_up("pipe");
    const int pid = fork();
    if (pid == 0) {
        char byte;
        close(gate[1]);
        if (read(gate[0], &byte, 1) != 1)
            _exit(2);
        close(gate[0]);
        execvp(command[0], command);
        give_up(command[0]);
    }
    close(gate[0]);
    *go = gate[1];
    return pid;
}

/* --- the output --- */

static FILE *output;

static void write_thread(const void *node, VISIT visit, int depth) {
    (void)depth;
    const struct thread *const t = *(struct thread *const *)node;
    if ((visit == postorder || visit == leaf) && t->tid)
        fprintf(output,
                "thread %d %d %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %s\n",
                t->pid, t->tid, t->first, t->last, t->off, t->preempted, t->times, t->name);
}

static void write_wait(const void *node, VISIT visit, int depth) {
    (void)depth;
    const struct wait *const w = *(struct wait *const *)node;
    if (visit == postorder || visit == leaf)
        fprintf(output, "stack %d %d %" PRIu64 " %s\n", w->thread->pid, w->thread->tid, w->off,
                w->stack);
}

/* Follows the command until it and all its children, which are ours when it has ended, are gone.
 * Returns its status. */
static int follow(int pid) {
    int result = 0;
    for (;;) {
        const uint64_t round = now();
        for (int i = 0; i < ring_count; i++)
            drain(&rings[i]);
        take_until(round - 1000000);
        int status;
        int ended;
        while ((ended = waitpid(-1, &status, WNOHANG)) > 0)
            if (ended == pid)
                result = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        if (ended < 0)
            break;
        poll(NULL, 0, ROUND_MS);
    }
    for (int i = 0; i < ring_count; i++)
        drain(&rings[i]);
    take_until(UINT64_MAX);
    return result;
}

int main(int argc, char **argv) {
    int first = 1;
    if (argc > 1 && strcmp(argv[1], "-s") == 0)
        with_stacks = ++first;
    if (argc < first + 2) {
        fprintf(stderr, "Usage: switches [-s] FILE COMMAND [ARGUMENT ...]\n");
        return 2;
    }
    output = fopen(argv[first], "we");
    if (!output)
        give_up(argv[first]);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    int go;
    const int pid = started(argv + first + 1, &go);
    setpriority(PRIO_PROCESS, 0, -10); /* a record that waits for a place in a ring is lost */
    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    for (ring_count = 0; ring_count < processors && ring_count < PROCESSORS; ring_count++)
        rings[ring_count] = opened(pid, ring_count);
    if (write(go, "", 1) != 1)
        give_up("write");
    const int result = follow(pid);
    twalk(threads, write_thread);
    twalk(waits, write_wait);
    fprintf(output, "lost %" PRIu64 "\n", lost);
    return fclose(output) ? 2 : result;
}
