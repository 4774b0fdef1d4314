/* Tests the helper's wait: a request ends it at once, and descriptors are watched meanwhile. */
#include "unit.h"

#include "capture/kernel/futex.h"
#include "fake_syscall.h"
#include "harvest.h"
#include "process/helper.h"
#include "process/helper_wait.h"
#include "process/quiesce_lock.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

/* If this is set, the helper's sleeps are counted, and no thread sleeps. */
static bool watches_sleeps;
static uint32_t before_sleep; /* a request of another thread, within the call that would sleep */
static int sleeps;
static int questions;

/* --- descriptors alone --- */

static struct watched_descriptors set;
static int first[2];
static int second[2];
static unsigned calls;
static unsigned last_ready;
static int last_descriptor;

static void count(void *arg, int descriptor, unsigned ready) {
    char byte;
    assert_ptr_equal(arg, &set);
    calls++;
    last_descriptor = descriptor;
    last_ready = ready;
    if (ready & POLLIN)
        assert_int_equal(read(descriptor, &byte, 1), 1);
}

static struct watched_descriptor counted(int descriptor) {
    return (struct watched_descriptor){descriptor, POLLIN, count, &set};
}

static void say(const int pipe[2]) {
    assert_int_equal(write(pipe[1], "x", 1), 1);
}

static int begin(void **state) {
    (void)state;
    calls = sleeps = questions = 0;
    watches_sleeps = false;
    watched_clear(&set);
    helper_wait_begin();
    atomic_store(&helper.request, REQUEST_TIMEOUT);
    return pipe2(first, O_CLOEXEC | O_NONBLOCK) || pipe2(second, O_CLOEXEC | O_NONBLOCK);
}

static int end(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        close(first[i]);
        close(second[i]);
    }
    return 0;
}

static void an_empty_set_makes_no_call(void **state) {
    (void)state;
    assert_true(watched_next_poll(&set) == UINT64_MAX);
    assert_false(watched_poll(&set));
    watched_call_ready(&set);
    assert_int_equal(calls, 0);
}

static void a_ready_descriptor_is_passed_once(void **state) {
    (void)state;
    const struct watched_descriptor one = counted(first[0]);
    const struct watched_descriptor other = counted(second[0]);
    assert_true(watched_add(&set, &one));
    assert_true(watched_add(&set, &other));
    assert_false(watched_add(&set, &one));
    assert_false(watched_poll(&set));
    say(second);
    assert_true(watched_poll(&set));
    watched_call_ready(&set);
    assert_int_equal(calls, 1);
    assert_int_equal(last_descriptor, second[0]);
    watched_call_ready(&set); /* polls each descriptor once */
    assert_int_equal(calls, 1);
    say(first);
    watched_remove(&set, first[0]);
    assert_false(watched_poll(&set));
}

static void remove_other(void *arg, int descriptor, unsigned ready) {
    const struct watched_descriptor again = counted(second[0]);
    count(arg, descriptor, ready);
    watched_remove(&set, second[0]);
    assert_true(watched_add(&set, &again));
}

/* Watches a descriptor whose function removes the second one and registers its number again, as for
 * another file. */
static void a_reused_descriptor_is_polled_again(void **state) {
    (void)state;
    const struct watched_descriptor one = {first[0], POLLIN, remove_other, &set};
    const struct watched_descriptor other = counted(second[0]);
    assert_true(watched_add(&set, &one));
    assert_true(watched_add(&set, &other));
    say(first);
    say(second);
    assert_true(watched_poll(&set));
    watched_call_ready(&set);
    assert_int_equal(calls, 1);
    assert_true(watched_poll(&set));
    watched_call_ready(&set);
    assert_int_equal(calls, 2);
}

/* Closes a watched descriptor, as another thread may: poll() would report it ready for ever. */
static void a_closed_descriptor_is_watched_no_more(void **state) {
    (void)state;
    const int copy = dup(first[0]);
    const struct watched_descriptor one = counted(copy);
    assert_true(watched_add(&set, &one));
    close(copy);
    assert_true(watched_poll(&set));
    watched_call_ready(&set);
    assert_int_equal(calls, 1);
    assert_int_equal(last_ready, POLLNVAL);
    assert_int_equal(set.count, 0);
}

static void there_is_room_for_so_many(void **state) {
    (void)state;
    for (int i = 0; i < WATCHED_MOST; i++) {
        const struct watched_descriptor one = counted(1000 + i);
        assert_true(watched_add(&set, &one));
    }
    const struct watched_descriptor another = counted(first[0]);
    assert_false(watched_add(&set, &another));
}

/* Polls after 1, 2, 4 ... 100 ms, and after 1 ms again when something was ready. */
static void rounds_grow_while_nothing_is_ready(void **state) {
    (void)state;
    const struct watched_descriptor one = counted(first[0]);
    uint64_t before = 0;
    assert_true(watched_add(&set, &one));
    for (int i = 0; i < 10; i++) {
        assert_true(watched_next_poll(&set) != UINT64_MAX);
        assert_true(set.round_ms == (before ? before * 2 : WATCHED_FIRST_ROUND_MS) ||
                    set.round_ms == WATCHED_LAST_ROUND_MS);
        before = set.round_ms;
        assert_false(watched_poll(&set));
    }
    assert_int_equal(before, WATCHED_LAST_ROUND_MS);
    say(first);
    assert_true(watched_poll(&set));
    (void)watched_next_poll(&set);
    assert_int_equal(set.round_ms, WATCHED_FIRST_ROUND_MS);
}

/* --- in the wait --- */

static void request(uint32_t what) {
    atomic_store(&helper.request, what);
    helper_wake();
}

static long fake_syscall(long number, const long a[6]) {
    if (number != SYS_futex || (a[1] & FUTEX_CMD_MASK) != FUTEX_WAIT_BITSET || !watches_sleeps)
        return real_syscall(number, a);
    if (before_sleep)
        request(before_sleep);
    before_sleep = 0;
    if (atomic_load((_Atomic uint32_t *)a[0]) != (uint32_t)a[2])
        return refuse_syscall(EAGAIN);
    sleeps++;
    return 0;
}

static bool never(void) {
    return false;
}

static bool was_called(void) {
    return calls > 0;
}

static void *request_stop(void *unused) {
    request(REQUEST_STOP);
    return unused;
}

static void a_request_ends_the_wait(void **state) {
    (void)state;
    const struct watched_descriptor one = counted(first[0]);
    pthread_t other;
    for (int watches = 0; watches < 2; watches++) {
        if (watches)
            assert_true(helper_wait_watch_fd(&one));
        atomic_store(&helper.request, REQUEST_TIMEOUT);
        assert_int_equal(pthread_create(&other, NULL, request_stop, NULL), 0);
        assert_int_equal(helper_wait_for_request(UINT64_MAX, never), REQUEST_STOP);
        assert_int_equal(pthread_join(other, NULL), 0);
    }
    assert_int_equal(calls, 0);
}

static void *write_later(void *unused) {
    say(first);
    return unused;
}

static void a_descriptor_is_polled_within_the_wait(void **state) {
    (void)state;
    const struct watched_descriptor one = counted(first[0]);
    pthread_t other;
    assert_true(helper_wait_watch_fd(&one));
    assert_int_equal(pthread_create(&other, NULL, write_later, NULL), 0);
    assert_int_equal(helper_wait_for_request(UINT64_MAX, was_called), REQUEST_TIMEOUT);
    assert_int_equal(pthread_join(other, NULL), 0);
    assert_int_equal(calls, 1);
    assert_true(quiesce_lock_close(0)); /* the lock is left */
    quiesce_lock_leave();
}

/* Makes the request just before the helper sleeps. */
static bool request_now(void) {
    request(REQUEST_STOP);
    return false;
}

static void a_request_goes_before_a_descriptor(void **state) {
    (void)state;
    const struct watched_descriptor one = counted(first[0]);
    assert_true(helper_wait_watch_fd(&one));
    say(first);
    assert_int_equal(helper_wait_for_request(UINT64_MAX, request_now), REQUEST_STOP);
    assert_int_equal(calls, 0);
}

/* Has work for the helper from the second check on. The helper is notified between its first check
 * and its sleep: a library was loaded, the program wants an export or has started sampling again,
 * the heap is at its peak. */
static bool is_late(void) {
    if (++questions == 1)
        helper_wake();
    return questions > 1;
}

static void a_wake_on_the_way_to_a_sleep_is_not_lost(void **state) {
    (void)state;
    watches_sleeps = true;
    assert_int_equal(helper_wait_for_request(UINT64_MAX, is_late), REQUEST_TIMEOUT);
    assert_int_equal(questions, 2);
    assert_int_equal(sleeps, 0);
}

/* Makes the request first before the wait, as if during the last cycle, and then within the
 * wait. */
static void a_last_request_on_the_way_to_a_sleep_is_not_lost(void **state) {
    (void)state;
    helper.stop_handed_over = true;
    watches_sleeps = true;
    request(REQUEST_ABANDON);
    assert_int_equal(helper_wait_outside(UINT64_MAX), REQUEST_ABANDON);
    assert_int_equal(sleeps, 0);
    atomic_store(&helper.request, REQUEST_STOP);
    before_sleep = REQUEST_ABANDON;
    assert_int_equal(helper_wait_outside(UINT64_MAX), REQUEST_ABANDON);
    assert_int_equal(sleeps, 0);
    helper.stop_handed_over = false;
}

static bool is_fourth(void) {
    return ++questions == 4;
}

/* Lets the helper sleep without a request, and check again after each sleep. */
static void a_helper_sleeps_until_it_is_woken(void **state) {
    (void)state;
    watches_sleeps = true;
    assert_int_equal(helper_wait_for_request(UINT64_MAX, is_fourth), REQUEST_TIMEOUT);
    assert_int_equal(sleeps, 3);
}

static void descriptors_are_forgotten_with_their_thread(void **state) {
    (void)state;
    const struct watched_descriptor one = counted(first[0]);
    assert_true(helper_wait_watch_fd(&one));
    assert_false(helper_wait_watch_fd(&one));
    helper_wait_begin();
    assert_true(helper_wait_watch_fd(&one));
    helper_wait_unwatch_fd(first[0]);
    assert_true(helper_wait_watch_fd(&one));
}

int main(void) {
#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(an_empty_set_makes_no_call),
        TEST(a_ready_descriptor_is_passed_once),
        TEST(a_reused_descriptor_is_polled_again),
        TEST(a_closed_descriptor_is_watched_no_more),
        TEST(there_is_room_for_so_many),
        TEST(rounds_grow_while_nothing_is_ready),
        TEST(a_request_ends_the_wait),
        TEST(a_descriptor_is_polled_within_the_wait),
        TEST(a_request_goes_before_a_descriptor),
        TEST(a_wake_on_the_way_to_a_sleep_is_not_lost),
        TEST(a_last_request_on_the_way_to_a_sleep_is_not_lost),
        TEST(a_helper_sleeps_until_it_is_woken),
        TEST(descriptors_are_forgotten_with_their_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
