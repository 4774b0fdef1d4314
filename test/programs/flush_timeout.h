/* Bounds a program's wait for its own export. The limit only ends a wait in vain, so it is far
 * above what a loaded machine takes, and below the limit of lib/waiting.py. */
#ifndef TEST_FLUSH_TIMEOUT_H
#define TEST_FLUSH_TIMEOUT_H

enum { FLUSH_TIMEOUT_MS = 120 * 1000 };

#endif
