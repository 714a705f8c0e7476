/* `above_manager BELOW ABOVE ARGUMENT PROGRAM ARGUMENT…`: starts two components, the second of which calls the first, and the program, which
 * is granted a channel to the second as `lock`. Kills either again and again until the program ends, whose status it takes; says how often. */
#define _GNU_SOURCE
#include "must.h"
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char *arguments[])
{
    struct glue_system *system = glue_system_new();
    const char *const locks[] = { "lock", NULL };
    struct glue_component *parts[2];
    struct glue_pass pass = { "below", NULL };
    int error = 0, status = 1;
    pid_t program;

    if (count < 5) {
        return 2;
    }
    parts[0] = glue_component_start(system, "below", arguments[1], locks, &error);
    must("below", error);
    pass.grant = glue_component_grant(parts[0], &error);
    must("grant", error);
    parts[1] = glue_component_start_with(system, "above", arguments[2], NULL, &pass, 1, &error);
    must("above", error);
    pass = (struct glue_pass){ "lock", glue_component_grant(parts[1], &error) };
    must("grant", error);
    must("spawn", glue_spawn((const char *const *)&arguments[3], NULL, &pass, 1, &program));
    for (int round = 0; waitpid(program, &status, WNOHANG) == 0; round++) {
        pid_t process = glue_component_instance(parts[round % 2]);

        usleep(4000);
        if (process > 1 && process == glue_component_instance(parts[round % 2])) {
            kill(process, SIGKILL);
        }
    }
    fprintf(stderr, "%u %u\n", glue_component_deaths(parts[0]), glue_component_deaths(parts[1]));
    glue_system_end(system);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
