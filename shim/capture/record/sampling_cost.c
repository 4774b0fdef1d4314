#include "sampling_cost.h"

#include "thread_table.h"

/* Sets the mean number of pieces of work for each measured piece. Measuring reads the clock twice,
 * 0.3 us each, for work of 1 us (each object is sampled) to 15 us (few are, and caches are cold).
 * With one in eight, a budget of 1 % that leaves some 200 samples a second measures 250 of them in
 * 10 s: the mean of prices that vary as much as they cost is then known to 6 %, with one in 32 to
 * 13 %. The sampler measures CPU samples itself; frees are not measured. */
static const uint64_t measured_every[SAMPLING_WORKS] = {
    [WORK_ALLOCATION] = 8, [WORK_CONTENTION] = 8};

/* Lists prices in nanoseconds. `first` is used until some work is measured. `beyond` is the price
 * of work outside of the measured time: the timer's interrupt, the signal's delivery and return
 * (these two take 1.4 us, docs/overhead.md), and the calls that block and unblock signals. */
static const struct price {
    double first;
    double beyond;
} prices[SAMPLING_WORKS] = {[WORK_CPU_SAMPLE] = {1000, 2000},
                            [WORK_ALLOCATION] = {1000, 300},
                            [WORK_FREE] = {100, 10},
                            [WORK_CONTENTION] = {1000, 300}};

/* Weighs the former price like so many measured pieces of work. */
enum { PRIOR = 4 };

/* Skips the first piece of work of a thread, because it is expensive and happens once. */
uint64_t sampling_begin_measured(struct sampling_count *count, enum sampling_work work,
                                 uint64_t *random) {
    const bool is_first = count->next == 0;
    const uint64_t gap = random_next(random) % (2 * measured_every[work] - 1);
    count->next = atomic_load_explicit(&count->done, memory_order_relaxed) + 1 + gap;
    return is_first ? 0 : thread_cpu_nano();
}

/* --- on the helper --- */

/* Returns the least of several measurements, because an interruption makes one longer. */
static double cost_of_clock(void) {
    enum { TRIES = 16 };
    uint64_t least = UINT64_MAX;
    uint64_t before = thread_cpu_nano();
    for (int i = 0; i < TRIES; i++) {
        const uint64_t now = thread_cpu_nano();
        if (now - before < least)
            least = now - before;
        before = now;
    }
    return (double)least;
}

static uint64_t read_count(const _Atomic uint64_t *count) {
    return atomic_load_explicit(count, memory_order_relaxed);
}

struct sums {
    uint64_t done;
    uint64_t measured;
    uint64_t nano;
    uint64_t objects;
    uint64_t amount;
};

static struct sums costs_sum(const struct thread_table *threads, enum sampling_work work) {
    struct sums sums = {0, 0, 0, 0, 0};
    for (uint32_t i = 0; i < thread_table_count(threads); i++) {
        const struct sampling_count *const count = &thread_table_at(threads, i)->costs[work];
        sums.done += read_count(&count->done);
        sums.measured += read_count(&count->measured);
        sums.nano += read_count(&count->nano);
        sums.objects += read_count(&count->objects);
        sums.amount += read_count(&count->amount);
    }
    return sums;
}

/* Adds measurements, corrected for the clock: a measured time includes one reading of the clock,
 * but measuring costs two. */
static void costs_add(struct sampling_costs *costs, enum sampling_work work,
                      const struct sums *sums) {
    const double measured = (double)(sums->measured - costs->of[work].measured);
    const double took = (double)(sums->nano - costs->of[work].nano) - measured * costs->clock_nano;
    const double done = (double)(sums->done - costs->of[work].done);
    const double known = PRIOR * costs->of[work].price;
    costs->of[work].price = ((took > 0 ? took : 0) + known) / (measured + PRIOR);
    costs->of[work].spent +=
        done * (costs->of[work].price + prices[work].beyond) + 2 * measured * costs->clock_nano;
    costs->of[work].done = sums->done;
    costs->of[work].measured = sums->measured;
    costs->of[work].nano = sums->nano;
}

void sampling_costs_update(struct sampling_costs *costs, const struct thread_table *threads,
                           pid_t pid, struct sampling_cost now[static SAMPLINGS]) {
    static const enum sampling_kind sampling_of[SAMPLING_WORKS] = {
        [WORK_CPU_SAMPLE] = SAMPLING_CPU,
        [WORK_ALLOCATION] = SAMPLING_ALLOCATIONS,
        [WORK_FREE] = SAMPLING_ALLOCATIONS,
        [WORK_CONTENTION] = SAMPLING_LOCKS};
    if (costs->pid != pid) {
        *costs = (struct sampling_costs){.pid = pid, .clock_nano = cost_of_clock()};
        for (int i = 0; i < SAMPLING_WORKS; i++)
            costs->of[i].price = prices[i].first;
    }
    for (int i = 0; i < SAMPLINGS; i++)
        now[i] = (struct sampling_cost){0, 0, 0, 0};
    for (int i = 0; i < SAMPLING_WORKS; i++) {
        const struct sums sums = costs_sum(threads, (enum sampling_work)i);
        struct sampling_cost *const cost = &now[sampling_of[i]];
        costs_add(costs, (enum sampling_work)i, &sums);
        cost->cpu_nano += (uint64_t)costs->of[i].spent;
        cost->objects += sums.objects;
        cost->amount += sums.amount;
        if (i != WORK_FREE)
            cost->samples += sums.done;
    }
}
