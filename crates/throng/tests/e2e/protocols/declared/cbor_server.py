"""Stores measurements that come in CBOR over TCP, with cbor2. Its port is printed first, then the sums."""

import socketserver

from cbor2 import CBORDecodeEOF, CBORDecoder, CBORTag, dumps


class Sensor(socketserver.BaseRequestHandler):
    def handle(self):
        decoder = CBORDecoder(self.request.makefile("rb", buffering=0))
        while True:
            try:
                asked = decoder.decode()
            except CBORDecodeEOF:
                return
            # One write, as others write at the same time.
            print(f"{asked['type']}\n", end="", flush=True)
            if asked["type"] == "report":
                name, value = asked[-2], asked["values"][1]
                assert asked["raw"] == b"\x00\xff", asked
                # In another order of keys, with a tag and another width, and in two pieces.
                at = CBORTag(1, 1700000000)
                reply = {"sum": value * 2, "seq": asked["seq"], "at": at, "type": "stored", "name": name}
                sent = dumps(reply)
                self.request.sendall(sent[:7])
                self.request.sendall(sent[7:])
                self.request.sendall(dumps({"type": "alarm", "list": [name, None, b"\x00\xff"]}))


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True


with Server(("127.0.0.1", 0), Sensor) as server:
    print(f"listening {server.server_address[1]}", flush=True)
    server.serve_forever()
