// Links samples to spans in Go, by cgo: go build spans.go (CGO_CFLAGS=-I/usr/local/include)
package main

// #include <otelprof.h>
// #include <stdlib.h>
import "C"

import (
	"runtime"
	"unsafe"
)

var traceID = [16]byte{0x4b, 0xf9, 0x2f, 0x35, 0x77, 0xb3, 0x4d, 0xa6, 0xa3, 0xce, 0x92, 0x9d, 0x0e, 0x0e, 0x47, 0x36}

// inSpan calls work on a thread of its own: a goroutine moves between threads otherwise.
func inSpan(spanID [8]byte, route string, work func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	key, value := C.CString("http.route"), C.CString(route)
	defer C.free(unsafe.Pointer(key))
	defer C.free(unsafe.Pointer(value))
	C.otelprof_span_set((*C.uint8_t)(&traceID[0]), (*C.uint8_t)(&spanID[0]))
	defer C.otelprof_span_clear()
	labels := C.otelprof_label_push(key, value)
	defer C.otelprof_label_pop_to(labels)
	work()
}

var sum uint64

//go:noinline
func resizeImage() {
	for i := uint64(0); i < 400000000; i++ {
		sum ^= i
	}
}

//go:noinline
func writeReport() {
	for i := uint64(0); i < 400000000; i++ {
		sum ^= i
	}
}

func main() {
	inSpan([8]byte{1, 1, 1, 1, 1, 1, 1, 1}, "/images", resizeImage)
	inSpan([8]byte{2, 2, 2, 2, 2, 2, 2, 2}, "/reports", writeReport)
}
