/* What the hooks of signals do for those who come by syscall(). */
#ifndef OTELPROF_HOOKS_SIGNAL_H
#define OTELPROF_HOOKS_SIGNAL_H

/* Before rt_sigaction by number: `action` is the kernel's struct, or NULL. The program knows what
 * libc's functions would answer for it, and the kernel takes it at its word: the default action
 * would end the process at our next signal. So the signal is the program's, and ours another.
 * errno is preserved. Async-signal-safe: yes. */
void hooks_signal_before_number(int number, const void *action);

#endif
