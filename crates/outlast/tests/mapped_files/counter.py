"""Counts lines in a file that it maps, and in its own memory: the two are always the same. Between a count and the line that tells of
it passes a while in which it calls nobody."""
import mmap
import sys

own = 0
with open(sys.argv[1], "r+b") as file:
    counts = mmap.mmap(file.fileno(), 0)
for line in sys.stdin:
    for page in range(0, len(counts), 4096):
        shared = int.from_bytes(counts[page:page + 8], "little")
        assert shared == own, f"{shared} in the file at {page}, {own} in memory"
        counts[page:page + 8] = (own + 1).to_bytes(8, "little")
    own += 1
    for _ in range(200000):
        pass
    print(own, flush=True)
