/* Bounds how often a call is made again after EINTR. A filter of system calls may deny a call by
 * EINTR each time: then the profiler must not try for ever.
 */
#ifndef OTELPROF_RESTARTS_H
#define OTELPROF_RESTARTS_H

enum { MOST_RESTARTS = 1000 };

#endif
