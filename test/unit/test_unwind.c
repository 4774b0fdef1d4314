/* Compares the walker with libunwind, at every instruction of real code.
 *
 * The processor's trap flag raises SIGTRAP after each instruction; the handler unwinds the
 * interrupted thread twice and compares. The walker may stop early, and reports so; a frame that
 * libunwind does not have is wrong.
 */
#define UNW_LOCAL_ONLY
#include "unit.h"

#include "arch_context.h"
#include "arch_machine.h"
#include "symbolize/slow_unwind.h"
#include "unwind/modules.h"
#include "unwind/unwind.h"

#include <alloca.h>
#include <libunwind.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/auxv.h>
#include <time.h>

enum { MAX_FRAMES = 256 };

static uint64_t stack_pointers[MAX_FRAMES];

static struct modules modules;
static struct rule_cache rules;
static _Atomic uintptr_t generated;
static struct unwinder unwinder = {.modules = &modules, .rules = &rules, .generated = &generated};
static struct stack_range thread_stack;
static struct stack_range signal_stack;

static struct tally {
    uint64_t compared;
    uint64_t complete;
    uint64_t wrong;
    uint64_t crossed_signal;
    uint64_t unfinished; /* walks left for the helper */
    uintptr_t example;
} tally;

static uint32_t oracle(ucontext_t *context, uint64_t frames[MAX_FRAMES]) {
    unw_cursor_t cursor;
    uint32_t count = 0;
    bool exact = true;
    if (unw_init_local2(&cursor, context, UNW_INIT_SIGNAL_FRAME) != 0)
        return 0;
    do {
        unw_word_t ip;
        if (count > 0)
            exact = unw_is_signal_frame(&cursor) > 0; /* the frame behind the trampoline */
        if (unw_get_reg(&cursor, UNW_REG_IP, &ip) != 0 || ip == 0)
            break;
        frames[count++] = exact ? ip : ip - 1;
    } while (count < MAX_FRAMES && unw_step(&cursor) > 0);
    return count;
}

static void compare(ucontext_t *context) {
    static uint64_t expected[MAX_FRAMES];
    static uint64_t frames[MAX_FRAMES];
    uint64_t registers[REGISTER_COUNT];
    struct unwind unwind = {.thread_stack = thread_stack,
                            .signal_stack = signal_stack,
                            .frames = frames,
                            .max = MAX_FRAMES};
    registers_from_context(registers, context);
    const enum unwind_end end = unwind_walk(&unwinder, registers, &unwind);
    const uint32_t count = oracle(context, expected);
    tally.compared++;
    tally.complete += end == UNWIND_COMPLETE;
    tally.crossed_signal += unwind.crossed_signal;
    tally.unfinished += end == UNWIND_EXPRESSION;
    const bool too_many = unwind.count > count;
    const bool too_few = end == UNWIND_COMPLETE && unwind.count < count;
    if (!too_many && !too_few && memcmp(frames, expected, unwind.count * sizeof *frames) == 0)
        return;
    if (!tally.wrong)
        tally.example = registers[REGISTER_PC];
    tally.wrong++;
}

static void on_trap(int number, siginfo_t *info, void *context) {
    (void)number;
    (void)info;
    compare(context);
}

/* Set and clear the trap flag. They are written in assembler, so that the unwind information is
 * right at each of their instructions. */
void trap_on(void);
void trap_off(void);
#define TRAP_FUNCTION(name, operation)                                                             \
    __asm__(".text\n"                                                                              \
            ".type " #name ", @function\n" #name ":\n"                                             \
            "    .cfi_startproc\n"                                                                 \
            "    pushfq\n"                                                                         \
            "    .cfi_adjust_cfa_offset 8\n"                                                       \
            "    " operation ", (%rsp)\n"                                                          \
            "    popfq\n"                                                                          \
            "    .cfi_adjust_cfa_offset -8\n"                                                      \
            "    ret\n"                                                                            \
            "    .cfi_endproc\n"                                                                   \
            ".size " #name ", . - " #name "\n")
TRAP_FUNCTION(trap_on, "orq $0x100");
TRAP_FUNCTION(trap_off, "andq $~0x100");

static bool stepping;

/* Runs `work` once, so that the loader binds its calls, then step by step. At least 99.9 % of
 * stacks must be followed to their end, and none may be wrong. */
static void step_through(void (*work)(void)) {
    struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_NODEFER};
    tally = (struct tally){0};
    thread_stack = (struct stack_range){4096, getauxval(AT_EXECFN) & ~7ul};
    sigaction(SIGTRAP, &action, NULL);
    work();
    stepping = true;
    trap_on();
    work();
    trap_off();
    stepping = false;
    if (tally.wrong)
        printf("first wrong stack at pc 0x%zx\n", tally.example);
    assert_true(tally.compared > 20);
    assert_int_equal(tally.wrong, 0);
    assert_true(tally.complete * 1000 >= tally.compared * 999);
}

/* --- the code that is stepped through --- */

static volatile uint64_t sink;

__attribute__((noinline)) static uint64_t recurse(uint64_t depth) {
    char local[64];
    snprintf(local, sizeof local, "%llu", (unsigned long long)depth);
    return depth ? recurse(depth - 1) + (uint64_t)local[0] : 0;
}

static void recursion(void) {
    sink = recurse(12);
}

static void strings(void) {
    char a[300];
    char b[300];
    memset(a, 'x', sizeof a);
    a[299] = 0;
    memcpy(b, a, sizeof b);
    memmove(b + 3, b, 200);
    sink = strlen(a) + (uint64_t)strcmp(a, b) + (uint64_t)(strchr(a, 'y') != NULL) +
           (uint64_t)(memchr(b, 'q', sizeof b) != NULL) + strtoul("12345", NULL, 10);
}

static void formatting(void) {
    char text[256];
    sink = (uint64_t)snprintf(text, sizeof text, "%s %d %5.3f %p %-10s|", "abc", 42, 3.25,
                              (void *)text, "left");
}

static int by_value(const void *a, const void *b) {
    return *(const int *)a - *(const int *)b;
}

static void sorting(void) {
    int numbers[64];
    for (int i = 0; i < 64; i++)
        numbers[i] = (i * 37) % 64;
    qsort(numbers, 64, sizeof *numbers, by_value);
    sink = (uint64_t)numbers[5];
}

static void allocating(void) {
    void *blocks[8];
    for (size_t i = 0; i < 8; i++)
        blocks[i] = malloc(100 + i * 3000);
    blocks[3] = realloc(blocks[3], 50000);
    for (size_t i = 0; i < 8; i++)
        free(blocks[i]);
}

__attribute__((noinline)) static void variable_frame(size_t size) {
    char *const bytes = alloca(size);
    memset(bytes, 1, size);
    sink = (uint64_t)bytes[size - 1];
}

static void variable_frames(void) {
    for (size_t size = 16; size < 300; size += 32)
        variable_frame(size);
}

__attribute__((noinline)) static void realigned_frame(const char *text) {
    _Alignas(64) char buffer[128];
    snprintf(buffer, sizeof buffer, "%s", text);
    sink = (uint64_t)buffer[0];
}

static void realigned_frames(void) {
    realigned_frame("text");
}

/* Makes a real system call behind the vDSO's fast paths, too. */
static void clocks(void) {
    struct timespec now;
    for (clockid_t clock = CLOCK_REALTIME; clock <= CLOCK_TAI; clock++)
        sink += (uint64_t)clock_gettime(clock, &now);
    sink += (uint64_t)time(NULL) + (uint64_t)sched_getcpu();
}

/* Sets the trap flag again, which the kernel clears on entry to a handler: the handler and its
 * signal frame are stepped through, too. */
static void on_usr1(int number) {
    char text[32];
    if (stepping)
        trap_on();
    snprintf(text, sizeof text, "%d", number);
    sink = (uint64_t)text[0];
    if (stepping)
        trap_off();
}

static void signal_handlers(void) {
    struct sigaction action = {.sa_handler = on_usr1};
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
}

static void handlers_on_another_stack(void) {
    static char memory[64 << 10];
    const stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory};
    struct sigaction action = {.sa_handler = on_usr1, .sa_flags = SA_ONSTACK};
    sigaltstack(&stack, NULL);
    signal_stack = (struct stack_range){(uintptr_t)memory, (uintptr_t)memory + sizeof memory};
    sigaction(SIGUSR2, &action, NULL);
    raise(SIGUSR2);
    const stack_t none = {.ss_flags = SS_DISABLE};
    sigaltstack(&none, NULL);
}

#define STEP(name)                                                                                 \
    static void through_##name(void **state) {                                                     \
        (void)state;                                                                               \
        step_through(name);                                                                        \
    }
STEP(recursion)
STEP(strings)
STEP(formatting)
STEP(sorting)
STEP(allocating)
STEP(variable_frames)
STEP(realigned_frames)
STEP(clocks)

static void through_signal_handlers(void **state) {
    (void)state;
    step_through(signal_handlers);
    assert_true(tally.crossed_signal > 100);
}

static void through_handlers_on_another_stack(void **state) {
    (void)state;
    step_through(handlers_on_another_stack);
    assert_true(tally.crossed_signal > 100);
}

/* --- frames that the walker leaves to the helper --- */

/* Calls the function from a frame whose CFA depends on rbx, which the walker does not follow. */
void call_from_odd_frame(void (*function)(void *), void *argument);
__asm__(".text\n"
        ".type call_from_odd_frame, @function\n"
        "call_from_odd_frame:\n"
        "    .cfi_startproc\n"
        "    push %rbx\n"
        "    .cfi_def_cfa_offset 16\n"
        "    .cfi_offset %rbx, -16\n"
        "    mov %rsp, %rbx\n"
        "    .cfi_def_cfa %rbx, 16\n"
        "    sub $96, %rsp\n"
        "    and $-32, %rsp\n"
        "    mov %rdi, %rax\n"
        "    mov %rsi, %rdi\n"
        "    call *%rax\n"
        "    mov %rbx, %rsp\n"
        "    .cfi_def_cfa %rsp, 16\n"
        "    pop %rbx\n"
        "    .cfi_def_cfa_offset 8\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".size call_from_odd_frame, . - call_from_odd_frame\n");

struct capture_of_stack {
    uint64_t registers[REGISTER_COUNT];
    uint8_t bytes[8192];
    enum unwind_end end;
    uint32_t walked;
    uint64_t frames[MAX_FRAMES];
};

__attribute__((noinline)) static void take_copy(void *arg) {
    struct capture_of_stack *const c = arg;
    struct unwind unwind = {.thread_stack = thread_stack, .frames = c->frames, .max = MAX_FRAMES};
    REGISTERS_HERE(c->registers);
    c->end = unwind_walk(&unwinder, c->registers, &unwind);
    c->walked = unwind.count;
    const size_t above = thread_stack.high - c->registers[REGISTER_SP];
    memcpy(c->bytes, (const void *)c->registers[REGISTER_SP],
           above < sizeof c->bytes ? above : sizeof c->bytes);
}

static void an_odd_frame_is_finished_by_the_helper(void **state) {
    (void)state;
    static struct capture_of_stack c;
    uint64_t frames[MAX_FRAMES];
    uint32_t count;
    thread_stack = (struct stack_range){4096, getauxval(AT_EXECFN) & ~7ul};
    call_from_odd_frame(take_copy, &c);
    assert_int_equal(c.end, UNWIND_EXPRESSION);
    assert_int_equal(c.walked, 2); /* take_copy and the odd one */

    bool unloaded;
    const struct module_snapshot *const snapshot = modules_pin(&modules, &unloaded);
    struct slow_unwinder *const slow = slow_unwinder_open(snapshot->modules, snapshot->count);
    struct stack_copy copy = {.size = sizeof c.bytes, .bytes = c.bytes};
    memcpy(copy.registers, c.registers, sizeof copy.registers);
    assert_true(slow_unwind(slow, &copy, frames, stack_pointers, MAX_FRAMES, &count));
    assert_true(count > 5);
    assert_memory_equal(frames, c.frames, 2 * sizeof *frames);
    /* the third frame is this function */
    const uintptr_t here = (uintptr_t)an_odd_frame_is_finished_by_the_helper;
    assert_true(frames[2] > here && frames[2] < here + 512);

    /* a copy that is cut short ends the stack, without a crash and without an invention */
    uint32_t fewer;
    copy.size = 256;
    uint64_t short_frames[MAX_FRAMES];
    assert_false(slow_unwind(slow, &copy, short_frames, stack_pointers, MAX_FRAMES, &fewer));
    assert_true(fewer < count);
    assert_memory_equal(short_frames, frames, fewer * sizeof *frames);
    slow_unwinder_close(slow);
}

/* --- hostile input --- */

/* Defines two functions that leave the stack pointer where it was. */
__asm__(".text\n"
        ".type not_called, @function\n"
        "not_called:\n"
        ".cfi_startproc\n"
        "nop; nop; nop; nop; nop; nop; nop; nop\n"
        "behind_no_call: nop; ret\n"
        ".cfi_endproc\n"
        ".size not_called, . - not_called\n"
        ".type calls, @function\n"
        "calls:\n"
        ".cfi_startproc\n"
        "call not_called\n"
        "behind_a_call: nop; ret\n"
        ".cfi_endproc\n"
        ".size calls, . - calls\n");
extern const char not_called[];
extern const char behind_no_call[];
extern const char behind_a_call[];

/* Walks a stack whose only word is this return address. Returns the number of frames above the
 * innermost one. */
static uint32_t frames_above(const char *return_address) {
    const uintptr_t stack[2] = {(uintptr_t)return_address, 0};
    const uint64_t registers[REGISTER_COUNT] = {
        [REGISTER_PC] = (uintptr_t)not_called, [REGISTER_SP] = (uintptr_t)stack};
    uint64_t frames[MAX_FRAMES];
    struct unwind unwind = {.thread_stack = {(uintptr_t)stack, (uintptr_t)(stack + 2)},
                            .frames = frames,
                            .max = MAX_FRAMES};
    (void)unwind_walk(&unwinder, registers, &unwind);
    assert_int_equal(frames[0], (uintptr_t)not_called);
    return unwind.count - 1;
}

static void an_address_behind_no_call_is_no_caller(void **state) {
    (void)state;
    assert_int_equal(frames_above(behind_a_call), 1);
    assert_int_equal(frames_above(behind_no_call), 0);
}

/* Defines a function that finds its caller by its frame pointer, which it has not saved. */
__asm__(".text\n"
        ".type keeps_frame_pointer, @function\n"
        "keeps_frame_pointer:\n"
        ".cfi_startproc\n"
        ".cfi_def_cfa %rbp, 16\n"
        "nop; nop; nop; nop; nop; nop; nop; nop\n"
        ".cfi_endproc\n"
        ".size keeps_frame_pointer, . - keeps_frame_pointer\n");
extern const char keeps_frame_pointer[];

/* Walks twice with this frame pointer, so that the rules are in the cache. Word 2 of `stack` is the
 * leaf's frame, word 3 its return address. Returns the number of frames. */
static uint32_t frames_by_frame_pointer(const uintptr_t stack[5], uintptr_t fp) {
    const uint64_t registers[REGISTER_COUNT] = {[REGISTER_PC] = (uintptr_t)keeps_frame_pointer,
                                                [REGISTER_SP] = (uintptr_t)stack,
                                                [REGISTER_FP] = fp};
    uint64_t frames[MAX_FRAMES];
    struct unwind unwind = {.thread_stack = {(uintptr_t)stack, (uintptr_t)(stack + 5)},
                            .frames = frames,
                            .max = MAX_FRAMES};
    for (int round = 0; round < 2; round++)
        (void)unwind_walk(&unwinder, registers, &unwind);
    assert_int_equal(frames[0], (uintptr_t)keeps_frame_pointer);
    return unwind.count;
}

static void a_frame_pointer_outside_the_stack_is_not_followed(void **state) {
    (void)state;
    const uintptr_t stack[5] = {0, 0, 0, (uintptr_t)behind_a_call, 0};
    const uintptr_t sp = (uintptr_t)stack;
    const uintptr_t wrong[] = {0,
                               8,
                               sp - 16,           /* below the frame: no step */
                               sp - 4096,         /* below the stack */
                               sp + 4,            /* not aligned */
                               sp + sizeof stack, /* behind the stack */
                               sp + 4096,         /* far behind it */
                               (uintptr_t)INT64_MAX,
                               UINTPTR_MAX - 7, /* the CFA is a low address */
                               UINTPTR_MAX - 15,
                               UINTPTR_MAX - 23};
    assert_int_equal(frames_by_frame_pointer(stack, sp + 16), 2);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(frames_by_frame_pointer(stack, wrong[i]), 1);
}

static void a_smashed_frame_pointer_is_not_followed(void **state) {
    (void)state;
    uint64_t frames[MAX_FRAMES];
    uint64_t registers[REGISTER_COUNT];
    uint64_t random = 3;
    thread_stack = (struct stack_range){4096, getauxval(AT_EXECFN) & ~7ul};
    for (int i = 0; i < 100000; i++) {
        struct unwind unwind = {.thread_stack = thread_stack, .frames = frames, .max = MAX_FRAMES};
        REGISTERS_HERE(registers);
        random = random * 6364136223846793005u + 1442695040888963407u;
        registers[REGISTER_FP] = i % 2 ? random : registers[REGISTER_SP] + (random >> 50) * 8;
        if (i % 3 == 0)
            /* an address in no object: walked by frame pointers */
            registers[REGISTER_PC] = random >> 17;
        (void)unwind_walk(&unwinder, registers, &unwind);
        assert_true(unwind.count <= MAX_FRAMES);
    }
}

/* Feeds nonsense as CFI: whatever it contains, the reader stays inside its range. */
static void wrong_cfi_is_not_followed(void **state) {
    (void)state;
    uint64_t random = 11;
    for (int round = 0; round < 200000; round++) {
        uint8_t bytes[256];
        for (size_t i = 0; i < sizeof bytes; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            bytes[i] = (uint8_t)(random >> 56);
        }
        /* a header that passes, with entries that point back into the noise */
        const uint8_t head[] = {1, 0x1b, 0x03, 0x3b, 0, 0, 0, 0, 2, 0, 0, 0};
        memcpy(bytes, head, sizeof head);
        const int32_t table[] = {0, 32 + (int32_t)(random % 64), 64, 32 + (int32_t)(random % 128)};
        memcpy(bytes + sizeof head, table, sizeof table);
        const struct cfi_tables tables = {.header = (uintptr_t)bytes,
                                          .start = (uintptr_t)bytes,
                                          .end = (uintptr_t)bytes + sizeof bytes};
        const struct rule rule = cfi_rule(&tables, (uintptr_t)bytes + random % 128);
        assert_true(rule.cfa_kind <= RULE_AT_FP && rule.fp_kind <= FP_LOST);
    }
}

static int start(void **state) {
    (void)state;
    return modules_start(&modules) ? 0 : -1;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(through_recursion),
        cmocka_unit_test(through_strings),
        cmocka_unit_test(through_formatting),
        cmocka_unit_test(through_sorting),
        cmocka_unit_test(through_allocating),
        cmocka_unit_test(through_variable_frames),
        cmocka_unit_test(through_realigned_frames),
        cmocka_unit_test(through_clocks),
        cmocka_unit_test(through_signal_handlers),
        cmocka_unit_test(through_handlers_on_another_stack),
        cmocka_unit_test(an_odd_frame_is_finished_by_the_helper),
        cmocka_unit_test(an_address_behind_no_call_is_no_caller),
        cmocka_unit_test(a_frame_pointer_outside_the_stack_is_not_followed),
        cmocka_unit_test(a_smashed_frame_pointer_is_not_followed),
        cmocka_unit_test(wrong_cfi_is_not_followed),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
