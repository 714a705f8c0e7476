"""Ordinary Python: containers, generators, exceptions, text and files; prints after every step."""
import json
import re
import sys
import zlib

words = {}
history = []


def fibonacci():
    a, b = 0, 1
    while True:
        yield a
        a, b = b, a + b


numbers = fibonacci()
with open("report.txt", "w") as report:
    for step in range(int(sys.argv[1])):
        number = next(numbers)
        word = re.sub("[0-9]", lambda m: chr(ord("a") + int(m.group())), str(number))
        words[word] = words.get(word, 0) + step
        history.append((step, len(word)))
        try:
            if step % 7 == 3:
                raise KeyError(word)
            history[step * 2 if step % 5 == 4 else 0]
        except (KeyError, IndexError) as error:
            words[type(error).__name__] = words.get(type(error).__name__, 0) + 1
        state = json.dumps([sorted(words.items())[-50:], history[-50:]])
        report.write(f"{step}: {word}\n")
        if step % 10 == 0:
            report.flush()
        print(step, len(words), zlib.crc32(state.encode()), flush=True)
