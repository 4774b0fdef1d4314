/* Tests how a walk copies an interpreter's memory: each page once, and in one call at the beginning
 * the bytes that the thread's last walk has read. */
#include "unit.h"

#include "frames/python_reader.h"

#include <string.h>
#include <sys/mman.h>

enum { PAGE = ARCH_SMALLEST_PAGE_BYTES, PART = PAGE / 64 };

/* Keeps a copy until it is forgotten, and copies across the ends of pages. */
static void pages_are_copied_once_in_a_walk(void **state) {
    (void)state;
    enum { MANY = 3 * PYTHON_PAGES };
    static struct python_pages pages;
    struct python_reader reader = {.copies = &pages};
    uint8_t read[PAGE + 2];
    uint8_t *const memory =
        mmap(NULL, MANY * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < MANY; i++)
        memset(memory + i * PAGE, i, PAGE);
    for (int i = 0; i + 2 < MANY; i++) {
        assert_true(python_read(&reader, (uintptr_t)memory + i * PAGE + PAGE - 1, read, PAGE + 2));
        assert_true(read[0] == (uint8_t)i && read[1] == (uint8_t)(i + 1) &&
                    read[PAGE] == (uint8_t)(i + 1) && read[PAGE + 1] == (uint8_t)(i + 2));
    }
    memory[0] = 77;
    assert_true(python_read(&reader, (uintptr_t)memory, read, 1));
    memory[0] = 78;
    assert_true(python_read(&reader, (uintptr_t)memory, read, 1) && read[0] == 77);
    python_pages_forget(&pages);
    assert_true(python_read(&reader, (uintptr_t)memory, read, 1) && read[0] == 78);
    munmap(memory + PAGE, PAGE);
    python_pages_forget(&pages);
    assert_false(python_read(&reader, (uintptr_t)memory + PAGE - 1, read, 2));
    munmap(memory, MANY * PAGE);
}

/* --- the walk before --- */

enum { THREAD = 7, FEW = 3 };

struct walk {
    struct python_page_sets *sets;
    struct python_reader reader;
};

static struct walk begin_walk(struct python_page_sets *sets, uint32_t thread) {
    struct walk walk = {.sets = sets};
    walk.reader.copies = python_page_sets_take(sets, thread);
    assert_non_null(walk.reader.copies);
    return walk;
}

static void end_walk(struct walk *walk) {
    python_page_sets_give(walk->sets, walk->reader.copies);
}

/* Returns the byte that the walk finds; -1: it cannot be read. */
static int byte_of(struct walk *walk, const uint8_t *address) {
    uint8_t byte = 0;
    return python_read(&walk->reader, (uintptr_t)address, &byte, 1) ? byte : -1;
}

/* Maps `count` pages, and has a walk read the byte in the middle of each. The caller unmaps the
 * pages. */
static uint8_t *pages_of_a_walk(struct python_page_sets *sets, size_t count) {
    uint8_t *const memory =
        mmap(NULL, count * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    struct walk walk = begin_walk(sets, THREAD);
    for (size_t i = 0; i < count; i++) {
        memory[i * PAGE + PAGE / 2] = 1;
        assert_int_equal(byte_of(&walk, memory + i * PAGE + PAGE / 2), 1);
    }
    end_walk(&walk);
    return memory;
}

/* Changes the memory after the walk has begun: only an earlier copy has the former byte. */
static void a_walk_begins_with_what_the_walk_before_has_read(void **state) {
    (void)state;
    struct python_page_sets *const sets = python_page_sets_new();
    uint8_t *const memory = pages_of_a_walk(sets, FEW);
    for (uint8_t turn = 2; turn < 9; turn++) {
        for (int i = 0; i < FEW; i++)
            memory[i * PAGE + PAGE / 2] = turn;
        struct walk walk = begin_walk(sets, THREAD);
        for (int i = 0; i < FEW; i++) {
            memory[i * PAGE + PAGE / 2] = 0;
            assert_int_equal(byte_of(&walk, memory + i * PAGE + PAGE / 2), turn);
        }
        end_walk(&walk);
    }
    munmap(memory, FEW * PAGE);
}

static void what_the_walk_before_has_not_read_is_copied_when_it_is_read(void **state) {
    (void)state;
    struct python_page_sets *const sets = python_page_sets_new();
    uint8_t *const memory = pages_of_a_walk(sets, FEW);
    struct walk walk = begin_walk(sets, THREAD);
    memory[PAGE / 2 + PART] = 5;
    memory[PAGE / 2 - 1] = 6;
    assert_int_equal(byte_of(&walk, memory + PAGE / 2 + PART), 5);
    assert_int_equal(byte_of(&walk, memory + PAGE / 2 - 1), 6);
    end_walk(&walk);
    walk = begin_walk(sets, THREAD);
    memory[PAGE / 2 + PART] = 0;
    memory[PAGE + PAGE / 2] = 8;
    assert_int_equal(byte_of(&walk, memory + PAGE / 2 + PART), 5);
    assert_int_equal(byte_of(&walk, memory + PAGE + PAGE / 2), 8);
    end_walk(&walk);
    munmap(memory, FEW * PAGE);
}

static void another_thread_begins_with_nothing(void **state) {
    (void)state;
    struct python_page_sets *const sets = python_page_sets_new();
    uint8_t *const memory = pages_of_a_walk(sets, FEW);
    struct walk walk = begin_walk(sets, THREAD + 1);
    memory[PAGE / 2] = 9;
    assert_int_equal(byte_of(&walk, memory + PAGE / 2), 9);
    end_walk(&walk);
    munmap(memory, FEW * PAGE);
}

/* Has two threads share one place among the remembered walks. */
static void a_thread_with_the_same_place_begins_with_nothing(void **state) {
    (void)state;
    struct python_page_sets *const sets = python_page_sets_new();
    uint8_t *const memory = pages_of_a_walk(sets, FEW);
    struct walk walk = begin_walk(sets, THREAD + PYTHON_LAST_WALKS);
    memory[PAGE / 2] = 9;
    assert_int_equal(byte_of(&walk, memory + PAGE / 2), 9);
    end_walk(&walk);
    munmap(memory, FEW * PAGE);
}

/* Clears the pool in the middle of a walk, as a fork does in the child. */
static void a_walk_that_a_fork_has_wiped_is_not_remembered(void **state) {
    (void)state;
    struct python_page_sets *const sets = python_page_sets_new();
    uint8_t *const memory = pages_of_a_walk(sets, FEW);
    struct walk walk = begin_walk(sets, THREAD);
    python_page_sets_after_fork(sets);
    end_walk(&walk);
    walk = begin_walk(sets, THREAD);
    memory[PAGE / 2] = 9;
    assert_int_equal(byte_of(&walk, memory + PAGE / 2), 9);
    end_walk(&walk);
    munmap(memory, FEW * PAGE);
}

static void a_page_that_is_gone_hides_no_other(void **state) {
    (void)state;
    for (size_t gone = 0; gone < FEW; gone++) {
        struct python_page_sets *const sets = python_page_sets_new();
        uint8_t *const memory = pages_of_a_walk(sets, FEW);
        munmap(memory + gone * PAGE, PAGE);
        for (int turn = 0; turn < 2; turn++) {
            struct walk walk = begin_walk(sets, THREAD);
            for (size_t i = 0; i < FEW; i++)
                assert_int_equal(byte_of(&walk, memory + i * PAGE + PAGE / 2), i == gone ? -1 : 1);
            end_walk(&walk);
        }
        munmap(memory, FEW * PAGE);
    }
}

/* Reads more pages than a set holds, and more bytes than are copied ahead. */
static void a_long_walk_reads_what_is_there(void **state) {
    (void)state;
    enum { LONG = PYTHON_PAGES + 100, TURNS = 3 };
    struct python_page_sets *const sets = python_page_sets_new();
    uint8_t *const memory = pages_of_a_walk(sets, LONG);
    uint8_t read[PAGE];
    for (int turn = 0; turn < TURNS; turn++) {
        struct walk walk = begin_walk(sets, THREAD);
        for (int i = 0; i < LONG; i++) {
            assert_true(python_read(&walk.reader, (uintptr_t)memory + i * PAGE, read, PAGE));
            assert_memory_equal(read, memory + i * PAGE, PAGE);
            memory[i * PAGE + PAGE / 2 + turn] ^= 0xff;
        }
        end_walk(&walk);
    }
    munmap(memory, LONG * PAGE);
}

/* Reads ranges of all lengths anywhere, with and without a filter, and compares with the memory. */
static void copies_have_the_bytes_of_the_memory(void **state) {
    (void)state;
    enum { TURNS = 200, READS = 40, SPAN = FEW * PAGE };
    struct python_page_sets *const sets = python_page_sets_new();
    uint8_t *const memory = pages_of_a_walk(sets, FEW);
    uint32_t random = 1;
    uint8_t read[300];
    for (int i = 0; i < SPAN; i++)
        memory[i] = (uint8_t)((random = random * 1103515245 + 12345) >> 16);
    for (int turn = 0; turn < TURNS; turn++) {
        struct walk walk = begin_walk(sets, THREAD);
        walk.reader.copies->is_filtered = turn % 3 != 0;
        for (int i = 0; i < READS; i++) {
            random = random * 1103515245 + 12345;
            const size_t size = random >> 16 & 255;
            const uint8_t *const from = memory + (random >> 4) % (SPAN - size);
            assert_true(python_read(&walk.reader, (uintptr_t)from, read, size));
            assert_memory_equal(read, from, size);
            const uint8_t *const view = python_view(&walk.reader, (uintptr_t)from, size);
            assert_non_null(view);
            assert_memory_equal(view, from, size);
        }
        end_walk(&walk);
    }
    munmap(memory, FEW * PAGE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_are_copied_once_in_a_walk),
        cmocka_unit_test(a_walk_begins_with_what_the_walk_before_has_read),
        cmocka_unit_test(what_the_walk_before_has_not_read_is_copied_when_it_is_read),
        cmocka_unit_test(another_thread_begins_with_nothing),
        cmocka_unit_test(a_thread_with_the_same_place_begins_with_nothing),
        cmocka_unit_test(a_walk_that_a_fork_has_wiped_is_not_remembered),
        cmocka_unit_test(a_page_that_is_gone_hides_no_other),
        cmocka_unit_test(a_long_walk_reads_what_is_there),
        cmocka_unit_test(copies_have_the_bytes_of_the_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
