/* How the helper waits: for its time, for a request, at the quiesce lock, and for the end.
 *
 * A request (helper.request, WAIT_*) ends a wait at once, and so does a wake: it counts in
 * helper.wakes, which the helper reads before it decides to sleep, and sleeps on. While it waits
 * the helper looks after the main thread, if somebody has asked for that (main_watch.h), and serves
 * descriptors, if there are any (served_descriptors.h). Context of all: the helper.
 */
#ifndef OTELPROF_HELPER_WAIT_H
#define OTELPROF_HELPER_WAIT_H

#include "served_descriptors.h"

#include <stdbool.h>
#include <stdint.h>

/* A new thread waits: nothing is served yet. Before it waits first. */
void helper_wait_begin(void);

/* Serves a descriptor of the helper's own table in its waits for a request, under the quiesce lock:
 * what it does must be short, and must not wait. false: too many are served. */
bool helper_wait_serve(const struct served_descriptor *added);
void helper_wait_serve_no_more(int descriptor);
/* From within what serves a descriptor: the wait for a request ends, with WAIT_TIMEOUT. */
void helper_wait_end(void);

/* Waits for a request until `deadline` (CLOCK_MONOTONIC, ns), or until `enough` says so when the
 * helper is woken. Returns the request, WAIT_TIMEOUT if there is none. */
int helper_wait_for_request(uint64_t deadline, bool (*enough)(void));

/* WAIT_SUSPEND was requested: takes it, unless who asked has given up. Returns the request that is
 * to be followed. */
int helper_answer_suspend(void);

/* The flush side's wait until `deadline`: outside of the quiesce lock, through which it comes back.
 * Returns the request, WAIT_TIMEOUT if there is none. */
int helper_wait_outside(uint64_t deadline);

/* The last sleep of a helper that has loaded libraries. Returns only where the thread is to end. */
void helper_rest(void);

#endif
