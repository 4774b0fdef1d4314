/* Tests the helper's unwinder over a copied stack: this program copies its own stack and registers
 * at a known place, goes on, and later requests the frames. Every function on the way notes down
 * its return address, so the truth is known without another unwinder.
 */
#include "unit.h"

#include "arch_context.h"
#include "arch_machine.h"
#include "files/by_path.h"
#include "symbolize/slow_unwind.h"
#include "unwind/modules.h"

#include <alloca.h>
#include <signal.h>
#include <sys/auxv.h>
#include <ucontext.h>

enum { MAX_FRAMES = 256, COPY_BYTES = 32768 };

static uint64_t stack_pointers[MAX_FRAMES];

static struct modules modules;
static struct slow_unwinder *unwinder;

/* --- taking a copy --- */

static struct {
    uint64_t registers[REGISTER_COUNT];
    uint8_t bytes[COPY_BYTES];
    uint32_t size;
    uint64_t expected[8]; /* return addresses - 1, innermost first */
    size_t expected_count;
    uint64_t interrupted; /* pc at which the signal came */
} taken;

static void copy_stack(const uint64_t registers[REGISTER_COUNT]) {
    const uint64_t top = getauxval(AT_EXECFN) & ~UINT64_C(7);
    const uint64_t above = top - registers[REGISTER_SP];
    memcpy(taken.registers, registers, sizeof taken.registers);
    taken.size = above < COPY_BYTES ? (uint32_t)above : COPY_BYTES;
    memcpy(taken.bytes, (const void *)registers[REGISTER_SP], taken.size);
}

static struct stack_copy the_copy(void) {
    struct stack_copy copy = {.size = taken.size, .bytes = taken.bytes};
    memcpy(copy.registers, taken.registers, sizeof copy.registers);
    return copy;
}

#define NOTE_RETURN()                                                                              \
    (taken.expected[taken.expected_count++] = (uint64_t)__builtin_return_address(0) - 1)

/* --- a chain with the frames that compilers make --- */

static volatile uint64_t sink;

__attribute__((noinline)) static void plain(void (*leaf)(void)) {
    leaf();
    NOTE_RETURN();
    sink++;
}

__attribute__((noinline)) static void with_alloca(void (*leaf)(void), size_t size) {
    char *const bytes = alloca(size);
    memset(bytes, 0x5a, size);
    plain(leaf);
    NOTE_RETURN();
    sink += (uint64_t)bytes[size - 1];
}

__attribute__((noinline)) static void realigned(void (*leaf)(void), size_t size) {
    _Alignas(128) char buffer[256];
    memset(buffer, 1, sizeof buffer);
    __asm__ volatile("" ::"r"(buffer) : "memory");
    with_alloca(leaf, size);
    NOTE_RETURN();
    sink += (uint64_t)buffer[3];
}

static void take(void (*leaf)(void), size_t size) {
    memset(&taken, 0, sizeof taken);
    realigned(leaf, size);
}

/* Checks that `frames` has the noted chain without a gap, at index `from` or later. */
static void assert_chain(const uint64_t *frames, uint32_t count, uint32_t from) {
    assert_int_equal(taken.expected_count, 3);
    for (uint32_t at = from; at + 3 <= count; at++)
        if (memcmp(frames + at, taken.expected, 3 * sizeof *frames) == 0)
            return;
    fail_msg("the chain is not among the %u frames", count);
}

/* --- leaves --- */

__attribute__((noinline)) static void copy_here(void) {
    uint64_t registers[REGISTER_COUNT];
    REGISTERS_HERE(registers);
    copy_stack(registers);
}

static void copy_interrupted(int number, siginfo_t *info, void *context) {
    uint64_t registers[REGISTER_COUNT];
    (void)number;
    (void)info;
    registers_from_context(registers, context);
    copy_stack(registers);
}

static void copy_in_handler(int number, siginfo_t *info, void *context) {
    uint64_t registers[REGISTER_COUNT];
    (void)number;
    (void)info;
    registers_from_context(registers, context);
    taken.interrupted = registers[REGISTER_PC];
    copy_here();
}

static void raise_with(void (*handler)(int, siginfo_t *, void *)) {
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
}

__attribute__((noinline)) static void interrupted(void) {
    raise_with(copy_interrupted);
    sink++;
}

__attribute__((noinline)) static void in_handler(void) {
    raise_with(copy_in_handler);
    sink++;
}

/* --- promises --- */

static void a_chain_is_followed_to_its_end(void **state) {
    (void)state;
    for (size_t size = 16; size < 4096; size *= 2) {
        uint64_t frames[MAX_FRAMES];
        uint32_t count;
        take(copy_here, size);
        const struct stack_copy copy = the_copy();
        assert_true(slow_unwind(unwinder, &copy, frames, stack_pointers, MAX_FRAMES, &count));
        assert_int_equal(frames[0], copy.registers[REGISTER_PC]);
        assert_chain(frames, count, 1);
    }
}

static void an_interrupted_frame_is_exact(void **state) {
    (void)state;
    uint64_t frames[MAX_FRAMES];
    uint32_t count;
    take(interrupted, 64);
    const struct stack_copy copy = the_copy();
    assert_true(slow_unwind(unwinder, &copy, frames, stack_pointers, MAX_FRAMES, &count));
    assert_int_equal(frames[0], copy.registers[REGISTER_PC]);
    assert_chain(frames, count, 1);
}

static void a_signal_frame_is_crossed(void **state) {
    (void)state;
    uint64_t frames[MAX_FRAMES];
    uint32_t count;
    bool found = false;
    take(in_handler, 64);
    const struct stack_copy copy = the_copy();
    assert_true(slow_unwind(unwinder, &copy, frames, stack_pointers, MAX_FRAMES, &count));
    for (uint32_t i = 0; i < count; i++)
        found = found || frames[i] == taken.interrupted;
    assert_true(found); /* the copy as it is, not one byte before */
    assert_chain(frames, count, 3);
}

static void a_depth_limit_is_kept(void **state) {
    (void)state;
    uint64_t all[MAX_FRAMES];
    uint64_t frames[MAX_FRAMES];
    uint32_t total;
    take(copy_here, 64);
    const struct stack_copy copy = the_copy();
    assert_true(slow_unwind(unwinder, &copy, all, stack_pointers, MAX_FRAMES, &total));
    for (uint32_t max = 0; max < total; max++) {
        uint32_t count;
        memset(frames, 0xee, sizeof frames);
        assert_false(slow_unwind(unwinder, &copy, frames, stack_pointers, max, &count));
        assert_int_equal(count, max);
        assert_memory_equal(frames, all, max * sizeof *frames);
        assert_int_equal(frames[max], UINT64_C(0xeeeeeeeeeeeeeeee));
    }
}

static void a_short_copy_ends_the_stack(void **state) {
    (void)state;
    uint64_t all[MAX_FRAMES];
    uint64_t frames[MAX_FRAMES];
    uint32_t total;
    take(copy_here, 64);
    struct stack_copy copy = the_copy();
    assert_true(slow_unwind(unwinder, &copy, all, stack_pointers, MAX_FRAMES, &total));
    for (uint32_t size = 0; size < 2048; size += 8) {
        uint32_t count;
        copy.size = size;
        const bool complete =
            slow_unwind(unwinder, &copy, frames, stack_pointers, MAX_FRAMES, &count);
        assert_true(count <= total);
        assert_true(!complete || count == total);
        assert_memory_equal(frames, all, count * sizeof *frames);
    }
}

static void wild_registers_are_survived(void **state) {
    (void)state;
    static const uint64_t wild[] = {0, 1, 8, UINT64_C(0x7fffffffffff), UINT64_MAX - 7, UINT64_MAX};
    take(copy_here, 64);
    for (size_t i = 0; i < sizeof wild / sizeof *wild; i++)
        for (int number = 0; number < REGISTER_COUNT; number++) {
            uint64_t frames[MAX_FRAMES];
            uint32_t count;
            struct stack_copy copy = the_copy();
            copy.registers[number] = wild[i];
            (void)slow_unwind(unwinder, &copy, frames, stack_pointers, MAX_FRAMES, &count);
            assert_true(count <= MAX_FRAMES);
        }
}

static void an_unloaded_module_is_not_read(void **state) {
    (void)state;
    uint64_t frames[MAX_FRAMES];
    uint32_t count;
    take(copy_here, 64);
    const struct stack_copy copy = the_copy();
    /* its memory is gone: nothing is mapped at page zero */
    const struct harvest_module gone = {.start = copy.registers[REGISTER_PC] - 16,
                                        .end = copy.registers[REGISTER_PC] + 16,
                                        .eh_frame_hdr = 4096,
                                        .eh_frame_hdr_size = 4096,
                                        .path = "",
                                        .unloaded = true};
    struct slow_unwinder *const other = slow_unwinder_open(&gone, 1);
    assert_non_null(other);
    assert_false(slow_unwind(other, &copy, frames, stack_pointers, MAX_FRAMES, &count));
    slow_unwinder_close(other);
    assert_true(count >= 1);
    assert_int_equal(frames[0], copy.registers[REGISTER_PC]);
}

static bool nothing_may_be_opened(void) {
    return false;
}

/* Acts as a daemon that gave up root: /proc/self/mem is root's. */
static void no_file_of_proc_is_needed(void **state) {
    (void)state;
    uint64_t frames[MAX_FRAMES];
    uint32_t count;
    bool unloaded;
    const struct module_snapshot *const snapshot = modules_pin(&modules, &unloaded);
    by_path_set_check(nothing_may_be_opened);
    struct slow_unwinder *const other = slow_unwinder_open(snapshot->modules, snapshot->count);
    by_path_set_check(NULL);
    assert_non_null(other);
    take(copy_here, 64);
    const struct stack_copy copy = the_copy();
    (void)slow_unwind(other, &copy, frames, stack_pointers, MAX_FRAMES, &count);
    assert_chain(frames, count, 1);
    slow_unwinder_close(other);
}

/* Calls the function from code without unwind information. Its rbp is arbitrary: here it points at
 * a frame that looks right, but that no call has made. */
void call_without_cfi(void (*function)(void), void *frame);
__asm__(".text\n"
        ".type call_without_cfi, @function\n"
        "call_without_cfi:\n"
        "    push %rbp\n"
        "    mov %rsi, %rbp\n"
        "    call *%rdi\n"
        "    pop %rbp\n"
        "    ret\n"
        ".size call_without_cfi, . - call_without_cfi\n");

static void code_without_unwind_information_is_not_guessed_through(void **state) {
    (void)state;
    uint64_t frames[MAX_FRAMES];
    uint32_t count;
    const uint64_t never_called = (uint64_t)an_unloaded_module_is_not_read + 4;
    volatile uint64_t fake[] = {0, never_called};
    memset(&taken, 0, sizeof taken);
    call_without_cfi(copy_here, (void *)(uintptr_t)fake);
    const struct stack_copy copy = the_copy();
    const bool complete = slow_unwind(unwinder, &copy, frames, stack_pointers, MAX_FRAMES, &count);
    for (uint32_t i = 0; i < count; i++)
        assert_int_not_equal(frames[i], never_called - 1);
    assert_false(complete);
    assert_int_equal(count, 2); /* copy_here and its caller */
}

/* --- set-up --- */

static int start(void **state) {
    (void)state;
    if (!modules_start(&modules))
        return -1;
    bool unloaded;
    const struct module_snapshot *const snapshot = modules_pin(&modules, &unloaded);
    unwinder = slow_unwinder_open(snapshot->modules, snapshot->count);
    return unwinder ? 0 : -1;
}

static int stop(void **state) {
    (void)state;
    slow_unwinder_close(unwinder);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chain_is_followed_to_its_end),
        cmocka_unit_test(an_interrupted_frame_is_exact),
        cmocka_unit_test(a_signal_frame_is_crossed),
        cmocka_unit_test(a_depth_limit_is_kept),
        cmocka_unit_test(a_short_copy_ends_the_stack),
        cmocka_unit_test(wild_registers_are_survived),
        cmocka_unit_test(an_unloaded_module_is_not_read),
        cmocka_unit_test(no_file_of_proc_is_needed),
        cmocka_unit_test(code_without_unwind_information_is_not_guessed_through),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
