//! Messages on the bus are read back, and anything else is refused.

use super::*;

fn batch() -> Batch {
    let lines = b"{\"a\":1}\n{\"b\":2}\n".to_vec();
    let end = Some(End {
        lines: 9,
        cut_short: Some(say!("it was terminated by signal {signal}", signal = 9)),
        refused: false,
    });
    Batch { head: Head { life: Incarnation(5), first: 7, count: 2, end }, lines }
}

#[test]
fn a_batch_is_read_back() {
    let empty = Head { life: Incarnation(5), first: 0, count: 0, end: None };
    for batch in [batch(), Batch { head: empty, lines: Vec::new() }] {
        assert_eq!(Batch::from_bytes(&batch.to_bytes()), Some(batch));
    }
}

#[test]
fn truncated_or_inconsistent_batches_are_refused() {
    let whole = batch().to_bytes();
    for end in 0..whole.len() {
        assert_eq!(Batch::from_bytes(&whole[..end]), None, "cut at {end}");
    }
    let wrong = |change: fn(&mut Batch)| {
        let mut batch = batch();
        change(&mut batch);
        Batch::from_bytes(&batch.to_bytes())
    };
    assert_eq!(wrong(|batch| batch.head.count = 3), None);
    assert_eq!(wrong(|batch| batch.head.first = u64::MAX), None);
    assert_eq!(wrong(|batch| batch.lines.truncate(3)), None);
    assert_eq!(wrong(|batch| batch.head.end.as_mut().unwrap().lines = 8), None);
}

fn announcement() -> Announcement {
    Announcement { error_ns: 12_345, announced: "{\"first\":0,\"rows\":[]}".into() }
}

#[test]
fn an_announcement_is_read_back_completely_or_not_at_all() {
    let whole = announcement().to_bytes();
    assert_eq!(Announcement::from_bytes(&whole), Some(announcement()));
    for end in 0..whole.len() {
        assert_eq!(Announcement::from_bytes(&whole[..end]), None, "cut at {end}");
    }
}

/// The JSON of agents with version 4 of the protocol.
#[test]
fn parts_and_starts_keep_their_json() {
    let part = r#"{"agent":"b1","life":5,"first":3,"width":4,"of":7}"#;
    let assigned: Assigned = serde_json::from_str(part).unwrap();
    assert_eq!(assigned.part, LoadPart { first: 3, width: 4, of: 7 });
    let incomplete = part.replace(r#""width":4,"#, "");
    assert!(serde_json::from_str::<Assigned>(&incomplete).is_err());
    let start = r#"{"unix_ns":17,"signature":"s"}"#;
    let signed: SignedStart = serde_json::from_str(start).unwrap();
    assert_eq!(signed.signed_text("r1"), r#"["r1","begins",17]"#);
    assert_eq!([to_json(&assigned), to_json(&signed)], [part, start].map(Vec::from));
    assert_eq!(WIRE, 4);
}

#[test]
fn fuzz_no_announcement_makes_it_panic() {
    throng_fuzz::mutations(&[&announcement().to_bytes()], |bytes, _| {
        drop(Announcement::from_bytes(bytes));
    });
}

#[test]
fn fuzz_no_bytes_make_it_panic() {
    throng_fuzz::mutations(&[&batch().to_bytes()], |bytes, _| {
        if let Some(Batch { head, lines }) = Batch::from_bytes(bytes) {
            assert_eq!(lines.iter().filter(|byte| **byte == b'\n').count() as u64, head.count);
        }
    });
}
