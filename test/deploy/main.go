// Checks scripts/deploy with the consumers' own code, for the tests: Docker's filter of system calls, Compose's schema,
// kustomize, the Kubernetes API's types, its pod security standards and its mutating admission policies. No cluster is
// needed.
package main

import (
	"encoding/json"
	"fmt"
	"os"
)

var commands = map[string]func(arguments []string) (any, error){
	"docker":     func([]string) (any, error) { return defaultsOfDocker() },
	"compose":    func(files []string) (any, error) { return composeProject(files[0]) },
	"kustomize":  func(folders []string) (any, error) { return built(folders[0]) },
	"manifests":  func(files []string) (any, error) { return manifests(files[0]) },
	"restricted": func(files []string) (any, error) { return restricted(files[0]) },
	"policy":     func(files []string) (any, error) { return admitted(files[0], files[1], files[2]) },
}

func main() {
	command := commands[os.Args[1]]
	answer, err := command(os.Args[2:])
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(answer)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
