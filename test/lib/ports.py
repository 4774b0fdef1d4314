"""Gives a test ports of its own. Each belongs to a socket that is bound, does not listen, and stays open until pytest
ends: the kernel gives the port to no other process, and refuses a client for as long as no process listens there."""

import socket

_held = []


def _hold(host, shared):
    held = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, shared)
    held.bind((host, 0))
    _held.append(held)
    return held.getsockname()[1]


def closed_port(host="127.0.0.1"):
    """Returns a port where no process can listen."""
    return _hold(host, False)


def reserved_port(host="127.0.0.1"):
    """Returns a port for a program whose port must be set. The program sets SO_REUSEADDR, as servers do: so both may
    have it."""
    return _hold(host, True)
