/* Is preloaded into a Python program: keeps the stacks that our walker gives at every instruction
 * of many bursts, as live.so.c makes them, for a judge that knows the possible ones. So the
 * interpreter is met between any two stores of a call or a return, as often as at any other place.
 *
 * PYTHON_STACKS=FILE       the stacks, as JSON, written at exit: see write_all()
 * PYTHON_BURST=COUNT       instructions in a row (1000)
 * PYTHON_PERIOD_US=COUNT   CPU time from a burst's end to the next (1000)
 */
#include "frames/python.h"
#include "arch_context.h"
#include "frames/python_stack.h"
#include "frames/python_thread.h"
#include "unwind/modules.h"
#include "unwind/unwind.h"

#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MAX_FRAMES = 512, TRAP_FLAG = 0x100, STACK_BYTES = 8 << 20, SLOTS = 1 << 20 };
enum { ENOUGH = 20000 }; /* instructions */
enum { WORDS = 1 << 26, FRAME_BYTES = 8, MARKS = 3, KEPT = MAX_FRAMES + 1 };

static struct modules modules;
static struct rule_cache rules;
static _Atomic uintptr_t generated;
static struct unwinder unwinder = {.modules = &modules, .rules = &rules, .generated = &generated};
static struct stack_range thread_stack;
static struct python python;
static struct log messages;

/* Lists native functions that are reported by name. As frames they are the numbers 1 to 3. */
static struct {
    const char *name;
    uintptr_t start;
    uintptr_t size;
} marks[MARKS] = {
    {.name = "known_burn"}, {.name = "known_call"}, {.name = "_PyEval_EvalFrameDefault"}};

/* Holds the stacks. Each is a word with its length, its doubt and its end, and then its frames.
 * `at` is the index of its first word: never 0. */
static struct {
    uint64_t *words;
    uint32_t used;
    struct {
        uint32_t at;
        uint32_t count;
        uintptr_t pc; /* the pc of the first such stack */
    } slots[SLOTS];
    uint64_t steps;
    uint64_t lost;
} kept = {.used = 1};

static struct {
    int left;
    int burst;
    struct itimerspec pause;
    timer_t timer;
    pid_t pid;
    const char *file;
} live;

/* --- stacks --- */

static uint64_t hash_of(const uint64_t *words, uint32_t count) {
    uint64_t hash = count;
    for (uint32_t i = 0; i < count; i++)
        hash = (hash ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15) ^ hash >> 29;
    return hash;
}

static void keep(const uint64_t *words, uint32_t count, uintptr_t pc) {
    uint64_t place = hash_of(words, count);
    for (int tries = 0; tries < 64; tries++, place++) {
        const uint32_t slot = place >> 7 & (SLOTS - 1);
        const uint32_t at = kept.slots[slot].at;
        if (!at && kept.used + count < WORDS) {
            memcpy(kept.words + kept.used, words, count * FRAME_BYTES);
            kept.slots[slot].at = kept.used;
            kept.slots[slot].count = 1;
            kept.slots[slot].pc = pc;
            kept.used += count;
            return;
        }
        if (at && memcmp(kept.words + at, words, count * FRAME_BYTES) == 0) {
            kept.slots[slot].count++;
            return;
        }
        place += 127;
    }
    kept.lost++;
}

static uint64_t shown(uint64_t frame) {
    if (!frame_is_address(frame))
        return frame;
    for (int i = 0; i < MARKS; i++)
        if (frame - marks[i].start < marks[i].size)
            return (uint64_t)i + 1;
    return 0;
}

static void look(const ucontext_t *context) {
    static uint64_t frames[MAX_FRAMES], words[KEPT];
    static struct python_stack stack;
    static struct python_pages pages;
    uint64_t registers[REGISTER_COUNT];
    registers_from_context(registers, context);
    const struct stack_range used = {registers[REGISTER_SP], thread_stack.high};
    stack = (struct python_stack){.reader = {.known = used, .copies = &pages}};
    python_pages_forget(&pages);
    struct unwind walk = {
        .thread_stack = thread_stack, .signal_stack = {0, 1}, .frames = frames, .max = MAX_FRAMES};
    const bool held = python_hold(&python);
    const uintptr_t state = held ? python_thread_state(&python, &stack.reader) : 0;
    if (state) {
        python_stack_begin(&stack, &python, state, used);
        walk.interpreter = &stack.frames;
    }
    const enum unwind_end end = unwind_walk(&unwinder, registers, &walk);
    if (held)
        python_release(&python);
    uint32_t count = 1;
    for (uint32_t i = 0; i < walk.count; i++)
        if (shown(frames[i]))
            words[count++] = shown(frames[i]);
    words[0] = (uint64_t)count << 32 | (uint64_t)(stack.doubts != 0) << 8 | (uint64_t)end;
    keep(words, count, registers[REGISTER_PC]);
    kept.steps++;
}

/* --- reporting --- */

static void write_text(FILE *file, const char *text) {
    fputc('"', file);
    for (; *text; text++)
        fprintf(file, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
    fputc('"', file);
}

static void write_frame(FILE *file, uint64_t frame) {
    struct named_frame named;
    if (frame <= MARKS) {
        fprintf(file, "[\"%s\"]", marks[frame - 1].name);
        return;
    }
    if (!python_function_name(python.functions, (uint32_t)frame,
                              frame >> FRAME_POSITION_SHIFT & 0xffffff, &named)) {
        fprintf(file, "[]");
        return;
    }
    fputc('[', file);
    write_text(file, named.function);
    fputc(',', file);
    write_text(file, named.file);
    fprintf(file, ",%d,%d]", named.line, named.start_line);
}

/* Writes a line of JSON for each stack: [times, doubt, end, pc, frame, ...], a frame being
 * [function, file, line, first line], or [] where its name is not known, or [name] of a native one.
 * Leaf first. */
static void write_all(FILE *file) {
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        const uint64_t *const words = kept.words + kept.slots[slot].at;
        if (!kept.slots[slot].at)
            continue;
        fprintf(file, "[%u,%d,%d,%llu", kept.slots[slot].count, (int)(words[0] >> 8 & 1),
                (int)(words[0] & 255), (unsigned long long)kept.slots[slot].pc);
        for (uint32_t i = 1; i < words[0] >> 32; i++) {
            fputc(',', file);
            write_frame(file, words[i]);
        }
        fprintf(file, "]\n");
    }
    fprintf(file, "[%llu]\n", (unsigned long long)kept.lost);
}

__attribute__((destructor)) static void end(void) {
    if (!live.file || live.pid != getpid())
        return;
    if (kept.steps)
        timer_delete(live.timer);
    FILE *const file = fopen(live.file, "w");
    if (file)
        write_all(file);
    if (file)
        fclose(file);
}

/* --- stepping: live.so.c explains it --- */

static bool is_system_call(uintptr_t pc) {
    const uint8_t *const code = (const uint8_t *)pc;
    return code[0] == 0x0f && (code[1] == 0x05 || code[1] == 0x34);
}

static void on_trap(int number, siginfo_t *info, void *pointer) {
    ucontext_t *const context = pointer;
    greg_t *const registers = context->uc_mcontext.gregs;
    (void)number;
    (void)info;
    look(context);
    if (--live.left > 0 && !is_system_call((uintptr_t)registers[REG_RIP]))
        return;
    registers[REG_EFL] &= ~(greg_t)TRAP_FLAG;
    timer_settime(live.timer, 0, &live.pause, NULL);
}

static void on_timer(int number, siginfo_t *info, void *pointer) {
    ucontext_t *const context = pointer;
    greg_t *const registers = context->uc_mcontext.gregs;
    (void)number;
    (void)info;
    if (is_system_call((uintptr_t)registers[REG_RIP])) {
        timer_settime(live.timer, 0, &live.pause, NULL);
        return;
    }
    live.left = live.burst;
    registers[REG_EFL] |= TRAP_FLAG;
}

static void install(int number, void (*handler)(int, siginfo_t *, void *)) {
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigfillset(&action.sa_mask);
    sigdelset(&action.sa_mask, SIGTRAP);
    sigaction(number, &action, NULL);
}

/* Finds functions of burns_natively.so, which is preloaded before, and of the interpreter. */
static void find_marks(void) {
    for (int i = 0; i < MARKS; i++) {
        Dl_info info;
        void *symbol = NULL;
        void *const function = dlsym(RTLD_DEFAULT, marks[i].name);
        if (function && dladdr1(function, &info, &symbol, RTLD_DL_SYMENT) && symbol) {
            marks[i].start = (uintptr_t)function;
            marks[i].size = ((const ElfW(Sym) *)symbol)->st_size;
        }
    }
}

static long number_of(const char *name, long standard) {
    const char *const text = getenv(name);
    return text ? atol(text) : standard;
}

void begin_looking(void);
/* Is called by the program when sampling is to begin. */
__attribute__((visibility("default"))) void begin_looking(void) {
    const long period = number_of("PYTHON_PERIOD_US", 1000) * 1000;
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMAX - 5};
    if (!live.file)
        return;
    event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    live.burst = (int)number_of("PYTHON_BURST", 1000);
    live.pause.it_value = (struct timespec){period / 1000000000, period % 1000000000};
    if (timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &live.timer) == 0)
        timer_settime(live.timer, 0, &live.pause, NULL);
}

bool has_looked_enough(void);
/* Returns true if enough instructions were sampled to judge, because the kernel's timers may be
 * late, or if nothing is to be reported. */
__attribute__((visibility("default"))) bool has_looked_enough(void) {
    return !live.file || kept.steps >= ENOUGH;
}

__attribute__((constructor)) static void begin(void) {
    const uintptr_t top = getauxval(AT_EXECFN) & ~(uintptr_t)7;
    const char *const file = getenv("PYTHON_STACKS");
    if (!file || !modules_start(&modules))
        return;
    log_init(&messages, LOG_DEBUG, "");
    python_start(&python, true, &modules, &messages);
    kept.words = mmap(NULL, (size_t)WORDS * FRAME_BYTES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (kept.words == MAP_FAILED)
        return;
    live.file = file;
    live.pid = getpid();
    thread_stack = (struct stack_range){top - STACK_BYTES, top};
    find_marks();
    install(SIGTRAP, on_trap);
    install(SIGRTMAX - 5, on_timer);
}
