/* operator new and delete: see hooks_new.c. */
#ifndef OTELPROF_HOOKS_NEW_H
#define OTELPROF_HOOKS_NEW_H

/* Finds the functions behind ours and withdraws those of ours that are not needed. Context: calm,
 * single-threaded, at start. */
void hooks_new_settle(void);

#endif
