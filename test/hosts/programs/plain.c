/* Is a program of the kind that is not profiled (static, of 32 bits, of another C library): it
 * prints a line on each of its outputs. It uses next to nothing of libc: no headers of 32 bits need
 * be installed. */
int write(int, const void *, unsigned long);
void _exit(int);

int main(void) {
    write(1, "out\n", 4);
    write(2, "err\n", 4);
    return 5;
}

#ifdef WITHOUT_START_FILES
__attribute__((force_align_arg_pointer)) void _start(void);
void _start(void) {
    _exit(main());
}
#endif
