//go:build !old

package main

import (
	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/fileexporter"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/debugexporter"
	"go.opentelemetry.io/collector/exporter/otlphttpexporter"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/memorylimiterprocessor"
)

var (
	exporters = []exporter.Factory{
		debugexporter.NewFactory(), fileexporter.NewFactory(), otlphttpexporter.NewFactory(),
	}
	processors = []processor.Factory{memorylimiterprocessor.NewFactory()}
)
