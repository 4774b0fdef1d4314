/* Our exit handler: for what calls exit inside libc, past the hooks (hooks/exit.c), such as the end
 * of the last thread. */
#ifndef OTELPROF_EXIT_HANDLERS_H
#define OTELPROF_EXIT_HANDLERS_H

/* Has `end` called where exit and quick_exit run their handlers, before those that were registered
 * earlier, and as often as it is registered. Context: calm. */
void exit_handlers_register(void (*end)(void));

#endif
