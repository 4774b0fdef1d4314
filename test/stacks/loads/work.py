"""Has functions of Python that call each other, and the C code of the interpreter's modules."""

import json
import re
import time
import zlib


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def texts(count):
    people = [{"name": f"n{i * 7919 % count}", "at": [i, i + 1]} for i in range(count)]
    copy = json.loads(json.dumps(people))
    copy.sort(key=lambda person: person["name"])
    return re.sub("[0-9]+", "n", ",".join(person["name"] for person in copy))


def main():
    end = time.process_time() + 5
    while time.process_time() < end:
        fibonacci(18)
        zlib.compress(texts(5000).encode(), 9)


main()
print("done")
