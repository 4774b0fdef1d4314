import json
import threading


def kept_by_a_thread(into):
    for i in range(300):
        into.append(bytearray(100_000 + i))
        json.loads(json.dumps({str(k): [k] * 10 for k in range(300)}))


kept = []
threads = [threading.Thread(target=kept_by_a_thread, args=(kept,)) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(open("gate").read().strip(), len(kept), sum(map(len, kept)))
raise SystemExit(3)
