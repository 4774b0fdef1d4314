//go:build !cgo

package main

func native(i int) int { return int(int8(i)) }
