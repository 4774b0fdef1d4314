/* Tests stacks and code without a description: fibres, code made at run time, gaps in an object's
 * unwind information. */
#include "unit.h"

#include "arch_context.h"
#include "arch_machine.h"
#include "unwind/modules.h"
#include "unwind/unwind.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

enum { MAX_FRAMES = 256, PAGE = 4096, FIBRE_BYTES = 64 << 10, DEPTH = 24, STACK_BYTES = 8 << 20 };

static struct modules modules;
static struct rule_cache rules;
static _Atomic uintptr_t generated;
static struct unwinder unwinder = {.modules = &modules, .rules = &rules, .generated = &generated};
static struct stack_range thread_stack;
static volatile uint64_t sink;

/* --- fibres --- */

static struct {
    ucontext_t fibre;
    ucontext_t back;
    struct unwind walk;
    enum unwind_end end;
    uint64_t frames[MAX_FRAMES];
} fibre;

__attribute__((noinline)) static void walk_here(void) {
    uint64_t registers[REGISTER_COUNT];
    fibre.walk =
        (struct unwind){.thread_stack = thread_stack, .frames = fibre.frames, .max = MAX_FRAMES};
    REGISTERS_HERE(registers);
    fibre.end = unwind_walk(&unwinder, registers, &fibre.walk);
}

/* Each frame is larger than a quarter of a page, so the walk crosses several. */
__attribute__((noinline)) static uint64_t descend(int depth) {
    volatile char room[1500];
    room[depth] = (char)depth;
    if (depth == 0)
        walk_here();
    else
        sink = descend(depth - 1);
    return (uint64_t)room[depth];
}

static void fibre_main(void) {
    sink = descend(DEPTH);
    swapcontext(&fibre.fibre, &fibre.back);
}

static void run_fibre(char *stack, size_t size) {
    getcontext(&fibre.fibre);
    fibre.fibre.uc_stack = (stack_t){.ss_sp = stack, .ss_size = size};
    fibre.fibre.uc_link = &fibre.back;
    makecontext(&fibre.fibre, fibre_main, 0);
    swapcontext(&fibre.back, &fibre.fibre);
}

static void a_fibre_is_walked_to_its_end(void **state) {
    (void)state;
    char *const memory =
        mmap(NULL, FIBRE_BYTES + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(memory + PAGE, FIBRE_BYTES, PROT_READ | PROT_WRITE);
    run_fibre(memory + PAGE, FIBRE_BYTES);
    assert_true(fibre.walk.foreign_stack);
    assert_int_equal(fibre.end, UNWIND_COMPLETE);
    assert_int_equal(fibre.walk.count, DEPTH + 3); /* walk_here, descend, fibre_main */
    for (uint32_t i = 1; i <= DEPTH + 1; i++)
        assert_true(fibre.frames[i] - (uintptr_t)descend < 256);
    assert_true(fibre.frames[DEPTH + 2] - (uintptr_t)fibre_main < 128);
}

/* --- the ends of stacks that others lay out (stack_end.h) --- */

/* Enters stacks as boost.context and Go do, without either of them: enter_by_trampoline(top) and
 * enter_as_goroutine(top) enter the stack, and return when the function on that stack calls
 * leave_stack(). None of this code has unwind information, and the code that is like Go's is in the
 * middle of a block without any. */
void enter_by_trampoline(void *top);
void enter_as_goroutine(void *top);
void leave_stack(void);
void walk_on_fibre(void);
extern void *thread_rsp;
extern const char goroutine_entry[];
extern const char goroutine_calls_c[];
extern const char goroutine_calls[];

void *thread_rsp;

__asm__(".text\n"
        "enter_by_trampoline:\n"
        "    push %rbp; push %rbx; push %r12; push %r13; push %r14; push %r15; push %rax\n"
        "    mov %rsp, thread_rsp(%rip)\n"
        "    mov %rdi, %rsp\n"
        "    lea walk_on_fibre(%rip), %rbx\n"
        "    lea trampoline_end(%rip), %rbp\n"
        "    push %rbp\n"
        "    jmp *%rbx\n"
        "trampoline_end:\n"
        "    xor %edi, %edi\n"
        "    call leave_stack\n"
        "leave_stack:\n"
        "    mov thread_rsp(%rip), %rsp\n"
        "    pop %rax; pop %r15; pop %r14; pop %r13; pop %r12; pop %rbx; pop %rbp\n"
        "    ret\n"
        "    .skip 20000, 0xcc\n"
        "enter_as_goroutine:\n"
        "    push %rbp; push %rbx; push %r12; push %r13; push %r14; push %r15; push %rax\n"
        "    mov %rsp, thread_rsp(%rip)\n"
        "    mov %rdi, %rsp\n"
        "    lea goroutine_exit+1(%rip), %rax\n"
        "    push %rax\n"
        "    xor %ebp, %ebp\n"
        "goroutine_entry:\n"
        "    push %rbp\n"
        "    mov %rsp, %rbp\n"
        "    call on_thread_stack\n"
        "goroutine_calls:\n"
        "    call leave_stack\n"
        "    .skip 16, 0xcc\n"
        "goroutine_exit:\n"
        "    nop\n"
        "    call leave_stack\n"
        "on_thread_stack:\n"
        "    push %rbp\n"
        "    mov %rsp, %rbp\n"
        "    mov %rsp, %rdx\n"
        "    mov thread_rsp(%rip), %rsp\n"
        "    sub $16, %rsp\n"
        "    mov %rdx, (%rsp)\n"
        "    call walk_on_fibre\n"
        "goroutine_calls_c:\n"
        "    mov (%rsp), %rsp\n"
        "    pop %rbp\n"
        "    ret\n"
        "    .skip 20000, 0xcc\n");

void walk_on_fibre(void) {
    walk_here();
    sink++; /* prevents a tail call */
}

static char *fibre_memory(void) {
    return mmap(NULL, FIBRE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void a_fibre_that_a_trampoline_jumped_into_is_whole(void **state) {
    (void)state;
    enter_by_trampoline(fibre_memory() + FIBRE_BYTES);
    assert_int_equal(fibre.end, UNWIND_COMPLETE);
    assert_int_equal(fibre.walk.count, 2);
    assert_true(fibre.frames[1] - (uintptr_t)walk_on_fibre < 64);
}

static void a_goroutine_that_calls_c_on_the_threads_stack_is_whole(void **state) {
    (void)state;
    enter_as_goroutine(fibre_memory() + FIBRE_BYTES);
    assert_int_equal(fibre.end, UNWIND_COMPLETE);
    assert_int_equal(fibre.walk.count, 4);
    assert_true(fibre.frames[2] == (uintptr_t)goroutine_calls_c - 1);
    assert_true(fibre.frames[3] == (uintptr_t)goroutine_calls - 1);
}

/* Walks from the C code that on_thread_stack calls, which has no frame of its own: sets registers
 * and stack as they would be there. */
static enum unwind_end walk_behind_c(uint64_t *frames, uint32_t *count, uintptr_t rbp) {
    uint64_t registers[REGISTER_COUNT] = {0};
    uintptr_t words[8] = {(uintptr_t)goroutine_calls_c};
    struct unwind walk = {.thread_stack = {(uintptr_t)words, (uintptr_t)(words + 8)},
                          .frames = frames,
                          .max = MAX_FRAMES};
    registers[REGISTER_SP] = (uintptr_t)words;
    registers[REGISTER_FP] = rbp;
    registers[REGISTER_PC] = (uintptr_t)goroutine_entry + 4;
    const enum unwind_end end = unwind_walk(&unwinder, registers, &walk);
    *count = walk.count;
    return end;
}

/* Puts any number into rbp, as code without frame pointers does. The walk follows it to another
 * stack only if that memory looks like a stack. */
static void a_frame_pointer_to_no_stack_is_not_followed(void **state) {
    (void)state;
    uint64_t frames[MAX_FRAMES];
    uint32_t count;
    uintptr_t *const other = (uintptr_t *)(void *)fibre_memory();
    other[1] = (uintptr_t)goroutine_calls;
    assert_int_equal(walk_behind_c(frames, &count, (uintptr_t)other), UNWIND_COMPLETE);
    assert_int_equal(count, 3);
    other[0] = (uintptr_t)other - 64; /* the next frame is below */
    assert_int_equal(walk_behind_c(frames, &count, (uintptr_t)other), UNWIND_TRUNCATED);
    assert_int_equal(count, 2);
    other[0] = (uintptr_t)(other + 4);
    other[1] = (uintptr_t)goroutine_calls + 3; /* no call precedes this address */
    assert_int_equal(walk_behind_c(frames, &count, (uintptr_t)other), UNWIND_TRUNCATED);
    assert_int_equal(count, 2);
    assert_int_equal(walk_behind_c(frames, &count, 64), UNWIND_TRUNCATED);
    assert_int_equal(count, 2);
}

/* Pushes a frame twice as Go's crosscall2 does, through which C calls Go. */
static void a_frame_that_was_pushed_twice_is_one(void **state) {
    (void)state;
    uint64_t frames[MAX_FRAMES];
    uint64_t registers[REGISTER_COUNT] = {0};
    uintptr_t words[8] = {(uintptr_t)goroutine_calls_c, 0, 0, 0, (uintptr_t)goroutine_calls};
    struct unwind walk = {.thread_stack = {(uintptr_t)words, (uintptr_t)(words + 8)},
                          .frames = frames,
                          .max = MAX_FRAMES};
    words[2] = (uintptr_t)(words + 3);
    registers[REGISTER_SP] = (uintptr_t)words;
    registers[REGISTER_FP] = (uintptr_t)(words + 2);
    registers[REGISTER_PC] = (uintptr_t)goroutine_entry + 4;
    assert_int_equal(unwind_walk(&unwinder, registers, &walk), UNWIND_COMPLETE);
    assert_int_equal(walk.count, 3);
    assert_true(frames[2] == (uintptr_t)goroutine_calls - 1);
}

/* Preempts as Go does: its handler makes the interrupted code "call" a function. */
static void a_call_that_a_signal_handler_put_in_is_returned_from(void **state) {
    (void)state;
    uint64_t frames[MAX_FRAMES];
    uint64_t registers[REGISTER_COUNT] = {0};
    const uintptr_t interrupted = (uintptr_t)goroutine_calls + 2; /* within an instruction */
    uintptr_t words[8] = {interrupted, 0, 0, 0, 0, (uintptr_t)goroutine_calls};
    struct unwind walk = {.thread_stack = {(uintptr_t)words, (uintptr_t)(words + 8)},
                          .frames = frames,
                          .max = MAX_FRAMES};
    registers[REGISTER_SP] = (uintptr_t)words;
    registers[REGISTER_FP] = (uintptr_t)(words + 4);
    registers[REGISTER_PC] = (uintptr_t)goroutine_entry;
    assert_int_equal(unwind_walk(&unwinder, registers, &walk), UNWIND_COMPLETE);
    assert_int_equal(walk.count, 3);
    assert_true(frames[0] == (uintptr_t)goroutine_entry && frames[1] == interrupted);
    assert_true(frames[2] == (uintptr_t)goroutine_calls - 1);
}

/* Walks a stack above which no memory is mapped, as with a wild stack pointer. */
static void a_stack_that_ends_in_nothing_is_left(void **state) {
    (void)state;
    char *const memory =
        mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(memory, 0x11, PAGE);
    munmap(memory + PAGE, PAGE);
    uint64_t frames[MAX_FRAMES];
    uint64_t registers[REGISTER_COUNT] = {0};
    for (uintptr_t rsp = 0; rsp < PAGE; rsp += 8) {
        struct unwind walk = {.thread_stack = thread_stack, .frames = frames, .max = MAX_FRAMES};
        registers[REGISTER_SP] = (uintptr_t)memory + rsp;
        registers[REGISTER_FP] = (uintptr_t)memory + PAGE - 8;
        registers[REGISTER_PC] = (uintptr_t)descend + 40;
        assert_int_not_equal(unwind_walk(&unwinder, registers, &walk), UNWIND_COMPLETE);
        assert_int_equal(walk.count, 1);
    }
}

static void readable_memory_is_distinguished_from_unreadable(void **state) {
    (void)state;
    char *const memory =
        mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(memory + PAGE, PAGE, PROT_NONE);
    errno = 77;
    assert_true(memory_is_readable((uintptr_t)memory));
    assert_true(memory_is_readable((uintptr_t)memory + PAGE - 1));
    assert_false(memory_is_readable((uintptr_t)memory + PAGE));
    assert_false(memory_is_readable(8));
    assert_false(memory_is_readable(UINT64_C(0x8000000000000000)));
    assert_int_equal(errno, 77);
}

/* --- code without a description, stepped through --- */

/* outer: push rbp; mov rbp, rsp; push rbx; sub rsp, 24; call inner; add rsp, 24; pop rbx; pop rbp;
 *        ret
 * inner: push rbp; mov rbp, rsp; xor eax, eax; call leaf; nop; leave; ret
 * leaf:  nop; lea rcx, [rax + 1]; ret */
static const uint8_t machine_code[] = {
    0x55, 0x48, 0x89, 0xe5, 0x53, 0x48, 0x83, 0xec, 0x18, 0xe8, 7,    0,    0,    0,
    0x48, 0x83, 0xc4, 0x18, 0x5b, 0x5d, 0xc3, 0x55, 0x48, 0x89, 0xe5, 0x31, 0xc0, 0xe8,
    3,    0,    0,    0,    0x90, 0xc9, 0xc3, 0x90, 0x48, 0x8d, 0x48, 0x01, 0xc3};
enum { OUTER_END = 21, INNER_END = 35, OUTER_CALL = 13, INNER_CALL = 31, CODE_BYTES = 64 };

void call_with_trap(uintptr_t code);
static void step_through_code(uintptr_t code);

static struct {
    uintptr_t code; /* address of the code that is stepped through */
    bool has_calls; /* the code is machine_code */
    uintptr_t from; /* offset of the first instruction that is checked */
    uint64_t caller[MAX_FRAMES];
    uint32_t caller_count;
    unsigned steps;
    unsigned wrong;
    unsigned first_wrong;
} step;

/* Lists the frames of the code itself at `offset`, innermost first. */
static uint32_t expected_frames(uintptr_t offset, uint64_t frames[3]) {
    uint32_t count = 0;
    frames[count++] = step.code + offset;
    if (step.has_calls && offset >= INNER_END)
        frames[count++] = step.code + INNER_CALL;
    if (step.has_calls && offset >= OUTER_END)
        frames[count++] = step.code + OUTER_CALL;
    return count;
}

static bool right(const struct unwind *walk, uintptr_t offset) {
    uint64_t own[3];
    const uint32_t count = expected_frames(offset, own);
    if (walk->count != count + step.caller_count)
        return false;
    if (memcmp(walk->frames, own, count * sizeof *own) != 0)
        return false;
    /* call_with_trap, then step_through_code(), which is at another pc when it calls; then the rest
     */
    return walk->frames[count] - (uintptr_t)call_with_trap < 64 &&
           walk->frames[count + 1] - (uintptr_t)step_through_code < 1024 &&
           memcmp(walk->frames + count + 2, step.caller + 2,
                  (step.caller_count - 2) * sizeof *step.caller) == 0;
}

static void on_trap(int number, siginfo_t *info, void *context) {
    static uint64_t frames[MAX_FRAMES];
    uint64_t registers[REGISTER_COUNT];
    (void)number;
    (void)info;
    registers_from_context(registers, context);
    const uintptr_t offset = registers[REGISTER_PC] - step.code;
    if (offset < step.from || offset >= CODE_BYTES)
        return;
    struct unwind walk = {.thread_stack = thread_stack, .frames = frames, .max = MAX_FRAMES};
    const enum unwind_end end = unwind_walk(&unwinder, registers, &walk);
    step.steps++;
    if (end == UNWIND_COMPLETE && right(&walk, offset))
        return;
    if (!step.wrong++)
        step.first_wrong = (unsigned)offset;
}

/* Calls the code with the processor's trap flag set: a SIGTRAP follows each instruction. Is written
 * in assembler, so that its unwind information is right at each instruction. */
__asm__(".text\n"
        ".type call_with_trap, @function\n"
        "call_with_trap:\n"
        "    .cfi_startproc\n"
        "    pushfq\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    orq $0x100, (%rsp)\n"
        "    popfq\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    push %rbx\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    call *%rdi\n"
        "    pop %rbx\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    pushfq\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    andq $~0x100, (%rsp)\n"
        "    popfq\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".size call_with_trap, . - call_with_trap\n");

/* Clears room on the stack that the code reserves and does not fill: earlier calls may have left a
 * return address there, and the walk believes one on top of the stack. */
__attribute__((noinline)) static void clear_stack_below(void) {
    volatile uint64_t words[512];
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        words[i] = 0;
}

__attribute__((noinline)) static void step_through_code(uintptr_t code) {
    struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
    uint64_t registers[REGISTER_COUNT];
    struct unwind here = {
        .thread_stack = thread_stack, .frames = step.caller + 1, .max = MAX_FRAMES - 1};
    step.code = code;
    step.steps = step.wrong = 0;
    sigaction(SIGTRAP, &action, NULL);
    REGISTERS_HERE(registers);
    assert_int_equal(unwind_walk(&unwinder, registers, &here), UNWIND_COMPLETE);
    step.caller_count = here.count + 1; /* with call_with_trap */
    clear_stack_below();
    call_with_trap(code);
}

static void step_through(uintptr_t code) {
    step.has_calls = true;
    step_through_code(code);
    step.has_calls = false;
    if (step.wrong)
        printf("first wrong at offset %u\n", step.first_wrong);
    assert_int_equal(step.steps, 19);
    assert_int_equal(step.wrong, 0);
}

static void code_made_at_run_time_is_crossed(void **state) {
    (void)state;
    void *const memory =
        mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(memory, machine_code, sizeof machine_code);
    mprotect(memory, PAGE, PROT_READ | PROT_EXEC);
    step_through((uintptr_t)memory);
}

/* --- code that keeps data where its stack pointer points --- */

/* Saves the stack pointer in a block, as oneDNN's matrix products do, and uses the frame pointer
 * for data: push rbp; push rbx; push r12 to r15; mov rax, rsp; mov rsp, block; mov [rsp + 120],
 * rax; mov ebp, 4660; nop; nop; mov rsp, [rsp + 120]; pop r15 to r12; pop rbx; pop rbp; ret */
static uint8_t code_with_data[] = {0x55, 0x53, 0x41, 0x54, 0x41, 0x55, 0x41, 0x56, 0x41, 0x57, 0x48,
                                   0x89, 0xe0, 0x48, 0xbc, 0,    0,    0,    0,    0,    0,    0,
                                   0,    0x48, 0x89, 0x44, 0x24, 0x78, 0xbd, 0x34, 0x12, 0,    0,
                                   0x90, 0x90, 0x48, 0x8b, 0x64, 0x24, 0x78, 0x41, 0x5f, 0x41, 0x5e,
                                   0x41, 0x5d, 0x41, 0x5c, 0x5b, 0x5d, 0xc3};
enum { BLOCK_ADDRESS = 15, IS_SAVED = 28, STEPS_FROM_THERE = 11 };

static void the_caller_of_code_with_data_at_its_stack_pointer_is_found(void **state) {
    (void)state;
    char *const memory =
        mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const uintptr_t block = (uintptr_t)memory + STACK_BYTES / 2; /* the handler runs below it */
    memcpy(code_with_data + BLOCK_ADDRESS, &block, sizeof block);
    memcpy(memory, code_with_data, sizeof code_with_data);
    mprotect(memory, PAGE, PROT_READ | PROT_EXEC);
    step.from = IS_SAVED;
    step_through_code((uintptr_t)memory);
    step.from = 0;
    assert_int_equal(step.steps, STEPS_FROM_THERE);
    assert_int_equal(step.wrong, 0);
    munmap(memory, STACK_BYTES);
}

/* Runs the same code as a block without unwind information in the middle of an object. */
extern const uint8_t code_in_a_gap[];
__asm__(".text\n"
        "    .skip 20000, 0xcc\n"
        "code_in_a_gap:\n"
        "    .byte 0x55, 0x48, 0x89, 0xe5, 0x53, 0x48, 0x83, 0xec, 0x18, 0xe8, 7, 0, 0, 0\n"
        "    .byte 0x48, 0x83, 0xc4, 0x18, 0x5b, 0x5d, 0xc3, 0x55, 0x48, 0x89, 0xe5, 0x31, 0xc0\n"
        "    .byte 0xe8, 3, 0, 0, 0, 0x90, 0xc9, 0xc3, 0x90, 0x48, 0x8d, 0x48, 0x01, 0xc3\n"
        "    .skip 20000, 0xcc\n");

static void a_block_of_generated_code_in_an_object_is_crossed(void **state) {
    (void)state;
    assert_memory_equal(code_in_a_gap, machine_code, sizeof machine_code);
    step_through((uintptr_t)code_in_a_gap);
}

/* Fills the stack with addresses that no call has left there. The walk follows a return address
 * only if a call precedes it in the code. */
static void a_return_address_behind_no_call_is_not_followed(void **state) {
    (void)state;
    uint64_t words[64];
    uint64_t frames[MAX_FRAMES];
    uint64_t registers[REGISTER_COUNT] = {0};
    uint64_t random = 5;
    for (int round = 0; round < 100000; round++) {
        for (int i = 0; i < 64; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            /* addresses near the code, and in the stack, which no call ever left there */
            words[i] = i % 2 ? (uintptr_t)words + (random >> 55 << 3)
                             : (uintptr_t)code_in_a_gap + 20000 + 64 + (random >> 54);
        }
        struct unwind walk = {.thread_stack = {(uintptr_t)words, (uintptr_t)(words + 64)},
                              .frames = frames,
                              .max = MAX_FRAMES};
        registers[REGISTER_SP] = (uintptr_t)words;
        registers[REGISTER_FP] = (uintptr_t)(words + random % 60);
        registers[REGISTER_PC] = (uintptr_t)code_in_a_gap + 4;
        const enum unwind_end end = unwind_walk(&unwinder, registers, &walk);
        assert_int_not_equal(end, UNWIND_COMPLETE);
        /* a call precedes each address, whatever path the walk took */
        for (uint32_t i = 1; i < walk.count; i++) {
            const uint8_t *const next = (const uint8_t *)walk.frames[i] + 1;
            assert_true(next[-5] == 0xe8 || memchr(next - 7, 0xff, 6));
        }
    }
}

static int start(void **state) {
    (void)state;
    const uintptr_t top = getauxval(AT_EXECFN) & ~7ul;
    thread_stack = (struct stack_range){top - STACK_BYTES, top};
    return modules_start(&modules) ? 0 : -1;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fibre_is_walked_to_its_end),
        cmocka_unit_test(a_fibre_that_a_trampoline_jumped_into_is_whole),
        cmocka_unit_test(a_goroutine_that_calls_c_on_the_threads_stack_is_whole),
        cmocka_unit_test(a_frame_pointer_to_no_stack_is_not_followed),
        cmocka_unit_test(a_frame_that_was_pushed_twice_is_one),
        cmocka_unit_test(a_call_that_a_signal_handler_put_in_is_returned_from),
        cmocka_unit_test(a_stack_that_ends_in_nothing_is_left),
        cmocka_unit_test(readable_memory_is_distinguished_from_unreadable),
        cmocka_unit_test(code_made_at_run_time_is_crossed),
        cmocka_unit_test(the_caller_of_code_with_data_at_its_stack_pointer_is_found),
        cmocka_unit_test(a_block_of_generated_code_in_an_object_is_crossed),
        cmocka_unit_test(a_return_address_behind_no_call_is_not_followed),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
