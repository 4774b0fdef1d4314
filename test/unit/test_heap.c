/* The live heap: its table and its filter say the same, whoever interrupts whom. */
#include "unit.h"

#include "heap/heap.c"

#include <signal.h>
#include <sys/time.h>

enum { SIFTINGS = 2000, GRANULE = 1 << ADDRESS_FILTER_GRANULE_BITS };

/* --- what heap.c asks of its neighbours --- */

struct capture capture;

bool record_stack(const struct recorder *recorder, struct thread_state *thread,
                  const uint64_t registers[REGISTER_COUNT], struct stack_range signal_stack,
                  struct sample *sample, enum unwind_end *end) {
    (void)recorder, (void)thread, (void)registers, (void)signal_stack, (void)sample;
    *end = UNWIND_COMPLETE;
    return true;
}

void helper_heap_keep_in_filter(void) {
}

void helper_heap_after_fork(void) {
}

void memory_guard_after_fork(void) {
}

static int start(void **state) {
    static const struct config config = {.alloc_interval = 1, .heap_max_live = 64};
    (void)state;
    capture.config = &config;
    capture.heap_on = true;
    return heap_start() ? 0 : -1;
}

static size_t counters_in_use(void) {
    size_t used = 0;
    for (size_t i = 0; i < ADDRESS_FILTER_ENTRIES; i++)
        used += atomic_load(&allocation_path.filter.counters)[i] != 0;
    return used;
}

/* --- coming, while a sieve lets nothing stay --- */

static _Atomic int siftings;

static bool keep_none(void *arg, struct live_object *object) {
    (void)arg, (void)object;
    return false;
}

/* Another thread's, while this one is off the processor. */
static void sift(int number) {
    (void)number;
    live_table_sift(&capture.live, &(struct live_sieve){keep_none, is_gone, NULL});
    siftings++;
}

/* A counter that comes after its object is taken back before it is there: it then stays for ever,
 * or takes a neighbour's place, whose free is missed. */
static void the_filter_knows_an_object_before_the_table(void **state) {
    (void)state;
    struct sigaction action = {.sa_handler = sift};
    const struct itimerval often = {{0, 50}, {0, 50}};
    const struct itimerval never = {{0, 0}, {0, 0}};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    for (uintptr_t i = 0; siftings < SIFTINGS; i++) {
        struct live_object object = {.objects = 1, .size = 1, .stack = 1};
        object.address = (1 + i % ADDRESS_FILTER_ENTRIES) * GRANULE;
        insert(&object);
        (void)heap_forget((void *)object.address, &object);
    }
    setitimer(ITIMER_REAL, &never, NULL);
    assert_int_equal(capture.live.count, 0);
    assert_int_equal(counters_in_use(), 0);
}

/* --- an object at an address that has one --- */

static void an_address_is_counted_once(void **state) {
    (void)state;
    struct live_object object = {.address = 4096, .objects = 1, .size = 1, .stack = 1};
    insert(&object);
    insert(&object); /* freed behind our back meanwhile */
    assert_int_equal(counters_in_use(), 1);
    assert_true(heap_forget((void *)object.address, &object));
    assert_int_equal(counters_in_use(), 0);
    assert_false(heap_forget((void *)object.address, &object));
    assert_int_equal(counters_in_use(), 0);
}

/* --- a realloc that fails --- */

static void carry_nothing(void) {
}

static void turn_stack_store(void) {
    capture.stacks.turn_at = 0;
    stack_store_turn(&capture.stacks, carry_nothing);
}

/* Meanwhile the store has turned twice: the reference is one into the same arena again. */
static void what_is_put_back_has_its_own_stack(void **state) {
    (void)state;
    const uint64_t frames[] = {1, 2, 3};
    struct live_object object = {.address = 4096, .objects = 1, .size = 1};
    object.stack = stack_store_keep(&capture.stacks, 0, frames, 3, 0, 1);
    insert(&object);
    assert_true(heap_forget((void *)object.address, &object));
    heap_put_back(&object);
    assert_int_equal(capture.live.count, 1);
    assert_true(heap_forget((void *)object.address, &object));
    turn_stack_store();
    turn_stack_store();
    heap_put_back(&object);
    assert_int_equal(capture.live.count, 0);
    assert_int_equal(capture.recorder.dropped[DROP_BUSY], 1);
}

/* --- fork --- */

/* In the child the thread that was at it is not there. */
static void a_child_is_not_in_the_middle_of_thinning(void **state) {
    (void)state;
    struct live_object object = {.address = 4096, .objects = 1, .size = 1, .stack = 1};
    insert(&object);
    atomic_store(&capture.heap.thinning, true);
    heap_after_fork();
    assert_false(atomic_load(&capture.heap.thinning));
    assert_int_equal(capture.live.count, 0);
    assert_int_equal(counters_in_use(), 0);
    assert_false(heap_forget((void *)object.address, &object));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_filter_knows_an_object_before_the_table),
        cmocka_unit_test(an_address_is_counted_once),
        cmocka_unit_test(what_is_put_back_has_its_own_stack),
        cmocka_unit_test(a_child_is_not_in_the_middle_of_thinning),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
