/* NOIPA: a function that stays one, on the stack and with a symbol of its own. clang knows no
 * noipa; it does not clone, so that never to be inlined is enough. */
#ifndef TEST_NOIPA_H
#define TEST_NOIPA_H

#ifdef __clang__
#define NOIPA __attribute__((noinline))
#else
#define NOIPA __attribute__((noipa))
#endif

#endif
