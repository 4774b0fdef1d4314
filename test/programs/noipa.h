/* NOIPA keeps a function whole, on the stack and with a symbol of its own. clang does not know
 * noipa; it does not clone functions, so noinline is enough. */
#ifndef TEST_NOIPA_H
#define TEST_NOIPA_H

#ifdef __clang__
#define NOIPA __attribute__((noinline))
#else
#define NOIPA __attribute__((noipa))
#endif

#endif
