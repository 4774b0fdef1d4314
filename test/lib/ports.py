"""Ports of a test's own. Each belongs to a socket that is bound, does not listen, and stays open until pytest ends: the
kernel gives the port to nobody else, and whoever connects is refused for as long as nobody listens there."""

import socket

_held = []


def _hold(host, shared):
    held = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, shared)
    held.bind((host, 0))
    _held.append(held)
    return held.getsockname()[1]


def closed_port(host="127.0.0.1"):
    """Where nobody can listen."""
    return _hold(host, False)


def reserved_port(host="127.0.0.1"):
    """For a program that must be told where to listen. It sets SO_REUSEADDR, as servers do: so may both have the port."""
    return _hold(host, True)
