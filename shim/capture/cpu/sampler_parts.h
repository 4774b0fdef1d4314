/* What the files of the sampler share: sampler.c takes samples, sampler_signal.c has the signal
 * that brings them, sampler_stacks.c judges alternate signal stacks, sampler_report.c writes to the
 * log.
 */
#ifndef OTELPROF_SAMPLER_PARTS_H
#define OTELPROF_SAMPLER_PARTS_H

#include "sampler.h"

#include <signal.h>
#include <stdbool.h>

/* Gives the signal our handler; `in_place`: on no alternate stack. Context: any.
 * Async-signal-safe: yes. */
bool sampler_set_action(int number, bool in_place);

/* An expiry of ours that a tracer held back (tracer.h). What another process sends has that
 * process's id, and the kernel sends none by itself: a program that sets ITIMER_PROF has had the
 * signal given to it. The time is in the next sample. Context: any.
 * Async-signal-safe: yes. */
bool sampler_was_held_back(const siginfo_t *info);

#endif
