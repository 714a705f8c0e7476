/* A manager: `manager COMPONENT ARGUMENT PROGRAM ARGUMENT…` starts the component and then the program, which is granted a channel to it
 * as `lock`, and tells how many lines the program wrote. */
#define _GNU_SOURCE
#include "must.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void expect(const char *what, int seen, int expected)
{
    char text[200];

    if (seen != expected) {
        glue_describe(seen, text, sizeof text);
        fprintf(stderr, "%s: %d (%s), not %d\n", what, seen, text, expected);
        exit(1);
    }
}

/* What goes wrong is said. */
static void mistakes(struct glue_system *system, struct glue_component *component)
{
    const char *const nothing[] = { "/nonexistent/program", NULL }, *const sleeps[] = { "true", NULL };
    struct glue_grant *grants[16];
    char text[200];
    pid_t process;
    int error, count = 0;

    expect("no program", glue_component_start(system, "none", nothing[0], NULL, &error) != NULL, 0);
    expect("no program", error, GLUE_SYSTEM(ENOENT));
    expect("no program", glue_errno(error), ENOENT);
    glue_describe(error, text, sizeof text);
    expect(text, strstr(text, "No such file") != NULL, 1);
    glue_describe(GLUE_REFUSED(EPERM), text, 8);
    expect(text, strcmp(text, "the com"), 0);
    expect("none granted", glue_grant_inherited("lock", &error) != NULL, 0);
    expect("none granted", error, GLUE_SYSTEM(EPERM));
    expect("nothing to open", glue_channel_open(NULL, &error) != NULL, 0);
    /* One was granted before. The last is not to be had, and a program that cannot be started takes its grant all the same. */
    while ((grants[count] = glue_component_grant(component, &error)) != NULL) {
        count++;
    }
    expect("grants", count, 15);
    expect("grants", error, GLUE_NO_CHANNEL);
    for (int at = 0; at < count; at++) {
        const struct glue_pass pass = { "lock", grants[at] };

        if (at < 13) {
            glue_grant_end(grants[at]);
        } else if (at == 13) {
            expect("spawn", glue_spawn(nothing, NULL, &pass, 1, &process), GLUE_SYSTEM(ENOENT));
        } else {
            must("spawn", glue_spawn(sleeps, (const int[]){ -1, -1, -1 }, &pass, 1, &process));
            waitpid(process, NULL, 0);
        }
    }
}

int main(int count, char *arguments[])
{
    struct glue_system *system = glue_system_new();
    struct glue_component *component;
    const char *component_arguments[] = { NULL, NULL };
    struct glue_pass pass = { "lock", NULL };
    int ends[2], error, status = 1;
    unsigned int lines = 0;
    pid_t process;
    char letter;

    if (count < 4 || pipe2(ends, O_CLOEXEC) != 0) {
        return 2;
    }
    component_arguments[0] = arguments[2];
    component = glue_component_start(system, "lock", arguments[1], component_arguments, &error);
    must("start", error);
    pass.grant = glue_component_grant(component, &error);
    must("grant", error);
    must("spawn", glue_spawn((const char *const *)&arguments[3], (const int[]){ -1, ends[1], -1 }, &pass, 1, &process));
    close(ends[1]);
    while (read(ends[0], &letter, 1) == 1) {
        lines += letter == '\n';
    }
    waitpid(process, &status, 0);
    expect("the program", status, 0);
    expect("given up", glue_component_given_up(component), 0);
    mistakes(system, component);
    printf("%u\n", lines);
    glue_component_end(component);
    glue_system_end(system);
    return 0;
}
