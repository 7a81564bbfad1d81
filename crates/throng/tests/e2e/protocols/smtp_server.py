"""An SMTP server (aiosmtpd) whose certificate and key are given: mail needs TLS and a login.
Behind each mail, and as it stops listening, it says what it has counted."""

import asyncio
import json
import signal
import ssl
import sys

from aiosmtpd.smtp import SMTP, AuthResult

counted = {"tls": 0, "logins": 0, "refused": 0, "mails": 0, "bytes": 0}


class Books:
    def handle_STARTTLS(self, server, session, envelope):
        counted["tls"] += 1
        return True

    async def handle_DATA(self, server, session, envelope):
        counted["mails"] += 1
        counted["bytes"] += len(envelope.content)
        return "250 kept"


def log_in(server, session, envelope, mechanism, login):
    is_right = login.password == b"secret"
    counted["logins" if is_right else "refused"] += 1
    return AuthResult(success=is_right, handled=False)


async def main(certificate, key):
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)

    def serve():
        return SMTP(
            Books(),
            tls_context=context,
            require_starttls=True,
            authenticator=log_in,
            auth_required=True,
        )

    loop = asyncio.get_running_loop()
    server = await loop.create_server(serve, "127.0.0.1", 0)
    done = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, done.set)
    print("port", server.sockets[0].getsockname()[1], flush=True)
    await done.wait()
    print("books", json.dumps(counted), flush=True)


asyncio.run(main(*sys.argv[1:]))
