/* outlast_glue.h: components that can be micro-rebooted, and their clients, in C. To be linked with liboutlast_glue_c.
 *
 * Most of it is for the stubs that `glue compile --lang c` writes. What programs call themselves is: the manager's part, to
 * start components and to hand out channels to them; a channel's opening and closing; `glue_run`, which serves; and, for
 * services, how a call waits, and resources. See outlast_glue.h(3), which has an example.
 *
 * Errors are numbers: 0, none; positive, an errno of the service's; negative, one of those below. Functions that return a pointer
 * return NULL where they fail, and say why in `error`, unless that is NULL.
 *
 * What a function of the name `..._new`, `..._start`, `..._open` or the like returns is the caller's, until it is given to the
 * function that is named beside. Strings and bytes that are passed stay the caller's, and may change after the call. */
#ifndef OUTLAST_GLUE_H
#define OUTLAST_GLUE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Words of a call, each way, and bytes that come with it, each way. */
#define GLUE_WORDS 8
#define GLUE_BYTES 4096
/* Bytes of a shared buffer, for what is more. */
#define GLUE_BUFFER 65536

/* The descriptor is not open here: use one that this client created and has not closed. */
#define GLUE_UNKNOWN (-0x10000)
/* The component refused the call: descriptor, argument or operation was not this client's to use. With an errno. */
#define GLUE_REFUSED(number) (-0x20000 - (number))
/* The component was given up after too many micro-reboots without a completed call: start it again. */
#define GLUE_GIVEN_UP (-0x30000)
/* The component died again and again while it executed this very call: do not repeat it. */
#define GLUE_POISONOUS (-0x40000)
/* More threads than a channel has slots for (64): call from fewer, or have a second channel granted. */
#define GLUE_NO_SLOT (-0x50000)
/* More bytes or words than a call carries: make several calls. */
#define GLUE_TOO_LONG (-0x60000)
/* The component died while it had this client recover a descriptor: whoever needs it asks again. */
#define GLUE_OUTDATED (-0x70000)
/* The kernel said no, to the manager or to who opens a channel. With an errno. */
#define GLUE_SYSTEM(number) (-0x80000 - (number))
/* The component did not come up: run its program alone to see what it says. */
#define GLUE_NOT_UP (-0x90000)
/* The component has no channel left: at most 16 clients can have one. */
#define GLUE_NO_CHANNEL (-0xa0000)
/* All shared buffers of the channel are taken: end some. */
#define GLUE_NO_BUFFER (-0xe0000)
/* A call has the buffer: wait until it is over. */
#define GLUE_IN_A_CALL (-0xf0000)

/* The errno that says about the same; 0 for 0. */
int glue_errno(int error);
/* A sentence that says what it is and what to do, at most `size` bytes of it with the zero at the end. */
void glue_describe(int error, char *text, size_t size);

/* ---- The manager: starts components, and hands out channels to them. Functions may be called by any thread. ---- */

/* Components, for as long as it lives; `glue_system_end` ends them all. */
struct glue_system;
/* A component that runs; `glue_component_end` ends the handle only. */
struct glue_component;
/* The right to call a component, as one client: to be opened, or passed to a program. Both take it; so does `glue_grant_end`. */
struct glue_grant;
/* One client's connection; `glue_channel_close`. */
struct glue_channel;

struct glue_system *glue_system_new(void);
void glue_system_end(struct glue_system *system);

/* Starts a component and returns when it takes calls. `arguments` are those of its program, without its name, up to a NULL; or
 * NULL: none. Not for two threads at once. */
struct glue_component *glue_component_start(struct glue_system *system, const char *name, const char *program,
                                            const char *const arguments[], int *error);
void glue_component_end(struct glue_component *component);
/* The same for one that calls others: `passes` are below. Each new process of it opens the grants by glue_grant_inherited (`born` of
 * struct glue_service). */
struct glue_pass;
struct glue_component *glue_component_start_with(struct glue_system *system, const char *name, const char *program,
                                                 const char *const arguments[], const struct glue_pass *passes,
                                                 size_t count, int *error);
/* The process that serves now, 0 while there is none; and how often one has died. */
pid_t glue_component_instance(const struct glue_component *component);
uint32_t glue_component_deaths(const struct glue_component *component);
/* 1: no instance will come any more. */
int glue_component_given_up(const struct glue_component *component);

struct glue_grant *glue_component_grant(const struct glue_component *component, int *error);
void glue_grant_end(struct glue_grant *grant);
/* What this program was started with under that name. */
struct glue_grant *glue_grant_inherited(const char *name, int *error);

/* A grant under the name by which the program knows it. */
struct glue_pass {
    const char *name;
    struct glue_grant *grant;
};

/* Starts a program, found by PATH, with grants, which it takes in any case. `arguments` begin with the program's name and end
 * with NULL; `files` are its standard input, output and error, -1 those of this program; NULL: all are. To be waited for by the
 * caller. Other files of this program are inherited unless they are closed by exec. */
int glue_spawn(const char *const arguments[], const int files[3], const struct glue_pass *passes, size_t count,
               pid_t *process);

struct glue_channel *glue_channel_open(struct glue_grant *grant, int *error);
/* The connection itself ends when its clients are ended and threads that called by it, too. */
void glue_channel_close(struct glue_channel *channel);
/* How long a thread looks for a reply before it sleeps; a turn is some 20 ns. 0 at first: its calls
   are served on its own processor. With any other number they are served wherever there is room: worth it between processors only. */
void glue_channel_spin(struct glue_channel *channel, uint32_t turns);

/* Memory of a memory manager, mapped until it is revoked; `glue_mapped_end` ends the handle, the mapping ends when it is revoked
 * or the channel and all of its clients are gone. Accesses are 0, or an errno: ESTALE, it was revoked; EACCES, it is to be read
 * only; ERANGE, there are no such bytes. */
struct glue_mapped;
struct glue_mapped *glue_channel_map(struct glue_channel *channel, uint64_t descriptor, int file, size_t length,
                                     int writable, int *error);
int glue_mapped_read(const struct glue_mapped *mapped, size_t at, void *to, size_t count);
int glue_mapped_write(const struct glue_mapped *mapped, size_t at, const void *from, size_t count);
void glue_mapped_end(struct glue_mapped *mapped);

/* A shared buffer of GLUE_BUFFER bytes, until it is ended, for calls that take one (`buffer_t`): by its number. While a call has it,
 * nobody else has. At most 64 of a channel. */
struct glue_buffer;
struct glue_buffer *glue_buffer_new(struct glue_channel *channel, int *error);
uint32_t glue_buffer_number(const struct glue_buffer *buffer);
int glue_buffer_read(const struct glue_buffer *buffer, size_t at, void *to, size_t count);
int glue_buffer_write(const struct glue_buffer *buffer, size_t at, const void *from, size_t count);
void glue_buffer_end(struct glue_buffer *buffer);

/* ---- A client's stub. A client may be used by any number of threads, but by one process: a child that is forked needs a channel of
 * its own. ---- */

/* A word of a call, and whether a word is one of that type; as Rust's stubs have it: signed types are extended by their sign. */
#define GLUE_WORD(value) ((uint64_t)(int64_t)(value))
#define GLUE_FITS(type, word) (GLUE_WORD((type)(word)) == (uint64_t)(word))

/* How many bytes come back of a service at most, where a word says how many have room. */
#define GLUE_ROOM(word) ((int64_t)(word) < 0 ? 0 : (word) > GLUE_BYTES ? GLUE_BYTES : (int64_t)(word))

/* Flags of a request. T0: wake this thread if the server dies while it is blocked there. */
#define GLUE_EAGER 1u
/* R0 walks: do not wait where the call would block. */
#define GLUE_TRY 2u
/* R0 creates again: `wanted` is the id that a global descriptor had. */
#define GLUE_RECREATE 4u
/* The operation of every interface with global descriptors: `wanted` has been recovered, others may use it. */
#define GLUE_RECOVERED UINT32_MAX

/* The server died, and nothing of the call has happened; torn: while it was being executed. Stubs make the call again. */
#define GLUE_FAULT (-0xb0000)
#define GLUE_TORN (-0xc0000)

struct glue_request {
    uint32_t operation, flags;
    /* The component's epoch in which the descriptors in it are valid. */
    uint32_t epoch;
    uint32_t count;
    uint64_t wanted;
    const uint64_t *words;
    const void *bytes;
    size_t length;
    /* An open file that comes with it, or -1. */
    int file;
    /* Where bytes that come back go, and how many have room there: as a word of the call; a negative number is none. NULL: nowhere. */
    void *answer;
    uint64_t room;
};

struct glue_reply {
    uint64_t words[GLUE_WORDS];
    /* Bytes that came back, all within the room. */
    size_t length;
    /* An open file that came back, the caller's to close; -1: none did. */
    int file;
    /* Whether the call moved its descriptor to the operation's state. */
    int tracked;
    /* The call's place in the order of effects, over all epochs. */
    uint64_t sequence;
    uint32_t epoch;
};

/* A channel, and what is remembered of descriptors there. */
struct glue_client;
/* A descriptor that is tracked; `glue_put`. */
struct glue_descriptor;

/* `fields` words are remembered of each descriptor. The channel stays the caller's. */
struct glue_client *glue_client_new(const struct glue_channel *channel, size_t fields);
/* All of its descriptors must have been put, and no thread may be in a call. What is open at the component stays open there. */
void glue_client_end(struct glue_client *client);
/* How many descriptors are tracked. */
size_t glue_client_count(const struct glue_client *client);
/* U0: has `recover` called, in a thread of its own, for each descriptor that the component needs; it returns 1 if it could. Once. */
void glue_listen(struct glue_client *client, int (*recover)(struct glue_client *client, uint64_t id));

/* The fault counter: how often the component was started. */
uint32_t glue_epoch(const struct glue_client *client);
/* 0: `reply` is there. `reply` is changed in any case. */
int glue_call(struct glue_client *client, const struct glue_request *request, struct glue_reply *reply);

/* Deaths that one call has seen; begins as { 0 }. */
struct glue_restorer {
    uint32_t torn;
};

/* 0 if a call that ended with this error is to be made again; else the error that the caller gets. */
int glue_again(struct glue_restorer *restorer, int error);

/* One that is open here, or NULL; `glue_get`: also one that is closed, but remembered for its children's sake. */
struct glue_descriptor *glue_open(const struct glue_client *client, uint64_t id);
struct glue_descriptor *glue_get(const struct glue_client *client, uint64_t id);
/* NULL is none. */
void glue_put(struct glue_descriptor *descriptor);
uint64_t glue_id(const struct glue_descriptor *descriptor);
/* The component's id for it, valid or not. */
uint64_t glue_server(const struct glue_descriptor *descriptor);
/* T1's fast path: 1, and the component's id for it, if it is valid in this epoch. */
int glue_valid(const struct glue_descriptor *descriptor, uint32_t epoch, uint64_t *server);

/* What is remembered of a descriptor that is to be recovered. */
struct glue_lost {
    uint64_t id;
    /* The client's id of its parent; 0: none. */
    uint64_t parent;
    /* The component's epoch in which it is to be recovered. */
    uint32_t epoch;
    /* The operations that created it and that brought it to its state. */
    uint32_t creator, state;
    /* A file that came back when it was created, and is remembered; or -1. Stays the runtime's. */
    int file;
    const uint64_t *fields;
    const void *bytes;
    size_t length;
    /* NULL, or the epoch in which the component wants it. */
    const uint32_t *asked;
};

typedef int glue_attempt(struct glue_client *client, const struct glue_lost *lost, uint64_t *server);

/* Has `attempt` bring it back in the component's epoch, again while the component dies over it. One thread does; others that need
 * the descriptor wait for it. 0: valid in that epoch, under that id of the component's. */
int glue_recover(struct glue_client *client, const struct glue_descriptor *descriptor, const uint32_t *asked,
                 glue_attempt *attempt, uint32_t *epoch, uint64_t *server);

/* A new descriptor. `id`: NULL, or the id that it has everywhere (global). `file` stays the caller's. Returns its id here. */
struct glue_new {
    const uint64_t *id;
    uint64_t server, parent;
    uint32_t creator;
    int file;
    const uint64_t *fields;
    const void *bytes;
    size_t length;
};
uint64_t glue_insert(struct glue_client *client, const struct glue_new *created, const struct glue_reply *reply);

/* A field that a call changed: it is now that, or (`add`) has grown by it. */
struct glue_note {
    uint32_t field;
    int add;
    uint64_t value;
};

/* Takes note of what a call did. 0: the descriptor was recovered without it, so it never happened, and is to be made again. */
int glue_track(const struct glue_descriptor *descriptor, const struct glue_reply *reply, uint32_t operation,
               const struct glue_note *notes, size_t count);
/* The same for calls whose results add up, one at a time, or (`happened`, G1) that changed a resource, which outlives the server. */
int glue_track_sum(const struct glue_descriptor *descriptor, const struct glue_reply *reply, uint32_t operation,
                   int happened, const struct glue_note *notes, size_t count);
/* Calls whose results add up: others wait until `glue_serial_end`, by the same thread. */
struct glue_turn;
struct glue_turn *glue_serial(const struct glue_descriptor *descriptor);
void glue_serial_end(struct glue_turn *turn);

/* Those directly below, until `visit` returns something else than 0, which this then returns. */
int glue_each_child(struct glue_client *client, const struct glue_descriptor *descriptor,
                    int (*visit)(struct glue_client *client, const struct glue_descriptor *child));
/* Forgets one that is closed; with `subtree` those below as well; with `keep` not before its children are gone. */
void glue_forget(struct glue_client *client, uint64_t id, int subtree, int keep);

/* ---- A component's stub, and its service. The service runs one call at a time, in any thread. ---- */

/* A call as the service sees it, until it returns. */
struct glue_call;

/* As far as a malformed request is known by it: words that come with the call, and whether bytes or an open file may. */
struct glue_operation {
    const char *name;
    uint32_t words;
    int bytes, file;
    /* One more than the place of the word with the descriptor that it closes; 0: it closes none. */
    uint32_t closes;
};

/* Moments of a call at which a failure is not the same. */
enum glue_point { GLUE_BEGUN, GLUE_DONE, GLUE_COMMITTED, GLUE_PUBLISHED };

/* A service with its stub; glue writes it. */
struct glue_service {
    const struct glue_operation *operations;
    size_t count;
    /* Descriptors keep their ids through micro-reboots, and every client may use them. */
    int global;
    int (*dispatch)(struct glue_call *call);
    /* NULL, or called at each point of each call, for a service that is to fail there. */
    void (*reached)(enum glue_point point, uint32_t operation);
    /* NULL, or called once in each new process before it serves, when it may have threads: here a service opens its channels to
     * other components. It returns 0, or an error: then the process ends, and in the end the component is given up. */
    int (*born)(void);
};

/* A component's main function, to be called when its memory is as each instance is to begin, and while it has one thread. Serves for
 * ever; returns an error if it was not started by a manager. `service` must stay. */
int glue_run(const struct glue_service *service);

/* What a service returns instead of a result: an errno; or what these return, at once. */
/* The thread waits until the descriptor that the call is about is woken, then the call is made again. */
int glue_wait(struct glue_call *call);
/* Or until that time, in nanoseconds of CLOCK_MONOTONIC. */
int glue_wait_until(struct glue_call *call, uint64_t time);
/* The request is malformed, or about what is not the client's: GLUE_REFUSED to the client. */
int glue_refuse(struct glue_call *call, int number);
/* That client has nothing of the descriptor any more: 0. Otherwise it is asked to let go, and the call is made again. */
int glue_release(struct glue_call *call, uint32_t client, uint64_t id);

/* Which client calls: told by the channel, from 0. */
uint32_t glue_client_of(const struct glue_call *call);
/* Bytes of a shared buffer that came with the call, by its number: 0, or what is to be returned at once. */
int glue_lent_read(struct glue_call *call, uint32_t number, size_t at, void *to, size_t count);
int glue_lent_write(struct glue_call *call, uint32_t number, size_t at, const void *from, size_t count);
/* Threads that wait for the descriptor try again, if the call is done. */
void glue_wake(struct glue_call *call, uint64_t id);

/* For the stub. */
uint32_t glue_operation_of(const struct glue_call *call);
const uint64_t *glue_words(const struct glue_call *call);
const void *glue_bytes(const struct glue_call *call, size_t *length);
/* An open file that came with the call, or -1; stays the runtime's. */
int glue_file(const struct glue_call *call);
int glue_recreates(const struct glue_call *call);
/* 0, or what is to be returned at once: the descriptor is this client's to use; `glue_known`, without G0. */
int glue_capability(struct glue_call *call, uint64_t id);
int glue_known(struct glue_call *call, uint64_t id);
/* D0: all that is below is known. */
int glue_subtree(struct glue_call *call, uint64_t id);
/* An id for a new global descriptor, or the one that it had. */
int glue_global_id(struct glue_call *call, uint64_t *id);
/* 1, and the descriptor's state in this instance. */
int glue_state(const struct glue_call *call, uint64_t id, uint32_t *state);
/* The state on record of one that is being created again. */
uint32_t glue_recorded(const struct glue_call *call, uint64_t id);
void glue_answer(struct glue_call *call, uint32_t at, uint64_t word);
void glue_answer_bytes(struct glue_call *call, const void *bytes, size_t length);
/* Takes the file. */
void glue_answer_file(struct glue_call *call, int file);
void glue_created(struct glue_call *call, uint64_t id, uint32_t state, uint64_t parent);
void glue_moved(struct glue_call *call, uint64_t id);
void glue_closed(struct glue_call *call, uint64_t id, int subtree);
/* G1: what this call leaves in resources is kept outside this process. */
void glue_keep(struct glue_call *call);

/* Resources (G1): data that outlives instances, under a key and a name of at most 360 bytes; at most 32 MiB each. What a call changes
 * is kept if it is done, and otherwise has not been. All return 0 or an errno: ESTALE, EEXIST, EIO (damaged), ENOSPC, EFBIG,
 * ENAMETOOLONG, E2BIG (more than 8 changed in a call). */
/* A key that no resource has had. */
uint64_t glue_resource_key(struct glue_call *call);
int glue_resource_create(struct glue_call *call, uint64_t key, const void *name, size_t length);
int glue_resource_rename(struct glue_call *call, uint64_t key, const void *name, size_t length);
int glue_resource_remove(struct glue_call *call, uint64_t key);
int glue_resource_length(struct glue_call *call, uint64_t key, uint64_t *length);
/* At most `most` bytes from `at` on; `got` is how many there were. */
int glue_resource_read(struct glue_call *call, uint64_t key, uint64_t at, void *to, size_t most, size_t *got);
int glue_resource_write(struct glue_call *call, uint64_t key, uint64_t at, const void *from, size_t count);
int glue_resource_truncate(struct glue_call *call, uint64_t key, uint64_t length);
/* Key and name of each, in no order, until `visit` returns something else than 0, which this then returns. `visit` must not use
 * the call. */
int glue_resource_each(struct glue_call *call,
                       int (*visit)(void *argument, uint64_t key, const void *name, size_t length), void *argument);

#ifdef __cplusplus
}
#endif

#endif
