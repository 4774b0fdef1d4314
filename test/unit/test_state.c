/* Tests the state words: every pair of states in every context, against tables drawn by hand. */
#include "unit.h"

#include "process/state.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* Lists moves from the state of the row to that of the column: c calm, s signal, h helper, y
 * copy. */
static const char *const expected[STATE_COUNT][STATE_COUNT] = {
    /*               STARTING OFF  ARMED CHILD DRAINING ENDING ENDED LEFT */
    [STATE_STARTING] = {"", "c", "c", "", "", "", "", ""},
    [STATE_OFF] = {"", "", "", "", "", "", "", ""},
    [STATE_ARMED] = {"", "y", "", "y", "ch", "cs", "", "c"},
    [STATE_CHILD] = {"", "y", "c", "y", "ch", "cs", "", "cy"},
    [STATE_DRAINING] = {"", "y", "", "y", "", "cs", "", "c"},
    [STATE_ENDING] = {"", "y", "", "y", "", "", "cs", "c"},
    [STATE_ENDED] = {"", "y", "", "y", "", "", "", "c"},
    [STATE_LEFT] = {"", "", "", "", "", "", "", ""},
};

static const struct {
    enum state_context context;
    char letter;
} contexts[] = {{IN_CALM, 'c'}, {IN_SIGNAL, 's'}, {IN_HELPER, 'h'}, {IN_COPY, 'y'}};

enum { CONTEXTS = sizeof contexts / sizeof *contexts };

static bool is_expected(int from, int to, int context) {
    return strchr(expected[from][to], contexts[context].letter) != NULL;
}

/* Returns a state word of the calling process, in the state `from`. */
static struct state_word word_at(int from) {
    struct state_word word = {.owner = getpid()};
    atomic_store(&word.now, (uint32_t)from);
    return word;
}

static void every_pair_in_every_context(void **state) {
    (void)state;
    for (int from = 0; from < STATE_COUNT; from++)
        for (int to = 0; to < STATE_COUNT; to++)
            for (int i = 0; i < CONTEXTS; i++)
                assert_int_equal(state_permits(from, to, contexts[i].context),
                                 is_expected(from, to, i));
}

static void a_word_moves_as_the_table_says(void **state) {
    (void)state;
    for (int from = 0; from < STATE_COUNT; from++)
        for (int to = 0; to < STATE_COUNT; to++)
            for (int i = 0; i < CONTEXTS; i++) {
                struct state_word word = word_at(from);
                const bool moves = is_expected(from, to, i);
                assert_int_equal(state_move(&word, to, contexts[i].context), moves);
                assert_int_equal(state_now(&word), moves ? to : from);
            }
}

static void the_word_of_another_process_is_taken_over_by_a_copy_alone(void **state) {
    (void)state;
    for (int from = STATE_ARMED; from < STATE_COUNT; from++)
        for (int to = 0; to < STATE_COUNT; to++)
            for (int i = 0; i < CONTEXTS; i++) {
                struct state_word word = word_at(from);
                word.owner = getppid();
                const bool moves = contexts[i].context == IN_COPY && is_expected(from, to, i);
                /* a thread of the owner, always */
                if (contexts[i].context == IN_HELPER)
                    continue;
                assert_int_equal(state_move(&word, to, contexts[i].context), moves);
                assert_int_equal(state_is_own(&word), moves);
            }
}

static struct state_word shared;

/* Tries every move. Returns the number of moves that succeeded, which is the child's exit
 * status. */
static int move_all(void *unused) {
    (void)unused;
    static const enum state_context own[] = {IN_CALM, IN_SIGNAL};
    int moved = 0;
    for (int to = 0; to < STATE_COUNT; to++)
        for (size_t i = 0; i < sizeof own / sizeof *own; i++)
            moved += state_move(&shared, to, own[i]);
    return moved;
}

static void a_child_that_shares_the_memory_moves_nothing(void **state) {
    (void)state;
    enum { STACK_BYTES = 65536 };
    char *const stack = malloc(STACK_BYTES);
    assert_non_null(stack);
    for (int from = STATE_ARMED; from < STATE_COUNT; from++) {
        int status = 0;
        atomic_store(&shared.now, (uint32_t)from);
        shared.owner = getpid();
        const int child =
            clone(move_all, stack + STACK_BYTES, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
        assert_true(child > 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
        assert_int_equal(state_now(&shared), from);
    }
    free(stack);
}

static void *end_it(void *unused) {
    (void)unused;
    return state_move(&shared, STATE_ENDING, IN_CALM) ? &shared : NULL;
}

static void one_of_many_threads_makes_a_move(void **state) {
    (void)state;
    enum { THREADS = 8 };
    pthread_t threads[THREADS];
    int moved = 0;
    atomic_store(&shared.now, STATE_ARMED);
    shared.owner = getpid();
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, end_it, NULL), 0);
    for (int i = 0; i < THREADS; i++) {
        void *result;
        assert_int_equal(pthread_join(threads[i], &result), 0);
        moved += result != NULL;
    }
    assert_int_equal(moved, 1);
    assert_int_equal(state_now(&shared), STATE_ENDING);
}

/* --- states of the helper --- */

static const char *const helpers[HELPER_STATE_COUNT][HELPER_STATE_COUNT] = {
    /* NONE STARTS WAITS WORKS LEAVES SUSPENDED DONE */
    [HELPER_NONE] = {"y", "c", "", "", "", "", ""},
    [HELPER_STARTS] = {"y", "", "c", "h", "cs", "", "ch"},
    [HELPER_WAITS] = {"y", "", "", "h", "cs", "", "h"},
    [HELPER_WORKS] = {"y", "", "", "", "", "h", "h"},
    [HELPER_LEAVES] = {"y", "", "", "", "", "c", "h"},
    [HELPER_SUSPENDED] = {"cy", "", "", "", "", "", ""},
    [HELPER_DONE] = {"y", "", "", "", "", "c", ""},
};

static void the_helper_moves_as_its_table_says(void **state) {
    (void)state;
    for (int from = 0; from < HELPER_STATE_COUNT; from++)
        for (int to = 0; to < HELPER_STATE_COUNT; to++)
            for (int i = 0; i < CONTEXTS; i++) {
                const enum state_context context = contexts[i].context;
                const bool moves = strchr(helpers[from][to], contexts[i].letter) != NULL;
                _Atomic uint32_t word = (uint32_t)from;
                assert_int_equal(helper_state_permits(from, to, context), moves);
                assert_int_equal(helper_state_move(&word, to, context), moves);
                assert_int_equal(atomic_load(&word), moves ? to : from);
            }
}

static void a_helper_moves_from_the_state_that_is_named_alone(void **state) {
    (void)state;
    for (int now = 0; now < HELPER_STATE_COUNT; now++)
        for (int from = 0; from < HELPER_STATE_COUNT; from++)
            for (int to = 0; to < HELPER_STATE_COUNT; to++) {
                const bool moves = now == from && strchr(helpers[from][to], 'c') != NULL;
                _Atomic uint32_t word = (uint32_t)now;
                assert_int_equal(helper_state_move_from(&word, from, to, IN_CALM), moves);
                assert_int_equal(atomic_load(&word), moves ? to : now);
            }
}

static void a_helper_runs_from_its_start_until_it_is_done(void **state) {
    (void)state;
    for (int each = 0; each < HELPER_STATE_COUNT; each++)
        assert_int_equal(helper_state_is_running((uint32_t)each),
                         each == HELPER_STARTS || each == HELPER_WAITS || each == HELPER_WORKS ||
                             each == HELPER_LEAVES);
}

static void every_state_is_reached_and_off_and_left_are_for_good(void **state) {
    (void)state;
    bool reached[STATE_COUNT] = {[STATE_STARTING] = true};
    for (int round = 0; round < STATE_COUNT; round++)
        for (int from = 0; from < STATE_COUNT; from++)
            for (int to = 0; to < STATE_COUNT; to++)
                for (int i = 0; i < CONTEXTS; i++)
                    reached[to] |= reached[from] && state_permits(from, to, contexts[i].context);
    for (int each = 0; each < STATE_COUNT; each++) {
        assert_true(reached[each]);
        assert_false(state_permits(STATE_OFF, each, IN_COPY | IN_CALM | IN_SIGNAL | IN_HELPER));
        assert_false(state_permits(STATE_LEFT, each, IN_COPY | IN_CALM | IN_SIGNAL | IN_HELPER));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair_in_every_context),
        cmocka_unit_test(a_word_moves_as_the_table_says),
        cmocka_unit_test(the_word_of_another_process_is_taken_over_by_a_copy_alone),
        cmocka_unit_test(a_child_that_shares_the_memory_moves_nothing),
        cmocka_unit_test(one_of_many_threads_makes_a_move),
        cmocka_unit_test(the_helper_moves_as_its_table_says),
        cmocka_unit_test(a_helper_moves_from_the_state_that_is_named_alone),
        cmocka_unit_test(a_helper_runs_from_its_start_until_it_is_done),
        cmocka_unit_test(every_state_is_reached_and_off_and_left_are_for_good),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
