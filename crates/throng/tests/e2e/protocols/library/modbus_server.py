"""A Modbus server of pymodbus that prints the requests it receives. Its port is the argument."""

import asyncio
import sys

from pymodbus.datastore import ModbusDeviceContext, ModbusSequentialDataBlock, ModbusServerContext
from pymodbus.server import ModbusTcpServer


def trace(sends, pdu):
    if not sends:
        print(type(pdu).__name__, flush=True)
    return pdu


async def main():
    registers = ModbusDeviceContext(hr=ModbusSequentialDataBlock(1, [0] * 100))
    context = ModbusServerContext(devices=registers, single=True)
    port = int(sys.argv[1])
    server = ModbusTcpServer(context, address=("127.0.0.1", port), trace_pdu=trace)
    await server.serve_forever(background=True)
    print(f"listening {port}", flush=True)
    await asyncio.Future()


asyncio.run(main())
