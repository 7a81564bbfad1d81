"""What a CI server and a notebook make of files: prints it as JSON.

commands FILE   the commands of a workflow of GitHub or a job of GitLab
sums FILE       of rows of `throng report --csv`: the sums of each step of the measured seconds
"""
import csv
import json
import sys

COUNTS = ["begun", "count", "ok", "failed", "interrupted", "received_bytes", "sent_bytes"]


def commands(path):
    import yaml

    with open(path) as text:
        read = yaml.safe_load(text)
    if "jobs" in read:
        steps = [step for job in read["jobs"].values() for step in job["steps"]]
        return [step["run"] for step in steps if "run" in step]
    return [line for job in read.values() for line in job.get("script", [])]


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


print(json.dumps({"commands": commands, "sums": sums}[sys.argv[1]](sys.argv[2])))
