"""Clients of paho, by the Eclipse Foundation, at the broker whose port is the first argument.

Prints what they heard as one line of JSON for each version of MQTT.
"""

import json
import sys
import threading

import paho.mqtt.client as mqtt
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

PORT = int(sys.argv[1])
PATIENCE_S = 120
EACH = 40


class Client:
    def __init__(self, version, name, lasting=False, will=None):
        self.heard, self.condition, self.connected = [], threading.Condition(), 0
        arguments = {} if version == mqtt.MQTTv5 else {"clean_session": not lasting}
        api = mqtt.CallbackAPIVersion.VERSION2
        self.client = mqtt.Client(api, f"{name}-{version}", protocol=version, **arguments)
        self.client.on_message = lambda _c, _u, message: self.note(message)
        self.client.on_connect = lambda *_: self.note(None)
        self.client.on_subscribe = lambda *_: self.note("subscribed")
        if will:
            self.client.will_set(will, "gone", qos=1)
        self.version, self.lasting = version, lasting

    def note(self, what):
        with self.condition:
            if what is None:
                self.connected += 1
            else:
                self.heard.append(what)
            self.condition.notify_all()

    def connect(self):
        wanted = self.connected + 1
        if self.version == mqtt.MQTTv5:
            properties = Properties(PacketTypes.CONNECT)
            properties.SessionExpiryInterval = 60 if self.lasting else 0
            start = {"clean_start": not self.lasting, "properties": properties}
        else:
            start = {}
        self.client.connect("127.0.0.1", PORT, **start)
        self.client.loop_start()
        self.until(lambda: self.connected == wanted)
        return self

    def until(self, is_so):
        with self.condition:
            assert self.condition.wait_for(is_so, PATIENCE_S), len(self.heard)

    def subscribe(self, topic, qos):
        self.client.subscribe(topic, qos)
        self.until(lambda: "subscribed" in self.heard)
        self.heard.clear()
        return self

    def leave(self):
        # Stopped first: what it has heard is acknowledged before it leaves.
        self.client.loop_stop()
        self.client.disconnect()

    def vanish(self):
        """Closes its socket without a word."""
        self.client.on_socket_close = None
        self.client.loop_stop()
        self.client.socket().close()


def leave_together(clients):
    """Each takes up to a second."""
    leaving = [threading.Thread(target=client.leave) for client in clients]
    for thread in leaving:
        thread.start()
    for thread in leaving:
        thread.join()


def publish(client, topic, qos, retain=False):
    sent = [client.client.publish(topic, f"{qos}-{n}", qos, retain) for n in range(EACH)]
    for one in sent:
        one.wait_for_publish(PATIENCE_S)
    return len(sent)


def texts(client):
    return [message.payload.decode() for message in client.heard]


def life(version):
    publisher = Client(version, "publisher").connect()
    one = Client(version, "one", lasting=True).connect().subscribe("room/+", 2)
    members = [Client(version, f"member{n}").connect() for n in range(2)]
    for member in members:
        member.subscribe("$share/group/room/#", 1)
    published = sum(publish(publisher, "room/a", qos) for qos in range(3))
    one.until(lambda: len(one.heard) == published)
    together = lambda: sum(len(member.heard) for member in members)
    for member in members:
        member.until(lambda: len(member.heard) == published // 2)
    told = {"heard": sorted(texts(one)), "shared": together()}
    # What is published while it is away waits for it.
    one.leave()
    one.heard.clear()
    published += publish(publisher, "room/b", 2)
    one.connect()
    one.until(lambda: len(one.heard) == EACH)
    told["waited"] = texts(one)
    # They acknowledge it too before they leave.
    for member in members:
        member.until(lambda: len(member.heard) == published // 2)
    # Retained, and the will of a client that is lost.
    publisher.client.publish("kept", "last", 1, retain=True).wait_for_publish(PATIENCE_S)
    watcher = Client(version, "watcher").connect().subscribe("will/#", 1)
    late = Client(version, "late").connect()
    late.client.subscribe("kept", 1)
    late.until(lambda: len(late.heard) == 2)
    kept = [message for message in late.heard if message != "subscribed"]
    told["kept"] = [kept[0].payload.decode(), kept[0].retain]
    Client(version, "lost", will="will/lost").connect().vanish()
    watcher.until(lambda: len(watcher.heard) == 1)
    told["will"] = watcher.heard[0].topic
    told["published"] = published + 1
    leave_together([publisher, one, watcher, late, *members])
    return told


for version in (mqtt.MQTTv311, mqtt.MQTTv5):
    print(json.dumps(life(version)), flush=True)
