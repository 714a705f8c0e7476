/* A target for the injector: a value that is printed, a lock that eight threads take in turn, output by plain writes. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

volatile unsigned value = 5;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned counted;

__attribute__((noinline)) void show(void)
{
	char line[32];
	int length = snprintf(line, sizeof line, "value %u\n", value);
	if (write(STDOUT_FILENO, line, length) != length)
		_exit(7);
}

static void *count(void *unused)
{
	for (int i = 0; i < 200; i++) {
		pthread_mutex_lock(&lock);
		counted++;
		pthread_mutex_unlock(&lock);
	}
	return unused;
}

int main(int argc, char **argv)
{
	(void)argv;
	if (argc > 1) {
		pthread_t threads[8];
		for (int i = 0; i < 8; i++)
			pthread_create(&threads[i], NULL, count, NULL);
		for (int i = 0; i < 8; i++)
			pthread_join(threads[i], NULL);
		printf("counted %u\n", counted);
		return 0;
	}
	show();
	show();
	show();
	return 0;
}
