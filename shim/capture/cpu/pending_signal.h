/* Signals that are pending because the program blocks them, taken from the kernel's queues and put
 * back.
 *
 * A signal number that changes owners may be pending twice: for the program, and as an expiry of
 * our timers. Ignoring the number for a moment would discard both. So the pending ones are taken
 * one by one, ours are dropped, and the program's are queued again as they were. Only signals
 * pending for the calling thread or for the whole process can be taken so. The kernel shows a
 * thread none that are pending for another thread alone. Context: any. Async-signal-safe: yes.
 * errno is preserved. */
#ifndef OTELPROF_PENDING_SIGNAL_H
#define OTELPROF_PENDING_SIGNAL_H

#include <signal.h>
#include <stdbool.h>

struct pending_signal {
    siginfo_t info;
    bool of_thread; /* it was pending for the calling thread alone */
};

/* Takes one signal of this number that is pending for the calling thread or the process. Returns
 * false if there is none. */
bool pending_signal_take(int number, struct pending_signal *taken);

/* Queues it again where it was. It keeps its information where the kernel lets a thread send that
 * to itself (Linux 3.9); before, it becomes kill()'s or tgkill()'s. */
void pending_signal_put_back(struct pending_signal *taken);

#endif
