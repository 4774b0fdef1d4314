"""Works and allocates for so many seconds, then prints how many KiB a core dump of it would have: the kernel's
default contents (core(5), coredump_filter; fs/coredump.c, vma_dump_size).

usage: dumped.py SECONDS
"""

import re
import sys
import time

end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    kept = [bytes(1000) for _ in range(1000)]

total = 0
with open("/proc/self/smaps") as smaps:
    for mapping in re.split(r"(?m)^(?=[0-9a-f]+-[0-9a-f]+ )", smaps.read()):
        head = mapping.partition("\n")[0].split()
        if not head or head[1].startswith("---") or re.search(r"(?m)^VmFlags:.* (dd|io)\b", mapping):
            continue
        of_file = len(head) > 5 and head[5].startswith("/")
        written = int(re.search(r"(?m)^Anonymous: +(\d+)", mapping)[1])
        if not of_file or written:
            total += int(re.search(r"(?m)^Size: +(\d+)", mapping)[1])
print(total)
