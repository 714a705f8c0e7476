// Relaxes a grid with several threads and says how far it is; sums are of integers, so that their order does not matter.
#include <cstdint>
#include <cstdio>
#include <vector>

int main()
{
	const int side = 256;
	std::vector<uint32_t> now(side * side), next(side * side);
	for (int i = 0; i < side * side; i++)
		now[i] = i * 2654435761u;
	for (int round = 0; round < 240; round++) {
		uint64_t sum = 0;
#pragma omp parallel for reduction(+ : sum) schedule(static)
		for (int y = 0; y < side; y++)
			for (int x = 0; x < side; x++) {
				const uint32_t *row = &now[y * side];
				uint32_t left = row[(x + side - 1) % side], right = row[(x + 1) % side];
				uint32_t up = now[(y + side - 1) % side * side + x], down = now[(y + 1) % side * side + x];
				next[y * side + x] = left / 4 + right / 4 + up / 4 + down / 4 + (row[x] ^ round);
				sum += next[y * side + x];
			}
		now.swap(next);
		if (round % 20 == 19) {
			std::printf("%d %llu\n", round, (unsigned long long)sum);
			std::fflush(stdout);
		}
	}
	return 0;
}
