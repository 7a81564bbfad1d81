//! Tests which files are copied, which are omitted because of a secret, and which paths a bundle
//! may name.

use super::*;

fn run(directory: &Path, files: &[(&str, Option<&str>)]) -> Run {
    let file = |(path, copy): &(&str, Option<&str>)| FileInfo {
        path: (*path).into(),
        copy: copy.map(Into::into),
        ..FileInfo::default()
    };
    let mut info = RunInfo::default();
    info.sources.files.push(FileInfo { role: SCENARIO.into(), ..FileInfo::default() });
    info.sources.files.extend(files.iter().map(file));
    Run { directory: directory.to_path_buf(), info, scenario: String::new() }
}

#[test]
fn copies_are_found_only_in_the_run_directory() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    for outside in ["../x", "/etc/passwd", "a/../../x"] {
        let run = run(path, &[("/data/x", Some(outside))]);
        assert_eq!(copy_of(&run, &run.info.sources.files[1]), None, "{outside}");
        assert!(copied_bytes(&run, &run.info.sources.files[1]).is_err(), "{outside}");
    }
    std::fs::create_dir(path.join("files")).unwrap();
    std::fs::write(path.join("files/a.csv"), "a").unwrap();
    std::os::unix::fs::symlink("/etc/hostname", path.join("files/link")).unwrap();
    let run = run(path, &[("/data/a.csv", Some("files/a.csv")), ("/data/l", Some("files/link"))]);
    assert_eq!(copied_bytes(&run, &run.info.sources.files[1]).unwrap(), b"a");
    assert!(copied_bytes(&run, &run.info.sources.files[2]).is_err());
    let copy = whole(&path.join("files/a.csv"));
    assert_eq!(readable(&run, Path::new("/data/a.csv")), Some(copy));
    assert_eq!(readable(&run, Path::new("/etc/shadow")), None);
}

#[test]
fn files_that_contain_a_key_are_not_copied() {
    let directory = tempfile::tempdir().unwrap();
    let key = b"-----BEGIN PRIVATE KEY-----\n".as_slice();
    for lines in [0, 1, 70_000] {
        let to = directory.path().join(format!("copy-{lines}"));
        let bytes = [&b"a plain line of data\n".repeat(lines)[..], key].concat();
        let input = Box::new(io::Cursor::new(bytes.clone()));
        let copied = copy(input, Some(&to), Some(&Secrets::default())).unwrap();
        assert!(copied.has_secret && !to.exists(), "{lines}");
        assert_eq!(copied.sha256, Digest::Sha256.of(&bytes), "{lines}");
        assert_eq!(copied.bytes, bytes.len() as u64);
    }
    let to = directory.path().join("plain");
    let bytes = b"a plain line of data\n".repeat(70_000);
    let input = Box::new(io::Cursor::new(bytes.clone()));
    let copied = copy(input, Some(&to), Some(&Secrets::default())).unwrap();
    assert!(!copied.has_secret);
    assert_eq!(std::fs::read(&to).unwrap(), bytes);
}

#[test]
fn options_of_the_command_are_restored() {
    let load = LoadChanges {
        users: Some(7),
        time: Some(Duration::from_millis(1_500)),
        soak: Some(Duration::from_hours(24)),
        rate: Some(0.5),
        precision: Some(Duration::ZERO),
    };
    let back = changes_of(&changed_info(load));
    assert_eq!(
        (back.users, back.time, back.soak, back.rate, back.precision),
        (load.users, load.time, load.soak, load.rate, load.precision)
    );
}
