"""A DNS server of dnslib that prints the names it is asked for. Its port is printed first."""

from dnslib import QTYPE, RCODE, RR
from dnslib.server import BaseResolver, DNSLogger, DNSServer


class Names(BaseResolver):
    def resolve(self, request, handler):
        name = str(request.q.qname)
        print(f"{QTYPE[request.q.qtype]} {name}\n", end="", flush=True)
        reply = request.reply()
        if name == "www.test.":
            reply.add_answer(*RR.fromZone("www.test. 60 A 127.0.0.1"))
        else:
            reply.header.rcode = RCODE.NXDOMAIN
        return reply


server = DNSServer(Names(), address="127.0.0.1", port=0, logger=DNSLogger("-request,-reply,-truncated,-error"))
print(f"listening {server.server.server_address[1]}", flush=True)
server.start()
