"""What a CI server and a notebook make of files: prints it as JSON.

commands FILE   the commands of a workflow of GitHub or a job of GitLab
install FILE    the commands that install throng, and the variables of the job
sums FILE       of rows of `throng report --csv`: the sums of each step of the measured seconds
"""
import csv
import json
import sys

COUNTS = ["begun", "count", "ok", "failed", "interrupted", "received_bytes", "sent_bytes"]


def jobs(path):
    """Of each job its variables, and its commands; GitLab runs those of both lists in one shell."""
    import yaml

    with open(path) as text:
        read = yaml.safe_load(text)
    if "jobs" not in read:
        for job in read.values():
            yield job.get("variables", {}), ["\n".join(job["before_script"])] + job["script"]
        return
    for job in read["jobs"].values():
        yield job.get("env", {}), [step["run"] for step in job["steps"] if "run" in step]


def commands(path):
    return [line for _, lines in jobs(path) for line in lines if "cargo " not in line]


def install(path):
    for variables, lines in jobs(path):
        return {"variables": variables, "commands": [line for line in lines if "cargo " in line]}


def sums(path):
    steps = {}
    with open(path, newline="") as text:
        for row in csv.DictReader(text, strict=True):
            assert None not in row and None not in row.values(), row
            if row["measured"] != "true":
                continue
            step = steps.setdefault(row["step"], {"kind": row["kind"], "seconds": 0, "max_ns": 0})
            step["seconds"] += 1
            step["max_ns"] = max(step["max_ns"], int(row["max_ns"] or 0))
            for name in COUNTS:
                step[name] = step.get(name, 0) + int(row[name])
    return steps


TOLD = {"commands": commands, "install": install, "sums": sums}
print(json.dumps(TOLD[sys.argv[1]](sys.argv[2])))
