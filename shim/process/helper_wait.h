/* Implements the helper's waits: until it is due, for a request, at the quiesce lock, and for the
 * end.
 *
 * A request (helper.request, REQUEST_*) ends a wait at once, and so does a wake: a wake increments
 * helper.wakes, the futex that the helper reads before it decides to sleep. During a wait the
 * helper polls the main thread, if that is watched (main_watch.h), and watches descriptors
 * (watched_descriptors.h). Context of all: the helper.
 */
#ifndef OTELPROF_HELPER_WAIT_H
#define OTELPROF_HELPER_WAIT_H

#include "watched_descriptors.h"

#include <stdbool.h>
#include <stdint.h>

/* Prepares a new thread's waits: no descriptor is watched yet. */
void helper_wait_begin(void);

/* Watches a descriptor of the helper's own table during waits for a request, under the quiesce
 * lock. The descriptor's callback must be short, and must not block. Returns false if too many are
 * watched. */
bool helper_wait_watch_fd(const struct watched_descriptor *added);
void helper_wait_unwatch_fd(int descriptor);
/* Ends the wait for a request, which then returns REQUEST_TIMEOUT. A descriptor's callback calls
 * it. */
void helper_wait_wake(void);

/* Waits for a request until `deadline` (CLOCK_MONOTONIC, ns), or until `enough` returns true; calls
 * `enough` before each sleep. Returns the request; REQUEST_TIMEOUT: there is none. */
int helper_wait_for_request(uint64_t deadline, bool (*enough)(void));

/* Accepts REQUEST_SUSPEND, unless the requesting thread has given up. Returns the request to
 * follow. */
int helper_accept_suspend(void);

/* Waits until `deadline` for the flush side, outside of the quiesce lock. Enters the lock and
 * leaves it again before it returns, so that it does not return during a fork. Returns the request;
 * REQUEST_TIMEOUT: there is none. */
int helper_wait_outside(uint64_t deadline);

/* Sleeps until the process has ended, in a helper that has loaded libraries. Returns only if the
 * thread must end. */
void helper_park_forever(void);

#endif
