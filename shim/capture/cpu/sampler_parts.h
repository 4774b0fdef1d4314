/* Declares the part that the files of the sampler share: sampler.c takes samples, sampler_signal.c
 * manages their signal, sampler_report.c writes to the log. */
#ifndef OTELPROF_SAMPLER_PARTS_H
#define OTELPROF_SAMPLER_PARTS_H

#include "sampler.h"

#include <signal.h>
#include <stdbool.h>

/* Gives the signal our handler. Context: any. Async-signal-safe: yes. */
bool sampler_set_action(int number);

#endif
