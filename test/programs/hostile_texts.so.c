/* Is a library whose path, function, lock and source file a test names as it likes. hostile_work()
 * computes with the lock held; hostile_wait() waits for the lock. */
/* flags: -lpthread */
#include <pthread.h>

void hostile_work(void);
void hostile_wait(void);

static pthread_mutex_t named_lock = PTHREAD_MUTEX_INITIALIZER;
static volatile unsigned long result;

#line 1 "\033[2J\n999999 root\302\233\342\200\256\"</script><b>.c"
__attribute__((noinline)) static void named_function(void) {
    for (unsigned long i = 0; i < 50000000; i++)
        result += i * i;
}
#line 19 "hostile_texts.so.c"

void hostile_work(void) {
    pthread_mutex_lock(&named_lock);
    named_function();
    pthread_mutex_unlock(&named_lock);
}

void hostile_wait(void) {
    pthread_mutex_lock(&named_lock);
    pthread_mutex_unlock(&named_lock);
}
