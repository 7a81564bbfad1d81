//! Logs as servers write them: mostly in order, truncated, compressed, and long.

use std::io::Write as _;

use throng_base::Random;

use super::*;

fn count<R: BufRead>(reader: &mut R, path: &Path) -> Result<Seconds, DataError> {
    let mut log = Log::default();
    walk_lines(reader, path, &mut |line, has_ended| log.line(line, has_ended))?;
    log.finish().map_err(|error| error.file(path))
}

fn read_bytes(bytes: &[u8]) -> Result<Seconds, DataError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    std::fs::write(&path, bytes).unwrap();
    read(&path)
}

fn line(second: u32) -> String {
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!(
        "192.0.2.7 - ann [10/Oct/2026:{hour:02}:{minute:02}:{second:02} +0200] \
         \"GET /a[1] HTTP/1.1\" 200 2326 \"http://a/\" \"Mozilla/5.0 [en]\"\n"
    )
}

#[test]
fn requests_are_counted_by_their_second() {
    let combined: String = [7, 7, 8, 12, 11, 12].map(line).concat();
    let want = vec![(0, 2), (1, 1), (4, 1), (5, 2)];
    assert_eq!(read_bytes(combined.as_bytes()).unwrap(), want);
    // The same time in another zone, without names, over IPv6, with an unusual user, and truncated.
    let common = "\
::1 - - [10/Oct/2026:00:00:07 +0200] \"GET / HTTP/1.0\" 200 -\r
a.example - [x] [09/Oct/2026:22:00:07 +0000] \"-\" 408 0

a - - [09/Oct/2026:15:00:08 -0700] \"GET /\" 200 1
a - - [10/Oct/2026:00:0";
    assert_eq!(read_bytes(common.as_bytes()).unwrap(), [(0, 2), (1, 1)]);
    let whole = combined.trim_end();
    assert_eq!(read_bytes(whole.as_bytes()).unwrap(), want, "the last line needs no end");
}

#[test]
fn a_compressed_log_is_read_like_a_plain_one() {
    let text: String = (0..2000).map(|number| line(number / 10)).collect();
    let mut packed = Vec::new();
    for half in [&text[..text.len() / 2], &text[text.len() / 2..]] {
        let level = flate2::Compression::fast();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), level);
        gzip.write_all(half.as_bytes()).unwrap();
        packed.extend(gzip.finish().unwrap());
    }
    assert_eq!(read_bytes(&packed).unwrap(), read_bytes(text.as_bytes()).unwrap());
    let torn = read_bytes(&packed[..packed.len() / 2]).unwrap_err();
    assert_eq!(torn.code, "data-unreadable");
}

#[test]
fn mistakes_have_their_line() {
    let back: String = [9000, 5401, 5399].map(line).concat();
    let other = format!("{}no time here\n{}", line(1), line(2));
    for (text, line, said) in [
        (back.as_str(), Some(3), "the line is 3,601 seconds earlier than the latest one"),
        (other.as_str(), Some(2), "the line has no time in brackets"),
        ("\n\n", None, "the log has no requests"),
        ("", None, "the log has no requests"),
    ] {
        let error = read_bytes(text.as_bytes()).unwrap_err();
        let message = error.message.english();
        assert!(message.contains(said), "{message}");
        assert_eq!((error.line, error.help.is_some()), (line, true));
    }
    assert_eq!(read(Path::new("/nowhere/access.log")).unwrap_err().code, "data-unreadable");
}

#[test]
fn lines_of_any_length_are_read_at_any_buffer_boundary() {
    let long = "x".repeat(3 * LINE_BYTES_MAX);
    let text = format!("{}{}{}{long}\n{}", line(1), line(2), line(2).trim_end(), line(3));
    let want = vec![(0, 1), (1, 2), (2, 1)];
    for size in (1..200).chain([4096, LINE_BYTES_MAX, BUFFER_BYTES]) {
        let mut reader = BufReader::with_capacity(size, text.as_bytes());
        assert_eq!(count(&mut reader, Path::new("a")).unwrap(), want, "{size}");
    }
}

#[test]
fn any_bytes_give_counts_or_a_mistake() {
    let mut random = Random::new(3);
    let good: String = (0..6).map(|number| line(number * 700)).collect();
    for _ in 0..20_000 {
        let mut text = good.clone().into_bytes();
        for _ in 0..1 + random.below(4) {
            let at = random.below(text.len() as u64) as usize;
            match random.below(3) {
                0 => text[at] = b"0123456789[]/:+- \n"[random.below(18) as usize],
                1 => text.truncate(at + 1),
                _ => text.insert(at, random.next_u64() as u8),
            }
        }
        if let Ok(seconds) = count(&mut text.as_slice(), Path::new("a")) {
            assert!(seconds.is_sorted() && seconds[0].0 == 0);
            assert!(seconds.iter().map(|(_, count)| count).sum::<u64>() <= 12);
        }
    }
}

#[test]
fn requests_are_in_the_order_of_their_lines() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    let text = [line(7), "no request\n".into(), "\n".into(), line(9)].concat();
    std::fs::write(&path, text).unwrap();
    let mut seen = Vec::new();
    let passed = requests(&path, &mut |request| {
        seen.push((request.path, request.at_s));
        Ok(())
    });
    assert_eq!(passed.unwrap(), 1, "the line that is no request");
    assert_eq!(seen.len(), 2);
    assert_eq!((seen[0].0.as_str(), seen[1].1 - seen[0].1), ("/a[1]", 2.0));
    std::fs::write(&path, "nothing of it\n").unwrap();
    let told = requests(&path, &mut |_| Ok(())).unwrap_err();
    assert!(told.diagnostic().message.english().contains("no requests"), "{told:?}");
}
