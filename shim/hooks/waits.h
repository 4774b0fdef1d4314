/* Calls in which a worker waits for its next piece of work, or takes it: accept4, epoll_wait,
 * recvfrom, recvmsg and waitpid.
 *
 * Their like (accept, poll, read, recv, select, sleep, wait) have names that programs and libraries
 * give to variables and functions of their own, which would be bound to ours in their place; and an
 * allocator may read, or sleep for a lock, where no thread may be created because that allocates.
 *
 * A forked child gets its helper thread when it shows that it lives, and from a place where a
 * thread may be created (lifecycle.c). Its mallocs are such places; a worker that makes none after
 * its first sample, because its allocator keeps what it has, has these. Nothing else is done in
 * them: where no helper is wanted, which is always but for a young child, they cost a compare and a
 * jump. They go on with the registers and the stack that they were called with, so that
 * cancellation, and whoever unwinds, finds libc's function called by the program.
 */
#ifndef OTELPROF_HOOKS_WAITS_H
#define OTELPROF_HOOKS_WAITS_H

/* Looks for what is behind them. Context: any; idempotent. Called by the assembler of the first of
 * these calls. */
void hooks_waits_resolve(void);

#endif
