/* What it costs to enter and leave a code section: sections RESULT BATCHES ITERATIONS. RESULT gets "named NANOSECONDS", by a name,
 * "function NANOSECONDS", of one that its compiler has tell of itself, and "call NANOSECONDS", of a function that knows nothing of it: `hollow`. */
#include "measure.h"

#define OUTLAST_FUNCTIONS
#include "../../crates/api/outlast_sections.h"

static const struct outlast_section section = OUTLAST_SECTION("measured");
static volatile int turns;

__attribute__((noinline, noclone, no_instrument_function)) int hollow(int i)
{
    __asm__ volatile("" : "+r"(i));
    return i;
}

__attribute__((noinline, noclone)) static int telling(int i)
{
    __asm__ volatile("" : "+r"(i));
    return i;
}

__attribute__((no_instrument_function)) int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    int batches = atoi(argv[2]), iterations = atoi(argv[3]);
    static struct batches named, function, call;
    char text[200];
    if (batches < 1 || batches > BATCHES_MAX)
        fail("batches");
    visible_byte();
    /* Breakpoints come with the first look. */
    for (uint64_t end = now_ns() + 1000000000; now_ns() < end;)
        turns = hollow(turns);
    for (int b = -1; b < batches; b++) {
        begin_batch(&named);
        for (int i = 0; i < iterations; i++) {
            outlast_section_enter(&section);
            turns = i;
            outlast_section_exit(&section, i & 1);
        }
        if (b >= 0)
            end_batch(&named, iterations);
        begin_batch(&function);
        for (int i = 0; i < iterations; i++)
            turns = telling(i);
        if (b >= 0)
            end_batch(&function, iterations);
        begin_batch(&call);
        for (int i = 0; i < iterations; i++)
            turns = hollow(i);
        if (b >= 0)
            end_batch(&call, iterations);
    }
    snprintf(text, sizeof text, "named %.1f\nfunction %.1f\ncall %.1f\n", median(&named), median(&function), median(&call));
    publish(argv[1], text);
    return 0;
}
