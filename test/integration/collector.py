"""Runs a real OpenTelemetry Collector, built by test/collector/build, for the tests that send to one."""

import os
import re
import socket
import subprocess
import urllib.request

import pytest

from profiled import BUILD
from waiting import eventually

OTELCOL = BUILD / "collector" / "otelcol"


def skip_without_collector():
    if not OTELCOL.exists():
        if os.environ.get("CI") == "true":
            pytest.fail("the Collector is not built: Go 1.26 or newer is missing")
        pytest.skip("Go 1.26 or newer is not on this machine: no Collector")


class Collector:
    """Runs a Collector with `config` and `more` merged into it; the configuration must serve the Collector's own metrics at
    `metrics_port`. The Collector is ready when all of `listens` are: (host, port), or the path of a Unix socket."""

    def __init__(self, folder, config, environment, metrics_port, listens, program=OTELCOL, more=()):
        self.log_path = folder / "collector.log"
        self.metrics_port = metrics_port
        self.log = open(self.log_path, "wb")
        self.process = subprocess.Popen(
            [program, *(f"--config={it}" for it in (config, *more)), "--feature-gates=+service.profilesSupport"],
            env=dict(os.environ, **environment), stdout=self.log, stderr=self.log,
        )
        for address in listens:
            self.wait_until_it_listens(address)

    def wait_until_it_listens(self, address):
        def listens():
            try:
                if isinstance(address, tuple):
                    socket.create_connection(address, 1).close()
                else:
                    with socket.socket(socket.AF_UNIX) as probe:
                        probe.connect(address)
            except OSError:
                return False
            return True

        eventually(listens, f"the Collector listens at {address}", unless=lambda: self.process.poll() is not None and self.log_path.read_text())

    def metrics(self):
        """Returns the Collector's own metrics about profiles: [(name, labels, value)]."""
        url = f"http://127.0.0.1:{self.metrics_port}/metrics"
        with urllib.request.urlopen(url) as answer:
            text = answer.read().decode()
        lines = re.findall(r"^(otelcol_\w*profile\w*)\{([^}]*)\} (\S+)$", text, re.M)
        return [(n, dict(re.findall(r'(\w+)="([^"]*)"', l)), float(v)) for n, l, v in lines]

    def counters(self):
        """Returns {name: sum over all label sets}."""
        sums = {}
        for name, _, value in self.metrics():
            sums[name] = sums.get(name, 0) + value
        return sums

    def stop(self):
        self.process.terminate()
        assert self.process.wait(30) == 0
        self.log.close()
