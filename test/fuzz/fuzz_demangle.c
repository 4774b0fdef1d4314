/* Fuzzes names that compilers mangle, and names that no compiler would write: made of the
 * manglings' own tokens.
 *
 * libiberty's time grows exponentially with some of them, so that the profiler abandons it when its
 * budget of CPU time is spent. Here a timer does this. Besides, the helper's stack must suffice,
 * memory must be bounded, and the result must have the bounded length. */
#include "budget.h"

#include "symbolize/demangle.h"

#include <pthread.h>
#include <sanitizer/lsan_interface.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>

enum {
    STACK_BYTES = 2 << 20, /* the helper's: HELPER_STACK_BYTES */
    MOST_READABLE = 16 << 10,
    CPU_LIMIT_NANO = 20 * 1000 * 1000,
};

static const double most_seconds = 1;
static const size_t most_bytes = 1 << 20;

/* --- the helper --- */

static struct {
    pthread_t thread;
    sem_t asked;
    sem_t done;
    const char *name;
    timer_t timer;
    sigjmp_buf way_out;
} helper;

static void leave(int signal) {
    (void)signal;
    siglongjmp(helper.way_out, 1);
}

static void set_timer(long nano) {
    const struct itimerspec when = {.it_value = {0, nano}};
    promise(timer_settime(helper.timer, 0, &when, NULL) == 0);
}

static void try_name(void) {
    __lsan_disable(); /* abandoned work loses a block, as in the profiler */
    if (sigsetjmp(helper.way_out, 1) != 0) {
        __lsan_enable();
        return;
    }
    set_timer(CPU_LIMIT_NANO);
    char *const readable = demangle(helper.name);
    set_timer(0);
    __lsan_enable();
    promise(!readable || strlen(readable) < MOST_READABLE);
    free(readable);
}

static void *work(void *arg) {
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN};
    promise(timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &helper.timer) == 0);
    for (;;) {
        while (sem_wait(&helper.asked) != 0)
            ;
        const struct budget budget = budget_begin(most_seconds, most_bytes);
        try_name();
        budget_end(&budget);
        sem_post(&helper.done);
    }
    return arg;
}

static void start_helper(void) {
    pthread_attr_t attributes;
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, SIGRTMIN);
    promise(signal(SIGRTMIN, leave) != SIG_ERR);
    promise(sem_init(&helper.asked, 0, 0) == 0 && sem_init(&helper.done, 0, 0) == 0);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    promise(pthread_create(&helper.thread, &attributes, work, NULL) == 0);
    pthread_sigmask(SIG_BLOCK, &only, NULL); /* the helper alone receives it */
}

/* --- tokens --- */

static const char *const tokens[] = {
    "_Z",        "_R",       "N",      "E",      "I",
    "St",        "Sa",       "Ss",     "S_",     "S0_",
    "S1_",       "T_",       "T0_",    "TL0_",   "L",
    "Li1",       "LZ",       "1a",     "3foo",   "2op",
    "i",         "v",        "c",      "z",      "P",
    "R",         "O",        "K",      "V",      "A1_",
    "A_",        "M",        "F",      "Dp",     "Dt",
    "DT",        "Da",       "Dn",     "Dv1_",   "sr",
    "sZ",        "sP",       "X",      "J",      "cv",
    "cl",        "dt",       "pt",     "fp_",    "fp0_",
    "fL0p_",     "C1",       "C2",     "D0",     "D1",
    "Ul",        "Ut_",      "vE_",    "B",      "G",
    "GR",        "GV",       "TV",     "TI",     "Th",
    "Tv",        "Tc",       "h0_",    "v0_n8_", "nw",
    "pl",        "mi",       "qu",     "il",     "tl",
    "on",        "gs",       "at",     "az",     "te",
    "tr",        "U3foo",    "u3foo",  "W1a",    "17h0123456789abcdefE",
    "C7mycrate", "Cs1_3foo", "Nv",     "Nt",     "NvC1a",
    "INv",       "B_",       "B0_",    "FUK",    "DG",
    "p",         "Y",        "Xs_",    "Mp",     "u5ab_cd",
    "_D",        "__T1aTiZ", "MFZ",    "FNaNb",  "Qb",
    "caml",      "$2b",      "__fun_", "A__",    "_12",
    "Main_",     "base_",    "zi",     "z20U",   "Z3T",
    "_info",     "_closure", "Zh",     "VAya",   "_6162",
    "_",         "$LT$",     "$u20$",  "..",     ".llvm.1",
    ".clone.0",  "@",        "Q",
};

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);

static unsigned next_random(unsigned *seed) {
    *seed = *seed * 1103515245 + 12345; /* C11, 7.22.2.2 */
    return *seed >> 8;
}

static size_t insert(uint8_t *data, size_t size, size_t max, size_t at, const void *text,
                     size_t length) {
    if (size + length > max)
        return size;
    memmove(data + at + length, data + at, size - at);
    memcpy(data + at, text, length);
    return size + length;
}

/* Inserts some tokens, or a part of the name once more; mutates as the fuzzer does by itself in one
 * of four cases. Returns the new size. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed) {
    unsigned random = seed;
    if (next_random(&random) % 4 == 0)
        return LLVMFuzzerMutate(data, size, max);
    for (unsigned i = 1 + next_random(&random) % 8; i > 0; i--) {
        const size_t at = size > 2 ? 2 + next_random(&random) % (size - 1) : size;
        const size_t from = size ? next_random(&random) % size : 0;
        uint8_t part[32];
        size_t length = size - from < sizeof part ? size - from : sizeof part;
        if (next_random(&random) % 4 == 0 && length) {
            length = 1 + next_random(&random) % length;
            memcpy(part, data + from, length);
            size = insert(data, size, max, at > size ? size : at, part, length);
            continue;
        }
        const char *const token = tokens[next_random(&random) % (sizeof tokens / sizeof *tokens)];
        size = insert(data, size, max, at > size ? size : at, token, strlen(token));
    }
    return size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct input input = {data, size};
    char *const name = take_text(&input, 0);
    if (!helper.thread)
        start_helper();
    helper.name = name;
    sem_post(&helper.asked);
    while (sem_wait(&helper.done) != 0)
        ;
    free(name);
    return 0;
}
