//go:build old

package main

import (
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/debugexporter"
	"go.opentelemetry.io/collector/processor"
)

var (
	exporters  = []exporter.Factory{debugexporter.NewFactory()}
	processors []processor.Factory
)
