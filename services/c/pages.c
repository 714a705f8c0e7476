/* Three clients of the memory manager: `pages ROUNDS`. One gets a page, which is aliased from each to the next; what the one writes the
 * others read, until the page is revoked with all aliases. */
#include "memory_client.h"

#include "must.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { READ = 1, WRITE = 2, PAGE = 4096, HANDS = 3 };

static struct memory_client clients[HANDS];
static struct glue_channel *channels[HANDS];

static struct glue_mapped *map(int hand, unsigned long page)
{
    unsigned int count, rights;
    struct glue_mapped *mapped;
    int memory, error;

    must("map", call_mem_map(&clients[hand], page, &count, &rights, &memory, NULL));
    mapped = glue_channel_map(channels[hand], page, memory, count * PAGE, (rights & WRITE) != 0, &error);
    must("map", error);
    close(memory);
    return mapped;
}

static void expect(const char *what, int seen, int expected)
{
    if (seen != expected) {
        fprintf(stderr, "%s: %d, not %d\n", what, seen, expected);
        exit(1);
    }
}

static void one(unsigned int round)
{
    static const char *const names[HANDS] = { "first", "second", "third" };
    struct glue_mapped *mapped[HANDS];
    unsigned long pages[HANDS];
    unsigned int who, seen;

    must("get", call_mem_get(&clients[0], 2, NULL, &pages[0]));
    for (int hand = 1; hand < HANDS; hand++) {
        const unsigned int rights = hand == 1 ? READ | WRITE : READ;

        must("who", call_mem_who(&clients[hand], &who));
        must("alias", call_mem_alias(&clients[hand - 1], pages[hand - 1], who, rights, &pages[hand]));
    }
    for (int hand = 0; hand < HANDS; hand++) {
        mapped[hand] = map(hand, pages[hand]);
    }
    expect("write", glue_mapped_write(mapped[1], 2 * PAGE - sizeof round, &round, sizeof round), 0);
    expect("write what is to be read", glue_mapped_write(mapped[2], 0, &round, sizeof round), EACCES);
    expect("write outside", glue_mapped_write(mapped[0], 2 * PAGE - 1, &round, sizeof round), ERANGE);
    for (int hand = 0; hand < HANDS; hand++) {
        expect(names[hand], glue_mapped_read(mapped[hand], 2 * PAGE - sizeof round, &seen, sizeof seen), 0);
        expect(names[hand], (int)seen, (int)round);
    }
    must("revoke", call_mem_revoke(&clients[0], pages[0], NULL));
    for (int hand = 0; hand < HANDS; hand++) {
        expect(names[hand], glue_mapped_read(mapped[hand], 0, &seen, sizeof seen), ESTALE);
        expect(names[hand], call_mem_map(&clients[hand], pages[hand], NULL, NULL, NULL, NULL), GLUE_REFUSED(EBADF));
        glue_mapped_end(mapped[hand]);
    }
    /* What another client closed is remembered by its maker until that uses it. */
    for (int hand = 1; hand < HANDS; hand++) {
        expect("gone", call_mem_revoke(&clients[hand - 1], pages[hand], NULL), GLUE_REFUSED(EBADF));
    }
}

int main(int count, char *arguments[])
{
    const unsigned int rounds = count > 1 ? (unsigned int)atoi(arguments[1]) : 1;
    const char *const names[HANDS] = { "first", "second", "third" };

    for (int hand = 0; hand < HANDS; hand++) {
        channels[hand] = granted(names[hand]);
        memory_client_open(&clients[hand], channels[hand]);
    }
    for (unsigned int round = 1; round <= rounds; round++) {
        one(round);
    }
    for (int hand = 0; hand < HANDS; hand++) {
        expect("tracked", (int)memory_client_count(&clients[hand]), 0);
        memory_client_close(&clients[hand]);
        glue_channel_close(channels[hand]);
    }
    printf("%u\n", rounds);
    return 0;
}
