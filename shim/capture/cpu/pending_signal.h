/* Takes signals that are pending, because the program blocks them, from the kernel's queues, and
 * puts them back.
 *
 * A signal number that changes owners may be pending twice: for the program, and as an expiry of
 * our timers. To ignore the number for a moment would discard both. So the caller takes the pending
 * signals one by one, drops ours, and queues the program's again unchanged. Only signals that are
 * pending for the calling thread or for the whole process can be taken: the kernel shows a thread
 * no signal that is pending for another thread alone. Context: any. Async-signal-safe: yes. errno
 * is preserved. */
#ifndef OTELPROF_PENDING_SIGNAL_H
#define OTELPROF_PENDING_SIGNAL_H

#include <signal.h>
#include <stdbool.h>

struct pending_signal {
    siginfo_t info;
    bool of_thread; /* the signal was pending for the calling thread alone */
};

/* Takes one signal of this number that is pending for the calling thread or the process. Returns
 * false if there is none, or if the kernel refuses the query. */
bool pending_signal_take(int number, struct pending_signal *taken);

/* Puts the signal back into the queue that it came from. Since Linux 3.9 a thread may send itself a
 * signal with any information, so the signal keeps its own; on older kernels it gets the
 * information of kill() or tgkill(). */
void pending_signal_put_back(struct pending_signal *taken);

#endif
