"""A central system of the package `ocpp` that prints the calls it receives, and writes JSON with spaces and line breaks.
Its port is printed first."""

import asyncio
import json

import websockets
from ocpp.routing import on
from ocpp.v16 import ChargePoint, call, call_result

NOW = "2026-01-01T00:00:00Z"


class Station(ChargePoint):
    @on("BootNotification")
    def boot(self, **_):
        print("boot", flush=True)
        return call_result.BootNotification(current_time=NOW, interval=10, status="Accepted")

    @on("Heartbeat")
    def beat(self):
        print("beat", flush=True)
        return call_result.Heartbeat(current_time=NOW)


class Spaced:
    def __init__(self, socket):
        self.socket = socket
        self.recv = socket.recv

    async def send(self, text):
        await self.socket.send(json.dumps(json.loads(text), indent=2))


async def serve(socket):
    station = Station("station", Spaced(socket))

    async def clear():
        reply = await station.call(call.ClearCache())
        print(f"cleared {reply.status}", flush=True)

    task = asyncio.ensure_future(clear())
    try:
        await station.start()
    except websockets.ConnectionClosed:
        task.cancel()


async def main():
    async with websockets.serve(serve, "127.0.0.1", 0, subprotocols=["ocpp1.6"]) as server:
        print(f"listening {server.sockets[0].getsockname()[1]}", flush=True)
        await asyncio.Future()


asyncio.run(main())
