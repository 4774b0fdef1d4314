/* flags: -Wl,-Ttext-segment=0x300000000000 */
#define WORK work_of_b
#include "turn_a.so.c"
