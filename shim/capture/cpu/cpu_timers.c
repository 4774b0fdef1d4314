#include "cpu_timers.h"

#include "arch_syscall.h"
#include "clock.h"
#include "libc_signal.h"
#include "poisson.h"
#include "text_numbers.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/utsname.h>
#include <unistd.h>

/* Sets the period of the helper's timer, because the kernel checks CPU timers on its tick, mostly
 * every 4 ms. */
enum { HELPER_PERIOD_NANO = 4 * 1000 * 1000 };

/* Parses the kernel's release, such as "6.1.0-40-amd64". */
static bool release_is_at_least(const char *text, unsigned major, unsigned minor) {
    uint64_t first;
    uint64_t second = 0;
    const char *const behind = number_read(text, 10, &first);
    if (behind && *behind == '.')
        (void)number_read(behind + 1, 10, &second);
    return first > major || (first == major && second >= minor);
}

bool cpu_timers_are_deadly(void) {
    struct rlimit limit;
    return getrlimit(RLIMIT_RTTIME, &limit) == 0 && (limit.rlim_cur == 0 || limit.rlim_max == 0);
}

/* Returns true on older versions of Linux. Newer versions (CONFIG_POSIX_CPU_TIMERS_TASK_WORK) hold
 * an expiry back until the thread leaves the kernel; older versions deliver the expiry between a
 * call's beginning and its sleep. */
bool cpu_timers_interrupt_calls(void) {
    struct utsname name;
    if (syscall(SYS_uname, &name) != 0)
        return true;
    return !release_is_at_least(name.release, ARCH_TASK_WORK_MAJOR, ARCH_TASK_WORK_MINOR);
}

/* --- the kernel's own calls: libc's wrappers may allocate, and hide the timer's id --- */

static int create_kernel_timer(const struct cpu_timers *timers, clockid_t clock, int signal,
                               uint32_t tid) {
    struct sigevent event = {.sigev_notify = tid ? SIGEV_THREAD_ID : SIGEV_SIGNAL,
                             .sigev_signo = signal};
    int id = TIMER_NONE;
    if (timers->deadly)
        return TIMER_NONE;
    event.sigev_value.sival_ptr = (void *)(uintptr_t)timers->mark;
    event._sigev_un._tid = (pid_t)tid;
    return syscall(SYS_timer_create, clock, &event, &id) == 0 ? id : TIMER_NONE;
}

static bool cpu_timer_set(int id, uint64_t first, uint64_t period) {
    const struct itimerspec when = {.it_interval = timespec_of(period),
                                    .it_value = timespec_of(first)};
    return syscall(SYS_timer_settime, id, 0, &when, NULL) == 0;
}

/* Deletes the timer, or stops it where a sandbox that the program has entered refuses to delete it.
 * Returns false if the timer keeps running. */
static bool delete_timer(int id) {
    return id < 0 || syscall(SYS_timer_delete, id) == 0 || cpu_timer_set(id, 0, 0);
}

/* Checks the signal after a timer's id is stored, where cpu_timers_move() finds it, and before the
 * timer is armed. cpu_timers_move() stores the signal first and takes the ids out after that. So
 * either is_current() returns false, or cpu_timers_move() deletes the timer, and a deleted timer
 * cannot be armed. Thus no timer runs that raises a signal given to the program. Pairs with the
 * store in cpu_timers_move(). */
static bool is_current(const struct cpu_timers *timers, int signal) {
    return atomic_load(&timers->signal) == signal;
}

/* Arms the thread's timer. Where a sandbox refuses to delete timers, another thread may have taken
 * the timer out and only stopped it: then this call has armed it again, and so stops it. */
static void cpu_timer_arm(const struct thread_state *thread, int id, uint64_t first,
                          uint64_t period) {
    (void)cpu_timer_set(id, first, period);
    /* another thread has taken the timer out, and stopped it */
    if (atomic_load(&thread->timer) != id)
        (void)cpu_timer_set(id, 0, 0);
}

/* --- the process's timer --- */

static bool stop_itimer(struct cpu_timers *timers) {
    static const struct itimerval off = {.it_value = {0, 0}};
    return atomic_exchange(&timers->process, PROCESS_TIMER_OFF) != PROCESS_TIMER_ITIMER ||
           syscall(SYS_setitimer, ITIMER_PROF, &off, NULL) == 0;
}

static bool delete_process_timer(struct cpu_timers *timers) {
    const bool gone = delete_timer(atomic_exchange(&timers->reserve, TIMER_NONE));
    return stop_itimer(timers) && gone;
}

void cpu_timers_reserve(struct cpu_timers *timers) {
    const int saved = errno;
    atomic_store(&timers->helper, 0);
    const int signal = timers->helper_only ? 0 : atomic_load(&timers->signal);
    atomic_store(&timers->process, PROCESS_TIMER_OFF);
    atomic_store(&timers->reserve,
                 signal ? create_kernel_timer(timers, CLOCK_PROCESS_CPUTIME_ID, signal, 0)
                        : TIMER_NONE);
    errno = saved;
}

static bool start_itimer(struct cpu_timers *timers) {
    struct itimerval used;
    struct itimerval before = {.it_value = {0, 0}};
    const struct timespec period = timespec_of(atomic_load(&timers->period_nano));
    const struct timeval interval = {period.tv_sec, period.tv_nsec / 1000 + 1};
    const struct itimerval on = {.it_interval = interval, .it_value = interval};
    if (timers->deadly ||
        /* fails for another signal, because the process's timer can raise SIGPROF only */
        atomic_load(&timers->signal) != SIGPROF ||
        syscall(SYS_getitimer, ITIMER_PROF, &used) != 0 || used.it_value.tv_sec ||
        used.it_value.tv_usec)
        return false;
    atomic_store(&timers->interval_ran, true); /* pairs with the load in cpu_timers_sent() */
    if (syscall(SYS_setitimer, ITIMER_PROF, &on, &before) != 0)
        return false;
    if (is_current(timers, SIGPROF) && !atomic_load(&timers->off))
        return true;
    /* stop_itimer() ran in between, so this restores `before`: the timer that the program has set
     * meanwhile, if any */
    (void)syscall(SYS_setitimer, ITIMER_PROF, &before, NULL);
    return false;
}

static void start_process_timer(struct cpu_timers *timers) {
    const int id = atomic_load(&timers->reserve);
    uint32_t off = PROCESS_TIMER_OFF;
    const uint32_t kind = id >= 0 ? PROCESS_TIMER_POSIX : PROCESS_TIMER_ITIMER;
    if (!atomic_compare_exchange_strong(&timers->process, &off, kind))
        return;
    const uint64_t period = atomic_load(&timers->period_nano);
    if (kind == PROCESS_TIMER_POSIX)
        (void)cpu_timer_set(id, period, period);
    else if (!start_itimer(timers)) {
        uint32_t started = PROCESS_TIMER_ITIMER;
        (void)atomic_compare_exchange_strong(&timers->process, &started, PROCESS_TIMER_OFF);
    }
}

/* --- the threads' timers --- */

/* Creates the thread's timer. For a thread that blocks ours it raises libc's signal instead of
 * `signal`: masked_threads.h. */
static int create_for(const struct cpu_timers *timers, const struct thread_state *thread,
                      clockid_t clock, int signal) {
    if (atomic_load(&thread->by_libc_signal))
        signal = LIBC_SIGNAL;
    const uint32_t tid = atomic_load_explicit(&thread->tid, memory_order_relaxed);
    return create_kernel_timer(timers, clock, signal, tid);
}

static void cpu_timer_refuse(struct cpu_timers *timers, struct thread_state *thread) {
    thread_count_drop(thread, DROP_NO_TIMER);
    atomic_fetch_add(&timers->refused, 1);
    start_process_timer(timers);
}

void cpu_timers_start(struct cpu_timers *timers, struct thread_state *thread) {
    const int saved = errno;
    if (!atomic_load(&timers->signal) || timers->helper_only)
        return;
    thread->period_nano = atomic_load(&timers->period_nano);
    /* uniform within the period, so that short threads are sampled without bias */
    const uint64_t first = 1 + random_next(&thread->random) % thread->period_nano;
    int id;
    bool off;
    int signal;
    do { /* repeats only if another thread moved, armed or disarmed the timers in between */
        off = atomic_load(&timers->off);
        signal = off ? 0 : atomic_load(&timers->signal);
        id = signal ? create_for(timers, thread, CLOCK_THREAD_CPUTIME_ID, signal) : TIMER_NONE;
        if (signal && id < 0)
            cpu_timer_refuse(timers, thread);
        (void)delete_timer(atomic_exchange(&thread->timer, id < 0 ? TIMER_NONE : id));
    } while (atomic_load(&timers->off) != off || (!off && !is_current(timers, signal)));
    if (id >= 0)
        cpu_timer_arm(thread, id, first, thread->period_nano);
    errno = saved;
}

/* --- the helper's timer --- */

static bool delete_helper_timer(struct cpu_timers *timers) {
    return delete_timer(atomic_exchange(&timers->helper, 0) - 1);
}

bool cpu_timers_watch_helper(struct cpu_timers *timers) {
    const int saved = errno;
    const int signal = atomic_load(&timers->signal);
    if (!signal || atomic_load(&timers->helper))
        return signal != 0;
    const int id =
        create_kernel_timer(timers, CLOCK_THREAD_CPUTIME_ID, signal, (uint32_t)syscall(SYS_gettid));
    atomic_store(&timers->helper, id < 0 ? 0 : id + 1);
    if (id >= 0 && is_current(timers, signal))
        (void)cpu_timer_set(id, HELPER_PERIOD_NANO, HELPER_PERIOD_NANO);
    /* deletes the timer by its id, because cpu_timers_reserve() may have cleared `helper` */
    else if (id >= 0) {
        atomic_store(&timers->helper, 0);
        (void)delete_timer(id);
    }
    errno = saved;
    return atomic_load(&timers->helper) != 0;
}

void cpu_timers_leave_helper(struct cpu_timers *timers) {
    (void)delete_helper_timer(timers);
}

void cpu_timers_pause(struct thread_state *thread) {
    const int saved = errno;
    (void)delete_timer(atomic_exchange(&thread->timer, TIMER_PAUSED));
    errno = saved;
}

void cpu_timers_stop(struct thread_state *thread) {
    const int saved = errno;
    (void)delete_timer(atomic_exchange(&thread->timer, TIMER_ENDED));
    errno = saved;
}

void cpu_timers_set_period(const struct thread_state *thread) {
    const int id = atomic_load(&thread->timer);
    if (id >= 0)
        (void)cpu_timer_set(id, thread->period_nano, thread->period_nano);
}

/* Replaces one thread's timer, or deletes it (`signal` 0). If the thread ends, pauses or starts
 * meanwhile, it stores its state or its own timer in the slot; the new timer then has no owner, and
 * is deleted. Arms the new timer only after its id is stored, so that a thread that pauses after
 * that deletes it. Returns false if the old timer keeps running. */
static bool move_one(const struct cpu_timers *timers, struct thread_state *thread, int signal) {
    const uint32_t tid = atomic_load(&thread->tid);
    int id = atomic_load(&thread->timer);
    /* leaves the timer as it is, because this thread's timer keeps raising libc's signal */
    if (signal && atomic_load(&thread->by_libc_signal))
        return true;
    if (!tid || id < 0 || !atomic_compare_exchange_strong(&thread->timer, &id, TIMER_NONE))
        return true;
    const bool gone = delete_timer(id);
    if (!signal)
        return gone;
    const int moved = create_for(timers, thread, cpu_clock_of(tid), signal);
    int none = TIMER_NONE;
    if (moved >= 0 && atomic_compare_exchange_strong(&thread->timer, &none, moved))
        cpu_timer_arm(thread, moved, thread->period_nano, thread->period_nano);
    else
        (void)delete_timer(moved);
    return gone;
}

/* Replaces the thread's timer by one that raises libc's signal. move_one() may replace it at the
 * same time: the thread that stores its timer last deletes the timer that it replaces. */
void cpu_timers_use_libc_signal(struct cpu_timers *timers, struct thread_state *thread) {
    const int saved = errno;
    const uint32_t tid = atomic_load(&thread->tid);
    int old = atomic_load(&thread->timer);
    atomic_store(&thread->by_libc_signal, true);
    /* does nothing while timers are off: a later arming uses libc's signal */
    if (atomic_load(&timers->off))
        return;
    const int id = atomic_load(&timers->signal) && tid && old > TIMER_ENDED
                       ? create_for(timers, thread, cpu_clock_of(tid), LIBC_SIGNAL)
                       : TIMER_NONE;
    if (id >= 0) {
        while (old > TIMER_ENDED && !atomic_compare_exchange_weak(&thread->timer, &old, id))
            ;
        (void)cpu_timer_set(id, thread->period_nano, thread->period_nano);
        (void)delete_timer(old > TIMER_ENDED ? old : id);
    } else if (old > TIMER_ENDED)
        /* the kernel refused: the thread keeps its present timer */
        atomic_store(&thread->by_libc_signal, false);
    /* timers were turned off after the check above */
    if (atomic_load(&timers->off))
        (void)move_one(timers, thread, 0);
    errno = saved;
}

bool cpu_timers_move(struct cpu_timers *timers, struct thread_table *threads, int signal) {
    const int saved = errno;
    const uint32_t process = atomic_load(&timers->process);
    if (!signal && !atomic_load(&timers->signal)) /* timers raise no signal already */
        return true;
    atomic_store(&timers->signal, signal); /* pairs with the load in is_current() */
    bool gone = delete_helper_timer(timers);
    gone &= delete_process_timer(timers);
    for (uint32_t i = 0; i < thread_table_count(threads); i++)
        gone &= move_one(timers, thread_table_at(threads, i), signal);
    if (signal)
        cpu_timers_reserve(timers);
    if (signal && process != PROCESS_TIMER_OFF)
        start_process_timer(timers);
    errno = saved;
    return gone;
}

/* --- off, and on again --- */

void cpu_timers_disarm(struct cpu_timers *timers, struct thread_table *threads) {
    const int saved = errno;
    const int id = atomic_load(&timers->reserve);
    if (atomic_load(&timers->process) == PROCESS_TIMER_POSIX)
        (void)cpu_timer_set(id, 0, 0);
    (void)stop_itimer(timers);
    for (uint32_t i = 0; i < thread_table_count(threads); i++)
        (void)move_one(timers, thread_table_at(threads, i), 0);
    errno = saved;
}

/* Arms a timer for a thread that has none, because timers were off or the kernel refused one. */
static void arm_one(struct cpu_timers *timers, struct thread_state *thread, uint64_t *random) {
    const int signal = atomic_load(&timers->signal);
    const uint64_t period = atomic_load(&timers->period_nano);
    const uint32_t tid = atomic_load(&thread->retired) ? 0 : atomic_load(&thread->tid);
    int none = atomic_load(&thread->timer);
    if (!signal || !tid || none != TIMER_NONE)
        return;
    const int id = create_for(timers, thread, cpu_clock_of(tid), signal);
    if (id < 0 && !thread_has_ended(thread))
        cpu_timer_refuse(timers, thread);
    else if (id < 0 || !atomic_compare_exchange_strong(&thread->timer, &none, id))
        (void)delete_timer(id);
    else if (is_current(timers, signal))
        cpu_timer_arm(thread, id, 1 + random_next(random) % period, period);
    else
        (void)move_one(timers, thread, 0);
}

void cpu_timers_arm(struct cpu_timers *timers, struct thread_table *threads) {
    const int saved = errno;
    uint64_t random = monotonic_nano() | 1;
    for (uint32_t i = 0; !timers->helper_only && i < thread_table_count(threads); i++)
        arm_one(timers, thread_table_at(threads, i), &random);
    errno = saved;
}

bool cpu_timers_sent(const struct cpu_timers *timers, const siginfo_t *info) {
    if (info->si_code == SI_TIMER)
        return info->si_value.sival_ptr == timers->mark;
    return info->si_code == SI_KERNEL && info->si_signo == SIGPROF &&
           atomic_load(&timers->interval_ran);
}
