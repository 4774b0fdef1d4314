/* Bounds how often a call that EINTR has ended is begun again.
 * A filter may deny a call by EINTR for good: nothing of ours may then try for ever.
 */
#ifndef OTELPROF_RESTARTS_H
#define OTELPROF_RESTARTS_H

enum { MOST_RESTARTS = 1000 };

#endif
