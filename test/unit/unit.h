/* Includes cmocka for every unit test, in the order that it requires of its headers. */
#ifndef OTELPROF_TEST_UNIT_H
#define OTELPROF_TEST_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#endif
