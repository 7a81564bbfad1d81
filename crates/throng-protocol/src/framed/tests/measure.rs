use super::*;
use throng_base::Clock;
#[test]
fn measure() {
    let chat = chat();
    let clock = Clock::start();
    let said = [
        ("from", Value::Int(7)),
        ("id", Value::Int(8)),
        ("sent_ns", Value::Int(9)),
        ("text", Value::from("hello from 12345")),
    ];
    let packet = write(&chat, "said", &said, 0);
    let done = write(&chat, "done", &[("code", Value::Int(0))], 5);
    let n = 2_000_000u32;
    let mut decoded = Decoded::default();
    let code = chat.field(chat.message("done").unwrap(), "code").unwrap();
    let idp = chat.field(chat.message("said").unwrap(), "id").unwrap();
    let say = chat.message("say").unwrap();
    let t = chat.prepare(say, &leaves(&said[1..])).unwrap();
    let gift = chat
        .prepare(
            chat.message("gift").unwrap(),
            &fields(&[("gift", Value::Int(7)), ("price", Value::Int(100))]),
        )
        .unwrap();
    for _ in 0..3 {
        let t0 = clock.now();
        for _ in 0..n {
            std::hint::black_box(chat.decode(std::hint::black_box(&packet), &mut decoded)).unwrap();
        }
        let t1 = clock.now();
        for _ in 0..n {
            std::hint::black_box(chat.value(&packet, &decoded, &idp));
        }
        let t2 = clock.now();
        for _ in 0..n {
            std::hint::black_box(chat.decode(std::hint::black_box(&done), &mut decoded)).unwrap();
        }
        let t3 = clock.now();
        for _ in 0..n {
            std::hint::black_box(chat.value(&done, &decoded, &code));
        }
        let t4 = clock.now();
        let mut out = Vec::new();
        for i in 0..n {
            out.clear();
            let mut leaf = |leaf: u16, out: &mut Vec<u8>| {
                if leaf == 2 {
                    out.extend_from_slice(b"hello from 12345");
                    return Ok::<_, Infallible>(None);
                }
                Ok(Some(Value::Int(5 + i as i64)))
            };
            chat.encode(&t, u64::from(i), &mut leaf, &mut out).unwrap();
            std::hint::black_box(&out);
        }
        let t5 = clock.now();
        for i in 0..n {
            out.clear();
            let mut leaf = |_: u16, _: &mut Vec<u8>| Ok::<_, Infallible>(None);
            chat.encode(&gift, u64::from(i), &mut leaf, &mut out).unwrap();
            std::hint::black_box(&out);
        }
        let t6 = clock.now();
        let mut reader = PacketReader::new();
        let stream = done.repeat(100);
        for _ in 0..n / 100 {
            reader
                .read(&chat, std::hint::black_box(&stream), &mut |p| {
                    std::hint::black_box(p);
                    true
                })
                .unwrap();
        }
        let t7 = clock.now();
        let per = |a: throng_base::Time, b: throng_base::Time| {
            b.since(a).as_nanos() as f64 / f64::from(n)
        };
        eprintln!(
            "said {:.0} value {:.0} done {:.0} value {:.0} say {:.0} gift {:.0} read {:.0}",
            per(t0, t1),
            per(t1, t2),
            per(t2, t3),
            per(t3, t4),
            per(t4, t5),
            per(t5, t6),
            per(t6, t7)
        );
    }
}
