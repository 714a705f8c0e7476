/* spender: a program whose threads have taken more processor time than they should is ended, and goes on from its last commit.
 *
 * Its settings are a number: so many milliseconds its process may compute in all. */
#include "module.h"
#include <stdlib.h>
#include <string.h>

/* A program's threads are looked at so often: ten times a second. */
#define EVERY UINT64_C(100000000)
#define MILLISECOND UINT64_C(1000000)

struct program {
    struct program *next;
    module_string_t name;
    uint64_t most;
};

static struct program *programs;
/* The pins, by the handles that the core gave us. */
static outlast_module_types_pin_t proc, pmc;

static bool is(const module_string_t *a, const module_string_t *b)
{
    return a->len == b->len && memcmp(a->ptr, b->ptr, a->len) == 0;
}

/* A string of our own with what is in this one. */
static module_string_t copy(const module_string_t *from)
{
    module_string_t own = {malloc(from->len + 1), from->len};
    memcpy(own.ptr, from->ptr, from->len);
    return own;
}

static bool refuse(module_string_t *err, const char *why)
{
    module_string_dup(err, why);
    return false;
}

bool exports_outlast_module_policy_start(module_string_t *err)
{
    module_string_t name;
    module_string_set(&name, "proc");
    if (!outlast_module_calls_use_pin(&name, &proc, err))
        return false;
    module_string_set(&name, "pmc");
    if (!outlast_module_calls_use_pin(&name, &pmc, err))
        return false;
    return outlast_module_calls_subscr_event(pmc, OUTLAST_MODULE_TYPES_SUBJECT_PMC_COUNTED, err);
}

/* Arguments are ours to free. */
bool exports_outlast_module_policy_protect(module_string_t *name, module_string_t *settings, module_string_t *err)
{
    uint64_t most = 0;
    if (settings->len == 0 || settings->len > 12)
        return refuse(err, "settings: a number of milliseconds");
    for (size_t i = 0; i < settings->len; i++) {
        if (settings->ptr[i] < '0' || settings->ptr[i] > '9')
            return refuse(err, "settings: a number of milliseconds");
        most = most * 10 + (settings->ptr[i] - '0');
    }
    module_string_free(settings);
    outlast_module_types_command_t watch = {.tag = OUTLAST_MODULE_TYPES_COMMAND_PMC_WATCH};
    watch.val.pmc_watch.program = *name;
    watch.val.pmc_watch.every = EVERY;
    outlast_module_types_answer_t nothing;
    if (!outlast_module_calls_issue_cmd(pmc, &watch, &nothing, err))
        return false;
    struct program *program = malloc(sizeof *program);
    *program = (struct program){programs, copy(name), most * MILLISECOND};
    programs = program;
    module_string_free(name);
    return true;
}

void exports_outlast_module_policy_release(module_string_t *name)
{
    for (struct program **at = &programs; *at; at = &(*at)->next) {
        struct program *program = *at;
        if (is(&program->name, name)) {
            *at = program->next;
            module_string_free(&program->name);
            free(program);
            break;
        }
    }
    module_string_free(name);
}

static bool flag(const outlast_module_types_list_count_t *threads, uint64_t most, module_string_t *err)
{
    const outlast_module_types_count_t *busiest = threads->ptr;
    uint64_t all = 0;
    for (size_t i = 0; i < threads->len; i++) {
        all += threads->ptr[i].count;
        if (threads->ptr[i].count > busiest->count)
            busiest = &threads->ptr[i];
    }
    if (all <= most)
        return true;
    outlast_module_types_command_t command = {.tag = OUTLAST_MODULE_TYPES_COMMAND_PROC_FLAG};
    outlast_module_types_hang_t *hang = &command.val.proc_flag;
    hang->thread = busiest->thread;
    hang->section = busiest->section;
    hang->has_moved = false;
    hang->why.tag = OUTLAST_MODULE_TYPES_STAYS_TOLD;
    module_string_set(&hang->why.val.told, "it has taken more processor time than it may");
    outlast_module_types_answer_t nothing;
    return outlast_module_calls_issue_cmd(proc, &command, &nothing, err);
}

bool exports_outlast_module_policy_on_event(outlast_module_types_event_t *event, module_string_t *err)
{
    bool ok = true;
    if (event->what.tag == OUTLAST_MODULE_TYPES_HAPPENING_PMC_COUNTED && event->program.is_some)
        for (struct program *program = programs; program && ok; program = program->next)
            if (is(&program->name, &event->program.val) && event->what.val.pmc_counted.len > 0)
                ok = flag(&event->what.val.pmc_counted, program->most, err);
    outlast_module_types_event_free(event);
    return ok;
}
