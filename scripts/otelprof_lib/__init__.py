"""The parts of the otelprof command."""
