#!/usr/bin/env python3
"""Runs throng against servers of others and compares its counts with theirs. See README.md.

    run.py THRONG FOLDER [grpc] [centrifuge] [socket.io]
"""

import atexit
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
FAILED = []


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def listening(port):
    """Waits until a server listens."""
    for _ in range(200):
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    sys.exit(f"nothing listens on port {port}")


def start(command, **more):
    """A process that does not outlive this one."""
    process = subprocess.Popen(command, **more)
    atexit.register(process.kill)
    return process


class GoServer:
    """The Go program in one of its roles."""

    def __init__(self, folder, role, *limit):
        binary = folder / "server"
        self.port, self.admin = free_port(), free_port()
        self.process = start(
            [binary, role, str(self.port), str(self.admin), *limit], stderr=subprocess.DEVNULL
        )
        listening(self.admin)

    def ask(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}{path}", timeout=10) as answer:
            return answer.read()

    def books(self):
        return Counter(json.loads(self.ask("/books")))

    def cut(self):
        self.ask("/cut")

    def restart(self):
        self.ask("/restart")

    def leave(self):
        self.ask("/leave")

    def stop(self):
        self.process.terminate()
        self.process.wait()


class Rooms:
    """Two Socket.IO servers behind HAProxy."""

    def __init__(self, folder):
        self.folder, self.port, self.ports = folder, free_port(), [free_port(), free_port()]
        self.log = folder / "books"
        self.log.write_text("")
        self.nodes = [self.node(0), self.node(1)]
        for port in self.ports:
            listening(port)
        servers = "".join(
            f"  server {name} 127.0.0.1:{port} cookie {name} check inter 100ms fall 1 rise 1\n"
            for name, port in zip("ab", self.ports)
        )
        config = folder / "haproxy.cfg"
        config.write_text(
            f"global\n  stats socket {folder}/stats\n"
            "defaults\n  mode http\n  timeout connect 2s\n  timeout client 30s\n  timeout server 30s\n"
            "  timeout tunnel 1m\n  timeout check 5s\n  retries 3\n  option redispatch\n"
            f"frontend all\n  bind 127.0.0.1:{self.port}\n  default_backend rooms\n"
            "backend rooms\n  balance roundrobin\n  cookie SERVERID insert indirect nocache\n" + servers
        )
        stats = folder / "stats"
        stats.unlink(missing_ok=True)
        self.proxy = start(["haproxy", "-db", "-q", "-f", config])
        listening(self.port)
        while not stats.is_socket():
            time.sleep(0.05)
        self.before = self.accepted()

    def accepted(self):
        """How many connections HAProxy has accepted."""
        with socket.socket(socket.AF_UNIX) as one:
            one.connect(str(self.folder / "stats"))
            one.sendall(b"show stat\n")
            with one.makefile() as answer:
                names, *lines = (line.strip().split(",") for line in answer if line.strip())
        rows = (dict(zip(names, line)) for line in lines)
        return next(int(row["conn_tot"]) for row in rows if row["# pxname"] == "all")

    def node(self, n):
        modules = str(self.folder / "node_modules")
        return start(
            ["node", HERE / "room.js", "ab"[n], str(self.ports[n]), self.log],
            env={**os.environ, "NODE_PATH": modules},
            stdout=subprocess.DEVNULL,
        )

    def books(self):
        lines = self.log.read_text().splitlines()
        ids = Counter(line for line in lines if line.startswith("say "))
        books = Counter("say" if line.startswith("say ") else line for line in lines)
        books["say again"] = sum(ids.values()) - len(ids)
        books["connections"] = self.accepted() - self.before
        return books

    def cut(self):
        for node in self.nodes:
            node.send_signal(signal.SIGUSR2)

    def restart(self):
        self.nodes[0].kill()
        self.nodes[0].wait()
        time.sleep(0.3)
        self.nodes[0] = self.node(0)

    def stop(self):
        for one in [self.proxy, *self.nodes]:
            one.terminate()
            one.wait()


def settled(server):
    """The books once they no longer change."""
    books = server.books()
    while True:
        time.sleep(1)
        books, before = server.books(), books
        if books == before:
            return books


def run(throng, folder, scenario, port, load, at=(), changes=(), interrupt=None):
    """Runs a scenario with this load. `at` has pairs of a time and what to do then."""
    text = (HERE / scenario).read_text()
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    file = folder / "scenario.yaml"
    file.write_text(f"{text}load: [{load}]\n")
    shutil.copy(HERE / "calls.proto", folder)
    out = folder / "run"
    shutil.rmtree(out, ignore_errors=True)
    command = [throng, "run", file, "--set", f"port={port}", "--json", "--quiet", "--out", out, "--lang", "en"]
    process = start(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    timers = [threading.Timer(time_, what) for time_, what in at]
    if interrupt:
        timers.append(threading.Timer(interrupt, lambda: process.send_signal(signal.SIGINT)))
    for timer in timers:
        timer.start()
    said, complained = process.communicate(timeout=120)
    for timer in timers:
        timer.join()
    if not said:
        sys.exit(f"throng says nothing: {complained}")
    return json.loads(said)


class Row:
    """A row of the summary; without one, every figure is 0."""

    def __init__(self, summary, table, name):
        self.row = next((row for row in summary[table] if row["name"] == name), {})

    def __getattr__(self, field):
        return self.row.get(field, 0)


class Case:
    """One run, and the laws that its counts must obey."""

    def __init__(self, server, title, throng, folder, scenario, load, fault=None, times=(), **more):
        self.fault, self.title = fault, title
        # grpc-go stops gracefully: it answers all calls that it has accepted.
        self.answers_all = fault == "leave" and title.startswith("grpc")
        at = [(second, getattr(server, fault)) for second in times]
        self.summary = run(throng, folder, scenario, server.port, load, at, **more)
        self.books = settled(server)
        server.stop()
        print(f"\n{title}: exit {self.summary['outcome']['exit_code']}")
        for row in self.summary["errors"]:
            print(f"  . {row['step']}: {row['count']} {row['cause']}, {row['blame']}")

    def row(self, table, name):
        return Row(self.summary, table, name)

    def law(self, text, ours, relation, theirs):
        holds = {"=": ours == theirs, ">=": ours >= theirs, "<=": ours <= theirs}[relation]
        print(f"  {text:<44} {ours:>7} {relation:>2} {theirs:<7}{'' if holds else ' DISAGREES'}")
        if not holds:
            FAILED.append(f"{self.title}: {text}")

    def refused(self, name):
        """Attempts of a step for which no connection could be opened: never sent."""
        causes = ("connect-refused", "lost")
        return sum(row["count"] for row in self.summary["errors"] if row["step"] == name and row["cause"] in causes)

    def attempts(self, name, heard, again=0, ends=0, answered=True):
        """An attempt is received once, unless it was never sent. `ends` of them end in a failure
        that the server caused. Without an answer, an attempt is ok once it is sent."""
        row = self.row("steps", name)
        self.law(f"{name}: begun = ok + failed + interrupted", row.begun, "=", row.ok + row.failed + row.interrupted)
        self.law(f"{name}: received twice", again, "=", 0)
        if not self.fault:
            self.law(f"{name}: failed", row.failed, "=", ends)
        if not self.fault or self.answers_all:
            # A user whose connection is still opening when it must leave has sent nothing.
            relation = ">=" if row.interrupted else "="
            self.law(f"{name}: begun, received", row.begun - self.refused(name), relation, heard)
            self.law(f"{name}: ok, received", row.ok, "<=", heard)
        else:
            if answered:
                self.law(f"{name}: ok, received", row.ok, "<=", heard)
            self.law(f"{name}: begun, received", row.begun - self.refused(name), ">=", heard)
        if row.resent:
            print(f"  . {row.resent} resent")

    def connections(self, accepted):
        # The kernel of a server that stops accepts what the server never sees. HAProxy stays.
        stops = self.fault in ("restart", "leave") and not self.title.startswith("Socket.IO")
        stage = next(row for row in self.summary["stages"] if row["stage"] == "connect")
        # Whether the target has accepted those that were cut off is unknown.
        relation = ">=" if stops or stage["cut_off"] else "="
        self.law("connections opened, accepted", stage["ok"] + stage["cut_off"], relation, accepted)

    def deliveries(self, name, pushed, owed):
        row, pushes = self.row("deliveries", name), self.row("pushed", pushed)
        strange = row.twice + row.stray + row.foreign + row.after_lost + row.unwatched
        strange += row.sent_without_id + row.received_without_id + row.received_joined
        self.law("messages received, sent", pushes.count, "<=" if self.fault else "=", owed)
        self.law("deliveries: expected = delivered + lost + ...", row.expected, "=", row.delivered + row.lost + row.excused)
        self.law("deliveries: lost", row.lost, "=", 0)
        self.law("deliveries: twice, stray, foreign, no ID ...", strange, "=", 0)
        if self.fault:
            # Of a message whose acknowledgement did not arrive, no delivery is expected.
            self.law("deliveries: delivered, sent", row.delivered, "<=", owed)
        else:
            self.law("deliveries: expected, sent", row.expected, "=", owed)
            self.law("deliveries: undetermined", row.excused, "=", 0)


def grpc(throng, folder):
    def case(title, scenario, load, fault=None, times=(), limit="100", **more):
        server = GoServer(folder, "grpc", limit)
        return Case(server, f"grpc-go, {title}", throng, folder, scenario, load, fault, times, **more)

    def unary(*words, **more):
        one = case(*words, **more)
        # A call whose connection ends before its message has arrived is not one of the calls.
        one.attempts("say", one.books["calls"], one.books["calls again"])
        one.connections(one.books["connections"])

    calm = ('connection: {streams: "${vars.streams}"}\n', ""), (", streams: 8", "")
    pauses = *calm, ("check: {value: 1}\n", "check: {value: 1}\n      - think: 0ms..2500ms\n")
    unary("plain load", "grpc.yaml", "{iterations: 20_000, users: 4}")
    unary("one call at a time", "grpc.yaml", "{users: 8, for: 5s}", changes=calm)
    unary("a rate", "grpc.yaml", "{iterations: 300/s, users: 4, for: 8s}")
    unary("pauses", "grpc.yaml", "{users: 100, for: 8s}", changes=pauses)
    unary("graceful restarts", "grpc.yaml", "{users: 4, for: 8s}", "leave", [1.5, 3.2, 5])
    unary("restarts", "grpc.yaml", "{users: 4, for: 8s}", "restart", [1.5, 3.2, 5])
    unary("resets", "grpc.yaml", "{users: 8, for: 8s}", "cut", [1.5, 2.5, 3.3, 5])
    unary("Ctrl-C", "grpc.yaml", "{users: 4, for: 30s}", interrupt=4)

    def beside(*words, ends=lambda _: 0, **more):
        one = case(*words, **more)
        one.attempts("say", one.books["calls"], one.books["calls again"])
        one.attempts("count", one.books["streams"], ends=ends(one))
        one.connections(one.books["connections"])

    beside("streams beside calls", "beside.yaml", "{users: 10, for: 10s}")
    beside("streams refused", "beside.yaml", "{users: 10, for: 10s}", limit="1")
    all_of_them = lambda one: one.row("steps", "count").begun
    beside("longer than the grace", "long.yaml", "{iterations: 64, users: 4}", ends=all_of_them)
    beside("cut off by the end", "long.yaml", "{users: 4, for: 2s}", changes=[("replies: 60", "replies: 15")])

    def streams(title, load, *words, **more):
        one = case(f"a stream as a connection, {title}", "stream.yaml", load, *words, **more)
        one.attempts("connect", one.books["streams"])
        stay = one.row("steps", "stay")
        one.law("stay: begun = ok + failed + interrupted", stay.begun, "=", stay.ok + stay.failed + stay.interrupted)
        replies = one.row("pushed", "replies").count
        one.law("replies received, sent", replies, "<=" if one.fault or "interrupt" in more else "=", one.books["replies"])
        one.connections(one.books["connections"])

    streams("plain load", "{iterations: 60, users: 20}")
    streams("longer than the grace", "{iterations: 40, users: 20}", changes=[("replies: 15", "replies: 60")])
    streams("restarts", "{users: 20, for: 8s}", "restart", [1.5, 5])
    streams("resets", "{users: 20, for: 8s}", "cut", [1.5, 3, 5])
    streams("Ctrl-C", "{users: 20, for: 20s}", interrupt=4.3)


def centrifuge(throng, folder):
    def case(title, load, *words, **more):
        server = GoServer(folder, "centrifuge")
        one = Case(server, f"Centrifuge, {title}", throng, folder, "centrifuge.yaml", load, *words, **more)
        books = one.books
        print(f"  . {books['joined']} records shared a WebSocket message with the one before")
        one.attempts("publish", books["published"], books["published again"])
        one.attempts("login", books["logins"])
        one.attempts("subscribe", books["subscribed"])
        one.connections(books["connections"])
        pings = one.row("pushed", "ping").count
        # The last one may be on its way while the user leaves.
        one.law("pings received, sent", pings, "<=", books["wrote server_ping"])
        if one.fault == "leave":
            one.law("closed by the target", one.summary["connections"]["closed_by_target"], "=", books["left"])
        one.deliveries("posts", "push", books["wrote push_publication"])

    case("plain load", "{iterations: 3_000, users: 30}")
    case("a rate", "{iterations: 100/s, users: 30, for: 8s}")
    case("pauses", "{users: 40, for: 8s}", changes=[("think: 20ms", "think: 1.5s")])
    case("closes", "{users: 30, for: 10s}", "leave", [2, 5])
    case("restarts", "{users: 30, for: 10s}", "restart", [2, 5])
    case("resets", "{users: 30, for: 10s}", "cut", [2, 4, 6])
    case("Ctrl-C", "{users: 30, for: 30s}", interrupt=4)


def socket_io(throng, folder):
    def case(title, load, *words, **more):
        one = Case(Rooms(folder), f"Socket.IO, {title}", throng, folder, "room.yaml", load, *words, **more)
        books = one.books
        one.attempts("say", books["say"], books["say again"])
        for step, book in ("open", "opened"), ("namespace", "namespace"), ("upgrade", "upgraded"), ("join", "joined"):
            one.attempts(step, books[book], answered=step != "upgrade")
        wrong = sum(count for book, count in books.items() if book.startswith("refused"))
        # A user whose server was killed between its polling and its upgrade starts again.
        one.law("refused by the servers", wrong, "<=" if one.fault else "=", one.summary["total"]["failed"] if one.fault else 0)
        one.connections(books["connections"])
        one.deliveries("talk", "said", books["said"])

    case("plain load", "{iterations: 3_000, users: 30}")
    case("a rate", "{iterations: 100/s, users: 30, for: 8s}")
    case("pauses", "{users: 40, for: 8s}", changes=[("think: 20ms", "think: 1.5s")])
    case("a server is killed", "{users: 30, for: 10s}", "restart", [2, 5])
    case("resets", "{users: 30, for: 10s}", "cut", [2, 4, 6])
    case("Ctrl-C", "{users: 30, for: 30s}", interrupt=4)


def main():
    throng, folder = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    programs = ("go", "node", "npm", "haproxy")
    path = os.pathsep.join([os.environ["PATH"], "/usr/sbin"])
    os.environ["PATH"] = path
    missing = [program for program in programs if not shutil.which(program)]
    if missing:
        sys.exit(f"missing: {', '.join(missing)}. Install: apt-get install golang nodejs npm haproxy")
    wanted = sys.argv[3:] or ["grpc", "centrifuge", "socket.io"]
    if "socket.io" in wanted and not (folder / "node_modules/socket.io").is_dir():
        subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--prefix", folder, "socket.io@4.8.3"], check=True)
    if wanted != ["socket.io"] and not (folder / "server").is_file():
        for name in ("server.go", "go.mod", "go.sum"):
            shutil.copy(HERE / name, folder)
        subprocess.run(["go", "build", "-o", "server", "."], cwd=folder, check=True)
    for name in wanted:
        {"grpc": grpc, "centrifuge": centrifuge, "socket.io": socket_io}[name](throng, folder)
    print("\n" + "\n".join(FAILED or ["all counts agree"]))
    sys.exit(1 if FAILED else 0)


main()
