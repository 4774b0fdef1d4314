module otelprof.test/pprof

go 1.26.0

require github.com/google/pprof v0.0.0-20261016150608-1facf8f91b50
