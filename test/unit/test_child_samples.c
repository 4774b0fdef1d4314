/* Tests the samples of children that end before they have a helper: the parent reads the samples
 * that a child has written, and no other bytes that a child writes do harm. */
#include "unit.h"

#include "record/child_samples.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CPU_NANO = 7 };

static struct modules modules;
static struct python_functions *functions; /* no interpreter is there */
static struct child_copy copies[CHILD_SLOTS];
static uint64_t stack[2]; /* two addresses in this program's code */

/* Holds the samples of the last visit. */
static struct seen {
    uint32_t count;
    uint64_t frames; /* sum of the words of all frames */
    struct sample last;
    uint64_t last_frames[4];
} seen;

static void see(void *arg, const struct sample *sample) {
    (void)arg;
    struct named_frame named;
    seen.count++;
    seen.last = *sample;
    for (uint32_t i = 0; i < sample->frame_count; i++) {
        seen.frames += sample->frames[i];
        if (!frame_is_address(sample->frames[i]) &&
            child_samples_name(copies, sample->frames[i], &named))
            seen.frames += strlen(named.function) + strlen(named.file);
        if (i < 4)
            seen.last_frames[i] = sample->frames[i];
    }
}

static bool any_has_ended(uint32_t pid, uint64_t start_nano) {
    (void)pid, (void)start_nano;
    return true;
}

static bool none_has_ended(uint32_t pid, uint64_t start_nano) {
    (void)pid, (void)start_nano;
    return false;
}

static void add_stack(const uint64_t *frames, uint32_t count) {
    child_samples_add(&modules, functions,
                      &(struct sample){.kind = SAMPLE_CPU,
                                       .tid = 3,
                                       .frames = frames,
                                       .frame_count = count,
                                       .values = {[MEASURED_NANO] = CPU_NANO}});
}

static void add_once(void) {
    add_stack(stack, 2);
}

/* Runs `live` in a forked child, which then ends. Returns the child's id. */
static uint32_t fork_child(void (*live)(void)) {
    const uint32_t parent = (uint32_t)getpid();
    const pid_t pid = fork();
    if (pid == 0) {
        const struct forked_child child = {.pid = (uint32_t)getpid(),
                                           .parent = parent,
                                           .start_nano = 5,
                                           .start_unix_nano = 6,
                                           .interval = modules_interval(&modules)};
        child_samples_after_fork(&child);
        live();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    return (uint32_t)pid;
}

/* Takes the samples of all children that have ended, into `seen`. Returns the number of children;
 * *last is the last one. */
static uint32_t take_all(struct ended_child *last) {
    static uint64_t rooms[CHILD_SLOTS][CHILD_SLOT_BYTES / 8];
    uint32_t count = 0;
    seen = (struct seen){.count = 0};
    for (int i = 0; i < CHILD_SLOTS; i++)
        copies[i] = (struct child_copy){(uint8_t *)rooms[i], 0};
    while (child_samples_take(copies, last, see, NULL))
        count++;
    assert_false(child_samples_are_there());
    return count;
}

static int prepare(void **state) {
    (void)state;
    if (!modules_start(&modules))
        return 1;
    stack[0] = (uintptr_t)(void *)prepare;
    stack[1] = stack[0] + 1;
    child_samples_share();
    return 0;
}

static void add_some(void) {
    const uint64_t other[] = {stack[1], stack[0]};
    add_once();
    add_once();
    add_stack(other, 2);
}

static void the_samples_of_a_child_outlive_it(void **state) {
    (void)state;
    struct ended_child child;
    const uint32_t pid = fork_child(add_some);
    assert_int_equal(child_samples_find_ended(none_has_ended), 0);
    assert_int_equal(take_all(&child), 0);
    assert_int_equal(child_samples_find_ended(any_has_ended), 3 * CPU_NANO);
    assert_int_equal(take_all(&child), 1);
    assert_int_equal(child.pid, pid);
    assert_int_equal(child.parent, getpid());
    assert_int_equal(child.start_unix_nano, 6);
    assert_int_equal(child.cpu_nano, 3 * CPU_NANO);
    assert_int_equal(seen.count, 2);
    assert_int_equal(seen.last.kind, SAMPLE_CPU);
    assert_int_equal(seen.last.tid, 3);
    assert_int_equal(seen.last.frame_count, 2);
    assert_int_equal(seen.last_frames[0], stack[1]);
    assert_true(seen.last.values[MEASURED_NANO] == CPU_NANO);
    assert_int_equal(child_samples_find_ended(any_has_ended), 0);
}

static void add_and_release(void) {
    add_once();
    child_samples_release();
    add_once();
}

static void a_child_with_a_helper_of_its_own_leaves_nothing(void **state) {
    (void)state;
    struct ended_child child;
    (void)fork_child(add_and_release);
    assert_int_equal(child_samples_find_ended(any_has_ended), 0);
    assert_int_equal(take_all(&child), 0);
}

static void do_nothing(void) {
}

static void a_child_without_a_sample_takes_no_slot(void **state) {
    (void)state;
    for (int i = 0; i < 2 * CHILD_SLOTS; i++)
        (void)fork_child(do_nothing);
    (void)fork_child(add_once);
    assert_int_equal(child_samples_find_ended(any_has_ended), CPU_NANO);
    assert_int_equal(take_all(&(struct ended_child){0}), 1);
}

static void fork_another(void) {
    add_once();
    (void)fork_child(add_some);
}

static void a_childs_child_has_a_slot_of_its_own(void **state) {
    (void)state;
    (void)fork_child(fork_another);
    assert_int_equal(child_samples_find_ended(any_has_ended), 4 * CPU_NANO);
    assert_int_equal(take_all(&(struct ended_child){0}), 2);
    assert_int_equal(seen.count, 3);
}

static void fork_another_with_other_objects(void) {
    add_once();
    atomic_fetch_add(&modules.interval, 1);
    (void)fork_child(add_once);
}

static void a_childs_child_has_the_interval_that_the_reader_knows(void **state) {
    (void)state;
    struct ended_child last = {0};
    (void)fork_child(fork_another_with_other_objects);
    (void)child_samples_find_ended(any_has_ended);
    assert_int_equal(take_all(&last), 2);
    assert_int_not_equal(last.parent, getpid());
    assert_int_equal(last.interval, modules_interval(&modules));
}

static void forget_ancestor(void) {
    child_samples_after_fork(NULL);
    add_once();
    (void)fork_child(add_once);
}

static void a_child_that_must_not_write_does_not_nor_do_its_children(void **state) {
    (void)state;
    (void)fork_child(forget_ancestor);
    assert_int_equal(child_samples_find_ended(any_has_ended), 0);
}

static void children_beyond_the_slots_are_left_out(void **state) {
    (void)state;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < CHILD_SLOTS + 3; i++)
            (void)fork_child(add_once);
        assert_int_equal(child_samples_find_ended(any_has_ended), CHILD_SLOTS * CPU_NANO);
        assert_int_equal(take_all(&(struct ended_child){0}), CHILD_SLOTS);
        assert_int_equal(seen.count, CHILD_SLOTS);
    }
}

static void add_many(void) {
    for (uint64_t i = 0; i < 100000; i++) {
        const uint64_t frames[] = {stack[0], stack[0] + i % 10000};
        add_stack(frames, 2);
    }
}

static void a_slot_has_room_for_so_many_stacks(void **state) {
    (void)state;
    struct ended_child child;
    (void)fork_child(add_many);
    const uint64_t nano = child_samples_find_ended(any_has_ended);
    assert_int_equal(take_all(&child), 1);
    assert_in_range(seen.count, 100, CHILD_SLOT_BYTES / 64);
    assert_int_equal(nano, seen.count * 10 * CPU_NANO); /* a sample without room is not counted */
}

static void add_what_has_no_name(void) {
    static uint64_t data;
    const uint64_t frames[] = {stack[0], (uintptr_t)malloc(100), frame_place(64),
                               frame_interned(FRAME_CPYTHON, 1, 1)};
    const struct stack_copy copy = {.size = 8, .bytes = (const uint8_t *)&data};
    child_samples_add(&modules, functions,
                      &(struct sample){.kind = SAMPLE_CPU,
                                       .stack_copy = &copy,
                                       .frames = frames,
                                       .frame_count = 4,
                                       .values = {CPU_NANO}});
    child_samples_add(&modules, functions, &(struct sample){.kind = SAMPLE_LOCK, .values = {1, 1}});
}

static void only_code_of_the_parents_objects_keeps_its_address(void **state) {
    (void)state;
    struct ended_child child;
    (void)fork_child(add_what_has_no_name);
    (void)child_samples_find_ended(any_has_ended);
    assert_int_equal(take_all(&child), 1);
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.last.flags, SAMPLE_FLAG_TRUNCATED);
    assert_int_equal(seen.last.frame_count, 3);
    assert_int_equal(seen.last_frames[0], stack[0]);
    assert_int_equal(seen.last_frames[1], 0);
    assert_int_equal(seen.last_frames[2], 0);
}

/* --- hostile children --- */

static uint64_t random_state = 88172645463325252u;

/* Source: Marsaglia's xorshift64. */
static uint64_t random_word(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

/* Returns the memory that this process shares with its children. */
static struct child_slots *shared_memory(void) {
    char line[512];
    struct child_slots *found = NULL;
    FILE *const maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps)) {
        char *after;
        const uintptr_t start = strtoull(line, &after, 16);
        if (strtoull(after + 1, NULL, 16) - start == sizeof *found && strstr(line, "rw-s"))
            found = (struct child_slots *)start;
    }
    if (maps)
        fclose(maps);
    return found;
}

static void write_ones(void) {
    struct child_slots *const slots = shared_memory();
    if (!slots)
        _exit(1);
    memset(slots, 0xff, sizeof *slots);
}

/* Runs in a child: takes a slot, then fills the heads and records of all slots with random words.
 * Two of three slots keep their owner, the others get a changed one. */
static void write_anything(void) {
    struct child_slots *const slots = shared_memory();
    if (!slots)
        _exit(1);
    add_some();
    for (int i = 0; i < CHILD_SLOTS; i++) {
        const uint64_t owner = atomic_load(&slots->heads[i].owner);
        for (size_t k = 0; k < sizeof slots->heads[i] / 8; k++)
            ((_Atomic uint64_t *)(void *)&slots->heads[i])[k] = random_word();
        for (size_t k = 0; k < CHILD_SLOT_BYTES / 8; k++)
            ((uint64_t *)(void *)slots->records[i])[k] = random_word();
        atomic_store(&slots->heads[i].owner, i % 3 ? owner : owner ^ random_word() % 16);
    }
}

static void whatever_a_child_writes_is_read_and_freed(void **state) {
    (void)state;
    struct ended_child child;
    for (int i = 0; i < 64; i++) {
        random_state += (uint64_t)i;
        (void)fork_child(i % 8 ? write_anything : write_ones);
        (void)child_samples_find_ended(any_has_ended);
        (void)take_all(&child);
    }
    (void)fork_child(add_some);
    assert_int_equal(child_samples_find_ended(any_has_ended), 3 * CPU_NANO);
    assert_int_equal(take_all(&child), 1);
    assert_int_equal(seen.count, 2);
}

/* Maps `pages` pages, and a page after them that cannot be read. Returns the end of the readable
 * pages. */
static char *guarded_pages(size_t pages) {
    const size_t size = (size_t)sysconf(_SC_PAGESIZE);
    char *const memory =
        mmap(NULL, (pages + 1) * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    assert_int_equal(mprotect(memory + pages * size, size, PROT_NONE), 0);
    return memory + pages * size;
}

/* Reads records that end where memory ends: any bytes, and bytes that begin like a record. */
static void records_are_read_within_their_bytes(void **state) {
    (void)state;
    char *const end = guarded_pages(1);
    for (int i = 0; i < 200000; i++) {
        const uint32_t words = (uint32_t)(random_word() % 40);
        uint64_t *const records = (uint64_t *)(void *)end - words;
        for (uint32_t k = 0; k < words; k++)
            records[k] = random_word();
        /* struct child_record: bytes, tid, kind, flags, frame_count */
        const uint32_t bytes = words * 8 - (i % 5 ? 0 : (uint32_t)(random_word() % 64));
        const uint16_t frames = (uint16_t)((bytes - 40) / 8);
        if (words >= 5 && i % 4) {
            memcpy(records, &bytes, sizeof bytes);
            ((uint8_t *)records)[8] = SAMPLE_CPU;
            memcpy((char *)records + 10, &frames, sizeof frames);
            records[2] = records[3] = 0;
        }
        seen = (struct seen){.count = 0};
        copies[1] = (struct child_copy){(uint8_t *)records, words * 8};
        child_samples_read(&copies[1], 1, 1, see, NULL);
        assert_in_range(seen.count, 0, 1);
    }
}

/* Names functions at any offset of records that end where memory ends, and that begin like a
 * function. */
static void names_are_read_within_their_bytes(void **state) {
    (void)state;
    char *const end = guarded_pages(1);
    struct named_frame named;
    uint32_t found = 0;
    for (int i = 0; i < 200000; i++) {
        const uint32_t most = i % 2 ? 40 : 400;
        const uint32_t words = 4 + (uint32_t)(random_word() % most);
        uint64_t *const records = (uint64_t *)(void *)end - words;
        for (uint32_t k = 0; k < words; k++)
            records[k] = random_word();
        /* struct child_function: bytes, line, kind, 2 sizes of characters, start_line, 2 sizes */
        const uint32_t first = (uint32_t)(random_word() % (words - 3));
        uint32_t *const function = (uint32_t *)(void *)(records + first);
        function[0] = i % 7 ? (words - first) * 8 : (uint32_t)(random_word() % 512);
        const uint8_t kind[] = {103, (uint8_t)(random_word() % 6), (uint8_t)(random_word() % 6)};
        memcpy(function + 2, kind, sizeof kind);
        function[4] = (uint32_t)(random_word() % (8 * most));
        function[5] = (uint32_t)(random_word() % (8 * most));
        copies[2] = (struct child_copy){(uint8_t *)records, words * 8};
        const uint32_t offset = i % 3 ? first * 8 : (uint32_t)(random_word() % (words * 8 + 16));
        if (!child_samples_name(copies, frame_interned(FRAME_CHILD, 2, offset), &named))
            continue;
        found++;
        assert_in_range(strlen(named.function), 0, 4 * PYTHON_NAME_CHARACTERS);
        assert_in_range(strlen(named.file), 0, 4 * PYTHON_FILE_CHARACTERS);
    }
    assert_in_range(found, 1000, 100000);
    for (uint32_t number = CHILD_SLOTS; number < CHILD_SLOTS + 3; number++)
        assert_false(child_samples_name(copies, frame_interned(FRAME_CHILD, number, 0), &named));
}

/* Reads values that an export cannot express, each in one record: the record is left out. */
static void impossible_values_are_left_out(void **state) {
    (void)state;
    static const double wrong[] = {-1, 1e300, 9007199254740992.0, 0.0 / 0.0, 1.0 / 0.0};
    struct {
        uint32_t bytes, tid;
        uint8_t kind, flags;
        uint16_t frame_count;
        uint32_t unused;
        double values[SAMPLE_VALUES];
        uint64_t frames[1];
    } record = {.bytes = sizeof record, .kind = SAMPLE_CPU, .flags = 0xff, .frame_count = 1};
    struct child_copy copy = {(uint8_t *)&record, sizeof record};
    seen = (struct seen){.count = 0};
    child_samples_read(&copy, 0, 1, see, NULL);
    assert_int_equal(seen.count, 1);
    assert_false(seen.last.flags & SAMPLE_FLAG_KERNEL);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        record.values[i % 2] = wrong[i];
        child_samples_read(&copy, 0, 1, see, NULL);
        record.values[i % 2] = 0;
    }
    record.kind = SAMPLE_LIVE;
    child_samples_read(&copy, 0, 1, see, NULL);
    assert_int_equal(seen.count, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_samples_of_a_child_outlive_it),
        cmocka_unit_test(a_child_with_a_helper_of_its_own_leaves_nothing),
        cmocka_unit_test(a_child_without_a_sample_takes_no_slot),
        cmocka_unit_test(a_childs_child_has_a_slot_of_its_own),
        cmocka_unit_test(a_childs_child_has_the_interval_that_the_reader_knows),
        cmocka_unit_test(a_child_that_must_not_write_does_not_nor_do_its_children),
        cmocka_unit_test(children_beyond_the_slots_are_left_out),
        cmocka_unit_test(a_slot_has_room_for_so_many_stacks),
        cmocka_unit_test(only_code_of_the_parents_objects_keeps_its_address),
        cmocka_unit_test(whatever_a_child_writes_is_read_and_freed),
        cmocka_unit_test(records_are_read_within_their_bytes),
        cmocka_unit_test(names_are_read_within_their_bytes),
        cmocka_unit_test(impossible_values_are_left_out),
    };
    return cmocka_run_group_tests(tests, prepare, NULL);
}
