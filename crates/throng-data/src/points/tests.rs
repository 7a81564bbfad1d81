//! Files of points, and their mistakes.

use throng_base::Random;

use super::*;

fn read(text: &str) -> Result<Vec<(u64, f64)>, DataError> {
    read_columns(text.as_bytes(), None, None)
}

fn read_columns(
    text: &[u8],
    time: Option<&str>,
    rate: Option<&str>,
) -> Result<Vec<(u64, f64)>, DataError> {
    let path = Path::new("day.csv");
    let points = PointsFile { path, time, rate }.read_from(&text.to_vec())?;
    Ok(points.into_iter().map(|(time, rate)| (time.as_millis() as u64, rate)).collect())
}

#[test]
fn times_are_seconds_durations_and_clock_times() {
    let want = vec![(0, 10.0), (90_000, 500.0), (90_000, 0.0), (120_500, 0.5)];
    for text in [
        "0,10\n90,500\n90,0\n120.5,0.5\n",
        "time,rate\n0,10\n90,500/s\n90,0\n120.5,30/m",
        "seconds;rps\r\n1700000000;10\r\n1700000090;500\r\n1700000090;0\r\n1700000120.5;0.5\r\n",
        "t\tr\n0s\t10\n1m30s\t500\n1m30s\t0\n2m500ms\t0.5\n",
        "\"at\",\"per second\"\n12:00,10\n\n12:01:30,500\n12:01:30,0\n12:02:00.5,0.5",
        "2026-01-31 23:59:00,10\n2026-02-01T00:00:30Z,500\n2026-02-01 00:00:30,0\n2026-02-01 00:01:00.5,0.5\n",
    ] {
        assert_eq!(read(text).unwrap(), want, "{text}");
    }
    let text = b"rps,host,minute\n10,a,0\n500,b,90\n0,a,90\n0.5,c,120.5\n";
    assert_eq!(read_columns(text, Some("minute"), Some("rps")).unwrap(), want);
}

#[test]
fn mistakes_have_their_line_and_column() {
    for (text, line, said) in [
        ("time,rate\n0,10\n60,20\n30,5\n", Some(4), "the time goes backward from `60` to `30`"),
        ("23:59:00,1\n00:01:00,2\n", Some(2), "the time goes back"),
        ("time,rate\n0,10\n60,-5\n", Some(3), "the rate `-5` is negative"),
        ("time,rate\n0,10\n60,many\n", Some(3), "`many` in column rate is not a rate"),
        ("0,10\n60,NaN\n", Some(2), "`NaN` in column 2 is not a rate"),
        ("time,rate\n0,10\nsoon,5\n", Some(3), "`soon` in column time is not a time"),
        ("time,rate\n0,10\n60\n", Some(3), "the row has only 1 of 2 fields"),
        ("time\n0\n", Some(1), "the row has only 1 of 2 fields"),
        ("", None, "the file does not have two points at different times"),
        ("time,rate\n", None, "the file does not have two points at different times"),
        ("0,10\n", None, "the file does not have two points at different times"),
        ("5,10\n5,20\n", None, "the file does not have two points at different times"),
    ] {
        let error = read(text).unwrap_err();
        let message = error.message.english();
        assert!(message.contains(said), "{text:?}: {message}");
        assert_eq!((error.line, error.help.is_some()), (line, true), "{text:?}");
    }
    let error = read_columns(b"a,b\n0,1\n", Some("time"), None).unwrap_err();
    assert_eq!((error.code, error.line), ("data-column", Some(1)));
    let many: String = (0..=POINTS_MAX).map(|second| format!("{second},1\n")).collect();
    assert!(read(&many).unwrap_err().message.english().contains("more than 1,000,000 points"));
}

#[test]
fn any_bytes_give_ordered_points_or_a_mistake() {
    let mut random = Random::new(2);
    let good = b"time,rate\n0,10\n1m30s,500/s\n12:01:30,0.5\n\"7\",1\n";
    for _ in 0..1_000 {
        let mut text = good.to_vec();
        for _ in 0..1 + random.below(4) {
            let at = random.below(text.len() as u64) as usize;
            match random.below(3) {
                0 => text[at] = b"0123456789,;:.-\n\"x"[random.below(18) as usize],
                1 => drop(text.remove(at)),
                _ => text.insert(at, random.next_u64() as u8),
            }
        }
        if let Ok(points) = read_columns(&text, None, None) {
            assert!(points.len() > 1 && points.is_sorted_by_key(|(time, _)| *time));
            assert!(points.iter().all(|(_, rate)| *rate >= 0.0 && rate.is_finite()));
        }
    }
}
