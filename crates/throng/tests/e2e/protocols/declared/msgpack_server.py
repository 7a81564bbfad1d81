"""Rooms that speak MessagePack over WebSocket, with msgpack. Its port is printed first."""

import asyncio

import msgpack
import websockets


async def room(socket):
    async for packet in socket:
        asked = msgpack.unpackb(packet)
        print(asked[0], flush=True)
        match asked:
            case [1, number, {"room": str(), "token": bytes(token)}]:
                if token == b"\x00\xfftoken":
                    await socket.send(msgpack.packb([2, number, {"code": 0, "users": [{"id": 70000}]}]))
                else:
                    await socket.send(msgpack.packb([3, number, "denied"]))
            case [4, float(level), text]:
                stamp = msgpack.Timestamp(1700000000, 5)
                await socket.send(msgpack.packb([5, text.upper(), level, stamp]))


async def main():
    async with websockets.serve(room, "127.0.0.1", 0) as server:
        print(f"listening {server.sockets[0].getsockname()[1]}", flush=True)
        await asyncio.Future()


asyncio.run(main())
