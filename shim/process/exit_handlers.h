/* Registers the profiler's exit handler, which sees the exits inside libc that bypass the hooks
 * (hooks/exit.c), such as the end of the last thread. */
#ifndef OTELPROF_EXIT_HANDLERS_H
#define OTELPROF_EXIT_HANDLERS_H

/* Has exit and quick_exit call `end` before the handlers that were registered earlier, once for
 * each registration. Context: calm. */
void exit_handlers_register(void (*end)(void));

#endif
