/* Tests unwind tables that a JIT compiler registers: the walker follows its code by them for as
 * long as they are registered, whatever becomes of the compiler's memory. */
#include "unit.h"

#include "arch_machine.h"
#include "unwind/modules.h"
#include "unwind/registered_tables.h"
#include "unwind/unwind.h"
#include "unwind_section.h"

#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

enum { PAGE = 4096, MAX_FRAMES = 64, CALL_END = 15, FUNCTION_BYTES = 22 };

static struct modules modules;
static struct rule_cache rules;
static struct registered_tables tables;
static _Atomic uintptr_t generated;
static struct unwinder unwinder = {
    .modules = &modules, .rules = &rules, .generated = &generated, .registered = &tables};

/* --- code without frame pointers, and its tables --- */

/* Holds push rbp; push rbx; sub rsp, 40; mov rbp, 0x7777; call rdi; add rsp, 40; pop rbx; pop rbp;
 * ret */
static const uint8_t function[FUNCTION_BYTES] = {0x55, 0x53, 0x48, 0x83, 0xec, 0x28, 0x48, 0xc7,
                                                 0xc5, 0x77, 0x77, 0,    0,    0xff, 0xd7, 0x48,
                                                 0x83, 0xc4, 0x28, 0x5b, 0x5d, 0xc3};
static const char function_rules[] = "\x41\x0e\x10\x86\2\x41\x0e\x18\x83\3\x44\x0e\x40"
                                     "\x4d\x0e\x18\x41\x0e\x10\x41\x0e\x08";

static void describe(struct section *s, uintptr_t start, uintptr_t size) {
    begin_section(s);
    put_entry(s, start, size, function_rules, sizeof function_rules - 1);
    end_section(s);
}

static uint8_t *make_code(size_t at) {
    uint8_t *const code =
        mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(code != MAP_FAILED);
    memcpy(code + at, function, sizeof function);
    return code + at;
}

static void add(const void *begin) {
    registered_tables_add(&tables, &rules, &modules, (uintptr_t)begin, 0);
}

static void drop(const void *begin) {
    registered_tables_remove(&tables, &rules, (uintptr_t)begin);
}

/* --- walking --- */

static struct {
    uint64_t frames[MAX_FRAMES];
    uint32_t count;
    enum unwind_end end;
} walked;

__attribute__((noinline)) static void walk_here(void) {
    uint64_t registers[REGISTER_COUNT];
    struct unwind unwind = {.thread_stack = {4096, getauxval(AT_EXECFN) & ~7ul},
                            .frames = walked.frames,
                            .max = MAX_FRAMES};
    REGISTERS_HERE(registers);
    walked.end = unwind_walk(&unwinder, registers, &unwind);
    walked.count = unwind.count;
}

__attribute__((noinline)) static void run(const uint8_t *code) {
    void (*call)(void (*)(void));
    memcpy(&call, &code, sizeof call);
    call(walk_here);
    __asm__ volatile("");
}

static bool is_walked_through(const uint8_t *code) {
    run(code);
    return walked.end == UNWIND_COMPLETE && walked.count > 4 &&
           walked.frames[1] == (uintptr_t)code + CALL_END - 1 &&
           walked.frames[2] - (uintptr_t)run < 128;
}

/* Returns true if the walk ends at `code`, with or without a frame of the code itself. */
static bool ends_at(const uint8_t *code) {
    run(code);
    return walked.end == UNWIND_TRUNCATED &&
           (walked.count == 1 || walked.frames[1] == (uintptr_t)code + CALL_END - 1) &&
           walked.count <= 2;
}

static void code_is_walked_while_its_section_is_registered(void **state) {
    (void)state;
    static struct section s;
    uint8_t *const code = make_code(64);
    describe(&s, (uintptr_t)code, FUNCTION_BYTES);
    assert_true(ends_at(code));
    add(s.bytes);
    assert_true(is_walked_through(code));
    assert_true(is_walked_through(code)); /* the rule comes from the cache */
    drop(s.bytes);
    assert_true(ends_at(code));
}

/* Registers the entry alone, as LLVM's libunwind does. */
static void code_is_walked_while_its_entry_is_registered(void **state) {
    (void)state;
    static struct section s;
    uint8_t *const code = make_code(0);
    uint8_t *const other = make_code(0);
    begin_section(&s);
    put_entry(&s, (uintptr_t)other, FUNCTION_BYTES, function_rules, sizeof function_rules - 1);
    put_entry(&s, (uintptr_t)code, FUNCTION_BYTES, function_rules, sizeof function_rules - 1);
    put(&s, "\xff\xff\xff\x7f", 4); /* nothing behind this entry is read */
    add(s.bytes + s.entry);
    assert_true(is_walked_through(code));
    assert_true(ends_at(other));
    drop(s.bytes + s.entry);
    assert_true(ends_at(code));
}

static void nothing_of_the_compilers_is_read_later(void **state) {
    (void)state;
    struct section *const s =
        mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint8_t *const code = make_code(0);
    describe(s, (uintptr_t)code, FUNCTION_BYTES);
    add(s->bytes);
    munmap(s, sizeof *s);
    assert_true(is_walked_through(code));
    drop(s->bytes);
    assert_true(ends_at(code));
}

/* --- looking up --- */

static bool found(uintptr_t pc, struct rule *rule) {
    const struct rule_key key = {pc + 1, false};
    return registered_tables_rule(&tables, &rules, rule_cache_generation(&rules), key, pc, rule);
}

static bool is_cached(uintptr_t pc) {
    const struct rule_key key = {pc + 1, false};
    return rule_word_is_for(rule_cache_word(&rules, key), rule_cache_generation(&rules), key);
}

static void a_removed_rule_is_nowhere_kept(void **state) {
    (void)state;
    static struct section s[2];
    struct rule rule;
    uint8_t *const code = make_code(0);
    memcpy(code + 256, function, sizeof function);
    for (int i = 0; i < 2; i++) {
        describe(&s[i], (uintptr_t)code + 256 * (uintptr_t)i, FUNCTION_BYTES);
        add(s[i].bytes);
    }
    for (uintptr_t pc = 0; pc < FUNCTION_BYTES; pc++)
        assert_true(found((uintptr_t)code + pc, &rule) && found((uintptr_t)code + 256 + pc, &rule));
    drop(s[0].bytes);
    for (uintptr_t pc = 0; pc < FUNCTION_BYTES; pc++) {
        assert_false(found((uintptr_t)code + pc, &rule));
        assert_false(is_cached((uintptr_t)code + pc));
        assert_true(is_cached((uintptr_t)code + 256 + pc));
    }
    drop(s[1].bytes);
}

static void a_second_registration_replaces_the_first(void **state) {
    (void)state;
    static struct section s;
    struct rule rule;
    describe(&s, 0x10000000, 4096);
    add(s.bytes);
    describe(&s, 0x20000000, 4096);
    add(s.bytes);
    assert_false(found(0x10000010, &rule));
    assert_true(found(0x20000010, &rule));
    assert_int_equal(registered_tables_count(&tables), 1);
    drop(s.bytes);
    assert_false(found(0x20000010, &rule));
}

/* Finds functions in pages of four sizes. */
static void functions_of_all_sizes_are_found(void **state) {
    (void)state;
    static struct section s;
    struct rule rule;
    for (unsigned bits = 0; bits < 32; bits++) {
        const uintptr_t start = 0x200000000123;
        const uintptr_t size = UINT64_C(1) << bits;
        describe(&s, start, size);
        add(s.bytes);
        assert_true(found(start, &rule));
        assert_true(found(start + size / 2, &rule));
        assert_true(found(start + size - 1, &rule));
        assert_false(found(start - 1, &rule));
        assert_false(found(start + size, &rule));
        drop(s.bytes);
        assert_false(found(start, &rule));
    }
    assert_int_equal(atomic_load(&tables.refused), 0);
}

static void a_near_section_is_known_while_it_is_registered(void **state) {
    (void)state;
    static struct section s;
    describe(&s, 0x200000000000, 4096);
    assert_false(registered_tables_are_near(&tables, 0x200000000000));
    add(s.bytes);
    assert_true(registered_tables_are_near(&tables, 0x200000000000 - 0x10000));
    assert_true(registered_tables_are_near(&tables, 0x200000000000 + 0x10000));
    assert_false(registered_tables_are_near(&tables, 0x200000000000 + 0x100000));
    drop(s.bytes);
    assert_false(registered_tables_are_near(&tables, 0x200000000000));
}

static void functions_need_not_be_sorted(void **state) {
    (void)state;
    enum { COUNT = 97 };
    static struct section s;
    struct rule rule;
    begin_section(&s);
    for (uintptr_t i = 0; i < COUNT; i++) {
        const uintptr_t number = i * 31 % COUNT;
        put_entry(&s, 0x10000000 + number * 0x200, 0x100, "\x0e\x40", 2);
    }
    end_section(&s);
    add(s.bytes);
    for (uintptr_t i = 0; i < COUNT; i++) {
        assert_true(found(0x10000000 + i * 0x200 + 0xff, &rule));
        assert_int_equal(rule.cfa_offset, 0x40);
        assert_false(found(0x10000000 + i * 0x200 + 0x100, &rule));
    }
    drop(s.bytes);
}

static void code_that_is_gone_is_not_read(void **state) {
    (void)state;
    static struct section s;
    struct rule rule;
    describe(&s, 0x10000000, 4096);
    add(s.bytes);
    assert_true(found(0x10000100, &rule));
    assert_false(rule.after_call);
    drop(s.bytes);
}

/* Loaded objects have tables of their own: an old compiler's start files register them. */
static void loaded_objects_are_left_alone(void **state) {
    (void)state;
    static struct section s;
    describe(&s, (uintptr_t)run, 64);
    add(s.bytes);
    assert_int_equal(registered_tables_count(&tables), 0);
}

/* --- registrations that are wrong --- */

static void garbage_is_no_table(void **state) {
    (void)state;
    uint8_t *const pages =
        mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(pages + PAGE, PAGE, PROT_NONE);
    uint64_t random = 1;
    add(NULL);
    add((const void *)0x1000);
    add((const void *)-16);
    add(pages + PAGE);
    for (int round = 0; round < 20000; round++) {
        for (size_t i = PAGE - 256; i < PAGE; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            pages[i] = (uint8_t)(random >> 59 ? random >> 40 & 0x1f : random >> 40);
        }
        for (size_t i = 0; i < 256; i += 16) {
            add(pages + PAGE - 256 + i);
            drop(pages + PAGE - 256 + i);
        }
    }
    assert_int_equal(registered_tables_count(&tables), 0);
    munmap(pages, 2 * PAGE);
}

/* Cuts a section anywhere, at the end of readable memory: the entries before the cut are taken. */
static void a_section_may_end_without_an_end(void **state) {
    (void)state;
    static struct section s;
    uint8_t *const pages =
        mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct rule rule;
    mprotect(pages + PAGE, PAGE, PROT_NONE);
    begin_section(&s);
    put_entry(&s, 0x10000000, 4096, function_rules, sizeof function_rules - 1);
    const size_t first = s.size;
    put_entry(&s, 0x20000000, 4096, function_rules, sizeof function_rules - 1);
    end_section(&s);
    for (size_t size = 0; size <= s.size; size++) {
        memcpy(pages + PAGE - size, s.bytes, size);
        add(pages + PAGE - size);
        assert_int_equal(found(0x10000001, &rule), size >= first);
        assert_int_equal(found(0x20000001, &rule), size >= s.size - 4);
        drop(pages + PAGE - size);
    }
    munmap(pages, 2 * PAGE);
}

int main(void) {
    assert_true(modules_start(&modules));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(code_is_walked_while_its_section_is_registered),
        cmocka_unit_test(code_is_walked_while_its_entry_is_registered),
        cmocka_unit_test(nothing_of_the_compilers_is_read_later),
        cmocka_unit_test(a_removed_rule_is_nowhere_kept),
        cmocka_unit_test(a_second_registration_replaces_the_first),
        cmocka_unit_test(functions_of_all_sizes_are_found),
        cmocka_unit_test(a_near_section_is_known_while_it_is_registered),
        cmocka_unit_test(functions_need_not_be_sorted),
        cmocka_unit_test(code_that_is_gone_is_not_read),
        cmocka_unit_test(loaded_objects_are_left_alone),
        cmocka_unit_test(garbage_is_no_table),
        cmocka_unit_test(a_section_may_end_without_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
