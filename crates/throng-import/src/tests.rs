//! Tests as Markdown: the input file, and the resulting scenario. Each scenario is compiled, like
//! in `throng check`. `THRONG_WRITE_TESTS=1` updates the scenarios.

use std::path::Path;

use throng_base::Source;
use throng_scenario::{CompileOptions, RunOptions, compile};

use crate::{Format, Imported, Options, import};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests-md");

/// `har --assets --host all`
fn options(words: &str) -> (Option<Format>, Options) {
    let mut words = words.split_whitespace();
    let kind = words.next().unwrap_or_default();
    let format = Format::ALL.into_iter().find(|format| format.word() == kind);
    let mut options = Options { stem: "shop".into(), ..Options::default() };
    while let Some(word) = words.next() {
        match word {
            "--assets" => options.assets = true,
            "--host" => options.hosts.extend(words.next().map(String::from)),
            "--target" => options.target = words.next().map(String::from),
            other => panic!("no option {other}"),
        }
    }
    (format, options)
}

/// Compiles a scenario with its files: no errors or warnings.
fn check(imported: &Imported) {
    assert_eq!(told(imported, true), "", "{}", imported.scenario);
}

/// The output of `throng check` for a scenario.
pub(crate) fn told(imported: &Imported, with_warnings: bool) -> String {
    let source = Source::new("shop.yaml", imported.scenario.as_str());
    let read = |path: &Path, _: usize| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let found = imported.files.iter().find(|(known, _)| *known == name);
        found.map(|(_, content)| content.clone()).ok_or_else(|| std::io::ErrorKind::NotFound.into())
    };
    // Rows are read from the disk.
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in &imported.files {
        std::fs::write(folder.path().join(name), content).unwrap();
    }
    let options = CompileOptions {
        set: Vec::new(),
        base: folder.path().into(),
        read_file: &read,
        env: &|_| None,
        run: RunOptions::default(),
    };
    let mistakes = match compile(&source, &options) {
        Ok((_, warnings)) if with_warnings => warnings,
        Ok(_) => Vec::new(),
        Err(mistakes) => mistakes,
    };
    mistakes.iter().map(|one| one.render(false)).collect()
}

/// The result for a text: the scenario and its files, or the error.
fn made(format: Format, options: &Options, text: &str) -> String {
    match import(format, text.as_bytes(), "shop.file", options) {
        Ok(imported) => {
            check(&imported);
            let mut out = imported.scenario;
            for (name, content) in &imported.files {
                out.push_str(&format!("# file {name}\n"));
                for line in String::from_utf8_lossy(content).lines() {
                    out.push_str(&format!("#   {line}\n"));
                }
            }
            out
        }
        Err(mistakes) => mistakes.iter().map(|one| one.render(false)).collect(),
    }
}

/// A page with the results for its inputs.
fn page(text: &str) -> String {
    let mut out = String::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        out.push_str(line);
        out.push('\n');
        let Some(info) = line.strip_prefix("```").filter(|info| !info.is_empty()) else { continue };
        let mut block = String::new();
        for line in lines.by_ref().take_while(|line| *line != "```") {
            block.push_str(line);
            block.push('\n');
        }
        out.push_str(&block);
        out.push_str("```\n");
        if let (Some(format), options) = options(info) {
            let made = made(format, &options, &block);
            let kind = if made.starts_with("error") { "text" } else { "yaml" };
            // The previous result is skipped.
            while lines.next_if(|line| line.is_empty()).is_some() {}
            if lines.next_if(|line| matches!(*line, "```yaml" | "```text")).is_some() {
                lines.by_ref().find(|line| *line == "```");
            }
            out.push_str(&format!("\n```{kind}\n{made}```\n"));
        }
    }
    out
}

#[test]
fn pages_match_their_expected_scenarios() {
    let mut count = 0;
    for entry in std::fs::read_dir(FOLDER).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let want = page(&text);
        count += 1;
        if std::env::var_os("THRONG_WRITE_TESTS").is_some() {
            std::fs::write(&path, want).unwrap();
            continue;
        }
        assert_eq!(text, want, "{}: write it anew with THRONG_WRITE_TESTS=1", path.display());
    }
    assert!(count >= 7, "{count} pages");
}

#[test]
fn scenarios_contain_no_secrets() {
    let curl = "curl -u ann:open-sesame-1 -H 'X-Api-Key: k3y-4711-abc' 'http://a/x?token=t0k3n-999-xyz' \
                --json '{\"password\":\"hunter2-hunter2\",\"note\":\"my t0k3n-999-xyz\"}'";
    let har = r#"{"log":{"entries":[{"request":{"method":"GET","url":"http://a/t0p-s3cr3t-value",
        "headers":[{"name":"Authorization","value":"Bearer t0p-s3cr3t-value"},{"name":"Cookie",
        "value":"sid=c00kie-value"}]},"response":{"status":200}}]}}"#;
    for (format, text) in [(Format::Curl, curl), (Format::Har, har)] {
        let imported = import(format, text.as_bytes(), "a", &Options::default()).unwrap();
        check(&imported);
        let words = [
            "open-sesame-1",
            "k3y-4711-abc",
            "t0k3n-999-xyz",
            "hunter2-hunter2",
            "t0p-s3cr3t-value",
            "c00kie-value",
        ];
        for word in words {
            assert!(!imported.scenario.contains(word), "{word}\n{}", imported.scenario);
        }
        assert!(!imported.secrets.is_empty());
    }
}

#[test]
fn a_byte_order_mark_is_skipped() {
    let har = r#"{"log":{"entries":[{"request":{"method":"GET","url":"http://a/x"},
        "response":{"status":200}}]}}"#;
    let postman = r#"{"info":{"name":"x",
        "schema":"https://schema.getpostman.com/json/collection/v2.1.0/collection.json"},
        "item":[{"request":{"method":"GET","url":"http://a/x"}}]}"#;
    for (format, text) in
        [(Format::Har, har), (Format::Postman, postman), (Format::Curl, "curl http://a/x")]
    {
        let text = format!("\u{feff}{text}");
        let imported = import(format, text.as_bytes(), "a", &Options::default()).unwrap();
        assert_eq!(imported.requests, 1, "{}", imported.scenario);
    }
}

#[test]
fn a_large_recording_needs_little_memory_and_time() {
    // 40 MB in one response, of which only the start is kept.
    struct Large {
        at: usize,
    }
    const HEAD: &[u8] = br#"{"log":{"entries":[{"request":{"method":"GET","url":"http://a/x"},
        "response":{"status":200,"content":{"mimeType":"application/json","text":""#;
    const TAIL: &[u8] = br#""}}}]}}"#;
    const BODY: usize = 40 << 20;
    impl std::io::Read for Large {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let byte = |at: usize| match at.checked_sub(HEAD.len()) {
                None => Some(HEAD[at]),
                Some(at) if at < BODY => Some(b'x'),
                Some(at) => TAIL.get(at - BODY).copied(),
            };
            let mut count = 0;
            while count < buffer.len() {
                let Some(next) = byte(self.at) else { break };
                buffer[count] = next;
                self.at += 1;
                count += 1;
            }
            Ok(count)
        }
    }
    let imported = import(Format::Har, Large { at: 0 }, "a.har", &Options::default()).unwrap();
    assert_eq!(imported.requests, 1);
    check(&imported);
}
