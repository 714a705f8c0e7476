# Counts, sorts and hashes as a script does that somebody uses; says how far it is.
import collections
import hashlib
import json

counts = collections.Counter()
state = 12345
for chapter in range(12):
    words = []
    for _ in range(2500):
        state = (state * 1103515245 + 12345) & 0x7FFFFFFF
        words.append("".join(chr(97 + (state >> shift) % 26) for shift in (3, 11, 19)))
    counts.update(words)
    text = json.dumps(sorted(counts.items()))
    print(chapter, len(counts), hashlib.sha256(text.encode()).hexdigest(), flush=True)
with open("counts.json", "w") as file:
    json.dump(counts.most_common(200), file)
