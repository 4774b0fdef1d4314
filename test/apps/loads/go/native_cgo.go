//go:build cgo

package main

/*
#include <stdlib.h>
#include <string.h>
static int native(int i) {
    char *const text = malloc(16 + i % 100);
    memset(text, i, 16);
    const int value = text[3];
    free(text);
    return value;
}
*/
import "C"

func native(i int) int { return int(C.native(C.int(i))) }
