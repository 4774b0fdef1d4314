"""Distinguishes a web page of another site in the user's browser from other clients: each server that this command starts
refuses it.

Such a page reaches every port of this machine. A browser sends the page's site in Origin and in Sec-Fetch-Site. It sends
neither for a page whose own name was rebound to this machine's address (DNS rebinding), as that is the page's own site: then
Host has the name.
"""

import ipaddress

OWN_SITES = (None, "none", "same-origin")  # values of Sec-Fetch-Site, which older browsers do not send


def host_of(headers):
    """Returns the one Host of a request; "": it has none, or several."""
    hosts = headers.get_all("Host", [])
    return hosts[0] if len(hosts) == 1 else ""


def has_own_origin(headers):
    """Returns whether the request has no Origin other than its Host's. A navigation has none."""
    return all(origin == f"http://{host_of(headers)}" for origin in headers.get_all("Origin", []))


def is_of_own_site(headers):
    return all(site in OWN_SITES for site in headers.get_all("Sec-Fetch-Site", [None]))


def is_bound_to_no_name(host):
    """Returns whether a Host, with or without a port, is `localhost` or an address: no site can rebind these."""
    name, colon, port = host.rpartition(":")
    if colon and (port == "" or port.isascii() and port.isdigit()):
        host = name
    if host.lower() == "localhost":
        return True
    try:
        ipaddress.ip_address(host[1:-1] if host.startswith("[") and host.endswith("]") else host)
    except ValueError:
        return False
    return True


def is_loopback_address(address):
    """Returns whether only this machine reaches a server at that address, which may have a scope (`fe80::1%eth0`)."""
    found = ipaddress.ip_address(address.partition("%")[0])
    return (getattr(found, "ipv4_mapped", None) or found).is_loopback
