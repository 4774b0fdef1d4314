/* Compares a system call that the profiler makes with shim/process/allowed_calls.def, and with the
 * calls that shim/process/seccomp_filter.c tries. For the latter, gives its model a filter that
 * kills for this call alone, with these arguments: a model that tries the call refuses that
 * filter. */
#include "process/seccomp_filter.c"

enum { COMPARED_ARGUMENTS = 4 };

/* A call's number and the arguments that filters compare; the others are 0. */
struct made_call {
    int number;
    uint32_t arguments[COMPARED_ARGUMENTS];
};

enum listed { NOT_LISTED, LISTED, LISTED_UNFILTERED };

static unsigned compared_arguments(int number) {
    switch (number) {
#define COMPARED(name, positions)                                                                  \
    case SYS_##name:                                                                               \
        return positions;
#include "process/allowed_calls.def"
    default:
        return 0;
    }
}

/* Returns the first argument as the lists name it. Clocks of threads are negative and differ from
 * each other: the lists have -2 for all of them. Real-time signals differ, too: the lists have the
 * largest number for all of them. */
static uint32_t named_first(int number, uint32_t first) {
    const bool is_clock = number == SYS_clock_gettime || number == SYS_timer_create;
    if (number == SYS_rt_sigaction && first > LIBC_SIGNAL)
        return LARGEST_SIGNAL;
    return is_clock && (int32_t)first < 0 ? (uint32_t)-2 : first;
}

static struct made_call made_call(uint64_t number, const uint64_t arguments[]) {
    struct made_call made = {.number = (int)number};
    for (int i = 0; i < COMPARED_ARGUMENTS; i++)
        if (compared_arguments(made.number) >> i & 1)
            made.arguments[i] = (uint32_t)arguments[i];
    made.arguments[0] = named_first(made.number, made.arguments[0]);
    return made;
}

static enum listed listed_by_name(int number) {
    switch (number) {
#define CALL(name)                                                                                 \
    case SYS_##name:                                                                               \
        return LISTED;
#define UNFILTERED(name)                                                                           \
    case SYS_##name:                                                                               \
        return LISTED_UNFILTERED;
#include "process/allowed_calls.def"
    default:
        return NOT_LISTED;
    }
}

/* Makes a filter that kills for this call, and lets every other pass. */
static unsigned short make_killer(const struct made_call *made, struct sock_filter filter[]) {
    const unsigned compared = compared_arguments(made->number);
    unsigned short n = 0;
    filter[n++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, made->number, 1, 0);
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    for (unsigned i = 0; i < COMPARED_ARGUMENTS; i++) {
        if (!(compared >> i & 1))
            continue;
        filter[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                                   offsetof(struct seccomp_data, args) + 8 * i);
        filter[n++] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, made->arguments[i], 1, 0);
        filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    return n;
}

/* Names the maker of a call, which decides the model's verdicts that concern the call. */
enum maker_kind { BY_THREAD, BY_LOGGING_THREAD, BY_HELPER };

static bool model_refuses(const struct sock_fprog *program, enum maker_kind kind) {
    static const unsigned asked[] = {
        [BY_THREAD] = SECCOMP_SPARES_THREAD | SECCOMP_SPARES_TIMERS | SECCOMP_SPARES_PENDING |
                      SECCOMP_SPARES_GIVING_WAY,
        [BY_LOGGING_THREAD] = SECCOMP_SPARES_LOGGING,
        [BY_HELPER] = SECCOMP_SPARES_HELPER | SECCOMP_SPARES_SERVING | SECCOMP_LETS_HELPER_FOLLOW |
                      SECCOMP_SPARES_SYSLOG | SECCOMP_SPARES_GIVING_WAY,
    };
    return asked[kind] & ~seccomp_filter_verdicts(program);
}

/* Returns true if the model would refuse a filter that kills for the call. */
static bool listed_is_asked(const struct made_call *made, enum maker_kind kind) {
    enum { KNOWN = 4096 };
    static struct {
        struct made_call made;
        enum maker_kind kind;
        bool asked;
    } known[KNOWN];
    static size_t count;
    struct sock_filter filter[4 + 3 * COMPARED_ARGUMENTS];
    for (size_t i = 0; i < count; i++)
        if (memcmp(&known[i].made, made, sizeof *made) == 0 && known[i].kind == kind)
            return known[i].asked;
    const struct sock_fprog program = {make_killer(made, filter), filter};
    const bool asked = model_refuses(&program, kind);
    if (count < KNOWN) {
        known[count].made = *made;
        known[count].kind = kind;
        known[count++].asked = asked;
    }
    return asked;
}
