"""Holds as many MiB as told, changes bytes all over them, and prints checksums of what it holds."""
import sys
import zlib

size = int(sys.argv[1])
blocks = [bytearray(bytes([i % 251]) * (1 << 20)) for i in range(size)]
random = 12345
print("filled", flush=True)
for step in range(int(sys.argv[2])):
    for _ in range(50):
        random = (random * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        block = blocks[(random >> 20) % size]
        place = (random >> 33) % len(block)
        block[place] = (block[place] + step + 1) % 256
    chosen = range(step % 50, size, 50)
    print(step, [zlib.crc32(blocks[i]) for i in chosen][:3], flush=True)
print("all", zlib.crc32(b"".join(zlib.crc32(b).to_bytes(4, "big") for b in blocks)))
