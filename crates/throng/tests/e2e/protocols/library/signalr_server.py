"""An aiosignalr hub on `websockets` that prints what it receives. Its port is printed first."""

import asyncio
from types import SimpleNamespace

import websockets
from aiosignalr.server import Hub, SignalRServer
from aiosignalr.server.http_iface import ServerSocket


class Chat(Hub):
    async def Add(self, first: int, second: int) -> int:
        print("add", flush=True)
        return first + second

    async def Fail(self):
        print("fail", flush=True)
        raise ValueError("no")

    async def Say(self, text: str):
        print("say", flush=True)
        await self.clients.caller.send("Said", text)


class Socket(ServerSocket):
    def __init__(self, socket):
        self.socket = socket

    async def recv(self):
        try:
            data = await self.socket.recv()
        except websockets.ConnectionClosed:
            return None
        return ("text", data.encode()) if isinstance(data, str) else ("binary", data)

    async def send_bytes(self, data):
        await self.socket.send(data.decode())

    async def close(self, code=1000, reason=""):
        await self.socket.close(code, reason)


async def main():
    hub = SignalRServer(Chat)
    request = SimpleNamespace(path="/hub", headers={}, method="GET", query={})

    def serve(socket):
        return hub.handle_websocket(request, Socket(socket))

    async with websockets.serve(serve, "127.0.0.1", 0) as server:
        print(f"listening {server.sockets[0].getsockname()[1]}", flush=True)
        await asyncio.Future()


asyncio.run(main())
