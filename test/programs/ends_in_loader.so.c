/* Its constructor, which the loader calls with its lock held, calls the program that loads it. */
extern void is_inside_loader(void) __attribute__((weak));

__attribute__((constructor)) static void begin(void) {
    if (is_inside_loader)
        is_inside_loader();
}
