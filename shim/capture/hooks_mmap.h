/* mmap and its like: see hooks_mmap.c. */
#ifndef OTELPROF_HOOKS_MMAP_H
#define OTELPROF_HOOKS_MMAP_H

/* Withdraws the exports where mappings are not profiled. Context: calm, single-threaded, at start.
 */
void hooks_mmap_settle(void);

#endif
