//! A search of a fleet whose controller is killed. A generator that is late ends the search by
//! itself, so this is tested alone.

use crate::machines::fleet::Fleet;
use crate::machines::takeover::{resume, scenario, under_way};
use crate::run::throng;
use crate::servers::Target;

#[test]
fn a_search_ends_when_its_controller_is_lost() {
    let fleet = Fleet::start(&["a"]);
    let target = Target::start("http");
    let keys = format!("--fleet={}", fleet.keys.display());
    let search = throng("capacity s.yaml --threshold").arg("errors < 1%").arg("--out=record");
    let text = scenario(&target, 5);
    let child = search.arg(keys).env("WORD", "known").file("s.yaml", text).start();
    under_way(&target, &child);
    child.signal(libc::SIGKILL);
    drop(child.wait());
    let run = resume(&fleet, "").run().exits(130);
    run.says(&["another controller cannot continue a capacity search"]);
    assert_eq!(target.counts("/requests") as f64, run.figure("/total/count") + 2.0, "{run}");
}
