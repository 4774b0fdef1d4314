"""Links samples to spans in Python with asyncio: tasks take turns on one thread, and each has a span of its own."""

import asyncio
import contextvars
import ctypes
import hashlib
import types
import zlib

LIBRARY = ctypes.CDLL(None)
SPAN_SET = getattr(LIBRARY, "otelprof_span_set", None)  # None: the profiler is not preloaded
SPAN = contextvars.ContextVar("span", default=(None, None))


def current_span(trace_id, span_id):
    """The task, and what it starts from now on, works for this span."""
    SPAN.set((bytes.fromhex(trace_id), bytes.fromhex(span_id)))
    SPAN_SET and SPAN_SET(*SPAN.get())


@types.coroutine
def linked(coroutine):
    """The coroutine; the thread works for the task's span whenever the event loop resumes it."""
    resume, sent = coroutine.send, None
    while True:
        SPAN_SET and SPAN_SET(*SPAN.get())
        try:
            awaited = resume(sent)
        except StopIteration as end:
            return end.value
        finally:
            SPAN_SET and SPAN_SET(None, None)
        try:
            resume, sent = coroutine.send, (yield awaited)
        except BaseException as error:  # a cancellation, or what was awaited failed
            resume, sent = coroutine.throw, error


def linked_task(loop, coroutine, **options):
    return asyncio.Task(linked(coroutine), loop=loop, **options)


DATA = bytes(range(256)) * 4000
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


async def handle(span_id, times, work):
    current_span(TRACE, span_id)
    for _ in range(times):
        work(DATA)
        await asyncio.sleep(0)


async def main():
    asyncio.get_running_loop().set_task_factory(linked_task)
    await asyncio.gather(handle("0101010101010101", 40, lambda data: zlib.compress(data, 9)),
                         handle("0202020202020202", 800, lambda data: hashlib.sha256(data).digest()))


asyncio.run(main())
