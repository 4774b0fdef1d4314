// Runs goroutines that wait for time, channels, locks, a pipe and a socket, and some that block in C.
package main

/*
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void poll_nothing(int milliseconds) { poll(0, 0, milliseconds); }
static void hold(int microseconds) {
    pthread_mutex_lock(&lock);
    usleep(microseconds);
    pthread_mutex_unlock(&lock);
}
*/
import "C"

import (
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func echo(listener net.Listener) {
	client, err := listener.Accept()
	check(err)
	io.Copy(client, client)
}

func talk(address string, end time.Time) {
	server, err := net.Dial("tcp", address)
	check(err)
	byte1 := make([]byte, 1)
	for time.Now().Before(end) {
		_, err = server.Write(byte1)
		check(err)
		_, err = io.ReadFull(server, byte1)
		check(err)
		time.Sleep(2 * time.Millisecond)
	}
	server.Close()
}

// Reads from a pipe that is unknown to the runtime's poller: its thread blocks.
func readPipe(end time.Time) {
	var ends [2]int
	check(syscall.Pipe(ends[:]))
	go func() {
		for time.Now().Before(end) {
			syscall.Write(ends[1], []byte{1})
			time.Sleep(30 * time.Millisecond)
		}
		syscall.Close(ends[1])
	}()
	data := make([]byte, 1)
	for {
		if n, _ := syscall.Read(ends[0], data); n == 0 {
			return
		}
	}
}

func main() {
	seconds, err := strconv.Atoi(os.Args[1])
	check(err)
	end := time.Now().Add(time.Duration(seconds) * time.Second)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	go echo(listener)
	var group sync.WaitGroup
	start := func(work func()) {
		group.Add(1)
		go func() { defer group.Done(); work() }()
	}
	start(func() { talk(listener.Addr().String(), end) })
	start(func() { readPipe(end) })
	start(func() {
		for time.Now().Before(end) {
			C.poll_nothing(50)
		}
	})
	for i := 0; i < 2; i++ {
		start(func() {
			for time.Now().Before(end) {
				C.hold(20000)
			}
		})
	}
	group.Wait()
	fmt.Println("done")
}
