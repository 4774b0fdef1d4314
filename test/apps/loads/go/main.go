package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"sort"
	"sync"
	"syscall"
)

func work(seed int) int {
	words := map[string]int{}
	for i := 0; i < 1000000; i++ {
		words[fmt.Sprint((i*seed)%5000)] += native(i)
	}
	names := make([]string, 0, len(words))
	for name := range words {
		names = append(names, name)
	}
	sort.Strings(names)
	return len(names) + words[names[0]]
}

func deref(p *int) (message string) {
	defer func() { message = fmt.Sprint(recover()) }()
	return fmt.Sprint(*p)
}

func main() {
	var group sync.WaitGroup
	sums := make([]int, 8)
	for i := range sums {
		group.Add(1)
		go func(i int) { defer group.Done(); sums[i] = work(i + 1) }(i)
	}
	group.Wait()
	if _, err := os.ReadFile("gate"); err != nil {
		panic(err)
	}
	fmt.Println(sums, deref(nil))
	hits := make(chan os.Signal, 1)
	signal.Notify(hits, syscall.SIGUSR1)
	syscall.Kill(os.Getpid(), syscall.SIGUSR1)
	fmt.Println(<-hits)
	output, err := exec.Command("sh", "-c", "echo child; exit 3").Output()
	fmt.Printf("%s%v\n", output, err)
	os.Exit(6)
}
