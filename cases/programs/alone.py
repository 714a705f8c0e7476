"""An event loop of asyncio that talks to nobody: tasks, times, threads that wake it, a signal handler, pipes of its own. alone.py ROUNDS"""
import asyncio
import os
import signal
import sys


def tell(text):
    os.write(1, (text + "\n").encode())


async def through_pipe(rounds):
    loop = asyncio.get_running_loop()
    r, w = os.pipe()
    os.set_blocking(w, False)
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(r, "rb"))
    for n in range(rounds):
        os.write(w, b"line %d\n" % n)
        if n % 3 == 2:
            for _ in range(3):
                tell("pipe " + (await reader.readline()).decode().strip())
        await asyncio.sleep(0)
    os.close(w)
    tell("pipe rest %r" % await reader.read())


async def main(rounds):
    loop = asyncio.get_running_loop()
    signals = asyncio.Queue()
    loop.add_signal_handler(signal.SIGUSR1, lambda: signals.put_nowait("signal"))
    await through_pipe(rounds)
    for n in range(rounds):
        await asyncio.sleep(0.0005)
        # A thread of the pool, which wakes the loop through a pair of sockets.
        tell("thread %d" % await asyncio.to_thread(lambda: n * n))
        os.kill(os.getpid(), signal.SIGUSR1)
        tell(await signals.get())
        tell(" ".join(map(str, await asyncio.gather(*(asyncio.sleep(0.0002 * k, n + k) for k in range(3))))))
    try:
        await asyncio.wait_for(asyncio.Event().wait(), 0.01)
    except asyncio.TimeoutError:
        tell("time-out")


asyncio.run(main(int(sys.argv[1])))
