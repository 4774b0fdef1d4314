/* Has functions that burn CPU time, 120 microseconds a call, and are named after the kind of
 * span. */
#pragma once

#include <time.h>

#include <cstdint>

enum { KINDS = 4, BURN_MICROS = 120 };

static uint64_t cpu_nano() {
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

/* Makes no system call for each reading of the clock: samples would fall into it. */
static inline __attribute__((always_inline)) void burn(unsigned salt) {
    const uint64_t end = cpu_nano() + BURN_MICROS * 1000;
    volatile unsigned work = salt;
    do {
        for (int i = 0; i < 20000; i++)
            work = work * 1664525u + 1013904223u;
    } while (cpu_nano() < end);
}

extern "C" {
__attribute__((noinline)) void burns_0() {
    burn(10);
}
__attribute__((noinline)) void burns_1() {
    burn(11);
}
__attribute__((noinline)) void burns_2() {
    burn(12);
}
__attribute__((noinline)) void burns_3() {
    burn(13);
}
}

static void burn_in(uint64_t number) {
    static void (*const kinds[KINDS])() = {burns_0, burns_1, burns_2, burns_3};
    void (*volatile const burns)() = kinds[number % KINDS];
    burns();
}
