/* A target for the injector, of which is known what each fault does: areas WHAT
 * told: prints a number that it has in a register; data, heap, stack: prints a sum over four million bytes there, or over a frame; text: prints
 * what twelve thousand additions make, between and around which it is struck; file: reads what it has opened; hungry: keeps 48 MiB and prints its sum;
 * sections N: is in a section that has a name N times for five milliseconds, and is struck in the last one */
#include <fcntl.h>
#include <outlast_sections.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SIZE (4 << 20)

static unsigned char data[SIZE] = {1};

/* The injector strikes where this is entered. */
__attribute__((noinline, noclone)) void strike(void)
{
	__asm__ volatile("" ::: "memory");
}

__attribute__((noinline, noclone)) void tell(unsigned long number)
{
	printf("%lu\n", number);
	fflush(stdout);
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

static unsigned long sum(const volatile unsigned char *from, size_t size)
{
	unsigned long all = 0;
	for (size_t i = 0; i < size; i++)
		all = all * 31 + from[i];
	return all;
}

/* What is executed lies on both sides of where the thread is when it is struck. */
unsigned add(unsigned number);
void between(void);
unsigned add_more(unsigned number);
__asm__(".text\n.globl add, between, add_more\n.type add, @function\n.type between, @function\n.type add_more, @function\n"
	"add: movl %edi, %eax\n.rept 3000\naddl $5, %eax\n.endr\nret\n.size add, .-add\n"
	"between: ret\n.size between, .-between\n"
	"add_more: movl %edi, %eax\n.rept 3000\naddl $5, %eax\n.endr\nret\n.size add_more, .-add_more\n");

__attribute__((noinline)) static unsigned long on_stack(void)
{
	volatile unsigned char frame[64 << 10];
	memset((void *)frame, 7, sizeof frame);
	strike();
	return sum(frame, sizeof frame);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	if (!strcmp(what, "told")) {
		for (unsigned long n = 1; n < 4; n++)
			tell(n);
	} else if (!strcmp(what, "data")) {
		memset(data, 7, SIZE);
		strike();
		tell(sum(data, SIZE));
	} else if (!strcmp(what, "heap")) {
		unsigned char *heap = malloc(SIZE);
		memset(heap, 7, SIZE);
		strike();
		tell(sum(heap, SIZE));
	} else if (!strcmp(what, "stack")) {
		tell(on_stack());
	} else if (!strcmp(what, "text")) {
		unsigned number = 0;
		for (int i = 0; i < 2; i++) {
			number = add(number);
			between();
			number = add_more(number);
		}
		tell(number);
	} else if (!strcmp(what, "file")) {
		char line[16] = "";
		int fds[3];
		for (int fd = 3; fd < 1024; fd++)
			close(fd);
		for (int i = 0; i < 3; i++)
			fds[i] = open(argv[2], O_RDONLY);
		for (int i = 0; i < 3; i++)
			if (dup2(fds[i], i == 0 ? 0 : i + 6) < 0)
				return 8;
		strike();
		for (int i = 0; i < 3; i++)
			if (pread(i == 0 ? 0 : i + 6, line, 4, 0) != 4 || pread(fds[i], line, 4, 0) != 4)
				return 9;
		if (write(STDOUT_FILENO, line, 4) != 4)
			return 10;
	} else if (!strcmp(what, "hungry")) {
		unsigned long all = 0;
		for (int i = 0; i < 192; i++) {
			unsigned char *more = malloc(SIZE / 16);
			memset(more, i, SIZE / 16);
			for (int n = 0; n < 4; n++)
				all += sum(more, SIZE / 16);
		}
		tell(all);
	} else if (!strcmp(what, "sections")) {
		static const struct outlast_section section = OUTLAST_SECTION("work");
		for (int left = atoi(argv[2]); left; left--) {
			outlast_section_enter(&section);
			for (double end = now() + 5; now() < end;)
				;
			if (left == 1)
				strike();
			outlast_section_exit(&section, 0);
			usleep(15000);
		}
		tell(1);
	} else {
		return 2;
	}
	return 0;
}
