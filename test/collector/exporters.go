//go:build !old

package main

import (
	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/fileexporter"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/debugexporter"
)

var exporters = []exporter.Factory{debugexporter.NewFactory(), fileexporter.NewFactory()}
