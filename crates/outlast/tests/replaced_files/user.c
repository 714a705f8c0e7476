/* Uses a library and a file that it maps and has closed, each time that a door has opened: user LIBRARY FILE DOOR. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    void *library = dlopen(argv[1], RTLD_NOW);
    int (*answer)(void) = library ? (int (*)(void))dlsym(library, "answer") : 0;
    int fd = open(argv[2], O_RDWR);
    int *file = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (!answer || fd < 0 || file == MAP_FAILED)
        return 2;
    close(fd);
    setvbuf(stdout, 0, _IOLBF, 0);
    printf("%d %d\n", answer(), file[1024]);
    for (int door = 1; door <= 2; door++) {
        char name[4096];
        snprintf(name, sizeof name, "%s%d", argv[3], door);
        while (access(name, F_OK))
            usleep(2000);
        printf("%d %d\n", answer(), ++file[1024]);
    }
    return 0;
}
