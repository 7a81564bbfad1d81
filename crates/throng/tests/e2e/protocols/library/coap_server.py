"""An aiocoap server that prints the requests for `sensors/heat`. Its port is the argument."""

import asyncio
import sys

import aiocoap
from aiocoap import resource


class Heat(resource.Resource):
    async def render_get(self, _):
        print("get", flush=True)
        return aiocoap.Message(payload=b"21")

    async def render_put(self, request):
        print(f"put {request.payload.decode()}", flush=True)
        return aiocoap.Message(code=aiocoap.CHANGED)


async def main():
    site = resource.Site()
    site.add_resource(["sensors", "heat"], Heat())
    await aiocoap.Context.create_server_context(site, bind=("127.0.0.1", int(sys.argv[1])))
    print(f"listening {sys.argv[1]}", flush=True)
    await asyncio.Future()


asyncio.run(main())
