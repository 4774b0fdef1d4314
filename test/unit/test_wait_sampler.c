/* Tests polls of a thread that waits: the stacks and the times that are recorded of its waits. The
 * test acts as the helper. */
#include "unit.h"

#include "clock.h"
#include "context/program_context.h"
#include "waiting_thread.h"

#include <sys/syscall.h>
#include <unistd.h>

enum { DEPTH = 64, HEARD_MS = 20, MAX_POLLS = 10000 };

static const struct config config = {
    .types = PROFILE_OFF_CPU | PROFILE_SCHED_DELAY, .wait_frequency = 49, .lock_interval = 10000};
static struct log logged;

/* --- the helper --- */

static struct {
    double waited; /* time of the wait, with its stack */
    double unseen; /* time without a stack */
    double delayed;
    unsigned flags; /* flags of all samples */
    uint32_t kind;
    bool has_function;
    bool has_hooks_caller;
    struct span_seen seen;
} told;

static void see(void *arg, const struct sample *sample) {
    (void)arg;
    if (sample->kind == SAMPLE_SCHED_DELAY)
        told.delayed += sample->values[MEASURED_NANO];
    if (sample->kind != SAMPLE_OFF_CPU)
        return;
    told.flags |= sample->flags;
    if (sample->flags & SAMPLE_FLAG_UNSAMPLED) {
        told.unseen += sample->values[MEASURED_NANO];
        return;
    }
    told.waited += sample->values[MEASURED_NANO];
    told.kind = sample->wait->kind;
    told.seen = sample->seen ? *sample->seen : (struct span_seen){0, 0};
    const uintptr_t function = (uintptr_t)waits_for_a_byte;
    const uintptr_t caller = (uintptr_t)waits_in_hook;
    for (uint32_t i = 0; i < sample->frame_count; i++) {
        told.has_function |= sample->frames[i] - function < 100;
        /* the address of its first call */
        told.has_hooks_caller |= sample->frames[i] - caller < 16;
    }
}

static void look(void) {
    waits.next_poll_ns = 0;
    wait_sampler_poll(&waits);
}

static void harvest(bool is_last) {
    memset(&told, 0, sizeof told);
    wait_sampler_harvest(&waits, is_last, see, NULL);
}

static int begin(void **state) {
    (void)state;
    thread_table_reset(&threads);
    (void)set_most(DEPTH);
    memset(&waits, 0, sizeof waits);
    logged.separate_thread = gettid();
    waiting.in_hook = waiting.stays_parked = false;
    wait_sampler_start(&waits, &config, &recorder, &logged);
    return waits.types == config.types ? 0 : -1;
}

static int start(void **state) {
    (void)state;
    return recorder_is_ready(DEPTH) ? 0 : -1;
}

static double nano_since(uint64_t then) {
    return (double)(monotonic_nano() - then);
}

/* --- tests --- */

static void a_lasting_wait_is_recorded_under_its_stack(void **state) {
    (void)state;
    const uint64_t before = monotonic_nano();
    begin_waiting();
    const uint64_t begun_ns = monotonic_nano();
    look();
    usleep(HEARD_MS * 1000);
    const double least = nano_since(begun_ns);
    harvest(false);
    assert_true(told.has_function);
    assert_int_equal(told.kind, WAIT_IO);
    assert_true(told.waited >= least && told.waited <= nano_since(before));
    assert_true(told.unseen == 0 && !(told.flags & SAMPLE_FLAG_TRUNCATED));
    end_waiting();
    give_back();
}

static void each_harvest_has_the_time_since_the_one_before(void **state) {
    (void)state;
    begin_waiting();
    const uint64_t begun_ns = waiting.state->wall.begun_ns;
    double sum = 0;
    for (int i = 0; i < 4; i++) {
        look();
        look();
        harvest(false);
        assert_true(told.waited > 0 && told.has_function);
        sum += told.waited;
    }
    assert_true(sum <= nano_since(begun_ns));
    const uint64_t total_recorded = atomic_load(&waiting.state->wall.accounted_ns);
    assert_true(sum == (double)total_recorded);
    end_waiting();
    give_back();
}

static void a_finished_wait_is_recorded_with_its_stack(void **state) {
    (void)state;
    begin_waiting();
    look();
    usleep(HEARD_MS * 1000);
    look();
    end_waiting();
    give_back();
    harvest(false);
    assert_true(told.waited >= HEARD_MS * 1e6 && told.has_function);
}

/* Polls a wait under a span twice: the span's time runs from the first poll to the last moment at
 * which the thread was certainly still there.
 */
static void span_times_of_a_wait_are_recorded_if_requested(void **state) {
    (void)state;
    static const uint8_t id[TRACE_ID_BYTES] = {1};
    for (int asks = 0; asks < 2; asks++) {
        struct settings_values values = set_most(DEPTH);
        values.span_times = asks;
        settings_publish(&settings, &values);
        begin_waiting();
        give_span(id);
        const uint64_t begun_ns = monotonic_nano();
        look();
        const uint64_t looked = monotonic_nano();
        usleep(HEARD_MS * 1000);
        const uint64_t later = monotonic_nano();
        look();
        const uint64_t left = monotonic_nano();
        end_waiting();
        take_span();
        give_back();
        usleep(1000);
        harvest(false);
        assert_true(told.waited > 0);
        assert_in_range(told.seen.first_nano, asks ? begun_ns : 0, asks ? looked : 0);
        assert_in_range(told.seen.last_nano, asks ? later : 0, asks ? left : 0);
    }
}

/* Acts as a helper that returns from a sleep that should have ended when the machine started. */
static void return_from_a_stop(void) {
    wait_sampler_before_sleep(&waits);
    assert_true(waits.stop.sleep_ns > 0);
    waits.stop.sleep_ns = 1;
    wait_sampler_after_sleep(&waits, 1);
}

static void a_stop_of_the_process_is_no_wait(void **state) {
    (void)state;
    begin_waiting();
    look();
    harvest(false);
    usleep(HEARD_MS * 1000);
    const uint64_t least = atomic_load(&waiting.state->wall.accounted_ns) + HEARD_MS * 1000000;
    return_from_a_stop();
    const uint64_t stopped = atomic_load(&waiting.state->wall.accounted_ns);
    assert_true(stopped >= least);
    memset(&told, 0, sizeof told);
    sample_table_drain(&waits.table, &threads.pool, see, NULL);
    assert_int_equal(told.kind, WAIT_STOPPED);
    assert_true(told.has_function && told.waited >= HEARD_MS * 1e6);
    end_waiting();
    give_back();
    harvest(false); /* each moment is in one sample */
    assert_true(told.waited <= nano_since(waiting.state->wall.begun_ns) - (double)stopped);
}

static void a_wake_in_time_is_no_stop(void **state) {
    (void)state;
    begin_waiting();
    look();
    harvest(false);
    wait_sampler_before_sleep(&waits);
    wait_sampler_after_sleep(&waits, monotonic_nano());
    wait_sampler_before_sleep(&waits);
    wait_sampler_after_sleep(&waits, UINT64_MAX);
    sample_table_drain(&waits.table, &threads.pool, see, NULL);
    assert_int_not_equal(told.kind, WAIT_STOPPED);
    end_waiting();
    give_back();
}

static void an_unseen_wait_is_recorded_once_by_its_thread(void **state) {
    (void)state;
    begin_waiting();
    look();
    const uint64_t seen = atomic_load(&waiting.state->wall.accounted_ns);
    assert_true(seen > 0);
    assert_true(wall_take_rest(&waiting.state->wall, seen + 5) == 5);
    look(); /* the wait goes on, but all of it is recorded */
    end_waiting();
    give_back();
    harvest(true);
    assert_true(told.waited == (double)seen && told.unseen == 0);
}

static void the_last_harvest_records_waits_that_no_poll_saw(void **state) {
    (void)state;
    struct thread_state *const self = begin_thread((uint32_t)gettid());
    wait_sampler_begin_here(&waits, self, true);
    usleep(HEARD_MS * 1000);
    harvest(false); /* the calling thread runs */
    assert_true(told.waited == 0 && told.unseen == 0);
    harvest(true);
    assert_true(told.waited == 0 && told.unseen >= HEARD_MS * 1e6);
    assert_true(told.unseen <= nano_since(self->wall.begun_ns));
    thread_table_give_back(&threads, self);
}

static void waits_while_off_are_never_recorded(void **state) {
    (void)state;
    struct settings_values values = set_most(DEPTH);
    begin_waiting();
    look();
    harvest(false);
    values.on = false;
    settings_publish(&settings, &values);
    assert_int_equal(wait_sampler_next_poll(&waits), 0); /* at once */
    look();
    assert_true(wait_sampler_next_poll(&waits) == UINT64_MAX);
    assert_false(atomic_load(&wait_slots_on));
    usleep(HEARD_MS * 1000);
    const uint64_t resumed = monotonic_nano();
    values.on = true;
    settings_publish(&settings, &values);
    look();
    look();
    assert_true(atomic_load(&wait_slots_on));
    harvest(false);
    assert_true(told.waited > 0);
    harvest(false);
    assert_true(told.waited <= nano_since(resumed));
    end_waiting();
    give_back();
}

static void turn_off_cpu_off(bool all) {
    struct settings_values values = set_most(DEPTH);
    values.on = !all;
    values.types &= ~(unsigned)PROFILE_OFF_CPU;
    settings_publish(&settings, &values);
}

/* Turns off all types, or that of waits alone, before a second poll has met the wait. */
static void waits_until_the_types_go_off_are_recorded(void **state) {
    (void)state;
    for (int all = 0; all < 2; all++) {
        (void)set_most(DEPTH);
        const uint64_t before = monotonic_nano();
        begin_waiting();
        look();
        const uint64_t looked = monotonic_nano();
        usleep(HEARD_MS * 1000);
        const double least = nano_since(looked);
        turn_off_cpu_off(all);
        wait_sampler_poll(&waits);
        const double most = nano_since(before);
        usleep(HEARD_MS * 1000);
        harvest(false);
        assert_true(told.has_function && told.unseen == 0);
        assert_true(told.waited >= least && told.waited <= most);
        (void)set_most(DEPTH);
        const uint64_t resumed = monotonic_nano();
        wait_sampler_poll(&waits);
        harvest(false);
        assert_true(told.waited > 0 && told.waited <= nano_since(resumed));
        end_waiting();
        give_back();
    }
}

/* Records a wait of the calling thread, which runs during each poll: the length of the wait is
 * known, its stack is not. */
static void waits_that_no_poll_saw_are_recorded_without_a_stack(void **state) {
    (void)state;
    struct thread_state *const self = begin_thread((uint32_t)gettid());
    wait_sampler_begin_here(&waits, self, true);
    look();
    usleep(HEARD_MS * 1000);
    turn_off_cpu_off(true);
    wait_sampler_poll(&waits);
    const double most = nano_since(self->wall.begun_ns);
    harvest(false);
    assert_true(told.waited == 0);
    assert_true(told.unseen >= HEARD_MS * 1e6 && told.unseen <= most);
    thread_table_give_back(&threads, self);
}

static void a_slot_has_the_reason_and_the_caller(void **state) {
    (void)state;
    waiting.in_hook = true;
    begin_waiting();
    look();
    harvest(false);
    assert_true(told.waited > 0 && told.has_hooks_caller);
    assert_int_equal(told.kind, WAIT_QUEUE);
    assert_false(told.flags & SAMPLE_FLAG_TRUNCATED);
    end_waiting();
    give_back();
}

static void without_proc_a_slot_is_believed(void **state) {
    (void)state;
    waiting.in_hook = true;
    logged.separate_thread = 0; /* no file may be opened */
    begin_waiting();
    look();
    harvest(false);
    assert_int_equal(waits.kernel.open, 0);
    assert_true(told.waited > 0 && told.has_hooks_caller && !told.has_function);
    assert_int_equal(told.kind, WAIT_QUEUE);
    end_waiting();
    give_back();
}

/* Runs a handler while the hook's slot shows a wait: a poll may take that time for a wait, but it
 * is not recorded as one. */
static void check_work_within_a_wait(unsigned wait_ms) {
    waiting.in_hook = true;
    begin_waiting();
    look();
    work_and_wait_on();
    usleep(wait_ms * 1000);
    look();
    harvest(false);
    const double lived = nano_since(waiting.state->wall.begun_ns);
    assert_true(told.waited > 0 && told.waited + told.unseen <= lived - WORK_NANO);
    end_waiting();
    give_back();
}

static void work_within_a_hooks_wait_is_not_recorded_as_a_wait(void **state) {
    (void)state;
    check_work_within_a_wait(0);
}

/* A long wait is recorded while it lasts. */
static void work_within_a_long_wait_is_not_recorded_as_a_wait(void **state) {
    enum { LONG_WAIT_MS = 500 };
    (void)state;
    check_work_within_a_wait(LONG_WAIT_MS);
}

static void without_proc_and_slot_a_wait_is_recorded_at_the_end(void **state) {
    (void)state;
    logged.separate_thread = 0;
    begin_waiting();
    look();
    harvest(false);
    assert_true(told.waited == 0 && told.unseen == 0);
    harvest(true);
    assert_true(told.waited == 0 && told.unseen > 0);
    end_waiting();
    give_back();
}

static void a_slot_that_was_left_by_a_jump_is_not_believed(void **state) {
    (void)state;
    waiting.in_hook = waiting.stays_parked = true;
    begin_waiting();
    /* wakes the thread, which leaves the hook */
    assert_int_equal(write(waiting.ends[1], "x", 1), 1);
    for (int i = 0; i < MAX_POLLS && (told.kind != WAIT_IO || told.has_hooks_caller); i++) {
        usleep(1000); /* the thread may still be on its way */
        look();
        harvest(false);
    }
    assert_true(told.kind == WAIT_IO && !told.has_hooks_caller);
    assert_int_equal(atomic_load(&waiting.state->wait_slot.sequence) & 1, 1);
    end_waiting();
    give_back();
}

/* Makes the kernel's file of a thread's times report this delay, in ns, from now on. */
static void say_delayed(const struct wait_account *account, uint64_t nano) {
    char text[64];
    char path[] = "/tmp/otelprof-delay-XXXXXX";
    const int size = snprintf(text, sizeof text, "1000 %llu 7\n", (unsigned long long)nano);
    const int file = mkstemp(path);
    assert_true(file >= 0 && account->files.times > 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(write(file, text, (size_t)size), size);
    assert_int_equal(dup2(file, account->files.times), account->files.times);
    close(file);
}

static void a_sleep_reported_as_delay_is_recorded_once(void **state) {
    (void)state;
    begin_waiting();
    look();
    usleep(HEARD_MS * 1000);
    harvest(false);
    const double before = told.waited;
    assert_true(before > 0);
    /* Linux reports such a value after a sleep in which it has moved the thread to another
     * processor */
    say_delayed(wait_sampler_current_wait(&waits, waiting.state), UINT64_C(9000000000000));
    harvest(true);
    assert_true(before + told.waited + told.unseen + told.delayed <=
                nano_since(waiting.state->wall.begun_ns));
    end_waiting();
    give_back();
}

/* The thread works in between, so that it is polled again; it has slept before, so that there is
 * room for a delay. */
static void each_delay_is_recorded_once(void **state) {
    static const uint64_t more[] = {5000000, 8000000};
    (void)state;
    begin_waiting();
    look();
    harvest(false);
    const uint64_t before = (uint64_t)told.delayed; /* the kernel's own value */
    double sum = told.delayed;
    for (int i = 0; i < 2; i++) {
        say_delayed(wait_sampler_current_wait(&waits, waiting.state), before + more[i]);
        usleep(HEARD_MS * 1000);
        work_and_wait_on();
        harvest(false);
        sum += told.delayed;
        assert_true(sum == (double)(before + more[i]));
    }
    end_waiting();
    give_back();
}

static void nothing_is_polled_unless_a_type_needs_it(void **state) {
    (void)state;
    const struct config cpu_only = {.types = PROFILE_CPU, .wait_frequency = 49};
    memset(&waits, 0, sizeof waits);
    atomic_store(&wait_slots_on, WAIT_SLOTS_OFF);
    wait_sampler_start(&waits, &cpu_only, &recorder, &logged);
    assert_false(atomic_load(&wait_slots_on));
    assert_true(wait_sampler_next_poll(&waits) == UINT64_MAX);
    struct thread_state *const thread = begin_thread(1);
    wait_sampler_expect(&waits, thread);
    assert_int_equal(thread->wall.begun_ns, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_lasting_wait_is_recorded_under_its_stack, begin),
        cmocka_unit_test_setup(each_harvest_has_the_time_since_the_one_before, begin),
        cmocka_unit_test_setup(a_finished_wait_is_recorded_with_its_stack, begin),
        cmocka_unit_test_setup(span_times_of_a_wait_are_recorded_if_requested, begin),
        cmocka_unit_test_setup(a_stop_of_the_process_is_no_wait, begin),
        cmocka_unit_test_setup(a_wake_in_time_is_no_stop, begin),
        cmocka_unit_test_setup(an_unseen_wait_is_recorded_once_by_its_thread, begin),
        cmocka_unit_test_setup(the_last_harvest_records_waits_that_no_poll_saw, begin),
        cmocka_unit_test_setup(waits_while_off_are_never_recorded, begin),
        cmocka_unit_test_setup(waits_until_the_types_go_off_are_recorded, begin),
        cmocka_unit_test_setup(waits_that_no_poll_saw_are_recorded_without_a_stack, begin),
        cmocka_unit_test_setup(a_slot_has_the_reason_and_the_caller, begin),
        cmocka_unit_test_setup(without_proc_a_slot_is_believed, begin),
        cmocka_unit_test_setup(without_proc_and_slot_a_wait_is_recorded_at_the_end, begin),
        cmocka_unit_test_setup(a_slot_that_was_left_by_a_jump_is_not_believed, begin),
        cmocka_unit_test_setup(a_sleep_reported_as_delay_is_recorded_once, begin),
        cmocka_unit_test_setup(each_delay_is_recorded_once, begin),
        cmocka_unit_test_setup(work_within_a_hooks_wait_is_not_recorded_as_a_wait, begin),
        cmocka_unit_test_setup(work_within_a_long_wait_is_not_recorded_as_a_wait, begin),
        cmocka_unit_test_setup(nothing_is_polled_unless_a_type_needs_it, begin),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
