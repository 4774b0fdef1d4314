/* Is preloaded into any program: compares our walker with libunwind, at real instruction
 * boundaries.
 *
 * A timer on the main thread's CPU time sets the processor's trap flag for a burst of instructions.
 * Each of them raises SIGTRAP, whose handler unwinds the interrupted thread twice and compares. A
 * burst ends before any system call, since a thread may block SIGTRAP by one. Only its end starts
 * the timer again: the cost of the handler is the thread's CPU time, too, so a timer that repeats
 * would be due at once, and the bursts would be the first instructions of the program. Other
 * threads are not stepped.
 *
 * - DIFFERENTIAL_REPORT=FILE: one line of JSON for each process is appended there
 * - DIFFERENTIAL_BURST=COUNT: instructions in a row (200)
 * - DIFFERENTIAL_PERIOD_US=COUNT: CPU time from a burst's end to the next (20000)
 * - DIFFERENTIAL_LIMIT=COUNT: instructions in all (no limit)
 * - DIFFERENTIAL_HIDE=WORD: our walker does not see the unwind tables of objects with that word in
 *   their path; libunwind does
 * - DIFFERENTIAL_HIDE_PERCENT=N: hides so many of their functions, in tables that have the others
 *   (all, and no tables)
 * - DIFFERENTIAL_SHOW=KIND: keeps stacks as examples that are truncated, early or skipped
 */
#define UNW_LOCAL_ONLY
#include "arch_context.h"
#include "unwind/modules.h"
#include "unwind/unwind.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <libunwind.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MAX_FRAMES = 512, TRAP_FLAG = 0x100, EXAMPLES = 10, SHOWN = 40, STACK_BYTES = 256 << 20 };

static struct modules modules;
static struct rule_cache rules;
static _Atomic uintptr_t generated;
static struct unwinder unwinder = {.modules = &modules, .rules = &rules, .generated = &generated};
static struct stack_range thread_stack;

static struct {
    uint64_t compared;
    uint64_t complete;   /* to the thread's start, with libunwind's frames */
    uint64_t expression; /* left to the helper thread */
    uint64_t truncated;
    uint64_t guessed; /* differ behind a frame that libunwind has no unwind information for */
    uint64_t wrong;
    uint64_t functions;   /* distinct leaf functions, by their entry in .eh_frame */
    uint64_t undescribed; /* leaves in no such function: code made at run time or for node */
    uint64_t skipped; /* with DIFFERENTIAL_HIDE: frames of libunwind's are missing between ours, */
    uint64_t unflagged;   /* and the walker did not mark that */
    uint64_t ended_early; /* marked as complete, without libunwind's last frame */
    uint32_t examples;
} tally;

/* Holds examples, which the handler keeps for the report at exit: a write calls malloc, and the
 * signal may have interrupted malloc. */
static struct example {
    const char *what;
    uint32_t count;
    uint32_t expected_count;
    uint64_t frames[SHOWN];
    uint64_t expected[SHOWN];
} examples[EXAMPLES];

static struct {
    int left; /* instructions left of the burst */
    int burst;
    uint64_t limit;
    struct itimerspec pause; /* between bursts */
    timer_t timer;
    pid_t pid;
    const char *report;
    const char *shown;
} live;

static uint8_t seen_functions[1 << 20];

/* --- both unwinders --- */

static uint64_t frames[MAX_FRAMES];
static uint64_t expected[MAX_FRAMES];

static uint32_t ask_oracle(ucontext_t *context) {
    unw_cursor_t cursor;
    uint32_t count = 0;
    bool exact = true;
    if (unw_init_local2(&cursor, context, UNW_INIT_SIGNAL_FRAME) != 0)
        return 0;
    do {
        unw_word_t ip;
        if (count > 0)
            exact = unw_is_signal_frame(&cursor) > 0;
        if (unw_get_reg(&cursor, UNW_REG_IP, &ip) != 0 || ip == 0)
            break;
        expected[count++] = exact ? ip : ip - 1;
    } while (count < MAX_FRAMES && unw_step(&cursor) > 0);
    return count;
}

/* Returns true, and sets *start, if the code has unwind information, by libunwind's own lookup: our
 * reader must not judge itself. */
static bool is_described(uintptr_t pc, uintptr_t *start) {
    unw_proc_info_t info;
    if (unw_get_proc_info_by_ip(unw_local_addr_space, pc, &info, NULL) != 0)
        return false;
    *start = info.start_ip;
    return true;
}

/* Returns true if one of libunwind's first `count` frames has no unwind information. From there
 * libunwind goes on by rbp, whatever is in it, so its further frames are no truth. */
static bool is_guess_within(uint32_t count) {
    uintptr_t start;
    for (uint32_t i = 0; i < count; i++)
        if (!is_described(expected[i], &start))
            return true;
    return false;
}

/* --- tables that the walker does not see --- */

static struct {
    const char *word;
    uint32_t percent;
    ElfW(Phdr) headers[64];
} hide;

/* Describes an entry of the sorted table in .eh_frame_hdr, relative to the header's beginning. */
struct entry {
    int32_t function;
    int32_t fde;
};
struct table {
    uint8_t version_and_encodings[4];
    int32_t eh_frame;
    uint32_t count;
    struct entry entries[];
};

static bool is_hidden(uint32_t function) {
    return (function * UINT32_C(0x9e3779b1) >> 8) % 100 < hide.percent;
}

/* Copies the table to memory within reach of the object, without what is hidden; a program header
 * of its own makes it readable. */
static void hide_some(struct cfi_tables *tables) {
    const struct table *const all = (const void *)tables->header;
    const size_t bytes = sizeof *all + all->count * sizeof *all->entries;
    struct table *const some =
        mmap((void *)((tables->end + 0x10000000) & -0x1000ul), bytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    const int32_t moved_by = (int32_t)(tables->header - (uintptr_t)some);
    if (some == MAP_FAILED || tables->segments.count == 64)
        abort();
    *some = *all;
    some->count = 0;
    for (uint32_t i = 0; i < all->count; i++)
        if (!is_hidden((uint32_t)all->entries[i].function))
            some->entries[some->count++] =
                (struct entry){all->entries[i].function + moved_by, all->entries[i].fde + moved_by};
    memcpy(hide.headers, tables->segments.headers, tables->segments.count * sizeof *hide.headers);
    hide.headers[tables->segments.count++] = (ElfW(Phdr)){
        .p_type = PT_LOAD,
        .p_flags = PF_R,
        .p_vaddr = (uintptr_t)some - tables->segments.bias,
        .p_memsz = bytes,
    };
    tables->segments.headers = hide.headers;
    tables->header = (uintptr_t)some;
}

static void hide_tables(void) {
    const struct module_snapshot *const snapshot = atomic_load(&modules.current);
    for (size_t i = 0; i < snapshot->count; i++) {
        struct cfi_tables *const tables = (struct cfi_tables *)(uintptr_t)fixed_modules_at(
            &modules.fixed, snapshot->modules[i].start);
        if (!tables || !strstr(snapshot->modules[i].path, hide.word))
            continue;
        if (hide.percent < 100)
            hide_some(tables);
        else
            tables->header = 0;
    }
}

/* --- reporting --- */

static void write_frames(int file, const char *who, const uint64_t *list, uint32_t count) {
    dprintf(file, "  %s:", who);
    for (uint32_t i = 0; i < count && i < SHOWN; i++) {
        Dl_info info;
        if (dladdr((void *)list[i], &info) && info.dli_fname)
            dprintf(file, " %s+0x%zx",
                    strrchr(info.dli_fname, '/') ? strrchr(info.dli_fname, '/') + 1
                                                 : info.dli_fname,
                    (size_t)(list[i] - (uintptr_t)info.dli_fbase));
        else
            dprintf(file, " 0x%zx", (size_t)list[i]);
    }
    dprintf(file, "\n");
}

static void write_examples(int file) {
    for (uint32_t i = 0; i < tally.examples; i++) {
        const struct example *const e = &examples[i];
        dprintf(file, "# %s in %d\n", e->what, (int)live.pid);
        write_frames(file, "ours  ", e->frames, e->count);
        write_frames(file, "oracle", e->expected, e->expected_count);
    }
}

__attribute__((destructor)) static void write_report(void) {
    if (!live.report || live.pid != getpid())
        return;
    char name[256] = "";
    (void)!readlink("/proc/self/exe", name, sizeof name - 1);
    const int file = open(live.report, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    dprintf(file,
            "{\"executable\": \"%s\", \"pid\": %d, \"compared\": %llu, \"complete\": %llu, "
            "\"expression\": %llu, \"truncated\": %llu, \"guessed\": %llu, \"wrong\": %llu, "
            "\"functions\": %llu, \"undescribed\": %llu, \"skipped\": %llu, "
            "\"unflagged\": %llu, \"ended_early\": %llu}\n",
            name, (int)live.pid, (unsigned long long)tally.compared,
            (unsigned long long)tally.complete, (unsigned long long)tally.expression,
            (unsigned long long)tally.truncated, (unsigned long long)tally.guessed,
            (unsigned long long)tally.wrong, (unsigned long long)tally.functions,
            (unsigned long long)tally.undescribed, (unsigned long long)tally.skipped,
            (unsigned long long)tally.unflagged, (unsigned long long)tally.ended_early);
    write_examples(file);
    close(file);
    live.report = NULL;
}

/* Writes the report for a program that leaves in haste: exit() does not call this. */
__attribute__((visibility("default"), noreturn)) void _exit(int status) {
    write_report();
    for (;;)
        syscall(SYS_exit_group, status);
}

__attribute__((visibility("default"), noreturn, alias("_exit"))) void _Exit(int status);

/* --- comparing --- */

static void count_function(uintptr_t pc) {
    uintptr_t start;
    if (!is_described(pc, &start)) {
        tally.undescribed++;
        return;
    }
    const uint64_t place = start * UINT64_C(0x9e3779b97f4a7c15) >> 41;
    tally.functions += !(seen_functions[place >> 3] >> (place & 7) & 1);
    seen_functions[place >> 3] |= (uint8_t)(1 << (place & 7));
}

static void keep_example(const char *what, uint32_t count, uint32_t expected_count) {
    if (tally.examples == EXAMPLES)
        return;
    struct example *const e = &examples[tally.examples++];
    e->what = what;
    e->count = count;
    e->expected_count = expected_count;
    memcpy(e->frames, frames, sizeof e->frames);
    memcpy(e->expected, expected, sizeof e->expected);
}

static void judge(enum unwind_end end, uint32_t count, uint32_t expected_count) {
    uint32_t same = 0;
    while (same < count && same < expected_count && frames[same] == expected[same])
        same++;
    const bool differs = same < count || (end == UNWIND_COMPLETE && count < expected_count);
    if (differs && is_guess_within(same))
        tally.guessed++;
    else if (differs) {
        tally.wrong++;
        keep_example("wrong", count, expected_count);
    } else if (end == UNWIND_COMPLETE)
        tally.complete++;
    else if (end == UNWIND_EXPRESSION)
        tally.expression++;
    else {
        tally.truncated++;
        keep_example("truncated", count, expected_count);
    }
}

/* Judges a walk without the hidden tables: our frames must be libunwind's, in its order, and gaps
 * must be marked. */
static void judge_without_tables(const struct unwind *walk, enum unwind_end end,
                                 uint32_t expected_count) {
    uint32_t at = 0;
    bool skips = false;
    if (is_guess_within(expected_count)) {
        tally.guessed++;
        return;
    }
    for (uint32_t i = 0; i < walk->count; i++, at++) {
        const uint32_t before = at;
        while (at < expected_count && expected[at] != frames[i])
            at++;
        skips |= at > before;
        if (at == expected_count) {
            tally.wrong++;
            keep_example("wrong", walk->count, expected_count);
            return;
        }
    }
    tally.skipped += skips;
    tally.unflagged += skips && !walk->by_frame_pointer;
    if (end != UNWIND_COMPLETE)
        tally.truncated++;
    else if (at < expected_count)
        tally.ended_early++;
    else
        tally.complete += !skips;
    const char *const what = end != UNWIND_COMPLETE ? "truncated"
                             : at < expected_count  ? "early"
                             : skips                ? "skipped"
                                                    : "";
    if (live.shown && strcmp(what, live.shown) == 0)
        keep_example(what, walk->count, expected_count);
}

static void compare(ucontext_t *context) {
    uint64_t registers[REGISTER_COUNT];
    struct unwind walk = {
        .thread_stack = thread_stack, .signal_stack = {0, 1}, .frames = frames, .max = MAX_FRAMES};
    registers_from_context(registers, context);
    const enum unwind_end end = unwind_walk(&unwinder, registers, &walk);
    const uint32_t count = ask_oracle(context);
    tally.compared++;
    count_function(registers[REGISTER_PC]);
    if (hide.word)
        judge_without_tables(&walk, end, count);
    else
        judge(end, walk.count, count);
}

/* --- stepping --- */

static bool is_system_call(uintptr_t pc) {
    const uint8_t *const code = (const uint8_t *)pc;
    return code[0] == 0x0f && (code[1] == 0x05 || code[1] == 0x34);
}

static void pause_bursts(void) {
    if (tally.compared < live.limit)
        timer_settime(live.timer, 0, &live.pause, NULL);
}

static void on_trap(int number, siginfo_t *info, void *pointer) {
    ucontext_t *const context = pointer;
    greg_t *const registers = context->uc_mcontext.gregs;
    (void)number;
    (void)info;
    if (live.pid == getpid())
        compare(context);
    if (--live.left > 0 && !is_system_call((uintptr_t)registers[REG_RIP]))
        return;
    registers[REG_EFL] &= ~(greg_t)TRAP_FLAG;
    pause_bursts();
}

static void on_timer(int number, siginfo_t *info, void *pointer) {
    ucontext_t *const context = pointer;
    greg_t *const registers = context->uc_mcontext.gregs;
    (void)number;
    (void)info;
    if (live.pid != getpid())
        return;
    if (is_system_call((uintptr_t)registers[REG_RIP])) {
        pause_bursts();
        return;
    }
    live.left = live.burst;
    registers[REG_EFL] |= TRAP_FLAG;
}

static long number_of(const char *name, long standard) {
    const char *const text = getenv(name);
    return text ? atol(text) : standard;
}

static void install(int number, void (*handler)(int, siginfo_t *, void *)) {
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigfillset(&action.sa_mask);
    sigdelset(&action.sa_mask, SIGTRAP);
    sigaction(number, &action, NULL);
}

static void start_timer(void) {
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMAX - 5};
    event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    if (timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &live.timer) == 0)
        pause_bursts();
}

/* Begins anew in a child, which has not inherited the timer: its report has only its own stacks. */
static void begin_in_child(void) {
    modules_after_fork(&modules, 0);
    memset(&tally, 0, sizeof tally);
    memset(seen_functions, 0, sizeof seen_functions);
    live.pid = getpid();
    start_timer();
}

__attribute__((constructor)) static void begin(void) {
    const uintptr_t top = getauxval(AT_EXECFN) & ~(uintptr_t)7;
    live.report = getenv("DIFFERENTIAL_REPORT");
    if (!live.report || !modules_start(&modules))
        return;
    hide.word = getenv("DIFFERENTIAL_HIDE");
    hide.percent = (uint32_t)number_of("DIFFERENTIAL_HIDE_PERCENT", 100);
    if (hide.word)
        hide_tables();
    live.pid = getpid();
    live.shown = getenv("DIFFERENTIAL_SHOW");
    live.burst = (int)number_of("DIFFERENTIAL_BURST", 200);
    live.limit = (uint64_t)number_of("DIFFERENTIAL_LIMIT", LONG_MAX);
    const long period = number_of("DIFFERENTIAL_PERIOD_US", 20000) * 1000;
    live.pause.it_value = (struct timespec){period / 1000000000, period % 1000000000};
    thread_stack = (struct stack_range){top - STACK_BYTES, top};
    unw_set_caching_policy(unw_local_addr_space, UNW_CACHE_GLOBAL);
    pthread_atfork(NULL, NULL, begin_in_child);
    install(SIGTRAP, on_trap);
    install(SIGRTMAX - 5, on_timer);
    start_timer();
}
