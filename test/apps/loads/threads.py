import json
import threading


def work(n, out):
    data = {"list": list(range(3000)), "text": "x" * 1000, "deep": [{"a": i} for i in range(500)]}
    for _ in range(n):
        data = json.loads(json.dumps(data))
    out.append(len(json.dumps(data)))


out = []
release = threading.Event()
threads = [threading.Thread(target=work, args=(80, out)) for _ in range(4)]
idle = threading.Thread(target=release.wait)
for t in (*threads, idle):
    t.start()
for t in threads:
    t.join()
kept = open("kept", "w")
open("gate").read()
release.set()
work(100, out)
kept.write("done")
print(out)
