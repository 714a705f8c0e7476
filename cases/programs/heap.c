/* Allocates, frees and changes random pieces of the heap; prints a checksum of all of it every few steps.
 * heap STEPS PIECES LARGEST */
#include "tell.h"

int main(int argc, char **argv)
{
    long steps = argc > 1 ? atol(argv[1]) : 5000, pieces = argc > 2 ? atol(argv[2]) : 200;
    size_t largest = argc > 3 ? atol(argv[3]) : 20000;
    unsigned char **piece = calloc(pieces, sizeof *piece);
    size_t *len = calloc(pieces, sizeof *len);
    uint64_t random = 3;
    for (long step = 0; step < steps; step++) {
        long i = next(&random) % pieces;
        switch (next(&random) % 4) {
        case 0:
            free(piece[i]);
            len[i] = 1 + next(&random) % largest;
            must((piece[i] = malloc(len[i])) != NULL, "malloc");
            memset(piece[i], next(&random), len[i]);
            break;
        case 1:
            free(piece[i]);
            piece[i] = NULL;
            len[i] = 0;
            break;
        default:
            for (int changes = 0; len[i] && changes < 20; changes++)
                piece[i][next(&random) % len[i]] += changes + 1;
        }
        if (step % 50 == 0) {
            uint64_t sum = 0xcbf29ce484222325;
            for (long j = 0; j < pieces; j++)
                sum = mix(sum, piece[j], len[j]);
            tell("%ld %016lx\n", step, sum);
        }
    }
    return 0;
}
