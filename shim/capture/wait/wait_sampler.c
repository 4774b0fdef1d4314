#include "wait_sampler.h"

_Atomic bool parked_on;

void wait_sampler_start(struct wait_sampler *waits, const struct config *config,
                        const struct recorder *recorder) {
    waits->recorder = recorder;
    waits->types = config->types & (PROFILE_OFF_CPU | PROFILE_SCHED_DELAY | PROFILE_THREADS);
    waits->next_look = UINT64_MAX;
    atomic_store(&parked_on, waits->types != 0);
}

uint64_t wait_sampler_next_look(const struct wait_sampler *waits) {
    return waits->next_look;
}

void wait_sampler_look(struct wait_sampler *waits) {
    (void)waits;
}

void wait_sampler_harvest(struct wait_sampler *waits,
                          void (*visit)(void *arg, const struct sample *sample), void *arg) {
    sample_table_drain(&waits->table, &waits->recorder->threads->pool, visit, arg);
}

void wait_sampler_after_fork(struct wait_sampler *waits) {
    waits->table = (struct sample_table){.first_chunk = CHUNK_NONE};
    last_stacks_after_fork(&waits->stacks);
}
