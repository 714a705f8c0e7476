/* For clients that tests run: whatever fails ends them, and is told of. */
#include <outlast_glue.h>
#include <stdio.h>
#include <stdlib.h>

static inline void must(const char *what, int error)
{
    char text[200];

    if (error != 0) {
        glue_describe(error, text, sizeof text);
        fprintf(stderr, "%s: %s\n", what, text);
        exit(1);
    }
}

/* The channel that this program was granted under that name. */
static inline struct glue_channel *granted(const char *name)
{
    int error;
    struct glue_channel *channel = glue_channel_open(glue_grant_inherited(name, &error), &error);

    must(name, error);
    return channel;
}
