"""Threads of Python that hand numbers on through queues: threads.py ROUNDS."""
import queue
import sys
import threading

STAGES = 4
queues = [queue.Queue(3) for _ in range(STAGES + 1)]


def stage(source, target, factor):
    while True:
        item = source.get()
        if item is None:
            target.put(None)
            return
        target.put((item * factor + 7) % 1000003)


workers = [
    threading.Thread(target=stage, args=(queues[n], queues[n + 1], n + 3)) for n in range(STAGES)
]
for worker in workers:
    worker.start()


def feed():
    for number in range(int(sys.argv[1])):
        queues[0].put(number)
    queues[0].put(None)


threading.Thread(target=feed).start()
count = 0
while (item := queues[-1].get()) is not None:
    count += 1
    print(count, item, flush=True)
for worker in workers:
    worker.join()
print("end", count)
