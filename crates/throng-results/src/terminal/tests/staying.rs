//! Tests the text about users on long-lived connections.

use super::*;
use crate::tests::sample::im;
use expect_test::expect;

/// A summary in two parts: the tables, and the text below them.
fn halves(style: &Style) -> (String, String) {
    let text = summary_text(&im(), style);
    assert_fits(&text, style.width);
    let users = if style.language == Language::Chinese { "\n\n用户 " } else { "\n\nusers " };
    let at = text.find(users).unwrap() + 1;
    (text[..at].to_string(), text[at + 1..].to_string())
}

#[test]
fn the_tables_of_a_million_users() {
    expect![[r#"
        a million people in an IM server · thresholds met
        ws://127.0.0.1:8089 · 11m10s · 24,166,449 ok · 1,203 failed · 36,069 ok/s
        2026-11-21T12:03:01.000Z

        threshold                phase   measured  verdict
        users.online >= 999_990  hold     999,997  met
        users.present >= 1M      hold   1,000,000  met
        connect p99 < 3s                   1.71ms  met
        heartbeats.lost < 0.01%          <0.001 %  met

        step            attempts          ok  failed    ok/s       in      out
        connect /acc   1,001,203   1,000,003   1,200   1,493      0 B      0 B
        login          1,000,003   1,000,003       0   1,493      0 B      0 B
        stay           1,000,003   1,000,000       3   1,493      0 B      0 B
        heartbeat     21,166,443  21,166,443       0  31,592  1.90 GB  1.48 GB
        all           24,167,652  24,166,449   1,203  36,069  1.90 GB  1.48 GB

        latency         mean    p50     p90     p95     p99   p99.9  p99.99     max
        connect /acc   400µs  400µs   400µs   400µs   400µs   400µs   400µs   400µs
        login          310µs  310µs   310µs   310µs   310µs   310µs   310µs   310µs
        heartbeat     2.00ms  758µs  4.82ms  6.72ms  6.72ms  6.72ms  6.72ms  6.74ms
        all           1.86ms  758µs  4.82ms  6.72ms  6.72ms  6.72ms  6.72ms  6.74ms

        rate         ▇▇▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂█  33,333/s to 55,000/s
        p99          █████████████████████  6.72ms
        users        ▃████████████████████  640,000 to 1,000,000

        errors · shares of 24,167,652 attempts
        1,000   0.004 %  connect /acc: the target refused the connection
                         (connect-refused, blame: target)
          200  <0.001 %  connect /acc: the connection was not established in time
                         (connect-timeout, blame: target)
            3  <0.001 %  stay: the target dropped the connection while the user was
                         online (lost, blame: target)
                         at 5m00s: read: Connection reset by peer (os error 104)

        slowest step heartbeat (mean 2.00ms) · 98.4 % of the total step time

        funnel           entered     passed  failed     p50     p90     p99     max
        connect        1,001,203  1,000,003   1,200   453µs  1.38ms  1.71ms  1.71ms
        upgrade        1,000,003  1,000,003       0  1.27ms  3.85ms  4.75ms  4.76ms
        login          1,000,003  1,000,003       0  3.52ms  10.8ms  13.3ms  13.3ms
        first message  1,000,003  1,000,000       0   34.0s   34.0s   34.0s   34.0s
        steady         1,000,003  1,000,000       3  10m49s  10m57s  10m57s  10m59s
        end            1,000,000  1,000,000       0   350µs   350µs   350µs   350µs

        failed in  count  cause            blame
        connect    1,000  connect-refused  target
        connect      200  connect-timeout  target
        steady         2  reset            target
        steady         1  lost             target

        connections ended         count     min    mean     p50     p90     p99     max
        closed by throng      1,000,000  10m40s  10m50s  10m49s  10m57s  10m57s  10m59s
        closed by the target          1   4m40s   4m40s       –       –       –   4m40s
        reset by the target           2   4m40s   4m40s   4m40s       –       –   4m40s

        pushed                  messages  per second       in
        broadcast             10,500,000      15,672  1.26 GB
        someone went offline           0           0      0 B

        online  at the end    least       most     opened  opened/s  broken
        fill     1,000,000   20,000  1,000,000  1,000,000    20,000       0
        hold     1,000,000  999,997  1,000,000          3      0.01       3
        drain            0        0    950,000          0         0       0

        phase    time    attempts  failed    ok/s    p50     p99     max
        fill    50.0s   2,851,183   1,200  57,000  399µs  6.72ms  6.74ms
        hold   10m00s  19,999,809       3  33,333  758µs  6.72ms  6.74ms
        drain   20.0s   1,316,660       0  65,833  758µs  6.72ms  6.74ms
    "#]]
    .assert_eq(&halves(&full()).0);
}

/// Messages of a stream have times between them; others do not.
#[test]
fn streams_have_times_between_messages() {
    let mut summary = im();
    summary.steps.pushed[0].latency = summary.steps.rows[1].latency;
    let text = summary_text(&summary, &full());
    let at = text.find("pushed  ").unwrap();
    let table: Vec<&str> = text[at..].lines().take(3).map(str::trim_end).collect();
    expect![[r#"
        pushed                  messages  per second       in  gap p50    p99    max
        broadcast             10,500,000      15,672  1.26 GB    310µs  310µs  310µs
        someone went offline           0           0      0 B        –      –      –"#]]
    .assert_eq(&table.join("\n"));
}

#[test]
fn the_text_below_the_tables_of_a_million_users() {
    expect![[r#"
        users        1,000,000 online at peak · 1,000,000 started · 1,000,000 finished
        connections  1,000,000 open at peak · 1,000,003 opened
                     20,000 opened in the peak second · 1,493 per second on average
                     3 reconnects · 1,200 not opened · 1,000 refused
        closed       1,000,000 by throng · 1 by the target · 2 reset by the target
        life cycle   1,000,003 started · 1,000,000 complete · 3 broken
                     99.99 % of the closed connections had a complete life cycle
        heartbeats   21,166,443 sent · 21,166,441 answered · 2 lost (<0.001 %)
                     p50 758µs · p99 6.72ms · max 6.74ms
        TCP          67,000 sampled · round trip p50 45.0µs · p99 45.0µs
                     0.00 retransmitted segments per connection
                     1.46 KB backlog at peak
        messages     21,166,443 sent · 31,666,443 received · 10,500,000 of them pushes
        bytes        3.48 GB (5.20 MB/s) received · 1.69 GB (2.53 MB/s) sent

        generator    0.90 cores used · 24.9µs CPU per attempt · 1.40 GB memory
                     host 83.0 % busy
                     busiest shard 71.0 % · softirq 21.0 % · steal 1.20 %
                     640 MB for users · 320 MB for connections · 1.90 MB for recording
                     2.60 GB in kernel sockets · at least 8.00 GB left
                     lateness p50 150µs · p99 150µs · max 150µs
                     throng stayed on schedule

        host         box-1 · Linux 6.18.5 · Debian GNU/Linux 13 (trixie) · KVM
                     AMD EPYC 7B13 · 2 cores · 25.8 GB memory · cgroup limit 17.2 GB
                     1024 (hard 20000) descriptors · ports 32768–60999 · tcp_tw_reuse 2
                     somaxconn 4096 · clock tsc

        directory    throng 0.1.0 (10d8f4b21) · seed 42

        level                count  failed    p50     p99  connects/s      users  cores
        fill 50.0s       2,851,183   1,200  399µs  6.72ms      20,000  1,000,000   0.90
          connect /acc   1,001,200   1,200  400µs   400µs
          login          1,000,000       0  310µs   310µs
          heartbeat        849,983       0  758µs  6.72ms
        hold 10m00s     19,999,809       3  758µs  6.72ms        0.01  1,000,000   0.90
          connect /acc           3       0  400µs       –
          login                  3       0  310µs       –
          stay                   3       3      –       –
          heartbeat     19,999,800       0  758µs  6.72ms
        drain 20.0s      1,316,660       0  758µs  6.72ms           0          0   0.90
          stay           1,000,000       0      –       –
          heartbeat        316,660       0  758µs  6.72ms
        cores: processors that the generator used, on average

        users         p99
        0          6.72ms  ████████████████████████████████████████
        1,000,000  6.72ms  ████████████████████████████████████████
        1,000,000  6.72ms  ████████████████████████████████████████
    "#]]
    .assert_eq(&halves(&full()).1);
}

#[test]
fn the_tables_of_a_million_users_in_chinese() {
    let chinese = Style { language: Language::Chinese, ..full() };
    expect![[r#"
        a million people in an IM server · 阈值满足
        ws://127.0.0.1:8089 · 11m10s · 成功 24,166,449 · 失败 1,203 · 36,069 成功/s
        2026-11-21T12:03:01.000Z

        阈值                     阶段       实测  结论
        users.online >= 999_990  hold    999,997  达标
        users.present >= 1M      hold  1,000,000  达标
        connect p99 < 3s                  1.71ms  达标
        heartbeats.lost < 0.01%         <0.001 %  达标

        步骤                尝试        成功   失败  成功/s     接收     发送
        connect /acc   1,001,203   1,000,003  1,200   1,493      0 B      0 B
        login          1,000,003   1,000,003      0   1,493      0 B      0 B
        stay           1,000,003   1,000,000      3   1,493      0 B      0 B
        heartbeat     21,166,443  21,166,443      0  31,592  1.90 GB  1.48 GB
        合计          24,167,652  24,166,449  1,203  36,069  1.90 GB  1.48 GB

        响应时间        平均    p50     p90     p95     p99   p99.9  p99.99    最大
        connect /acc   400µs  400µs   400µs   400µs   400µs   400µs   400µs   400µs
        login          310µs  310µs   310µs   310µs   310µs   310µs   310µs   310µs
        heartbeat     2.00ms  758µs  4.82ms  6.72ms  6.72ms  6.72ms  6.72ms  6.74ms
        合计          1.86ms  758µs  4.82ms  6.72ms  6.72ms  6.72ms  6.72ms  6.74ms

        速率         ▇▇▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂█  33,333/s 至 55,000/s
        p99          █████████████████████  6.72ms
        用户         ▃████████████████████  640,000 至 1,000,000

        错误 · 占 24,167,652 次尝试的比例
        1,000   0.004 %  connect /acc: 被测服务拒绝连接（connect-refused，责任方：被测服
                         务）
          200  <0.001 %  connect /acc: 建立连接超时（connect-timeout，责任方：被测服务）
            3  <0.001 %  stay: 用户驻留期间，被测服务断开了连接（lost，责任方：被测服
                         务）
                         5m00s 时：read：连接被对方重置（os error 104）

        最慢步骤     heartbeat（平均 2.00ms） · 占全部步骤时间的 98.4 %

        漏斗           进入       通过   失败     p50     p90     p99    最大
        建立连接  1,001,203  1,000,003  1,200   453µs  1.38ms  1.71ms  1.71ms
        协议升级  1,000,003  1,000,003      0  1.27ms  3.85ms  4.75ms  4.76ms
        登录      1,000,003  1,000,003      0  3.52ms  10.8ms  13.3ms  13.3ms
        首条消息  1,000,003  1,000,000      0   34.0s   34.0s   34.0s   34.0s
        保持在线  1,000,003  1,000,000      3  10m49s  10m57s  10m57s  10m59s
        断开      1,000,000  1,000,000      0   350µs   350µs   350µs   350µs

        失败环节   次数  原因             责任方
        建立连接  1,000  connect-refused  被测服务
        建立连接    200  connect-timeout  被测服务
        保持在线      2  reset            被测服务
        保持在线      1  lost             被测服务

        连接的结束           次数    最小    平均     p50     p90     p99    最大
        由 throng 关闭  1,000,000  10m40s  10m50s  10m49s  10m57s  10m57s  10m59s
        由被测服务关闭          1   4m40s   4m40s       –       –       –   4m40s
        由被测服务重置          2   4m40s   4m40s   4m40s       –       –   4m40s

        推送                        消息    每秒     接收
        broadcast             10,500,000  15,672  1.26 GB
        someone went offline           0       0      0 B

        在线      结束时     最少       最多       新建  新建/s  异常断开
        fill   1,000,000   20,000  1,000,000  1,000,000  20,000         0
        hold   1,000,000  999,997  1,000,000          3    0.01         3
        drain          0        0    950,000          0       0         0

        阶段     时间        尝试   失败  成功/s    p50     p99    最大
        fill    50.0s   2,851,183  1,200  57,000  399µs  6.72ms  6.74ms
        hold   10m00s  19,999,809      3  33,333  758µs  6.72ms  6.74ms
        drain   20.0s   1,316,660      0  65,833  758µs  6.72ms  6.74ms
    "#]]
    .assert_eq(&halves(&chinese).0);
}

#[test]
fn the_text_below_the_tables_of_a_million_users_in_chinese() {
    let chinese = Style { language: Language::Chinese, ..full() };
    expect![[r#"
        用户         最高在线 1,000,000 · 启动 1,000,000 · 完成 1,000,000
        连接         最高并存 1,000,000 · 建立 1,000,003 · 单秒最多建立 20,000
                     平均每秒 1,493 · 重连 3 · 未能建立 1,200 · 被拒绝 1,000
        断开方式     由 throng 关闭 1,000,000 · 由被测服务关闭 1 · 由被测服务重置 2
        生命周期     启动 1,000,003 · 完整 1,000,000 · 异常断开 3
                     已结束连接的完整率 99.99 %
        心跳         发送 21,166,443 · 已响应 21,166,441 · 丢失 2（<0.001 %）
                     p50 758µs · p99 6.72ms · 最大 6.74ms
        TCP          采样 67,000 · 往返 p50 45.0µs · p99 45.0µs
                     平均每条重传 0.00 个报文段 · 最大积压 1.46 KB
        消息         发送 21,166,443 · 接收 31,666,443 · 其中推送 10,500,000
        流量         接收 3.48 GB (5.20 MB/s) · 发送 1.69 GB (2.53 MB/s)

        压力机       占用 0.90 核 · 每次尝试 CPU 24.9µs · 内存 1.40 GB · 整机 CPU 83.0 %
                     最忙分片 71.0 % · 软中断 21.0 % · 虚拟机抢占 1.20 %
                     用户占 640 MB · 连接占 320 MB · 记录占 1.90 MB
                     内核套接字占 2.60 GB · 最低剩余 8.00 GB
                     滞后 p50 150µs · p99 150µs · 最大 150µs
                     按计划完成发压

        主机         box-1 · Linux 6.18.5 · Debian GNU/Linux 13 (trixie) · KVM
                     AMD EPYC 7B13 · 2 核 · 内存 25.8 GB · cgroup 限制 17.2 GB
                     文件描述符上限 1024（硬限制 20000） · 端口 32768–60999
                     tcp_tw_reuse 2 · somaxconn 4096 · 时钟 tsc

        运行目录     throng 0.1.0 (10d8f4b21) · 随机种子 42

        负载级                次数   失败    p50     p99  连接/s       用户  处理器核
        fill 50.0s       2,851,183  1,200  399µs  6.72ms  20,000  1,000,000      0.90
          connect /acc   1,001,200  1,200  400µs   400µs
          login          1,000,000      0  310µs   310µs
          heartbeat        849,983      0  758µs  6.72ms
        hold 10m00s     19,999,809      3  758µs  6.72ms    0.01  1,000,000      0.90
          connect /acc           3      0  400µs       –
          login                  3      0  310µs       –
          stay                   3      3      –       –
          heartbeat     19,999,800      0  758µs  6.72ms
        drain 20.0s      1,316,660      0  758µs  6.72ms       0          0      0.90
          stay           1,000,000      0      –       –
          heartbeat        316,660      0  758µs  6.72ms
        核数：发压端平均使用的处理器数

        用户          p99
        0          6.72ms  ████████████████████████████████████████
        1,000,000  6.72ms  ████████████████████████████████████████
        1,000,000  6.72ms  ████████████████████████████████████████
    "#]]
    .assert_eq(&halves(&chinese).1);
}

#[test]
fn a_live_line_of_a_million_users() {
    let mut live = Live::new(full(), &sample::im_info());
    let mut out = String::new();
    for mut interval in sample::im_intervals() {
        // Some users are still connecting.
        let coming = if interval.second < 49 { 1_234 } else { 0 };
        interval.gauges.users_online -= coming;
        live.add(&interval);
        let text = live.line(Time::from_secs(interval.second + 1));
        match interval.second {
            0 => out += &format!("{text}\n"),
            48 | 49 | 299..=301 | 651 | 669 => out += &format!("{}\n", last_line(&text)),
            _ => assert_fits(&text, 80),
        }
    }
    assert_fits(&out, 80);
    let framed: String = out.lines().map(|line| format!("|{line}\n")).collect();
    expect![[r#"
        |  time  online offline     ok failed   ok/s    p50    p99    max bytes/s codes
        |    1s   18766    1234  40666     24  40666  399µs  424µs 6.74ms  120 KB con… +1
        |   49s  978766    1234  2.78M   1176  72666  399µs 6.72ms 6.74ms 5.88 MB con… +1
        |   50s 1000000       0  2.85M   1200  73333  399µs 6.72ms 6.74ms 6.00 MB con… +1
        | 5m00s 1000000       0  11.2M   1200  33333  758µs 6.72ms 6.74ms  136 MB
        | 5m01s  999997       3  11.2M   1203  33333  758µs 6.72ms 6.74ms 6.00 MB lost:3
        | 5m02s 1000000       0  11.2M   1203  33339  758µs 6.72ms 6.74ms 6.00 MB
        |10m52s  900000       0  23.0M   1203  80000  758µs 6.72ms 6.74ms 5.40 MB
        |11m10s       0       0  24.2M   1203  50000      –      –      –     0 B
    "#]]
    .assert_eq(&framed);
    // For HTTP users, one column of the same width is sufficient.
    let mut live = Live::new(full(), &sample::info());
    let mut interval = live_interval(0, 5, &[(200, 5)]);
    interval.gauges.users_online = 1_000_000;
    live.add(&interval);
    assert!(live.line(Time::from_secs(1)).contains("    1s 1000000        5 "));
}

fn last_line(text: &str) -> &str {
    text.lines().last().unwrap_or_default()
}

/// The sections of a summary that start with one of these words.
fn sections(text: &str, begin: &[&str]) -> String {
    let wanted = |section: &&str| begin.iter().any(|word| section.starts_with(word));
    let sections = text.split("\n\n").filter(wanted).map(str::trim_end);
    sections.collect::<Vec<_>>().join("\n\n")
}

#[test]
fn a_generator_at_its_limit_is_reported() {
    let summary = sample::im_held(false);
    let text = summary_text(&summary, &full());
    assert_fits(&text, 80);
    expect![[r#"
        a million people in an IM server · the result is invalid
        ws://127.0.0.1:8089 · 11m10s · 24,166,449 ok · 1,203 failed · 36,069 ok/s
        2026-11-21T12:03:01.000Z

        online  at the end    least     most     opened  opened/s  broken  paused
        fill       612,000   20,000  612,000  1,000,000    20,000       0    20 s
        hold       612,000  612,000  612,000          3      0.01       3    40 s
        drain            0        0  612,000          0         0       0     0 s
        paused: the generator was at one of its limits and added no users

        generator    0.90 cores used · 24.9µs CPU per attempt · 1.40 GB memory
                     host 83.0 % busy
                     busiest shard 71.0 % · softirq 21.0 % · steal 1.20 %
                     640 MB for users · 320 MB for connections · 1.90 MB for recording
                     2.60 GB in kernel sockets · at least 8.00 GB left
                     growth paused for 60 s
                     lateness p50 150µs · p99 150µs · max 150µs
                     the result is invalid, see above"#]]
    .assert_eq(&sections(&text, &["a million", "online", "generator"]));
    let summary = sample::im_held(true);
    let chinese = Style { language: Language::Chinese, ..full() };
    for style in [full(), chinese] {
        let text = summary_text(&summary, &style);
        let (_, told) = text.split_once("\n\n").unwrap();
        let (told, _) = told.split_once("\n\n").unwrap();
        match style.language {
            Language::English => expect![[r#"
                threshold                phase  measured  verdict
                users.online >= 999_990  hold    612,000  NOT MET
                users.present >= 1M      hold    612,000  NOT MET
                connect p99 < 3s                  1.71ms  met
                heartbeats.lost < 0.01%         <0.001 %  met"#]]
            .assert_eq(told),
            Language::Chinese => expect![[r#"
                阈值                     阶段      实测  结论
                users.online >= 999_990  hold   612,000  未达标
                users.present >= 1M      hold   612,000  未达标
                connect p99 < 3s                 1.71ms  达标
                heartbeats.lost < 0.01%        <0.001 %  达标"#]]
            .assert_eq(told),
        }
    }
}

#[test]
fn every_way_a_connection_can_end_is_reported() {
    let mut intervals = sample::im_intervals();
    intervals.truncate(100);
    let connections = &mut intervals[60].connections.counts;
    (connections.closed_by_us, connections.reset_by_us, connections.vanished) = (1, 2, 3);
    (connections.closed_by_target, connections.reset, connections.timed_out) = (4, 5, 6);
    let resources = intervals[60].generator.resources.as_mut().unwrap();
    (resources.packets_dropped, resources.listen_dropped) = (17, 12);
    resources.cpu.run_queue_ns = 90 * SECOND_NS;
    let summary = sample::summary_of(sample::im_info(), &intervals, &sample::im_events()[..3]);
    let text = summary_text(&summary, &full());
    assert_fits(&text, 80);
    expect![[r#"
        funnel          entered    passed failed   cut off    p50    p90    p99    max
        connect       1,001,200 1,000,000  1,200         0  453µs 1.38ms 1.71ms 1.71ms
        upgrade       1,000,000 1,000,000      0         0 1.27ms 3.85ms 4.75ms 4.76ms
        login         1,000,000 1,000,000      0         0 3.52ms 10.8ms 13.3ms 13.3ms
        first message 1,000,000 1,000,000      0         –  34.0s  34.0s  34.0s  34.0s
        steady        1,000,000         0      0 1,000,000      –      –      –      –

        failed in  count  cause            blame
        connect    1,000  connect-refused  target
        connect      200  connect-timeout  target

        users        1,000,000 online at peak · 1,000,000 started
        connections  1,000,000 open at peak · 1,000,000 opened
                     20,000 opened in the peak second · 10,000 per second on average
                     1,200 not opened · 1,000 refused
        closed       1 by throng · 2 reset by throng · 3 silently dropped by throng
                     4 by the target · 5 reset by the target · 6 timed out
        life cycle   1,000,000 started
        heartbeats   2,516,633 sent · 2,516,633 answered · 0 lost (0 %) · p50 758µs
                     p99 6.72ms · max 6.74ms
        TCP          10,000 sampled · round trip p50 45.0µs · p99 45.0µs
                     0.00 retransmitted segments per connection
                     1.46 KB backlog at peak
        messages     2,516,633 sent · 3,516,633 received · 1,000,000 of them pushes
        bytes        382 MB (3.82 MB/s) received · 201 MB (2.01 MB/s) sent

        generator    0.90 cores used · 19.9µs CPU per attempt · 1.40 GB memory
                     host 83.0 % busy
                     busiest shard 71.0 % · softirq 21.0 % · steal 1.20 %
                     92.0 % waiting for a core
                     640 MB for users · 320 MB for connections · 1.90 MB for recording
                     2.60 GB in kernel sockets · at least 8.00 GB left
                     17 packets dropped on this host
                     12 connections dropped by listeners on this host
                     lateness p50 150µs · p99 150µs · max 150µs
                     throng stayed on schedule"#]]
    .assert_eq(&sections(&text, &["funnel", "failed in", "users", "generator"]));
}
