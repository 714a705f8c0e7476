"""Reads what is to be read in one line into a file that it maps, from a socket, a pipe and a file; each page also counts in a place of
its own, as the program does in its memory. Says what has come."""
import mmap
import os
import socket
import sys

pages = memoryview(mmap.mmap(os.open(sys.argv[1], os.O_RDWR), 0))
data = os.open(sys.argv[2], os.O_RDONLY)
ours, theirs = socket.socketpair()
reads, writes = os.pipe()
own = 0
for line in sys.stdin:
    number = int(line)
    theirs.send(bytes([number]))
    os.write(writes, bytes([number]))
    for page, receive in enumerate((
        lambda to: ours.recv_into(to),
        lambda to: os.readv(reads, [to]),
        lambda to: os.preadv(data, [to], number),
    )):
        at = page * 4096
        assert pages[at + 3000] == own, (page, pages[at + 3000], own)
        pages[at + 3000] = own + 1
        assert receive(pages[at:at + 1]) == 1
        for _ in range(10000):
            pass
        pages[at + 3000] += 1
    own += 2
    print(pages[0], pages[4096], pages[8192], flush=True)
