/* Memory by the page, as memfds: the service of src/memory.rs in C. */
#define _GNU_SOURCE
#include "memory_server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "faulty.h"

enum { READ = 1, WRITE = 2, PAGE = 4096, CLIENTS = 16, LARGEST = 16384, ALL = 65536, PAGES = 1024 };

static const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

static struct page {
    /* 0: none. */
    unsigned long id;
    /* The page that this is an alias of; 0: none. */
    unsigned long of;
    /* In whose hands it is, and who may revoke it beside. */
    uint32_t holder, maker;
    unsigned int rights, count;
    int memory;
} pages[PAGES];

static struct page *find(unsigned long id)
{
    for (size_t at = 0; at < PAGES; at++) {
        if (pages[at].id == id) {
            return &pages[at];
        }
    }
    return NULL;
}

/* Whether the page is `top` or an alias of it, of whatever depth. */
static int within(const struct page *page, unsigned long top)
{
    while (page != NULL && page->id != top) {
        page = page->of == 0 ? NULL : find(page->of);
    }
    return page != NULL;
}

static int create(unsigned int count)
{
    int memory = memfd_create("component-pages", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    /* Who has it to read does not get it to write by opening it again. */
    if (memory >= 0 && (ftruncate(memory, (off_t)count * PAGE) != 0 || fcntl(memory, F_ADD_SEALS, seals) != 0 ||
                        fchmod(memory, 0400) != 0)) {
        close(memory);
        memory = -1;
    }
    return memory;
}

/* What a client gives back is such memory, as far as it can harm others. */
static int sound(int memory, unsigned int count)
{
    struct stat status;

    return fcntl(memory, F_GET_SEALS) == seals && fstat(memory, &status) == 0 && status.st_size == (off_t)count * PAGE;
}

static int keep(int memory)
{
    return fcntl(memory, F_DUPFD_CLOEXEC, 0);
}

static int read_only(int memory)
{
    char path[40];

    snprintf(path, sizeof path, "/proc/self/fd/%d", memory);
    return open(path, O_RDONLY | O_CLOEXEC);
}

int serve_mem_get(struct glue_call *call, unsigned int count, int *memory, int remembered_memory, uint64_t wanted,
                  unsigned long *page)
{
    struct page *free = find(0);
    unsigned int used = 0;
    int own;

    for (size_t at = 0; at < PAGES; at++) {
        used += pages[at].id != 0 && pages[at].of == 0 ? pages[at].count : 0;
    }
    if (count == 0 || count > LARGEST || (remembered_memory >= 0 && !sound(remembered_memory, count))) {
        return EINVAL;
    }
    if (free == NULL || used + count > ALL) {
        return ENOMEM;
    }
    own = remembered_memory >= 0 ? keep(remembered_memory) : create(count);
    *memory = own < 0 ? -1 : keep(own);
    if (*memory < 0) {
        if (own >= 0) {
            close(own);
        }
        return ENOMEM;
    }
    *free = (struct page){ wanted, 0, glue_client_of(call), glue_client_of(call), READ | WRITE, count, own };
    *page = wanted;
    return 0;
}

int serve_mem_alias(struct glue_call *call, unsigned long of, unsigned int to, unsigned int rights, int remembered_memory,
                    uint64_t wanted, unsigned long *page)
{
    const struct page *above = find(of);
    struct page *free = find(0);
    int own;

    (void)remembered_memory;
    if (above == NULL || of == 0) {
        return EBADF;
    }
    if (above->holder != glue_client_of(call)) {
        return glue_refuse(call, EPERM);
    }
    if (to >= CLIENTS || rights == 0 || (rights & ~above->rights) != 0) {
        return EINVAL;
    }
    own = free == NULL ? -1 : keep(above->memory);
    if (own < 0) {
        return ENOMEM;
    }
    *free = (struct page){ wanted, of, to, glue_client_of(call), rights, above->count, own };
    *page = wanted;
    return 0;
}

int serve_mem_map(struct glue_call *call, unsigned long page, unsigned int *count, unsigned int *may, int *memory,
                  int *result)
{
    const struct page *found = find(page);

    (void)result;
    if (found == NULL || page == 0) {
        return EBADF;
    }
    if (found->holder != glue_client_of(call)) {
        return glue_refuse(call, EPERM);
    }
    *memory = found->rights & WRITE ? keep(found->memory) : read_only(found->memory);
    *count = found->count;
    *may = found->rights;
    return *memory < 0 ? EMFILE : 0;
}

int serve_memory_held(struct glue_call *call, uint64_t descriptor)
{
    const struct page *top = find(descriptor);

    if (top == NULL || descriptor == 0) {
        return EBADF;
    }
    if (glue_client_of(call) != top->holder && glue_client_of(call) != top->maker) {
        return glue_refuse(call, EPERM);
    }
    for (size_t at = 0; at < PAGES; at++) {
        if (pages[at].id != 0 && within(&pages[at], descriptor)) {
            int stop = glue_release(call, pages[at].holder, pages[at].id);

            if (stop != 0) {
                return stop;
            }
        }
    }
    return 0;
}

int serve_mem_revoke(struct glue_call *call, unsigned long page, int *result)
{
    int closed[PAGES];

    (void)call;
    (void)result;
    /* All are found before the first is gone, by which others are. */
    for (size_t at = 0; at < PAGES; at++) {
        closed[at] = pages[at].id != 0 && within(&pages[at], page);
    }
    for (size_t at = 0; at < PAGES; at++) {
        if (closed[at]) {
            close(pages[at].memory);
            pages[at].id = 0;
        }
    }
    return 0;
}

int serve_mem_who(struct glue_call *call, unsigned int *result)
{
    *result = glue_client_of(call);
    return 0;
}

int main(int count, char *arguments[])
{
    return serve("memory", &memory_service, count, arguments);
}
