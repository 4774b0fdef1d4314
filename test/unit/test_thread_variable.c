/* Tests thread-local variables of other objects: the table that handlers read, and the search for
 * them. */
#include "unit.h"

#include "clock.h"

#include "arch_machine.h"
#include "context/context.h"
#include "context/module_generation.h"
#include "context/variable_search.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

__attribute__((visibility("default"))) __thread struct record *otel_thread_ctx_v1;

/* --- the table --- */

static struct thread_variable numbered(uint64_t number) {
    return (struct thread_variable){number,          number, number, (int64_t)number,
                                    (int64_t)number, number, number, number};
}

static void set_variables_are_found(void **state) {
    static struct thread_variables variables;
    const struct thread_variable list[] = {numbered(1), numbered(2)};
    struct thread_variable variable;
    (void)state;
    assert_false(thread_variables_any(&variables));
    assert_false(thread_variables_get(&variables, 0, &variable));
    thread_variables_set(&variables, list, 2);
    assert_true(thread_variables_any(&variables));
    for (uint32_t i = 0; i < 2; i++) {
        assert_true(thread_variables_get(&variables, i, &variable));
        assert_memory_equal(&variable, &list[i], sizeof variable);
    }
    assert_false(thread_variables_get(&variables, 2, &variable));
    thread_variables_set(&variables, NULL, 0);
    assert_false(thread_variables_any(&variables));
}

static _Atomic bool is_over;

static void *replace_often(void *variables) {
    for (uint64_t i = 1; !is_over; i++) {
        const struct thread_variable list[] = {numbered(i), numbered(i)};
        thread_variables_set(variables, list, 2);
    }
    return NULL;
}

static void no_entry_is_read_half(void **state) {
    enum { LOOKS = 200000 };
    static struct thread_variables variables;
    struct thread_variable variable;
    pthread_t writer;
    (void)state;
    assert_int_equal(pthread_create(&writer, NULL, replace_often, &variables), 0);
    for (int i = 0; i < LOOKS; i++) {
        if (!thread_variables_get(&variables, 1, &variable))
            continue;
        const struct thread_variable whole = numbered(variable.source);
        assert_memory_equal(&variable, &whole, sizeof whole);
    }
    is_over = true;
    pthread_join(writer, NULL);
}

static void a_table_that_stays_is_not_written(void **state) {
    static struct thread_variables variables;
    const struct thread_variable list[] = {numbered(1), numbered(2), numbered(2)};
    (void)state;
    thread_variables_set(&variables, list, 2);
    const struct thread_variables before = variables;
    thread_variables_set(&variables, list, 2);
    assert_memory_equal(&variables, &before, sizeof before);
    thread_variables_set(&variables, list + 1, 2);
    thread_variables_set(&variables, list + 1, 1);
    thread_variables_set(&variables, NULL, 0);
    assert_int_equal(variables.version, before.version + 3);
}

/* --- in the middle ---
 *
 * Puts the table on two pages, of which the second cannot be read: a handler runs when the part on
 * the first page is done. */

static struct {
    char *page;
    void (*handler)(void);
    bool came;
} middle;

static size_t page_bytes(void) {
    return (size_t)sysconf(_SC_PAGESIZE);
}

static void map_two_pages(void (*handler)(void)) {
    char *const pages =
        mmap(NULL, 2 * page_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(pages != MAP_FAILED);
    middle.page = pages + page_bytes();
    middle.handler = handler;
    middle.came = false;
}

static void come_in_between(int number) {
    (void)number;
    middle.came = true;
    (void)mprotect(middle.page, page_bytes(), PROT_READ | PROT_WRITE);
    middle.handler();
}

static void run_with_handler(void (*run)(void *), void *argument) {
    struct sigaction own = {.sa_handler = come_in_between};
    struct sigaction of_the_tests;
    assert_int_equal(mprotect(middle.page, page_bytes(), PROT_NONE), 0);
    sigaction(SIGSEGV, &own, &of_the_tests);
    run(argument);
    sigaction(SIGSEGV, &of_the_tests, NULL);
    assert_true(middle.came);
    munmap(middle.page - page_bytes(), 2 * page_bytes());
}

/* --- in the middle of a change --- */

static struct thread_variables changed;
static struct {
    bool has[3];
    struct thread_variable met[3];
} seen;

static void read_changed(void) {
    for (uint32_t i = 0; i < 3; i++)
        seen.has[i] = thread_variables_get(&changed, i, &seen.met[i]);
}

static void assert_seen(uint64_t first, uint64_t second) {
    const struct thread_variable wanted[] = {numbered(first), numbered(second)};
    assert_true(seen.has[0] && seen.has[1]);
    assert_false(seen.has[2]);
    assert_memory_equal(seen.met, wanted, sizeof wanted);
}

static sigjmp_buf outside;

static void leave_the_change(void) {
    siglongjmp(outside, 1);
}

static void change(void *list) {
    if (sigsetjmp(outside, 1) == 0)
        thread_variables_set(&changed, list, 3);
}

/* Changes {1, 2} to {3, 4, 5}, of which the last two are on the second page. */
static void change_in_two_parts(void (*handler)(void)) {
    const struct thread_variable before[] = {numbered(1), numbered(2)};
    map_two_pages(handler);
    struct thread_variable *const list = (struct thread_variable *)middle.page - 1;
    for (uint32_t i = 0; i < 3; i++)
        list[i] = numbered(3 + i);
    thread_variables_set(&changed, before, 2);
    run_with_handler(change, list);
}

static void a_handler_that_interrupts_a_change_finds_the_old_list(void **state) {
    (void)state;
    change_in_two_parts(read_changed);
    assert_seen(1, 2);
    read_changed();
    assert_true(seen.has[2]);
    assert_int_equal(seen.met[0].source, 3);
    assert_int_equal(seen.met[2].source, 5);
}

/* The writing thread exists in the parent alone. */
static void a_child_forked_during_a_change_finds_the_old_list(void **state) {
    const struct thread_variable later[] = {numbered(6), numbered(7)};
    (void)state;
    change_in_two_parts(leave_the_change);
    read_changed();
    assert_seen(1, 2);
    thread_variables_set(&changed, later, 2);
    read_changed();
    assert_seen(6, 7);
}

/* --- in the middle of a read --- */

static struct thread_variables *overtaken;

static void change_twice(void) {
    for (uint64_t i = 0; i < 2; i++) {
        const struct thread_variable one = numbered(8 + i);
        thread_variables_set(overtaken, &one, 1);
    }
}

static void read_first(void *variable) {
    seen.has[0] = thread_variables_get(overtaken, 0, variable);
}

/* The copied half of an entry belongs to another table than the rest. */
static void a_reader_that_two_changes_overtake_reads_again(void **state) {
    enum {
        HALF = offsetof(struct thread_variables, tables[0].words[0][THREAD_VARIABLE_WORDS / 2])
    };
    const struct thread_variable list[] = {numbered(6), numbered(7)};
    const struct thread_variable last = numbered(9);
    struct thread_variable variable;
    (void)state;
    map_two_pages(change_twice);
    overtaken = (struct thread_variables *)(middle.page - HALF);
    thread_variables_set(overtaken, &list[0], 1);
    thread_variables_set(overtaken, &list[1], 1);
    assert_int_equal(overtaken->version % 2, 0);
    run_with_handler(read_first, &variable);
    assert_true(seen.has[0]);
    assert_memory_equal(&variable, &last, sizeof last);
}

/* --- where a thread has its own variable --- */

static uint64_t is_any(const struct dl_phdr_info *object, const char *path) {
    (void)object;
    (void)path;
    return CONTEXT_THREAD;
}

static struct thread_variable found[THREAD_VARIABLES];

/* Searches for the executable's variable, to which no relocation leads, on a thread like the
 * helper's. Returns the number of variables; 1000: the search has failed. */
static void *find(void *wanted) {
    struct variable_search search = {.name = "otel_thread_ctx_v1",
                                     .source = is_any,
                                     .wanted = (uintptr_t)wanted,
                                     .found = found};
    return (void *)(uintptr_t)(variable_search_run(&search) ? search.count : 1000);
}

static void *find_by_thread(uintptr_t wanted) {
    pthread_t thread;
    void *count;
    assert_int_equal(pthread_create(&thread, NULL, find, (void *)wanted), 0);
    assert_int_equal(pthread_join(thread, &count), 0);
    return count;
}

static void *has_its_own(void *unused) {
    struct memory_range block;
    const uintptr_t address = thread_variable_address(&found[0], &block);
    (void)unused;
    assert_int_equal(address, (uintptr_t)&otel_thread_ctx_v1);
    assert_int_equal(thread_variable_address_of(&found[0], thread_pointer()), address);
    assert_true(block.low <= address && address + sizeof(void *) <= block.high);
    return NULL;
}

static void unwanted_variables_take_no_place(void **state) {
    (void)state;
    assert_ptr_equal(find_by_thread(CONTEXT_ALL & ~CONTEXT_THREAD), NULL);
}

static void the_variable_of_each_thread_is_found(void **state) {
    pthread_t thread;
    (void)state;
    assert_ptr_equal(find_by_thread(CONTEXT_ALL), (void *)1);
    assert_int_equal(found[0].source, CONTEXT_THREAD);
    assert_int_equal(found[0].module, 0);
    has_its_own(NULL);
    assert_int_equal(pthread_create(&thread, NULL, has_its_own, NULL), 0);
    pthread_join(thread, NULL);
}

static void *look(void *reader) {
    context_poll(reader, true);
    return NULL;
}

static void look_by_thread(struct context_reader *reader) {
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, look, reader), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* A program may load thousands of libraries a second: a wake costs as much as a load. */
static void the_helper_is_woken_once_for_each_search(void **state) {
    static struct modules modules;
    static struct context_reader reader = {.sources = CONTEXT_ALL, .modules = &modules};
    (void)state;
    assert_true(context_expect(&reader));
    assert_false(context_expect(&reader));
    assert_true(context_next_poll(&reader) != UINT64_MAX);
    assert_false(context_expect(&reader));
    look_by_thread(&reader);
    assert_true(context_expect(&reader)); /* the search may have come before the load */
    assert_false(context_expect(&reader));
    context_after_fork(&reader); /* the child's helper was not woken */
    assert_true(context_expect(&reader));
}

static void a_search_that_costs_much_is_followed_by_a_rest(void **state) {
    static struct modules modules;
    static struct context_reader reader = {.sources = CONTEXT_ALL, .modules = &modules};
    const uint64_t start = monotonic_nano();
    (void)state;
    context_rest_after(&reader, 2 * NANO_PER_MILLI);
    assert_true(context_next_poll(&reader) >= start + 100 * NANO_PER_MILLI);
    assert_true(context_expect(&reader));
    assert_true(context_next_poll(&reader) >= start + 100 * NANO_PER_MILLI);
    context_rest_after(&reader, 60 * NANO_PER_SECOND); /* but half a second at most */
    assert_true(context_next_poll(&reader) <= monotonic_nano() + NANO_PER_SECOND / 2);
}

/* The loaded object publishes nothing. */
static void a_search_that_finds_the_same_writes_nothing(void **state) {
    static struct modules modules;
    static struct context_reader reader = {.sources = CONTEXT_ALL, .modules = &modules};
    (void)state;
    look_by_thread(&reader);
    assert_int_equal(reader.variables.version, 1);
    assert_int_equal(thread_variables_count(&reader.variables), 1);
    const uint64_t adds = reader.polling.adds--;
    look_by_thread(&reader);
    assert_int_equal(reader.polling.adds, adds); /* the search has run */
    assert_int_equal(reader.variables.version, 1);
}

static void a_module_that_there_is_not_has_no_block(void **state) {
    const struct thread_variable variable = {.module = 100000};
    struct memory_range block;
    (void)state;
    assert_int_equal(thread_variable_address(&variable, &block), 0);
    assert_int_equal(thread_variable_address_of(&variable, thread_pointer()), 0);
}

static void a_thread_that_is_gone_has_no_block(void **state) {
    const struct thread_variable variable = {.module = 1};
    (void)state;
    assert_int_equal(thread_variable_address_of(&variable, 4096), 0);
}

/* Replaces the thread's own vector by one of the test's; no code uses the original meanwhile.
 * Returns the address of the module's block in it, or 0. */
static uintptr_t block_in(uintptr_t vector[], uint64_t module, uint64_t generation) {
    const struct thread_variable variable = {.module = module, .generation = generation};
    uintptr_t **const place = (uintptr_t **)thread_pointer() + 1;
    uintptr_t *const own = *place;
    struct memory_range block;
    atomic_signal_fence(memory_order_seq_cst);
    *place = vector + 2;
    atomic_signal_fence(memory_order_seq_cst);
    const uintptr_t found_there = thread_variable_address(&variable, &block);
    const uintptr_t found_by_another = thread_variable_address_of(&variable, thread_pointer());
    atomic_signal_fence(memory_order_seq_cst);
    *place = own;
    assert_int_equal(found_by_another, found_there);
    return found_there;
}

/* Looks up a module whose number was another module's until the thread's vector is brought up to
 * date. */
static void a_block_of_another_generation_is_not_its_own(void **state) {
    uintptr_t vector[] = {2, 0, 7, 0, 0x1000, 0, 0x2000, 0};
    (void)state;
    assert_int_equal(block_in(vector, 2, 0), 0x2000);
    assert_int_equal(block_in(vector, 2, 7), 0x2000);
    assert_int_equal(block_in(vector, 2, 8), 0);
    assert_int_equal(block_in(vector, 2, GENERATION_UNKNOWN), 0);
}

/* malloc writes a mangled pointer, which is small where heaps are low, and a key behind it. */
static void a_vector_that_was_freed_has_no_blocks(void **state) {
    uintptr_t vector[] = {0x12515, 0x8a5f3c1d2e4b6978, 7, 0, 0x1000, 0, 0x2000, 0};
    (void)state;
    assert_int_equal(block_in(vector, 2, 0), 0);
    assert_int_equal(block_in(vector, 2000, 0), 0);
}

static int compare_generation(struct dl_phdr_info *info, size_t size, void *count) {
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Dyn) *const dynamic =
            (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
        if (info->dlpi_phdr[i].p_type != PT_DYNAMIC || info->dlpi_tls_modid == 0)
            continue;
        assert_true(module_generation(info->dlpi_tls_modid, dynamic) <= 1000);
        assert_true(module_generation(info->dlpi_tls_modid, dynamic + 1) == GENERATION_UNKNOWN);
        ++*(int *)count;
    }
    return 0;
}

static void each_module_has_a_generation(void **state) {
    int count = 0;
    (void)state;
    dl_iterate_phdr(compare_generation, &count);
    assert_true(count > 0);
    assert_true(module_generation(100000, NULL) == GENERATION_UNKNOWN);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(set_variables_are_found),
        cmocka_unit_test(no_entry_is_read_half),
        cmocka_unit_test(a_table_that_stays_is_not_written),
        cmocka_unit_test(a_handler_that_interrupts_a_change_finds_the_old_list),
        cmocka_unit_test(a_child_forked_during_a_change_finds_the_old_list),
        cmocka_unit_test(a_reader_that_two_changes_overtake_reads_again),
        cmocka_unit_test(unwanted_variables_take_no_place),
        cmocka_unit_test(the_variable_of_each_thread_is_found),
        cmocka_unit_test(the_helper_is_woken_once_for_each_search),
        cmocka_unit_test(a_search_that_costs_much_is_followed_by_a_rest),
        cmocka_unit_test(a_search_that_finds_the_same_writes_nothing),
        cmocka_unit_test(a_module_that_there_is_not_has_no_block),
        cmocka_unit_test(a_thread_that_is_gone_has_no_block),
        cmocka_unit_test(a_block_of_another_generation_is_not_its_own),
        cmocka_unit_test(a_vector_that_was_freed_has_no_blocks),
        cmocka_unit_test(each_module_has_a_generation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
