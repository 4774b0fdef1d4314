/* unshare, setns, chroot and pivot_root by number: for syscall() in hooks_sandbox.c. */
#ifndef OTELPROF_HOOKS_NAMESPACES_H
#define OTELPROF_HOOKS_NAMESPACES_H

/* Called by its assembler with the arguments as they came. Context: calm. */
__attribute__((used)) long hooks_namespaces_by_number(long number, long a, long b, long c, long d,
                                                      long e, long f);

#endif
