/* Decides whether a forked child may call the dynamic loader.
 *
 * fork() copies the loader in the state in which another thread has it at that moment: in the
 * middle of dlopen() or dlclose(), perhaps. glibc initializes its main lock again in the child,
 * which therefore seems free, and the next dlopen() there ends the process ("Inconsistency detected
 * by ld.so"); the lock of dl_iterate_phdr() stays held, and any thread that wants it waits for
 * ever. So the thread that forks checks both locks before the fork. The child checks the rest: the
 * state that the loader publishes for debuggers in each namespace, and the lock that was not
 * initialized again. The locks have no names. They are adjacent in the loader's data, and
 * dl_iterate_phdr() holds one of them during its callbacks. */
#ifndef OTELPROF_LOADER_STATE_H
#define OTELPROF_LOADER_STATE_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Finds the locks; if it fails, they stay unknown. Context: calm, on the main thread, at start. */
void loader_state_learn(void);

/* Returns whether the locks are known. Context: any. */
bool loader_state_is_known(void);

/* Returns the id of the thread that is inside the loader; 0: no thread is; LOADER_USER_UNKNOWN: its
 * id, or the locks, are not known. Async-signal-safe: yes. */
#define LOADER_USER_UNKNOWN UINT32_MAX
uint32_t loader_state_user(void);

/* Returns true if the thread `tid` is known to be inside the loader, that is, to hold one of the
 * locks. Async-signal-safe: yes. */
bool loader_state_is_used_by(uint32_t tid);

/* Returns true if a thread other than `tid` is known to be inside the loader, so that thread `tid`
 * may have to wait. Async-signal-safe: yes. */
bool loader_state_is_used_beside(uint32_t tid);

/* Takes both locks, if they are known and free: then every object in the loader's list is
 * relocated, and dl_iterate_phdr() does not wait. After true the caller must call
 * loader_state_leave(). Context: calm. */
bool loader_state_try_enter(void);
void loader_state_leave(void);

/* Visits the loaded objects as dl_iterate_phdr() does, and keeps other threads out of the loader
 * meanwhile. glibc completes an object's headers and name before it lists the object, but not the
 * list of modules with thread-local variables: dl_iterate_phdr() may follow a null pointer there
 * (_dl_tls_get_addr_soft) while another thread loads an object that has some. If another thread
 * stays inside for a tenth of a second or more, in a library's constructor perhaps, visits
 * nevertheless: then those lists are complete. Signals are blocked. Context: calm. errno is
 * preserved. */
void loader_state_visit(int (*visit)(struct dl_phdr_info *, size_t, void *), void *arg);

/* Returns whether dlmopen() has made a namespace with objects of its own: one of them is another C
 * library. glibc 2.35 and later. Context: any. */
bool loader_state_has_namespaces(void);

/* Returns true in a forked child if the parent left no operation of the loader half done.
 * Async-signal-safe: yes. */
bool loader_state_is_whole(void);

#endif
