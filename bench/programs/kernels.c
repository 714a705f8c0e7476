/* Kernels of scientific programs on the threads of OpenMP: kernels REPEATS. A product of matrices, a five-point stencil, and a
 * sparse matrix times a vector, some 40 MB; about a second of each on one processor at 10 repeats. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 384, GRID = 1024, ROWS = 1 << 17, FILLED = 12 };

static double a[N][N], b[N][N], c[N][N], old[GRID][GRID], new[GRID][GRID], x[ROWS], y[ROWS], value[ROWS][FILLED];
static int column[ROWS][FILLED];

static void multiply(void)
{
#pragma omp parallel for
    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++)
            for (int j = 0; j < N; j++)
                c[i][j] += a[i][k] * b[k][j];
}

static void relax(void)
{
    for (int turn = 0; turn < 20; turn++) {
        double(*from)[GRID] = turn % 2 ? new : old, (*to)[GRID] = turn % 2 ? old : new;
#pragma omp parallel for
        for (int i = 1; i < GRID - 1; i++)
            for (int j = 1; j < GRID - 1; j++)
                to[i][j] = 0.25 * (from[i - 1][j] + from[i + 1][j] + from[i][j - 1] + from[i][j + 1]);
    }
}

static void apply(void)
{
    for (int turn = 0; turn < 20; turn++) {
#pragma omp parallel for
        for (int i = 0; i < ROWS; i++) {
            double sum = 0;
            for (int j = 0; j < FILLED; j++)
                sum += value[i][j] * x[column[i][j]];
            y[i] = sum;
        }
#pragma omp parallel for
        for (int i = 0; i < ROWS; i++)
            x[i] = y[i] * 0.5 + 1;
    }
}

int main(int argc, char **argv)
{
    int repeats = argc > 1 ? atoi(argv[1]) : 1;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            a[i][j] = i + j, b[i][j] = i - j;
    /* Nothing becomes so small that the processor is slow with it. */
    for (int i = 0; i < GRID; i++)
        for (int j = 0; j < GRID; j++)
            old[i][j] = new[i][j] = j ? 1 : i;
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < FILLED; j++)
            column[i][j] = (i * 7919L + j * 104729L) % ROWS, value[i][j] = 1.0 / FILLED;
    for (int i = 0; i < repeats; i++) {
        multiply();
        relax();
        apply();
    }
    printf("%g %g %g\n", c[N / 2][N / 2], old[GRID / 2][GRID / 2], x[ROWS / 2]);
    return 0;
}
