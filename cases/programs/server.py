"""A TCP server of asyncio: to each line "N" it answers "N TOTAL", TOTAL being the sum of that connection's numbers, some of
them after a timer or a thread. "quit" ends it. server.py PORT"""
import asyncio
import sys

answered = 0


async def serve(reader, writer, done):
    global answered
    total = 0
    while line := await reader.readline():
        if line == b"quit\n":
            done.set_result(None)
            break
        number = int(line)
        total += number
        if number % 40 == 0:
            await asyncio.sleep(0.001)
        if number % 100 == 1:
            await asyncio.to_thread(sorted, range(number % 1000))
        answered += 1
        writer.write(b"%d %d\n" % (number, total))
        await writer.drain()
    writer.close()


async def main(port):
    done = asyncio.get_running_loop().create_future()
    server = await asyncio.start_server(lambda r, w: serve(r, w, done), "127.0.0.1", port)
    async with server:
        await done
    print("answered", answered, "lines")


asyncio.run(main(int(sys.argv[1])))
