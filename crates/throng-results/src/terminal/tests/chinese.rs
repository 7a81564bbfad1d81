//! Tests the complete text in Chinese.

use super::*;
use expect_test::expect;

fn chinese(width: usize) -> Style {
    Style { width, language: Language::Chinese, ..full() }
}

#[test]
fn the_summary_in_chinese() {
    let text = summary_text(&sample::summary(), &chinese(80));
    expect![[r#"
        quick check · 阈值满足
        https://127.0.0.1:8443 · 实测 10.0s，共 12.0s · 成功 100,900 · 失败 100
        10,090 成功/s · 2026-11-21T12:03:01.000Z

        阈值                实测  结论
        http p99 < 50ms   2.90ms  达标
        errors < 0.1%    0.099 %  达标

        步骤       请求     成功  失败  成功/s     接收     发送
        GET /   100,000   99,900   100   9,990  82.3 MB  4.52 MB
        log in    1,000    1,000     0     100  10.0 KB  20.0 KB
        合计    101,000  100,900   100  10,090  82.3 MB  4.54 MB

        响应时间    平均     p50     p90     p95     p99   p99.9  p99.99    最大
        GET /     1.23ms  1.02ms  2.41ms  2.64ms  2.83ms  2.89ms  2.89ms  2.89ms
        log in    3.49ms  3.49ms  3.88ms  3.95ms  3.98ms  3.98ms       –  3.99ms
        合计      1.25ms  1.04ms  2.47ms  2.70ms  2.90ms  3.88ms  3.98ms  3.99ms
        – 样本太少：p90 需要 10 个，p95 20 个，p99 100 个，p99.9 1,000 个，p99.99 10,000
        个

        速率         ██████████  10,090/s
        p99          ██████████  2.90ms
        用户         ██████████  64

        错误 · 占 101,000 个请求的比例
        80  0.079 %  GET /: 状态码与预期不符（status-unexpected，责任方：被测服务）
                     2.35s 时：HTTP/1.1 503 Service Unavailable\r\n\u{1b}[31mtry again
                     later
        20  0.020 %  GET /: 未在超时时间内收到完整响应（timeout，责任方：被测服务）

        最慢步骤     log in（平均 3.49ms） · 占全部步骤时间的 2.76 %
                     全部步骤时间的 97.2 % 在 GET /

        状态码          共 99,980 个响应
        200     99,900           99.91 %
        503         80           0.080 %

        连接         次数    最小    平均  标准差     p50     p90     p99    最大
        建立连接       60  50.0µs  52.5µs  1.72µs  52.0µs  55.0µs       –  55.0µs
        TLS 握手       60   700µs   725µs  17.7µs   717µs   750µs       –   750µs
        首字节    100,000   390µs  1.05ms   595µs   889µs  2.01ms  2.34ms  2.38ms
        总计      101,000   400µs  1.25ms   774µs  1.04ms  2.47ms  2.90ms  3.99ms

        阶段       时间  用户     请求  失败  成功/s     p50     p99    最大
        warm-up*  2.00s    64   20,200    20  10,090  1.04ms  2.90ms  3.99ms
        load      10.0s    64  101,000   100  10,090  1.04ms  2.90ms  3.99ms
        * 不计入统计：其他数据均不包含该阶段

        用户         最高在线 64 · 启动 60 · 仅含被测量的阶段
        连接         最高并存 64 · 建立 60 · 仅含被测量的阶段
        断开方式     由 throng 关闭 50
        流量         接收 82.3 MB (8.23 MB/s) · 发送 4.54 MB (454 KB/s)

        压力机       占用 0.95 核 · 每次尝试 CPU 94.1µs · 内存 45.2 MB · 整机 CPU 61.0 %
                     滞后 p50 44.8µs · p99 69.1µs · 最大 70.0µs
                     按计划完成发压

        主机         box-1 · Linux 6.18.5 · Debian GNU/Linux 13 (trixie) · KVM
                     AMD EPYC 7B13 · 2 核 · 内存 25.8 GB · cgroup 限制 17.2 GB
                     文件描述符上限 1024（硬限制 20000） · 端口 32768–60999
                     tcp_tw_reuse 2 · somaxconn 4096 · 时钟 tsc

        运行目录     throng-runs/20261121-120301-quick-check
                     throng report throng-runs/20261121-120301-quick-check
                     throng 0.1.0 (10d8f4b21) · 随机种子 42
    "#]]
    .assert_eq(&text);
    assert_fits(&text, 80);
}

/// The sections of a summary that start with one of these words.
fn sections(text: &str, begin: &[&str]) -> String {
    let sections = text.split("\n\n").map(str::trim_end);
    let wanted = sections.filter(|section| begin.iter().any(|word| section.starts_with(word)));
    wanted.map(|section| format!("{section}\n")).collect()
}

#[test]
fn transactions_and_a_stop_in_chinese() {
    let text = summary_text(&sample::shop(true), &chinese(120));
    expect![[r#"
        错误[stopped-by-rule]: 场景中的规则终止了运行
          = 终止时刻：11.0s，原因：half of the baskets are \u{1b}[31mempty
          = 各项数据和阈值只统计到该时刻
        步骤            请求     成功  失败  成功/s     接收     发送
        GET /        100,000   99,900   100   9,990  82.3 MB  4.52 MB
        log in         1,000    1,000     0     100  10.0 KB  20.0 KB
        doors open*      200      180    20    18.0        –        –
        合计         101,000  100,900   100  10,090  82.3 MB  4.54 MB
        * 用户在集合点互相等待：不计入合计
        响应时间       平均     p50     p90     p95     p99   p99.9  p99.99    最大
        GET /        1.23ms  1.02ms  2.41ms  2.64ms  2.83ms  2.89ms  2.89ms  2.89ms
        log in       3.49ms  3.49ms  3.88ms  3.95ms  3.98ms  3.98ms       –  3.99ms
        doors open*   1.31s   902ms   902ms   5.00s   5.00s       –       –   5.00s
        合计         1.25ms  1.04ms  2.47ms  2.70ms  2.90ms  3.88ms  3.98ms  3.99ms
        – 样本太少：p90 需要 10 个，p95 20 个，p99 100 个，p99.9 1,000 个，p99.99 10,000 个
        事务                                    完成  失败  成功/s    平均     p50     p95     p99   p95*
        check out: basket, address and payment   500    20    48.0  6.49ms  6.46ms  6.91ms  6.98ms  2.94s
        * 含思考时间；其他各列均不含
        错误 · 占 101,000 个请求的比例
        80  0.079 %  GET /: 状态码与预期不符（status-unexpected，责任方：被测服务）
                     2.35s 时：HTTP/1.1 503 Service Unavailable\r\n\u{1b}[31mtry again later
        20  0.020 %  GET /: 未在超时时间内收到完整响应（timeout，责任方：被测服务）
        失败 · 不属于尝试，因此没有比例
        20  doors open: 到达集合点的用户不足，等待超时（rendezvous-timeout，责任方：场景）
    "#]].assert_eq(&sections(&text, &["错误[", "步骤", "响应时间", "事务", "错误 ·", "失败 ·", "目标"]));
    assert_fits(&text, 110);
}

#[test]
fn an_invalid_run_in_chinese() {
    let text = summary_text(&overloaded(), &chinese(80));
    expect![[r#"
        quick check · 结果无效
        https://127.0.0.1:8443 · 实测 10.0s，共 12.0s · 成功 96,000 · 失败 5,000
        9,600 成功/s · 2026-11-21T12:03:01.000Z
        错误[generator-late]: 本次运行的数据不能反映被测服务
          = throng 在 10 秒中有 7 秒落后计划超过 10 ms（最长 380ms）
          = 109,638 次发起中有 8,638 次（7.9 %）未能发起，同时压力机滞后
          = 有 1 % 的发起滞后 371ms 以上（最长 380ms）
          = 原因：本机 CPU 从 00:05 起占用率达到 100 %
          = 建议: 将速率降到本机能够维持的 10,090/s，或换用更快的主机
        错误[generator-limited]: 本机无法承受该负载
          = 101,000 次尝试中有 4,900 次（4.9 %）因本机原因失败
          = 原因：4,900 × 本机源端口已耗尽（ports-exhausted）
          = 建议: 保持长连接、增加源地址，或扩大 ip_local_port_range
        错误[record-incomplete]: 本次运行的部分数据缺失
          = 有 3 行结果未能写入
        错误 · 占 101,000 个请求的比例
        4,900   4.85 %  GET /: 本机源端口已耗尽（ports-exhausted，责任方：压力机）
           80  0.079 %  GET /: 状态码与预期不符（status-unexpected，责任方：被测服务）
                        2.35s 时：HTTP/1.1 503 Service Unavailable\r\n\u{1b}[31mtry
                        again later
           20  0.020 %  GET /: 未在超时时间内收到完整响应（timeout，责任方：被测服务）
        用户         最高在线 64 · 启动 60 · 仅含被测量的阶段
        计划         8,638 次未能发起 · 385 次发起因等待空闲用户而推迟
        连接         最高并存 64 · 建立 60 · 仅含被测量的阶段
        断开方式     由 throng 关闭 50
        流量         接收 82.3 MB (8.23 MB/s) · 发送 4.54 MB (454 KB/s)
        压力机       占用 0.95 核 · 每次尝试 CPU 94.1µs · 内存 45.2 MB · 整机 CPU 88.3 %
                     滞后 p50 53.5µs · p99 371ms · 最大 380ms
                     结果无效，原因见上文
    "#]]
    .assert_eq(&sections(&text, &["quick", "错误", "用户", "压力机"]));
    assert_fits(&text, 80);
}

#[test]
fn the_live_lines_in_chinese() {
    let mut live = Live::new(chinese(80), &sample::info());
    live.add(&sample::interval(0, 0));
    assert_eq!(
        live.line(Time::from_secs(1)).lines().collect::<Vec<_>>(),
        [
            "  时间    用户     成功   失败  成功/s    p50    p99   最大  字节/s 状态码",
            "    1s      64    10090     10   10090 1.04ms 2.90ms 3.99ms 8.69 MB 200:9990 +2",
        ]
    );
    let mut progress = Progress {
        phase: "load".into(),
        number: 2,
        phases: 3,
        share: Some(0.42),
        left: Some(Duration::from_millis(17_400)),
        elapsed: Duration::from_secs(12),
    };
    expect!["load 2/3 ━━━━━━━━━━━━──────────────────  42 % · 剩余 18s"]
        .assert_eq(&progress_line(&progress, &chinese(80)));
    progress.left = None;
    expect!["load 2/3 ━━━━━━━━━━━━──────────────────  42 % · 已运行 12s"]
        .assert_eq(&progress_line(&progress, &chinese(80)));
}

/// Names, and text from targets and the scenario.
const FOREIGN: &str = "quick check warm up load log out basket address and payment doors open is \
                       empty though it was filled half of the baskets are try again later errors \
                       connections reset bytes rate upgrade http https in with pauses trixie box \
                       million people an server connect acc login stay heartbeat broadcast \
                       someone went offline fill hold drain read by peer os error users online \
                       present heartbeats lost ws";
/// Codes, commands, files and settings.
const CODES: &str = "status unexpected timeout rendezvous stopped by rule throng runs report json \
                     events ndjson somaxconn tcp tw reuse tsc cgroup ports exhausted generator \
                     late limited record incomplete ip local port range ms ns refused";

#[test]
fn no_english_text_is_left() {
    let kept: Vec<&str> = [FOREIGN, CODES].iter().flat_map(|words| words.split(' ')).collect();
    for summary in [sample::summary(), sample::shop(true), overloaded(), sample::im()] {
        let text = summary_text(&summary, &chinese(100));
        // The letters after an escape would be read as one word with its end.
        let escapes = ["\\u{1b}[31m", "\\r", "\\n"];
        let text = escapes.iter().fold(text, |text, escape| text.replace(escape, " "));
        let words = text.split(|c: char| !c.is_ascii_alphabetic());
        let is_english = |word: &&str| word.len() > 1 && word.chars().all(char::is_lowercase);
        for word in words.filter(is_english) {
            assert!(kept.contains(&word), "{word} in\n{text}");
        }
    }
}
