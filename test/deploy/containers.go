package main

import (
	"context"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
)

// Returns Docker's defaults for a container: its capabilities, and its filter of system calls in a runtime's form.
type dockersDefaults struct {
	Capabilities []string            `json:"capabilities"`
	Seccomp      *specs.LinuxSeccomp `json:"seccomp"`
}

func defaultsOfDocker() (*dockersDefaults, error) {
	capabilities := []string{
		"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FSETID", "CAP_FOWNER", "CAP_MKNOD", "CAP_NET_RAW", "CAP_SETGID",
		"CAP_SETUID", "CAP_SETFCAP", "CAP_SETPCAP", "CAP_NET_BIND_SERVICE", "CAP_SYS_CHROOT", "CAP_KILL", "CAP_AUDIT_WRITE",
	}
	filter, err := seccomp.GetDefaultProfile(&specs.Spec{
		Process: &specs.Process{Capabilities: &specs.LinuxCapabilities{Bounding: capabilities}},
	})
	return &dockersDefaults{capabilities, filter}, err
}

func composeProject(file string) (*types.Project, error) {
	options, err := cli.NewProjectOptions([]string{file}, cli.WithName("test"))
	if err != nil {
		return nil, err
	}
	return options.LoadProject(context.Background())
}
