// Reads by pprof's own library a file that `otelprof pprof` wrote, and prints the sums of its samples, and of each
// function's own, as JSON. A profile that the library's checker refuses is an error.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/google/pprof/profile"
)

type told struct {
	Types     []string
	Totals    []int64
	Functions map[string][]int64
	Samples   int
}

func add(sums []int64, values []int64) []int64 {
	if sums == nil {
		sums = make([]int64, len(values))
	}
	for i, value := range values {
		sums[i] += value
	}
	return sums
}

func innermost(sample *profile.Sample) string {
	lines := sample.Location[0].Line
	if len(lines) == 0 {
		return ""
	}
	return lines[0].Function.Name
}

func tell(path string) (*told, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	parsed, err := profile.Parse(file)
	if err != nil {
		return nil, err
	}
	if err := parsed.CheckValid(); err != nil {
		return nil, err
	}
	result := &told{Functions: map[string][]int64{}, Samples: len(parsed.Sample)}
	for _, kind := range parsed.SampleType {
		result.Types = append(result.Types, kind.Type+"/"+kind.Unit)
	}
	for _, sample := range parsed.Sample {
		name := innermost(sample)
		result.Totals = add(result.Totals, sample.Value)
		result.Functions[name] = add(result.Functions[name], sample.Value)
	}
	return result, nil
}

func main() {
	result, err := tell(os.Args[1])
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(result)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
