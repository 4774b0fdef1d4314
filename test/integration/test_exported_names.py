"""The exporter calls its own libraries, whatever names the program exports: a call of the program's functions would
end the program."""

import subprocess

import pytest

from http_server import OK, HttpServer
from profiled import BUILD
from test_protocols import make_certificates

pytestmark = pytest.mark.system

SETTINGS = {"OTEL_PROFILE_EXPORT_INTERVAL": "100", "OTEL_PROFILER_MIN_LIFETIME": "0", "OTEL_LOG_LEVEL": "warn"}
PROGRAM = BUILD / "test/programs/exports_library_names"


@pytest.fixture
def receiver(tmp_path):
    make_certificates(tmp_path)
    server = HttpServer(*[OK] * 200, tls=(tmp_path / "server.pem", tmp_path / "server.key"))
    yield server
    server.stop()


@pytest.fixture
def settings(receiver, tmp_path):
    return {**SETTINGS, "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url, "OTEL_EXPORTER_OTLP_CERTIFICATE": str(tmp_path / "ca.pem")}



@pytest.mark.parametrize("more", [{}, {"OTEL_EXPORTER_OTLP_COMPRESSION": "zstd"}, {"OTEL_PROFILER_TYPES": "all"}],
                         ids=["gzip", "zstd", "every type"])
def test_a_program_that_exports_the_libraries_names_is_unharmed_and_profiled(run, receiver, settings, more):
    outcome = run([PROGRAM, "300"], env={**settings, **more}, log_to_stderr=True)
    assert (outcome.stdout, outcome.stderr, outcome.returncode) == ("unharmed\n", "", 0)
    assert receiver.taken()


def test_such_a_program_is_not_served(run, receiver, settings):
    """libmicrohttpd is loaded later, and its constructor calls functions of the program."""
    outcome = run([PROGRAM, "300"], env={**settings, "OTEL_PROFILER_LISTEN": "127.0.0.1:0"}, log_to_stderr=True)
    (line,) = outcome.stderr.splitlines()
    assert (outcome.stdout, outcome.returncode) == ("unharmed\n", 0)
    assert "libmicrohttpd" in line
    assert receiver.taken()


def test_a_library_that_the_program_has_bound_to_itself_is_not_used(run, receiver, settings, tmp_path):
    """The program's libcurl calls the program's OpenSSL, as intended, and on the program's own threads alone."""
    source = tmp_path / "shares.c"
    source.write_text('#include <stdlib.h>\n#include <curl/curl.h>\nint SSL_CTX_new(void) { abort(); }\n'
                      'int main(void) { for (volatile long i = 0; i < 300000000; i++); return curl_version() ? 3 : 4; }\n')
    subprocess.run(["cc", "-O1", "-rdynamic", "-o", tmp_path / "shares", source, "-lcurl"], check=True)
    outcome = run([tmp_path / "shares"], env=settings, log_to_stderr=True)
    (line,) = outcome.stderr.splitlines()
    assert outcome.returncode == 3
    assert "SSL_CTX_new" in line and "nothing is profiled" in line
    assert not receiver.calls
