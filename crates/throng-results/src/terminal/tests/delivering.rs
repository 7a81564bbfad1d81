//! Tests the text about deliveries.

use super::*;
use expect_test::expect;

/// The head of a summary, and the sections that start with one of these words.
fn sections(summary: &Summary, style: &Style, begin: &[&str]) -> String {
    let text = summary_text(summary, style);
    assert_fits(&text, style.width);
    let wanted = text.split("\n\n").filter(|section| begin.iter().any(|b| section.starts_with(b)));
    wanted.map(|section| format!("{}\n", section.trim_end())).collect()
}

#[test]
fn the_summary_of_a_chat_room() {
    let wanted =
        ["live", "step", "latency", "deliveries", "failures", "users", "messages", "threshold"];
    expect![[r#"
        live chat room · thresholds not met
        https://127.0.0.1:8443 · 10.0s · 21,000 ok · 0 failed · 2,100 ok/s
        2026-11-21T12:03:01.000Z
        threshold            measured  verdict
        room talk lost = 0          2  NOT MET
        room talk twice = 0         1  NOT MET
        step     attempts      ok  failed   ok/s   in  out
        connect     1,000   1,000       0    100  0 B  0 B
        say        20,000  20,000       0  2,000  0 B  0 B
        all        21,000  21,000       0  2,100  0 B  0 B
        latency                 mean     p50     p90     p95     p99   p99.9     max
        connect               2.00ms  2.00ms  2.00ms  2.00ms  2.00ms  2.00ms  2.00ms
        say                    900µs   900µs   900µs   900µs   900µs   900µs   900µs
        all                    952µs   900µs   900µs   900µs  2.00ms  2.00ms  2.00ms
        room talk (delivery)  1.40ms  1.40ms  1.40ms  1.40ms  1.40ms  1.40ms   613ms
        – too few values: p90 needs 10, p95 20, p99 100, p99.9 1,000, p99.99 10,000
        failures · these are not attempts, so no share is shown
        2  room talk: a message did not reach a user in its audience in time
           (delivery-lost, blame: target)
           at 5.00s: message 0x2a sent by user 17 at 1.30s did not reach 2 of 500
           receivers on one shard: users 5, 77
        deliveries    sent    expected   delivered  lost  twice  late  out of order
        room talk   20,000  20,000,000  19,999,928     2      1    10             0
        whispers         0           0           0     0      0     0             0
        room talk: 70 undetermined: the receiver left or the run ended first
        room talk: 4 reached users outside their audience
        room talk: at 6.00s: message 0x2b was delivered to user 5 again
        users        1,000 online at peak
        connections  1,000 open at peak · 1,000 opened · 100 opened in the peak second
                     100 per second on average
        closed       2 half-closed by throng
        heartbeats   300 sent · 280 answered · 0 lost (0 %)
                     20 deliberately late, duplicated or not sent
        messages     20,000 sent · 20,020,000 received · 20,000,000 of them pushes
                     2 violated the protocol · 10 replies without a request
                     20 skipped because a handler was busy
    "#]]
    .assert_eq(&sections(&sample::chat(), &full(), &wanted));
}

#[test]
fn the_summary_of_a_chat_room_in_chinese() {
    let chinese = Style { language: Language::Chinese, ..full() };
    let wanted = ["响应时间", "投递", "失败", "警告", "用户"];
    expect![[r#"
        警告[deliveries-unwatched]: 投递账本中有消息未被跟踪
          = `whispers` 的 1,234 条消息中，有 1,234 条未能跟踪全部接收者
          = 原因：账本内存已满，或消息 id 被重复使用
          = 建议: 给每条消息唯一的 id；缩短 `lost_after`，或减少消息
        响应时间            平均     p50     p90     p95     p99   p99.9  p99.99    最大
        connect           2.00ms  2.00ms  2.00ms  2.00ms  2.00ms  2.00ms       –  2.00ms
        say                900µs   900µs   900µs   900µs   900µs   900µs   900µs   900µs
        合计               952µs   900µs   900µs   900µs  2.00ms  2.00ms  2.00ms  2.00ms
        room talk (投递)  1.40ms  1.40ms  1.40ms  1.40ms  1.40ms  1.40ms  1.40ms   613ms
        – 样本太少：p90 需要 10 个，p95 20 个，p99 100 个，p99.9 1,000 个，p99.99 10,000
        个
        失败 · 不属于尝试，因此没有比例
        2  room talk: 消息未按时到达应收用户（delivery-lost，责任方：被测服务）
           5.00s 时：用户 17 在 1.30s 发出的消息 0x2a：一个分片的 500 个接收者中 2 个未
           收到，用户 5, 77
        投递         发送      应送达        送达  丢失  重复  迟到  乱序
        room talk  20,000  20,000,000  19,999,928     2     1    10     0
        whispers        0           0           0     0     0     0     0
        room talk: 70 次无法判定：接收者先离开，或运行先结束
        room talk: 4 条到达了不应收到的用户
        room talk: 6.00s 时：消息 0x2b 重复到达用户 5
        whispers: 6 条在计为丢失之后到达
        whispers: 5 条并非由本次运行的用户发出
        whispers: 1,234 条消息未能跟踪全部接收者
        用户         最高在线 1,000
        连接         最高并存 1,000 · 建立 1,000 · 单秒最多建立 100 · 平均每秒 100
        断开方式     由 throng 半关闭 2
        心跳         发送 300 · 已响应 280 · 丢失 0（0 %） · 故意迟发、重发或不发 20
        消息         发送 20,000 · 接收 20,020,000 · 其中推送 20,000,000 · 不合协议 2
                     无对应请求的应答 10 · 处理器繁忙而未处理 20
    "#]]
    .assert_eq(&sections(&sample::chat_unwatched(3), &chinese, &wanted));
}

#[test]
fn untracked_deliveries_meet_no_threshold() {
    let wanted = ["live", "error[", "warning[", "deliveries"];
    let with_threshold = sample::chat_unwatched(2);
    expect![[r#"
        live chat room · the result is invalid
        https://127.0.0.1:8443 · 10.0s · 21,000 ok · 0 failed · 2,100 ok/s
        2026-11-21T12:03:01.000Z
        error[deliveries-unwatched]: the delivery ledger did not track some messages
          = 1,234 of 20,000 messages of `room talk` were not tracked for all of their receivers
          = cause: the ledger's memory was full, or a message ID was reused
          = help: give each message a unique ID, shorten `lost_after`, or send fewer messages
        deliveries    sent    expected   delivered  lost  twice  late  out of order
        room talk   20,000  20,000,000  19,999,928     2      1    10             0
        whispers         0           0           0     0      0     0             0
        room talk: 70 undetermined: the receiver left or the run ended first
        room talk: 6 arrived after being counted as lost
        room talk: 4 reached users outside their audience
        room talk: 5 arrived without being sent by a user of this run
        room talk: 1,234 messages were not tracked for all of their receivers
        room talk: at 6.00s: message 0x2b was delivered to user 5 again
    "#]]
    .assert_eq(&sections(&with_threshold, &full(), &wanted));
    assert_eq!(exit_of(&with_threshold), 5);
    let without = sample::chat_unwatched(3);
    expect![[r#"
        live chat room · thresholds not met
        https://127.0.0.1:8443 · 10.0s · 21,000 ok · 0 failed · 2,100 ok/s
        2026-11-21T12:03:01.000Z
        warning[deliveries-unwatched]: the delivery ledger did not track some messages
          = 1,234 of 1,234 messages of `whispers` were not tracked for all of their receivers
          = cause: the ledger's memory was full, or a message ID was reused
          = help: give each message a unique ID, shorten `lost_after`, or send fewer messages
        deliveries    sent    expected   delivered  lost  twice  late  out of order
        room talk   20,000  20,000,000  19,999,928     2      1    10             0
        whispers         0           0           0     0      0     0             0
        room talk: 70 undetermined: the receiver left or the run ended first
        room talk: 4 reached users outside their audience
        room talk: at 6.00s: message 0x2b was delivered to user 5 again
        whispers: 6 arrived after being counted as lost
        whispers: 5 arrived without being sent by a user of this run
        whispers: 1,234 messages were not tracked for all of their receivers
    "#]]
    .assert_eq(&sections(&without, &full(), &wanted));
    assert_eq!(exit_of(&without), 1);
}

#[test]
fn a_ledger_without_ids_is_reported_with_an_example() {
    let wanted = ["live", "error["];
    let sent = sample::chat_blind(true);
    expect![[r#"
        live chat room · the result is invalid
        https://127.0.0.1:8443 · 10.0s · 21,000 ok · 0 failed · 2,100 ok/s
        2026-11-21T12:03:01.000Z
        error[deliveries-blind]: the delivery ledger found no ID in any message
          = no ID was found in 20,000 sent and 20,000,000 received messages of `room talk`
          = `match` found no ID in a message sent by user 5: `hello`
          = help: set `match` to the position of the ID: `json.id`, `{prefix: '42', json: '[1].id'}`, `{regex: …}`
    "#]]
    .assert_eq(&sections(&sent, &full(), &wanted));
    let received = sample::chat_blind(false);
    expect![[r#"
        live chat room · the result is invalid
        https://127.0.0.1:8443 · 10.0s · 21,000 ok · 0 failed · 2,100 ok/s
        2026-11-21T12:03:01.000Z
        error[deliveries-blind]: the delivery ledger found no ID in any message
          = no ID was found in 0 sent and 20,000,000 received messages of `room talk`
          = `match` found no ID in a message sent by user 5: `hello`
          = help: set `match` to the position of the ID: `json.id`, `{prefix: '42', json: '[1].id'}`, `{regex: …}`
    "#]]
    .assert_eq(&sections(&received, &full(), &wanted));
    assert_eq!((exit_of(&sent), exit_of(&received)), (5, 5));
}

/// The missing messages may be in the records that could not be separated.
#[test]
fn losses_beside_unseparated_records_are_blamed_on_the_scenario() {
    let joined = sample::chat_joined();
    expect![[r#"
        live chat room · the result is invalid
        https://127.0.0.1:8443 · 10.0s · 21,000 ok · 0 failed · 2,100 ok/s
        2026-11-21T12:03:01.000Z
        error[deliveries-blind]: the delivery ledger could not read all messages
          = 3 messages of `room talk` contained several records that could not be separated; 2 deliveries are missing
          = help: if the server combines several records into one message, write `protocol: {delimiter: "\n"}`
        failures · these are not attempts, so no share is shown
        2  room talk: a message did not reach a user in its audience in time
           (delivery-lost, blame: scenario)
           at 5.00s: message 0x2a sent by user 17 at 1.30s did not reach 2 of 500
           receivers on one shard: users 5, 77
    "#]]
    .assert_eq(&sections(&joined, &full(), &["live", "error[", "failures"]));
    assert_eq!(exit_of(&joined), 5);
    let next = |summary: &Summary| summary.steps.errors[0].next().english();
    assert_eq!(next(&joined), "set `protocol: {delimiter: …}` for the connection");
    assert_eq!(next(&sample::chat()), "trace one lost message through the target");
}

#[test]
fn messages_dropped_by_the_generator_meet_no_threshold() {
    let wanted = ["error[", "warning[", "messages"];
    expect![[r#"
        error[messages-dropped]: throng dropped incoming messages
          = 1,234 messages were dropped because too many were waiting for one user
          = cause: messages arrived faster than an `expect` or a handler processed them
          = help: reduce the handler time per message, or spread the messages over more users
    "#]]
    .assert_eq(&sections(&sample::chat_dropped(true), &full(), &wanted));
    assert_eq!(exit_of(&sample::chat_dropped(true)), 5);
    expect![[r#"
        warning[messages-dropped]: throng dropped incoming messages
          = 1,234 messages were dropped because too many were waiting for one user
          = cause: messages arrived faster than an `expect` or a handler processed them
          = help: reduce the handler time per message, or spread the messages over more users
    "#]]
    .assert_eq(&sections(&sample::chat_dropped(false), &full(), &wanted));
    assert_ne!(exit_of(&sample::chat_dropped(false)), 5);
    let chinese = Style { language: Language::Chinese, ..full() };
    let wanted = ["错误[", "警告[", "消息"];
    expect![[r#"
        错误[messages-dropped]: throng 丢弃了已到达的消息
          = 丢弃了 1,234 条消息：单个用户等待处理的消息超过上限
          = 原因：消息到达的速度快于 `expect` 或处理器处理的速度
          = 建议: 缩短处理器处理每条消息的时间，或把消息分散到更多用户
    "#]]
    .assert_eq(&sections(&sample::chat_dropped(true), &chinese, &wanted));
}

fn exit_of(summary: &Summary) -> u8 {
    crate::verdict::exit_code(summary).code()
}

#[test]
fn a_live_line_shows_deliveries() {
    let mut live = Live::new(full(), &sample::chat_info());
    let mut out = String::new();
    for (second, interval) in (1..).zip(&sample::chat_intervals()).skip(4).take(2) {
        live.add(interval);
        out += &format!("|{}\n", live.line(Time::from_secs(second)).replace('\n', "\n|"));
    }
    assert_fits(&out, 81);
    expect![[r#"
        |  time  online offline     ok failed   ok/s    p50    p99 deliv/s bytes/s codes
        |    5s     500       0   2100      0    420  900µs 2.00ms  400000     0 B
        |    6s     600       0   4200      0   2100  900µs 2.00ms 1999998     0 B deliv…
    "#]]
    .assert_eq(&out);
}
