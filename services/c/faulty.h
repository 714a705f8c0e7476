/* A component that fails once, at a chosen point of a chosen operation: `PROGRAM OPERATION POINT FILE`, when it can remove the file.
 * Without arguments it does not. */
#include <outlast_glue.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct {
    uint32_t operation;
    enum glue_point point;
    const char *file;
} fault;

static void fail(enum glue_point point, uint32_t operation)
{
    if (fault.file != NULL && point == fault.point && operation == fault.operation && unlink(fault.file) == 0) {
        raise(SIGKILL);
    }
}

/* Serves; the end of a component's main function. */
static int serve(const char *program, const struct glue_service *service, int count, char *arguments[])
{
    static const char *const points[] = { "Begun", "Done", "Committed", "Published" };
    struct glue_service faulty = *service;
    char text[200];

    faulty.reached = fail;
    if (count == 4) {
        for (uint32_t at = 0; at < service->count; at++) {
            if (strcmp(service->operations[at].name, arguments[1]) == 0) {
                fault.operation = at;
            }
        }
        for (int at = 0; at < 4; at++) {
            if (strcmp(points[at], arguments[2]) == 0) {
                fault.point = (enum glue_point)at;
            }
        }
        fault.file = arguments[3];
    }
    glue_describe(glue_run(&faulty), text, sizeof text);
    fprintf(stderr, "%s: %s\n", program, text);
    return 1;
}
