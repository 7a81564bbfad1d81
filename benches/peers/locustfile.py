import itertools
import json

import gevent
import websocket
from locust import User, task

ids = itertools.count(1)


class Member(User):
    def ask(self, seq, cmd, data):
        self.socket.send(json.dumps({"seq": f"{self.number}-{seq}", "cmd": cmd, "data": data}))
        while True:
            heard = json.loads(self.socket.recv())
            if heard["cmd"] == cmd:
                assert heard["response"]["code"] == 200
                return

    def on_start(self):
        self.number = next(ids)
        self.socket = websocket.create_connection("@URL@")
        self.ask("1", "login", {"userId": f"u{self.number}"})

    @task
    def stay(self):
        gevent.sleep(@BEAT@)
        self.ask("hb", "heartbeat", {})

    def on_stop(self):
        self.socket.close()
