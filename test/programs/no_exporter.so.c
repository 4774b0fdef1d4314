/* Replaces libotelprof-flush.so by an exporter that cannot work, as one from another build. */
struct capture_api;

int otelprof_flush_main(const struct capture_api *api);

int otelprof_flush_main(const struct capture_api *api) {
    (void)api;
    return -1;
}
