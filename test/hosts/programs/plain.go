// Is a program that needs no C library, and yet has a loader: built as a position-independent executable.
package main

import "os"

func main() {
	os.Stdout.WriteString("out\n")
	os.Stderr.WriteString("err\n")
	os.Exit(5)
}
