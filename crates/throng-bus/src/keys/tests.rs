//! A fleet's folder: its permissions and its content.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use super::*;

const NOW: Duration = Duration::from_secs(1_800_000_000);
const DAY: Duration = Duration::from_secs(24 * 3600);

fn address() -> IpAddr {
    IpAddr::from([203, 0, 113, 5])
}

#[test]
fn only_the_owner_can_read_the_folder_and_a_second_fleet_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("fleet");
    let mut keys = Keys::create(&folder, &[address()], 4222, NOW).unwrap();
    keys.admit("a", NOW, DAY).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    let files: Vec<PathBuf> =
        fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 13, "{files:?}");
    for file in files {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
    assert!(Keys::create(&folder, &[address()], 4222, NOW).is_err());
    assert!(Keys::open(place.path()).is_err());
    for wrong in [&[][..], &[IpAddr::from([0, 0, 0, 0])]] {
        assert!(Keys::create(&place.path().join("other"), wrong, 4222, NOW).is_err());
    }
}

#[test]
fn an_agent_is_admitted_again_and_removed_and_only_its_token_has_its_keys() {
    let place = tempfile::tempdir().unwrap();
    let mut keys = Keys::create(place.path(), &[address()], 4222, NOW).unwrap();
    let first = keys.admit("a", NOW, DAY).unwrap();
    let second = keys.admit("a", NOW, DAY).unwrap();
    keys.admit("b", NOW, DAY).unwrap();
    assert_eq!(first.until_s, NOW.as_secs() + DAY.as_secs());
    assert_eq!(Token::parse(&second.to_string()), Ok(second.clone()));
    assert_eq!(second.identity.address.to_string(), "203.0.113.5:4222");
    let mut keys = Keys::open(place.path()).unwrap();
    let names: Vec<&str> = keys.agents().iter().map(|agent| agent.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    let public = |token: &Token| {
        KeyPair::from_seed(token.identity.seed.as_ref().unwrap()).unwrap().public_key()
    };
    let file = fs::read_to_string(keys.server_file()).unwrap();
    assert!(file.contains(&public(&second)) && !file.contains(&public(&first)));
    for entry in fs::read_dir(place.path()).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        assert!(!text.contains(second.identity.seed.as_ref().unwrap()));
    }
    assert_eq!((keys.dismiss("a"), keys.dismiss("a")), (Ok(true), Ok(false)));
    assert!(!fs::read_to_string(keys.server_file()).unwrap().contains(&public(&second)));
    for wrong in ["", "a.b", "*", "controller", "system", "a\"b"] {
        assert!(keys.admit(wrong, NOW, DAY).is_err(), "{wrong}");
    }
}

#[test]
fn only_the_operator_of_this_fleet_signs() {
    let (place, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let keys = Keys::create(place.path(), &[address()], 4222, NOW).unwrap();
    let others = Keys::create(other.path(), &[address()], 4222, NOW).unwrap();
    let signature = keys.signer().unwrap().sign(b"a plan").unwrap();
    assert!(is_signed(keys.operator(), b"a plan", &signature));
    assert!(!is_signed(keys.operator(), b"a plot", &signature));
    assert!(!is_signed(others.operator(), b"a plan", &signature));
    assert!(!is_signed("", b"a plan", &signature) && !is_signed(keys.operator(), b"a plan", "?"));
    throng_fuzz::mutations(&[signature.as_bytes()], |bytes, _| {
        let text = String::from_utf8_lossy(bytes);
        assert!(text == signature || !is_signed(keys.operator(), b"a plan", &text));
    });
}

/// An agent can publish only its own messages, not those of other agents or the controller.
#[test]
fn an_agent_has_only_its_own_rights() {
    let quoted = |name: &str| -> BTreeSet<String> {
        let text = Rights::of_agent(name).text();
        text.split('"').skip(1).step_by(2).map(str::to_string).collect()
    };
    let (a, b) = (quoted("a"), quoted("b"));
    let own: Vec<&str> = a.difference(&b).map(String::as_str).collect();
    let wanted = [
        "$KV.THR_KEYS.agent.a",
        "_INBOX.a.>",
        "thr.announced.*.a",
        "thr.heartbeat.a",
        "thr.log.lines.*.a",
        "thr.monitor.a",
        "thr.reading.a",
    ];
    assert_eq!(own, wanted);
    for name in &a {
        assert!(!name.contains("THR_LOG") && !name.contains("CREATE.KV") && name != ">", "{name}");
    }
}
