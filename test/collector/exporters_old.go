//go:build old

package main

import (
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/debugexporter"
)

var exporters = []exporter.Factory{debugexporter.NewFactory()}
