/* In the place of libotelprof-flush.so: one that cannot work, as where it is from another build. */
struct capture_api;

int otelprof_flush_main(const struct capture_api *api);

int otelprof_flush_main(const struct capture_api *api) {
    (void)api;
    return -1;
}
