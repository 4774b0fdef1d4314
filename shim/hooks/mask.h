/* rt_sigprocmask where syscall() makes it: see hooks_mask.c. */
#ifndef OTELPROF_HOOKS_MASK_H
#define OTELPROF_HOOKS_MASK_H

/* To be called before the call, with its first, second and fourth argument. Context: any.
 * Async-signal-safe: yes. */
void hooks_mask_by_number(long how, const void *set, unsigned long size);

#endif
