/* The end of the profiler in this process: one last harvest and export, bounded in time, and the
 * helper at rest. */
#ifndef OTELPROF_LIFECYCLE_H
#define OTELPROF_LIFECYCLE_H

/* Idempotent; does nothing in a process that is not the one that started (a vfork()ed child shares
 * our memory). Context: calm, when the process is about to run its exit handlers. */
void lifecycle_end(void);

#endif
