/* Calls in which a worker waits for its next piece of work, or takes it: accept4, epoll_wait,
 * recvfrom, recvmsg and waitpid.
 *
 * Related calls (accept, poll, read, recv, select, sleep, wait) have names that programs and
 * libraries give to variables and functions of their own, which would be bound to ours by mistake;
 * and an allocator may read, or sleep for a lock, where no thread may be created because that
 * allocates.
 *
 * A forked child gets its helper thread once it has shown that it runs on, and from a place where a
 * thread may be created (lifecycle.c). Its mallocs are such places; a worker that makes none after
 * its first sample, because its allocator keeps its memory, has these. The hooks do nothing else:
 * where no helper is wanted, which is always except for a young child, they cost a compare and a
 * jump. They forward with the registers and the stack of the call, so that cancellation and
 * unwinders find libc's function called by the program. */
#ifndef OTELPROF_HOOKS_WAITS_H
#define OTELPROF_HOOKS_WAITS_H

/* Resolves the next functions. Context: any; idempotent. Called by the assembler of the first of
 * these calls. */
void hooks_waits_resolve(void);

#endif
