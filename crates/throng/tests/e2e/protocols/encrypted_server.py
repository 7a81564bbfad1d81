"""A TCP server whose bodies are encrypted with AES-GCM (cryptography): a length, a kind, a number,
a nonce, and the encrypted JSON. It answers requests that its key decrypts with a random nonce, and
others with zeros. As it stops, it says what it has counted. Its key is the argument."""

import asyncio
import json
import os
import signal
import struct
import sys

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

LOGIN, WELCOME = 1, 2
NONCE_BYTES = 12

cipher = AESGCM(bytes.fromhex(sys.argv[1]))
counted = {"logins": 0, "refused": 0, "users": []}


def answer(body):
    nonce, data = body[:NONCE_BYTES], body[NONCE_BYTES:]
    try:
        login = json.loads(cipher.decrypt(nonce, data, None))
    except InvalidTag:
        counted["refused"] += 1
        return bytes(NONCE_BYTES + 16)
    counted["logins"] += 1
    counted["users"].append(login["user"])
    nonce = os.urandom(NONCE_BYTES)
    welcome = {"user": login["user"], "padding": "x" * (counted["logins"] % 50)}
    return nonce + cipher.encrypt(nonce, json.dumps(welcome).encode(), None)


async def serve(reader, writer):
    try:
        while True:
            (length,) = struct.unpack(">I", await reader.readexactly(4))
            packet = await reader.readexactly(length)
            kind, number = struct.unpack(">BI", packet[:5])
            assert kind == LOGIN, kind
            body = struct.pack(">BI", WELCOME, number) + answer(packet[5:])
            writer.write(struct.pack(">I", len(body)) + body)
    except (asyncio.IncompleteReadError, ConnectionResetError):
        writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    done = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, done.set)
    print("port", server.sockets[0].getsockname()[1], flush=True)
    await done.wait()
    counted["users"] = len(set(counted["users"]))
    print("books", json.dumps(counted), flush=True)


asyncio.run(main())
