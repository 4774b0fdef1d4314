/* Whether a forked child may call the dynamic loader.
 *
 * fork() copies the loader as another thread has it at that moment: in the middle of dlopen() or
 * dlclose(), perhaps. glibc makes its main lock anew in the child, which therefore looks free, and
 * the next dlopen() there ends the process ("Inconsistency detected by ld.so"); the lock of
 * dl_iterate_phdr() stays held, and whoever wants it waits for ever. So the thread that forks looks
 * at both locks before, and the child looks at what is left: the state that the loader keeps for
 * debuggers, of each namespace, and the lock that was not made anew.
 * The locks have no names. They lie side by side in the loader's data, and one of them is what
 * dl_iterate_phdr() holds while it calls back.
 */
#ifndef OTELPROF_LOADER_STATE_H
#define OTELPROF_LOADER_STATE_H

#include <stdbool.h>
#include <stdint.h>

/* Looks for the locks; they stay unknown where it does not find them. Context: calm, on the main
 * thread, at start. */
void loader_state_learn(void);

/* Whether they are known. Context: any. */
bool loader_state_is_known(void);

/* The id of the thread that is inside the loader, LOADER_USER_UNKNOWN where it cannot be told whose
 * it is, or 0: nobody is. Async-signal-safe: yes. */
#define LOADER_USER_UNKNOWN UINT32_MAX
uint32_t loader_state_user(void);

/* Whether a thread is inside: it has either lock. Async-signal-safe: yes. */
bool loader_state_is_used_by(uint32_t tid);

/* Whether a thread other than `tid` is, for which that one may have to wait. Async-signal-safe:
 * yes.
 */
bool loader_state_is_used_beside(uint32_t tid);

/* Takes the main lock, if it is known and nobody else has it: then every object in the loader's
 * list is relocated. true: loader_state_leave() is to be called. Context: calm. */
bool loader_state_try_enter(void);
void loader_state_leave(void);

/* Whether dlmopen() has made a namespace with objects of its own: another C library among them.
 * glibc 2.35 and later. Context: any. */
bool loader_state_has_namespaces(void);

/* In a forked child: whether nothing was left half done. Async-signal-safe: yes. */
bool loader_state_is_whole(void);

#endif
