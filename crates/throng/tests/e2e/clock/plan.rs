//! The cost of a run as it was measured, second by second.

use crate::loads::plan::number;
use crate::run::throng;
use crate::servers::Target;

#[test]
fn a_measured_run_gives_the_number_of_agents() {
    let target = Target::start("http");
    let text = format!(
        "name: reads\ntarget: {}\nsessions: {{reader: {{steps: [{{http: GET /}}]}}}}\n\
         load: [{{arrivals: 300/s, for: 14s}}]\n",
        target.http("")
    );
    let run = throng("run reads.yaml --quiet --out before").file("reads.yaml", &text).run();
    run.check([0, 5].contains(&run.code()), "it did not run");
    let record = run.folder().join("before");
    let plan = |line: &str| {
        let line = format!("plan reads.yaml --fleet {line} --from");
        throng(&line).file("reads.yaml", &text).arg(&record).run().exits(0)
    };
    let host = std::fs::read_to_string(record.join("run.json")).expect("a record");
    let host: serde_json::Value = serde_json::from_str(&host).expect("JSON");
    let run = plan("--rate 1M/s --json");
    // The plan uses the machine of the run, without the target that ran beside it.
    let cores = host["host"]["cores_usable"].as_f64();
    run.check(Some(number(&run, "/machine/cores")) == cores, "another machine");
    run.check(number(&run, "/machine/source_addresses") == 1.0, "those of the loopback interface");
    run.check(run.json()["target_is_local"] == false, "agents are elsewhere");
    let (agents, cost) = (number(&run, "/fleet/agents"), number(&run, "/cost/request_cpu_ns"));
    let given = number(&run, "/machine/cores") * 0.7;
    run.check(agents >= (1e6 * cost / 1e9 / given).floor(), "too few for their processors");
    run.check(run.json()["fleet"]["limit"] == "cores", "what limits it");
    let (low, high) = (number(&run, "/fleet/range/low"), number(&run, "/fleet/range/high"));
    run.check(low <= agents && agents <= high && low < high, "it varies");
    let report = throng("report --json").arg(&record).run();
    let bytes = number(&report, "/received_bytes") / number(&report, "/total/count");
    let network = number(&run, "/fleet/network/received_per_s") * agents / 1e6;
    run.check((network - bytes).abs() < bytes / 100.0, "bytes of an answer");
    run.check(number(&run, "/fleet/times_measured") > 1.0, "more than was measured");
    // Twice the measured load, on described machines.
    plan("--rate 600/s --machine 64cores,64GiB").says(&[
        "1, each with 64 cores and 68.7 GB of memory",
        "which is the limit",
        "sent; the link capacity was not measured",
        "for n in $(seq 1); do throng fleet token agent-$n > agent-$n.token; done",
        "throng agent --join agent-1.token",
        "throng run reads.yaml --rate 600/s --fleet --agents 1\n",
    ]);
    plan("--lang zh").says(&["集群的代理", "throng run reads.yaml --fleet --agents "]);
    let unmeasured = throng("plan reads.yaml --fleet").file("reads.yaml", &text).run().exits(2);
    unmeasured.says(&["no run shows how much load one machine can generate", "--from DIR"]);
}
