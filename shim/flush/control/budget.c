#include "budget.h"

#include "clock.h"
#include "poisson.h"

#include <string.h>

static const double least_processors = 0.1;
static const double millionth = 1e-6;
/* Sets shares of the time that sampling may take: the target of every change, the highest share
 * that is tolerated, and the share below which rates rise. */
static const double aim = 0.95;
static const double tolerated = 1.05;
static const double spare = 0.8;
static const double most_rise = 2;
static const double least_rise = 1.15;
/* Recognizes a change of the program's phase: a program that uses less than a quarter of its former
 * CPU time is idle, and a program that uses more than four times as much has begun other work. */
static const double jump = 4;
static const uint64_t minute = 60 * (uint64_t)NANO_PER_SECOND;
/* Averages the peaks over time: a stretch may last a fifth of a second, and the most that a program
 * used in one of many short stretches is far more than its use over their sum. So peaks are means
 * over at least this time. */
static const uint64_t window_nano = 10 * (uint64_t)NANO_PER_SECOND;

struct budget budget_open(uint64_t limit) {
    return (struct budget){.limit = limit, .most_frequency = UINT64_MAX};
}

static void restore_configured(struct budget *budget) {
    budget->most_frequency = UINT64_MAX;
    budget->least_interval = 0;
    budget->least_lock_interval = 0;
}

void budget_limit(struct budget *budget, uint64_t limit) {
    budget->limit = limit;
    if (limit == BUDGET_NONE)
        restore_configured(budget);
}

static uint64_t least_of(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static uint64_t most_of(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

/* --- the allowed cost --- */

static void forget_oldest(double peaks[BUDGET_MINUTES]) {
    memmove(peaks + 1, peaks, (BUDGET_MINUTES - 1) * sizeof *peaks);
    peaks[0] = 0;
}

static void forget_old_peaks(struct budget *budget, uint64_t nano) {
    const uint64_t passed = budget->minute_nano + nano;
    budget->minute_nano = passed % minute;
    for (uint64_t i = 0; i < passed / minute && i < BUDGET_MINUTES; i++) {
        forget_oldest(budget->peaks);
        forget_oldest(budget->bursts);
    }
}

static double processors_used(uint64_t program_nano, uint64_t nano) {
    return (double)program_nano / (double)nano;
}

/* Adds a stretch to the usage of the last minutes. */
static void budget_remember(struct budget *budget, const struct overhead *seen) {
    forget_old_peaks(budget, seen->nano);
    budget->window.nano += seen->nano;
    budget->window.program_nano += seen->program_nano;
    if (budget->window.nano < window_nano)
        return;
    const double mean = processors_used(budget->window.program_nano, budget->window.nano);
    if (mean > budget->peaks[0])
        budget->peaks[0] = mean;
    budget->window = (struct budget_window){0, 0};
}

/* Adds a stretch in which the configured rates do not hold, or are too costly. */
static void remember_burst(struct budget *budget, const struct overhead *seen) {
    const double used = processors_used(seen->program_nano, seen->nano);
    if (used > budget->bursts[0])
        budget->bursts[0] = used;
}

/* Returns the largest of three numbers of processors: of those that the program uses now, `part` of
 * the most in the last minutes, and least_processors. */
static double most_processors(const double peaks[BUDGET_MINUTES], double part,
                              const struct overhead *seen) {
    const double used = processors_used(seen->program_nano, seen->nano);
    double most = used > least_processors ? used : least_processors;
    for (int i = 0; i < BUDGET_MINUTES; i++)
        if (part * peaks[i] > most)
            most = part * peaks[i];
    return most;
}

/* Returns the nanoseconds that sampling may take in the stretch. */
static double sampling_room(const struct budget *budget, const struct overhead *seen,
                            double processors) {
    const double whole = processors * (double)budget->limit * millionth * (double)seen->nano;
    const double rest = whole - (double)seen->helper_nano;
    return rest > whole / 2 ? rest : whole / 2;
}

static double total_cost(const struct overhead *seen) {
    double cost = 0;
    for (int i = 0; i < SAMPLINGS; i++)
        cost += (double)seen->of[i].cpu_nano;
    return cost;
}

/* --- distribution over the kinds --- */

static void find_lowered(const struct settings_values *set, const struct settings_values *in_force,
                         bool lowered[SAMPLINGS]) {
    lowered[SAMPLING_CPU] = in_force->cpu_frequency < set->cpu_frequency;
    lowered[SAMPLING_ALLOCATIONS] = in_force->alloc_interval > set->alloc_interval;
    lowered[SAMPLING_LOCKS] = in_force->lock_interval > set->lock_interval;
}

/* Returns the largest cost of a kind at which all kinds fit into `room`. A lowered kind is assumed
 * to use that whole cost; another kind uses its present cost, if that is less. */
static double allowed_level(const struct overhead *seen, const bool lowered[SAMPLINGS],
                            double room) {
    bool fits[SAMPLINGS] = {false};
    double level = 0;
    for (int round = 0; round <= SAMPLINGS; round++) {
        double left = room;
        int sharing = 0;
        for (int i = 0; i < SAMPLINGS; i++) {
            left -= fits[i] ? (double)seen->of[i].cpu_nano : 0;
            sharing += !fits[i];
        }
        if (sharing == 0)
            return room;
        level = left / sharing;
        for (int i = 0; i < SAMPLINGS; i++)
            fits[i] |= !lowered[i] && (double)seen->of[i].cpu_nano <= level;
    }
    return level;
}

/* --- from cost to rate: `ratio` is a kind's allowed cost divided by its present cost --- */

/* Returns the frequency at which the cost falls by `ratio`. Timers expire on the kernel's tick: a
 * frequency above the tick rate costs as much as the tick rate. */
static double lower_frequency(const struct overhead *seen, uint64_t in_force, double ratio) {
    const double program = (double)seen->program_nano / NANO_PER_SECOND;
    const double real = (double)seen->of[SAMPLING_CPU].samples / program;
    double frequency = (double)in_force;
    if (frequency > 100 && real < frequency)
        frequency = real > 100 ? real : 100;
    return frequency * ratio;
}

/* Returns the interval R at which the cost falls by `ratio`. An interval R samples, of n objects of
 * mean size m, n (1 - e^(-m/R)). If sizes differ, fewer objects are sampled, and never more than
 * total bytes / R. The result is at least the proportional interval, which is exact for objects
 * that are small compared with it. */
static double longer_interval(const struct sampling_cost *cost, uint64_t in_force, double ratio) {
    const double wanted = (double)cost->samples * ratio;
    const double proportional = (double)in_force / ratio;
    if (wanted <= 0 || cost->objects == 0 || cost->amount == 0)
        return proportional;
    const double chance = wanted / (double)cost->objects;
    const double mean = (double)cost->amount / (double)cost->objects;
    const double exact = chance < 1 ? -mean / natural_log(1 - chance) : 0;
    const double longest = (double)cost->amount / wanted;
    const double chosen = exact > proportional ? exact : proportional;
    return longest > proportional && chosen > longest ? longest : chosen;
}

static uint64_t whole_between(double number, uint64_t low, uint64_t high) {
    if (!(number > (double)low))
        return low;
    return number < (double)high ? (uint64_t)(number + 0.5) : high;
}

static double allowed_ratio(const struct overhead *seen, enum sampling_kind sampling,
                            double level) {
    const double cost = (double)seen->of[sampling].cpu_nano;
    return cost > 0 ? level / cost : most_rise;
}

static void lower_rates(struct budget *budget, const struct overhead *seen,
                        const struct settings_values *set, const struct settings_values *in_force,
                        double level) {
    double ratio = allowed_ratio(seen, SAMPLING_CPU, level);
    const uint64_t slowest = least_of(set->cpu_frequency, BUDGET_LEAST_FREQUENCY);
    if (ratio < 1)
        budget->most_frequency =
            whole_between(lower_frequency(seen, in_force->cpu_frequency, ratio), slowest,
                          in_force->cpu_frequency);
    ratio = allowed_ratio(seen, SAMPLING_ALLOCATIONS, level);
    if (ratio < 1)
        budget->least_interval = whole_between(
            longer_interval(&seen->of[SAMPLING_ALLOCATIONS], in_force->alloc_interval, ratio),
            in_force->alloc_interval, most_of(set->alloc_interval, BUDGET_LONGEST_INTERVAL));
    ratio = allowed_ratio(seen, SAMPLING_LOCKS, level);
    if (ratio < 1)
        budget->least_lock_interval = whole_between(
            longer_interval(&seen->of[SAMPLING_LOCKS], in_force->lock_interval, ratio),
            in_force->lock_interval, most_of(set->lock_interval, BUDGET_LONGEST_LOCK_INTERVAL));
}

/* Returns the factor by which a lowered kind may rise; 1: it must not rise. */
static double rise_factor(const struct overhead *seen, enum sampling_kind sampling, bool lowered,
                          double level) {
    const double ratio = allowed_ratio(seen, sampling, level);
    if (!lowered || ratio < least_rise)
        return 1;
    return ratio > most_rise ? most_rise : ratio;
}

/* Raises rates in proportion to the room. This never overshoots. Returns true if any rate rises. */
static bool raise_rates(struct budget *budget, const struct overhead *seen,
                        const bool lowered[SAMPLINGS], const struct settings_values *in_force,
                        double level) {
    const double cpu = rise_factor(seen, SAMPLING_CPU, lowered[SAMPLING_CPU], level);
    const double allocations =
        rise_factor(seen, SAMPLING_ALLOCATIONS, lowered[SAMPLING_ALLOCATIONS], level);
    const double locks = rise_factor(seen, SAMPLING_LOCKS, lowered[SAMPLING_LOCKS], level);
    if (cpu > 1)
        budget->most_frequency = (uint64_t)((double)in_force->cpu_frequency * cpu) + 1;
    if (allocations > 1)
        budget->least_interval = (uint64_t)((double)in_force->alloc_interval / allocations);
    if (locks > 1)
        budget->least_lock_interval = (uint64_t)((double)in_force->lock_interval / locks);
    return cpu > 1 || allocations > 1 || locks > 1;
}

/* --- a step --- */

static enum budget_change decide_rates(struct budget *budget, const struct overhead *seen,
                                       const struct settings_values *set,
                                       const struct settings_values *in_force, bool may_rise) {
    bool lowered[SAMPLINGS];
    budget_remember(budget, seen);
    const double processors = most_processors(budget->bursts, 1, seen);
    const double room = sampling_room(budget, seen, most_processors(budget->peaks, 1 / jump, seen));
    const double cost = total_cost(seen);
    budget->debt += cost - room;
    if (budget->debt < 0)
        budget->debt = 0;
    const bool over = cost > room * tolerated && budget->debt > (double)BUDGET_BURST_NANO;
    find_lowered(set, in_force, lowered);
    const bool any_lowered =
        lowered[SAMPLING_CPU] || lowered[SAMPLING_ALLOCATIONS] || lowered[SAMPLING_LOCKS];
    const double level = allowed_level(seen, lowered, room * aim);
    if (any_lowered || over)
        remember_burst(budget, seen);
    if (any_lowered && processors > jump * budget->lowered_at) {
        budget->lowered_at = processors;
        restore_configured(budget);
        return BUDGET_RETURNS;
    }
    if (over) {
        budget->lowered_at = processors;
        lower_rates(budget, seen, set, in_force, level);
        return BUDGET_FALLS;
    }
    if (may_rise && cost < room * spare && raise_rates(budget, seen, lowered, in_force, level))
        return BUDGET_RISES;
    return BUDGET_STAYS;
}

enum budget_change budget_step(struct budget *budget, const struct overhead *seen,
                               const struct settings_values *set,
                               const struct settings_values *in_force, bool interval_ends) {
    if (budget->limit == BUDGET_NONE || seen->nano == 0)
        return BUDGET_STAYS;
    const enum budget_change change =
        decide_rates(budget, seen, set, in_force, interval_ends && !budget->fell);
    budget->fell = change == BUDGET_FALLS || (budget->fell && !interval_ends);
    return change;
}

struct settings_values budget_lower(const struct budget *budget,
                                    const struct settings_values *set) {
    struct settings_values lower = *set;
    lower.cpu_frequency = least_of(set->cpu_frequency, budget->most_frequency);
    lower.alloc_interval = most_of(set->alloc_interval, budget->least_interval);
    lower.lock_interval = most_of(set->lock_interval, budget->least_lock_interval);
    return lower;
}
