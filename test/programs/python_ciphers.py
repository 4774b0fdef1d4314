"""Encrypts by OpenSSL's assembler, whose stacks the profiler's walker cannot follow."""

import ctypes
import sys
import time

crypto = ctypes.CDLL("libcrypto.so.3")
crypto.EVP_CIPHER_fetch.restype = crypto.EVP_CIPHER_CTX_new.restype = ctypes.c_void_p
data = bytes(200_000)
room = ctypes.create_string_buffer(len(data) + 64)
CIPHERS = b"AES-256-GCM", b"AES-256-CBC", b"AES-256-CTR", b"ChaCha20-Poly1305"


def encrypts(context, seconds):
    size = ctypes.c_int()
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        for _ in range(10):
            crypto.EVP_EncryptUpdate(context, room, ctypes.byref(size), data, len(data))


def main(seconds):
    for name in CIPHERS:
        context = ctypes.c_void_p(crypto.EVP_CIPHER_CTX_new())
        cipher = ctypes.c_void_p(crypto.EVP_CIPHER_fetch(None, name, None))
        crypto.EVP_EncryptInit_ex(context, cipher, None, bytes(32), bytes(16))
        encrypts(context, seconds / len(CIPHERS))


main(float(sys.argv[1]))
