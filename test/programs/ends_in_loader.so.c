/* Has a constructor, which the loader calls with its lock held, and which calls the loading
 * program. */
extern void is_inside_loader(void) __attribute__((weak));

__attribute__((constructor)) static void begin(void) {
    if (is_inside_loader)
        is_inside_loader();
}
