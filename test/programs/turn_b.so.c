#define WORK work_of_b
#include "turn_a.so.c"
