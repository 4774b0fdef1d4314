/* Tests many unwind tables that come and go: under readers, in forked children, within bounds. */
#include "unit.h"

#include "unwind/modules.h"
#include "unwind/registered_tables.h"
#include "unwind_section.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct modules modules;
static struct rule_cache rules;
static struct registered_tables tables;

static void add(const void *begin) {
    registered_tables_add(&tables, &rules, &modules, (uintptr_t)begin, 0);
}

static void drop(const void *begin) {
    registered_tables_remove(&tables, &rules, (uintptr_t)begin);
}

static bool found(uintptr_t pc, struct rule *rule) {
    const struct rule_key key = {pc + 1, false};
    return registered_tables_rule(&tables, &rules, rule_cache_generation(&rules), key, pc, rule);
}

static bool is_cached(uintptr_t pc) {
    const struct rule_key key = {pc + 1, false};
    return rule_word_is_for(rule_cache_word(&rules, key), rule_cache_generation(&rules), key);
}

static void ten_thousand_are_found(void **state) {
    (void)state;
    enum { COUNT = 10000 };
    static struct section s[COUNT / 20];
    static const uintptr_t base = 0x7e0000000000;
    struct rule rule;
    for (uintptr_t i = 0; i < COUNT; i++) { /* some tables share a page */
        struct section *const section = &s[i / 20];
        if (i % 20 == 0)
            section->size = 0;
        section->entry = section->size;
        struct section one;
        describe_plainly(&one, base + i * 0x300, 0x200, 0x40);
        put(section, one.bytes, one.size);
        add(section->bytes + section->entry);
    }
    assert_int_equal(registered_tables_count(&tables), COUNT);
    for (uintptr_t i = 0; i < COUNT; i++) {
        assert_true(found(base + i * 0x300 + 0x1ff, &rule));
        assert_false(found(base + i * 0x300 + 0x200, &rule));
    }
    for (uintptr_t i = 0; i < COUNT; i++)
        drop(s[i / 20].bytes + i % 20 * (s[0].size / 20));
    assert_int_equal(registered_tables_count(&tables), 0);
    assert_int_equal(atomic_load(&tables.refused), 0);
}

/* Registers more tables than all of their memory could hold at once. */
static void memory_is_used_again(void **state) {
    (void)state;
    static struct section s;
    for (uintptr_t i = 0; i < 300000; i++) {
        describe_plainly(&s, 0x10000000 + i * 4096, 4096, 0x40);
        add(s.bytes);
        drop(s.bytes);
    }
    assert_int_equal(atomic_load(&tables.refused), 0);
}

static void sections_beyond_the_bound_are_refused(void **state) {
    (void)state;
    enum { BEYOND = 10 };
    static uint8_t sections[REGISTERED_MOST + BEYOND][64];
    struct section s;
    struct rule rule;
    for (uintptr_t i = 0; i < REGISTERED_MOST + BEYOND; i++) {
        describe_plainly(&s, 0x10000000 + i * 4096, 4096, 0x40);
        assert_true(s.size <= sizeof sections[i]);
        memcpy(sections[i], s.bytes, s.size);
        add(sections[i]);
    }
    assert_int_equal(registered_tables_count(&tables), REGISTERED_MOST);
    assert_int_equal(atomic_exchange(&tables.refused, 0), BEYOND);
    assert_true(found(0x10000001, &rule));
    for (uintptr_t i = 0; i < REGISTERED_MOST + BEYOND; i++)
        drop(sections[i]);
    assert_int_equal(registered_tables_count(&tables), 0);
}

/* --- at the same time --- */

static _Atomic bool over;

/* Looks up addresses whose tables are registered and removed meanwhile, with one of two rules.
 * Counts any other rule in *wrong. Returns the number of rules that were found. */
static void *look_up(void *wrong) {
    uint64_t finds = 0;
    for (uintptr_t i = 0; !atomic_load(&over); i++) {
        struct rule rule;
        if (!found(0x10000000 + i % 64 * 4096 + 8, &rule))
            continue;
        finds++;
        if (rule.cfa_offset != 0x40 && rule.cfa_offset != 0x70)
            atomic_fetch_add((_Atomic uint64_t *)wrong, 1);
    }
    return (void *)(uintptr_t)finds;
}

static void tables_come_and_go_under_readers(void **state) {
    (void)state;
    enum { READERS = 3, CYCLES = 60000 };
    static struct section s[64];
    static _Atomic uint64_t wrong;
    pthread_t readers[READERS];
    uint64_t finds = 0;
    atomic_store(&over, false);
    for (int i = 0; i < READERS; i++)
        pthread_create(&readers[i], NULL, look_up, &wrong);
    for (uintptr_t i = 0; i < CYCLES; i++) {
        struct section *const section = &s[i % 64];
        drop(section->bytes);
        describe_plainly(section, 0x10000000 + i % 64 * 4096, 4096, i / 64 % 2 ? 0x40 : 0x70);
        add(section->bytes);
    }
    atomic_store(&over, true);
    for (int i = 0; i < READERS; i++) {
        void *count;
        pthread_join(readers[i], &count);
        finds += (uintptr_t)count;
    }
    for (int i = 0; i < 64; i++)
        drop(s[i].bytes);
    for (uintptr_t i = 0; i < 64; i++)
        assert_false(is_cached(0x10000000 + i * 4096 + 8));
    assert_int_equal(wrong, 0);
    assert_true(finds > 0);
    assert_int_equal(atomic_load(&tables.readers), 0);
}

/* --- forked children --- */

static int status_of_child(bool (*child)(void)) {
    const bool locked = registered_tables_begin_fork(&tables);
    const pid_t pid = fork();
    if (pid == 0) {
        registered_tables_after_fork(&tables, locked);
        _exit(child() ? 0 : 1);
    }
    int status;
    waitpid(pid, &status, 0);
    if (locked)
        registered_tables_end_fork(&tables);
    return status;
}

static struct section inherited;

static bool child_finds_and_changes(void) {
    struct rule rule;
    const bool finds = found(0x10000001, &rule);
    drop(inherited.bytes);
    return finds && !found(0x10000001, &rule);
}

static void a_forked_child_has_them(void **state) {
    (void)state;
    struct rule rule;
    describe_plainly(&inherited, 0x10000000, 4096, 0x40);
    add(inherited.bytes);
    assert_int_equal(status_of_child(child_finds_and_changes), 0);
    assert_true(found(0x10000001, &rule));
    drop(inherited.bytes);
}

static bool child_finds_nothing(void) {
    struct rule rule;
    add(inherited.bytes);
    return !found(0x10000001, &rule);
}

/* Forks during a change that a thread of the parent had begun. */
static void a_child_of_a_change_believes_none(void **state) {
    (void)state;
    describe_plainly(&inherited, 0x10000000, 4096, 0x40);
    add(inherited.bytes);
    atomic_store(&tables.busy, true);
    const pid_t pid = fork();
    if (pid == 0) {
        registered_tables_after_fork(&tables, false);
        _exit(child_finds_nothing() ? 0 : 1);
    }
    int status;
    waitpid(pid, &status, 0);
    atomic_store(&tables.busy, false);
    assert_int_equal(status, 0);
    drop(inherited.bytes);
}

/* Removes a table while the lock is held, as by the code that is interrupted: gives up at last. The
 * program goes on, and no wrong table is left. */
static void who_cannot_wait_gives_up(void **state) {
    (void)state;
    struct rule rule;
    describe_plainly(&inherited, 0x10000000, 4096, 0x40);
    add(inherited.bytes);
    assert_true(found(0x10000001, &rule) && is_cached(0x10000001));
    atomic_store(&tables.busy, true);
    drop(inherited.bytes);
    assert_false(found(0x10000001, &rule));
    assert_false(is_cached(0x10000001));
    atomic_store(&tables.busy, false);
}

int main(void) {
    assert_true(modules_start(&modules));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ten_thousand_are_found),
        cmocka_unit_test(memory_is_used_again),
        cmocka_unit_test(sections_beyond_the_bound_are_refused),
        cmocka_unit_test(tables_come_and_go_under_readers),
        cmocka_unit_test(a_forked_child_has_them),
        cmocka_unit_test(a_child_of_a_change_believes_none),
        /* keeps the lock for good, so this test comes last */
        cmocka_unit_test(who_cannot_wait_gives_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
