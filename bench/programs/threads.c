/* What threads add: threads RESULT BATCHES ITERATIONS. RESULT gets lines "WHAT NANOSECONDS", each the median over the
 * batches of the mean of an iteration: a visible byte of one of four threads that all print; a visible byte and a page
 * dirtied of one thread alone, beside 4 and beside 16 that wait, and beside 4 that compute. */
#include "measure.h"
#include <pthread.h>
#include <stdatomic.h>

enum { PRINTERS = 4, WAITING = 16, FEW = 4, WARM_UP = 100 };

static pthread_barrier_t gate;
static pthread_mutex_t never = PTHREAD_MUTEX_INITIALIZER;
static atomic_int begun, over;
static int batches, iterations;
static struct batches cost;
static char *page;

static void start(pthread_t *thread, void *(*body)(void *))
{
    if (pthread_create(thread, NULL, body, NULL))
        fail("pthread_create");
}

static void *print(void *arg)
{
    for (int b = 0; b < batches; b++) {
        pthread_barrier_wait(&gate);
        for (int i = 0; i < iterations; i++)
            visible_byte();
        pthread_barrier_wait(&gate);
    }
    return arg;
}

static double printing(void)
{
    pthread_t threads[PRINTERS];
    pthread_barrier_init(&gate, NULL, PRINTERS + 1);
    for (int i = 0; i < PRINTERS; i++)
        start(&threads[i], print);
    for (int b = 0; b < batches; b++) {
        begin_batch(&cost);
        pthread_barrier_wait(&gate);
        pthread_barrier_wait(&gate);
        end_batch(&cost, PRINTERS * iterations);
    }
    for (int i = 0; i < PRINTERS; i++)
        pthread_join(threads[i], NULL);
    return median(&cost);
}

static double beside(void)
{
    for (int b = -1; b < batches; b++) {
        int rounds = b < 0 ? WARM_UP : iterations;
        begin_batch(&cost);
        for (int i = 0; i < rounds; i++) {
            ++*(volatile uint64_t *)(page + 128);
            visible_byte();
        }
        if (b >= 0)
            end_batch(&cost, rounds);
    }
    return median(&cost);
}

static void *idle(void *arg)
{
    pthread_mutex_lock(&never);
    pthread_mutex_unlock(&never);
    return arg;
}

/* Waits as the first thread of many programs does: for the end of another. */
static void *wait_for_end(void *arg)
{
    pthread_join(*(pthread_t *)arg, NULL);
    return arg;
}

static void *compute(void *arg)
{
    atomic_fetch_add(&begun, 1);
    for (volatile uint64_t n = 0; !atomic_load_explicit(&over, memory_order_relaxed); n++)
        ;
    return arg;
}

int main(int argc, char **argv)
{
    pthread_t waiting[WAITING], computing[FEW];
    char text[4096];
    if (argc != 4)
        return 2;
    batches = atoi(argv[2]), iterations = atoi(argv[3]);
    if (batches < 1 || batches > BATCHES_MAX || iterations < 1)
        return 2;
    page = resident(10 << 20);
    double alone = beside();
    pthread_mutex_lock(&never);
    for (int i = 0; i < FEW - 1; i++)
        start(&waiting[i], idle);
    pthread_create(&waiting[FEW - 1], NULL, wait_for_end, &waiting[0]);
    double few = beside();
    for (int i = FEW; i < WAITING; i++)
        start(&waiting[i], idle);
    double many = beside();
    pthread_mutex_unlock(&never);
    for (int i = 1; i < WAITING; i++)
        pthread_join(waiting[i], NULL);
    for (int i = 0; i < FEW; i++)
        start(&computing[i], compute);
    while (atomic_load(&begun) < FEW)
        ;
    double computed = beside();
    atomic_store(&over, 1);
    for (int i = 0; i < FEW; i++)
        pthread_join(computing[i], NULL);
    double printed = printing();
    snprintf(text, sizeof text, "printing %.1f\nalone %.1f\nwaiting-4 %.1f\nwaiting-16 %.1f\ncomputing-4 %.1f\n", printed, alone,
             few, many, computed);
    publish(argv[1], text);
    return 0;
}
