#!/usr/bin/env python3
"""Compares the processor time of throng with that of database tools, per statement.

    cargo build --release && python3 benches/databases.py target/release/throng

Each tool sends the same statements with 50 connections to the same server on this host; throng and
the other tool take turns, four times each. Needs redis-server, postgresql, mariadb-server,
mariadb-client and sysbench of Debian.
"""
import atexit, glob, os, pwd, socket, statistics, subprocess, sys, tempfile, time

THRONG = os.path.abspath(sys.argv[1])
ONLY = sys.argv[2:]
RUNS, CLIENTS = 4, 50
STATEMENTS = {"redis": 1_000_000, "redis16": 4_000_000, "postgres": 300_000, "mysql": 300_000}
LUA = """
function thread_init() connection = sysbench.sql.driver():connect() end
function event() connection:query("select 1") end
"""
NOBODY = pwd.getpwnam("nobody")


def unprivileged():
    if os.getuid() == 0:
        os.setgid(NOBODY.pw_gid)
        os.setuid(NOBODY.pw_uid)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def serve(command, port):
    server = subprocess.Popen(command, preexec_fn=unprivileged, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    atexit.register(server.kill)
    for _ in range(200):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return server
        time.sleep(0.1)
    raise SystemExit(f"{command[0]} does not accept connections")


def quiet(command, **more):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **more)


def cpu(command, count):
    """User and system time of a command, in microseconds per statement."""
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise SystemExit(f"exit code {child.returncode}: {' '.join(map(str, command))}")
    return (used.ru_utime + used.ru_stime) / count * 1e6


def bench(url, count, *flags):
    return [THRONG, "bench", url, "-c", str(CLIENTS), "-n", str(count), *flags]


def redis(home, port):
    server = serve(["redis-server", "--port", str(port), "--save", "", "--dir", home], port)
    tool = ["redis-benchmark", "-p", str(port), "-c", str(CLIENTS), "-q"]
    url, ask = f"redis://127.0.0.1:{port}", ["--command", "GET k"]
    one, many = STATEMENTS["redis"], STATEMENTS["redis16"]
    yield "redis", one, bench(url, one, *ask), {
        "redis-benchmark": [*tool, "-n", str(one), "GET", "k"]}
    yield "redis16", many, bench(url, many // 16, *ask, "--pipeline", "16"), {
        "redis-benchmark -P 16": [*tool, "-P", "16", "-n", str(many), "GET", "k"]}
    server.terminate()
    server.wait()


def postgres(home, port):
    programs = sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1]
    data, script, count = f"{home}/data", f"{home}/select-1.sql", STATEMENTS["postgres"]
    quiet([f"{programs}/initdb", "-U", "ann", "-A", "trust", "-D", data], preexec_fn=unprivileged)
    server = serve([f"{programs}/postgres", "-D", data, "-k", home, "-p", str(port)], port)
    with open(script, "w") as file:
        file.write("select 1;\n")
    tool = [f"{programs}/pgbench", "-n", "-M", "prepared", "-c", str(CLIENTS), "-j", "1", "-f", script,
            "-t", str(count // CLIENTS), "-h", "127.0.0.1", "-p", str(port), "-U", "ann", "postgres"]
    url = f"postgres://ann@127.0.0.1:{port}/postgres"
    yield "postgres", count, bench(url, count, "--sql", "select 1"), {"pgbench": tool}
    server.terminate()
    server.wait()


def mysql(home, port):
    data, path, count = f"{home}/data", f"{home}/mysql.sock", STATEMENTS["mysql"]
    quiet(["mariadb-install-db", "--no-defaults", "--auth-root-authentication-method=normal",
           "--skip-test-db", "--skip-name-resolve",
           f"--datadir={data}"], preexec_fn=unprivileged)
    server = serve(["mariadbd", "--no-defaults", f"--datadir={data}", f"--socket={path}",
                    f"--port={port}", "--bind-address=127.0.0.1"], port)
    quiet(["mariadb", "--no-defaults", "-uroot", "-S", path, "-e",
           "create user ann identified by 'word'; create database shop; grant all on shop.* to ann"])
    script = f"{home}/select-1.lua"
    with open(script, "w") as file:
        file.write(LUA)
    slap = ["mysqlslap", "--no-defaults", "-h127.0.0.1", f"-P{port}", "-uann", "-pword",
            "--create-schema=shop", "--no-drop", "-qselect 1", f"-c{CLIENTS}",
            f"--number-of-queries={count}"]
    sysbench = ["sysbench", "--db-driver=mysql", "--mysql-host=127.0.0.1", f"--mysql-port={port}",
                "--mysql-user=ann", "--mysql-password=word", "--mysql-db=shop",
                f"--threads={CLIENTS}", f"--events={count}", "--time=0", script, "run"]
    url = f"mysql://ann:word@127.0.0.1:{port}/shop"
    yield "mysql", count, bench(url, count, "--sql", "select 1"), {
        "mysqlslap": slap, "sysbench": sysbench}
    server.terminate()
    server.wait()


print("| statement | throng, µs | tool | its µs | ratio |\n| --- | --- | --- | --- | --- |")
for kind in (redis, postgres, mysql):
    with tempfile.TemporaryDirectory() as home:
        if os.getuid() == 0:
            os.chown(home, NOBODY.pw_uid, NOBODY.pw_gid)
        for name, count, own, tools in kind(home, free_port()):
            if ONLY and name not in ONLY:
                continue
            times = {word: [] for word in ("throng", *tools)}
            for _ in range(RUNS):
                for word, command in (("throng", own), *tools.items()):
                    times[word].append(cpu(command, count))
            ours = statistics.median(times["throng"])
            for tool in tools:
                theirs = statistics.median(times[tool])
                print(f"| {name} | {ours:.2f} | {tool} | {theirs:.2f} | {ours / theirs:.2f} |",
                      flush=True)
