/* Kernels on several threads of OpenMP, whose results are exact whatever the threads do: openmp ROUNDS. */
#include "tell.h"
#include <omp.h>

enum { N = 96, MANY = 1 << 16 };

static uint64_t a[N][N], b[N][N], c[N][N], many[MANY];

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 40;
    omp_set_num_threads(4);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            a[i][j] = i * N + j, b[i][j] = i ^ j;
    for (int round = 0; round < rounds; round++) {
        uint64_t sum = 0, passed = 0;
#pragma omp parallel for schedule(dynamic)
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++) {
                c[i][j] = round;
                for (int k = 0; k < N; k++)
                    c[i][j] += a[i][k] * b[k][j];
            }
#pragma omp parallel
        {
#pragma omp for reduction(+ : sum)
            for (int i = 0; i < MANY; i++)
                sum += many[i] = many[i] * 5 + i + c[i % N][round % N];
#pragma omp critical
            passed++;
#pragma omp barrier
#pragma omp single
            a[round % N][0] = sum;
        }
        tell("round %d sum %lx passed %lu of %d\n", round, (long)sum, (long)passed, omp_get_max_threads());
    }
    return 0;
}
