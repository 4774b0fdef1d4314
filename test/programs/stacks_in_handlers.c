/* Prints the results of sigaltstack() in handlers, and once they have returned.
 *
 * Handlers with and without SA_ONSTACK set, disable and query the alternate stack, raise one
 * another and jump out, by a fixed sequence of random numbers. Prints each result, and the stack
 * that each handler runs on: two runs print the same, with any profiler or without one. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    ROOMS = 3,
    ROOM_BYTES = 1 << 16,
    DISARMS = (int)(1U << 31),
    DEEPEST = 3,
    SEQUENCES = 400,
    STEPS = 6,
    FRESH_SEQUENCES = 60,
    PLAIN = SIGUSR1,
    ANOTHER_PLAIN = SIGWINCH,
    NESTING_PLAIN = SIGURG, /* may interrupt its own handler */
    ON_STACK = SIGUSR2,
};

static char rooms[ROOMS][ROOM_BYTES];

/* --- state of the present thread --- */

static __thread uint64_t random_state;
static __thread sigjmp_buf out;
static __thread int depth;
static __thread bool is_used[ROOMS]; /* a handler runs on that stack */

static unsigned next_random(unsigned below) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(random_state >> 33) % below;
}

static int room_of(const void *address) {
    const uintptr_t offset = (uintptr_t)address - (uintptr_t)rooms;
    return offset < sizeof rooms ? (int)(offset / ROOM_BYTES) : -1;
}

static void query(const char *when) {
    stack_t present;
    const int result = sigaltstack(NULL, &present);
    printf("%*s%s: %d, room %d, flags %x, %zu bytes\n", depth * 2, "", when, result,
           room_of(present.ss_sp), (unsigned)present.ss_flags, present.ss_size);
}

static void set(int room, int flags) {
    const stack_t wanted = {.ss_sp = rooms[room], .ss_flags = flags, .ss_size = ROOM_BYTES};
    stack_t old;
    memset(&old, 0, sizeof old);
    const int result = sigaltstack(&wanted, &old);
    printf("%*sset %d %x: %d, before: room %d, flags %x\n", depth * 2, "", room, (unsigned)flags,
           result == 0 ? 0 : errno, room_of(old.ss_sp), (unsigned)old.ss_flags);
}

/* A handler that a signal interrupts on a stack would be overwritten by one that begins at its
 * top. */
static void set_unused(int flags) {
    const unsigned room = next_random(ROOMS);
    if (!is_used[room])
        set((int)room, flags);
}

static void act(void) {
    switch (next_random(11)) {
    case 0:
    case 1:
        set_unused(0);
        break;
    case 2:
        set_unused(DISARMS);
        break;
    case 3:
        set(0, SS_DISABLE);
        break;
    case 4:
        set(0, SS_DISABLE | DISARMS);
        break;
    case 5:
    case 6:
        if (depth < DEEPEST)
            raise(PLAIN);
        break;
    case 7:
        if (depth < DEEPEST)
            raise(ON_STACK);
        break;
    case 8:
        if (depth < DEEPEST)
            raise(ANOTHER_PLAIN);
        break;
    case 9:
        if (depth < DEEPEST)
            raise(NESTING_PLAIN);
        break;
    default:
        if (depth == DEEPEST)
            siglongjmp(out, 1);
    }
    query("then");
}

static void act_often(void) {
    for (unsigned i = next_random(STEPS); i > 0; i--)
        act();
}

static void on_signal(int number) {
    char here;
    const int room = room_of(&here);
    const bool uses = room >= 0 && !is_used[room];
    depth++;
    if (uses)
        is_used[room] = true;
    printf("%*shandler of %d on %d\n", depth * 2, "", number, room);
    query("at first");
    act_often();
    if (uses)
        is_used[room] = false;
    depth--;
}

static void begin_again(void) {
    depth = 0;
    memset(is_used, 0, sizeof is_used);
}

static void act_by(int sequence) {
    printf("sequence %d\n", sequence);
    random_state = (uint64_t)sequence + 1;
    begin_again();
    if (sigsetjmp(out, 1) == 0)
        act_often();
    begin_again();
    query("at last");
}

static void *act_in_thread(void *unused) {
    for (int i = 0; i < SEQUENCES; i++)
        act_by(i);
    return unused;
}

/* Runs a sequence in a handler of a process whose first thread has set no stack. */
static void begin_sequence(int number) {
    (void)number;
    act_often();
    query("at the end");
}

static void act_in_child(int sequence) {
    struct sigaction action = {.sa_handler = begin_sequence};
    fflush(stdout);
    if (fork() == 0) {
        sigaction(SIGHUP, &action, NULL);
        for (int i = 0; i < 4; i++) {
            printf("fresh %d\n", sequence);
            random_state = (uint64_t)(sequence * 4 + i) + 1;
            begin_again();
            if (sigsetjmp(out, 1) == 0)
                raise(SIGHUP);
            begin_again();
            query("behind it");
        }
        fflush(stdout);
        _exit(0);
    }
    wait(NULL);
}

/* --- a thread that has never set a stack --- */

static void set_one(int number) {
    (void)number;
    set(0, 0);
}

static void set_two(int number) {
    (void)number;
    set(0, 0);
    set(1, 0);
}

static void set_and_disable(int number) {
    (void)number;
    set(0, 0);
    set(0, SS_DISABLE);
}

static void set_and_query(int number) {
    (void)number;
    set(0, 0);
    query("inside");
    raise(ON_STACK);
}

static void set_another(int number) {
    (void)number;
    set(1, 0);
}

/* The first setting stays: the kernel restores it as the second handler returns. */
static void set_and_raise(int number) {
    struct sigaction action = {.sa_handler = set_another};
    struct sigaction old;
    (void)number;
    set(0, 0);
    sigaction(ANOTHER_PLAIN, &action, &old);
    raise(ANOTHER_PLAIN);
    sigaction(ANOTHER_PLAIN, &old, NULL);
}

static void in_child(sighandler_t handler, int flags) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    fflush(stdout);
    if (fork() == 0) {
        sigaction(PLAIN, &action, NULL);
        raise(PLAIN);
        query("behind it");
        action.sa_handler = set_two;
        sigaction(PLAIN, &action, NULL);
        raise(PLAIN);
        query("behind another");
        fflush(stdout);
        _exit(0);
    }
    wait(NULL);
}

int main(void) {
    static const sighandler_t firsts[] = {set_one, set_two, set_and_disable, set_and_query,
                                          set_and_raise};
    pthread_t thread;
    struct sigaction action = {.sa_handler = on_signal};
    setvbuf(stdout, NULL, _IOFBF, 1 << 20);
    sigaction(PLAIN, &action, NULL);
    sigaction(ANOTHER_PLAIN, &action, NULL);
    action.sa_flags = SA_NODEFER;
    sigaction(NESTING_PLAIN, &action, NULL);
    action.sa_flags = SA_ONSTACK;
    sigaction(ON_STACK, &action, NULL);
    for (size_t i = 0; i < sizeof firsts / sizeof *firsts; i++) {
        in_child(firsts[i], 0);
        in_child(firsts[i], SA_ONSTACK);
    }
    for (int i = 0; i < FRESH_SEQUENCES; i++)
        act_in_child(i);
    pthread_create(&thread, NULL, act_in_thread, NULL);
    pthread_join(thread, NULL);
    set(0, 0);
    (void)act_in_thread(NULL);
    return 0;
}
