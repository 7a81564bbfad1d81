//! What the pages look like (the report, the live page, a folder of runs): pictures of a record
//! that does not change, held against those in `pictures/`. What was meant to change is accepted
//! with `THRONG_WRITE_TESTS=1 cargo test -p throng --test e2e -- pictures`; look at the new ones
//! first.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use throng_fuzz::node_modules;
use throng_results::{page::served_html, timestamp};

use crate::run::{Child, throng};
use crate::servers::program;
use crate::showcase;

/// A byte of a pixel that differs by no more is the same: edges of letters are smoothed.
const BYTE_MAX: u64 = 32;
/// The share of the pixels that may differ, of the whole picture …
const WHOLE_MAX: f64 = 0.0005;
/// … and of each block of 32 by 32, so that a small part that has changed is seen too.
const BLOCK_MAX: f64 = 0.1;
/// Of all pictures together.
const BYTES_MAX: u64 = 1_100_000;

/// Of a report, a live page, or a folder of runs: name, width, height, theme, language.
type Picture = (&'static str, u32, u32, &'static str, &'static str);
/// Each two of width, theme and language meet.
const REPORT: [Picture; 6] = [
    ("phone-light-zh", 390, 1450, "light", "zh"),
    ("phone-dark-en", 390, 1450, "dark", "en"),
    ("desk-light-en", 1280, 1100, "light", "en"),
    ("desk-dark-zh", 1280, 1100, "dark", "zh"),
    ("wall-light-zh", 2560, 1000, "light", "zh"),
    ("wall-dark-en", 2560, 1000, "dark", "en"),
];
const LIVE: [Picture; 2] = [
    ("live-phone-dark-en", 390, 460, "dark", "en"),
    ("live-desk-light-zh", 1280, 230, "light", "zh"),
];
const FOLDER: [Picture; 2] = [
    ("folder-phone-light-zh", 390, 330, "light", "zh"),
    ("folder-desk-dark-en", 1280, 330, "dark", "en"),
];

/// Pages of one address, and the text without which one is not drawn yet.
fn pages(url: &str, pictures: &[Picture], selector: &str, shows: &str) -> Vec<Value> {
    let page = |(name, width, height, theme, language): &Picture| {
        json!({
            "url": url, "name": name, "width": width, "height": height, "theme": theme,
            "language": language, "selector": selector, "shows": shows,
        })
    };
    pictures.iter().map(page).collect()
}

/// Serves the page of a run that goes on, and what a viewer is told of the record that does not
/// change: a picture shows the same second each time. Gives its address.
fn live() -> String {
    let page = served_html(&json!({"connect": "live", "language": "en"}));
    let told = showcase::live(410, 417).into_iter();
    let told = told.map(|(name, data)| format!("event: {name}\ndata: {data}\n\n"));
    let told: String = told.collect();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        // Nobody is hung up on: the page would say so.
        let mut open = Vec::new();
        for mut stream in listener.incoming().flatten() {
            let mut request = [0; 8192];
            let length = stream.read(&mut request).unwrap_or(0);
            let is_page = request[..length].starts_with(b"GET /?");
            let answer = match is_page {
                true => format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\
                     Connection: close\r\nContent-Length: {}\r\n\r\n{page}",
                    page.len()
                ),
                false => format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\
                     Connection: close\r\n\r\n{told}"
                ),
            };
            let _ = stream.write_all(answer.as_bytes());
            if !is_page {
                open.push(stream);
            }
        }
    });
    format!("http://{address}/?token=none")
}

/// A folder of three runs that are the same each time, served; its address.
fn served() -> (Child, String) {
    let serve = throng("serve runs");
    for (days, seconds) in [(2, 290), (1, 330), (0, 600)] {
        let begun = showcase::BEGUN - Duration::from_hours(24 * days);
        let name = timestamp(begun)[..10].to_string();
        let folder = serve.folder().join("runs");
        std::fs::create_dir_all(&folder).expect("a folder");
        showcase::record_of(&folder.join(format!("{name}-spring-sale")), begun, seconds);
    }
    let child = serve.start();
    let url = child.hears("a link", |_, errors| {
        errors.lines().find_map(|line| line.strip_prefix("runs: ")).map(str::to_string)
    });
    (child, url)
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/pages/pictures")
}

/// Takes all pictures into a folder; how each differs from the one that is kept.
fn taken(pages: &[Value], made: &Path) -> Vec<Value> {
    let wanted = json!({"folder": folder(), "made": made, "byte": BYTE_MAX, "pages": pages});
    let mut command = Command::new(program("node", "nodejs"));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/pages/pictures.js");
    command.arg(script).arg(wanted.to_string()).arg(program("chromium", "chromium"));
    command.env("NODE_PATH", node_modules("puppeteer-core"));
    command.env("FONTCONFIG_FILE", folder().join("fonts.conf"));
    let told = Child::start(command).wait().exits(0);
    serde_json::from_str(&told.out).expect("JSON")
}

/// Whether a picture is the one that is kept; else what is wrong.
fn judged(told: &Value) -> Result<(), String> {
    let name = told["name"].as_str().expect("a name");
    if told["missing"] == true {
        return Err(format!("{name}: there is none yet"));
    }
    let share = |of: &str| told[of].as_f64().expect("a share");
    let (whole, block) = (share("whole"), share("block"));
    match whole <= WHOLE_MAX && block <= BLOCK_MAX {
        true => Ok(()),
        false => Err(format!(
            "{name}: {:.3} % of all pixels differ, most at {}: {:.0} % there",
            whole * 100.0,
            told["at"],
            block * 100.0
        )),
    }
}

#[test]
fn the_pages_look_as_they_did() {
    for (font, package) in [
        ("dejavu/DejaVuSans.ttf", "fonts-dejavu-core"),
        ("wqy/wqy-microhei.ttc", "fonts-wqy-microhei"),
    ] {
        let path = Path::new("/usr/share/fonts/truetype").join(font);
        assert!(path.is_file(), "{font} is missing: `cargo xtask ci` installs {package}");
    }
    let run = throng("report record --html page.html");
    showcase::record(&run.folder().join("record"));
    let run = run.run().exits(1);
    // They stay for whoever wants to look.
    let made = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pictures");
    std::fs::create_dir_all(&made).expect("a folder");
    let report = format!("file://{}", run.folder().join("page.html").display());
    let (_serves, folder_of_runs) = served();
    let pages = [
        pages(&report, &REPORT, ".badge", ""),
        pages(&live(), &LIVE, ".badge", "6:57"),
        pages(&folder_of_runs, &FOLDER, "#runs tbody", "1,678,919"),
    ]
    .concat();
    let told = taken(&pages, &made);
    let bytes: u64 = told.iter().filter_map(|it| it["bytes"].as_u64()).sum();
    assert!(bytes < BYTES_MAX, "{bytes} bytes are too much for the tree: {told:?}");
    let wrong: Vec<String> = told.iter().filter_map(|it| judged(it).err()).collect();
    if wrong.is_empty() {
        return;
    }
    if std::env::var_os("THRONG_WRITE_TESTS").is_some() {
        for it in told.iter().filter(|it| judged(it).is_err()) {
            let name = it["name"].as_str().expect("a name");
            let from = made.join(format!("{name}.png"));
            std::fs::copy(from, folder().join(format!("{name}.png"))).expect("a copy");
        }
        return;
    }
    panic!(
        "the pages look different:\n{}\nthe new pictures are in {}; if they are as they should be: \
         THRONG_WRITE_TESTS=1 cargo test -p throng --test e2e -- pictures",
        wrong.join("\n"),
        made.display()
    );
}
