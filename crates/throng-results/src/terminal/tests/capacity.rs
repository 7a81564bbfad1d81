//! Tests the complete text of a capacity search.

use super::*;
use crate::tests::sample::capacity::{capacity, searched};
use expect_test::expect;
use throng_metrics::capacity::{Basis, Capacity, EndedBy, GeneratorLimit, LevelVerdict, LoadUnit};

#[test]
fn the_answer_with_its_chart() {
    let found = Capacity { peak: Some(20_000.0), ..capacity() };
    let text = summary_text(&searched(found), &Style::plain());
    expect![[r#"
        quick check · DONE · carries 860/s                                        exit 0
        https://127.0.0.1:8443 · 64 users · 10.0s of 12.0s measured
        carries 860/s (95 %: 864 to 905): http p99 < 50ms, errors < 0.1%; confirmed over
        60 s; fails at 912/s (http p99); back to normal 4 s after an overload of 1,190/s
            1,000 │                                                 ××     ×       ×
         served/s │                                           ●●●●●●
                  │
                  │                      ●
                  │      ●     ●
                0 │    ●
            2.00s │                                                        ×       ×
              p99 │
                  │                                           ●●●●●●××
           4.85ms │    ● ●     ●         ●
                  └───────────────────────────────────────────────▲═×───────────────
                   0                                                        1,190/s
        ● met · × not met · ▲ confirmed load · ═ 95 % interval
        level             served/s  strain     p50     p99      in flight  verdict
        50/s climb            50.0    0.00   730µs  4.85ms    0.05 / 0.05  met
        100/s climb            100    0.00   770µs  5.12ms    0.11 / 0.11  met
        200/s climb            200    0.00   866µs  5.76ms    0.25 / 0.25  met
        400/s climb            400    0.00  1.16ms  7.68ms    0.67 / 0.67  met
        800/s climb            800    0.00  3.47ms  23.0ms       4.04 / 4  met
        1,040/s climb        1,000      97   2.00s   2.00s  1,996 / 1,976  backlog
        912/s bracket          912    1.23  7.88ms  52.3ms    10.5 / 10.4  http p99
        854/s bracket          854    0.07  4.75ms  31.5ms    5.91 / 5.85  met
        820/s refine           820    0.01  3.85ms  25.6ms    4.60 / 4.56  met
        855/s refine           855    0.07  4.78ms  31.8ms    5.96 / 5.90  met
        891/s refine           891    0.43  6.36ms  42.2ms    8.26 / 8.17  met
        926/s refine           926    2.47  9.37ms  62.2ms    12.6 / 12.5  http p99
        829/s refine           829    0.02  4.05ms  26.9ms    4.90 / 4.85  met
        864/s refine           864    0.11  5.10ms  33.9ms    6.42 / 6.35  met
        860/s confirm          860    0.09  4.95ms  32.9ms    6.20 / 6.14  met
        1,190/s overload     1,000      97   2.00s   2.00s  2,284 / 2,261  backlog
        860/s confirm          860    0.09  4.95ms  32.9ms    6.20 / 6.14  met
        in flight: measured / by Little's law
        strain: bad attempts divided by the number that the threshold allows
        light load ends at 470 to 530/s: above that, 1 % more load increases the
        response time by more than 1 %
        heavy load ends at 970 to 1,010/s: above that, throughput does not grow
        machines for a peak of 20,000/s: 34 (32 to 34), each at 70 % of its capacity
        errors       80 (0.079 %) status-unexpected in GET / · blame: target
                     … more kinds of errors with --details: 1
        directory    none · run again with --details for all metrics
    "#]]
    .assert_eq(&text);
}

#[test]
fn the_answer_in_chinese() {
    let found = Capacity { at_least: Some(880.0), ..capacity() };
    let style = Style { language: Language::Chinese, ..Style::plain() };
    expect![[r#"
        quick check · 未定 · 无法判定能否承载 880/s                             退出码 5
        https://127.0.0.1:8443 · 64 个用户 · 实测 10.0s，共 12.0s
        可承载 860/s（95 %：864 至 905）：http p99 < 50ms，errors < 0.1%；确认时长 60
        秒；912/s 时未达标，原因：http p99；1,190/s 之后恢复正常，用时 4 秒
            1,000 │                                                 ××     ×       ×
           完成/s │                                           ●●●●●●
                  │
                  │                      ●
                  │      ●     ●
                0 │    ●
            2.00s │                                                        ×       ×
              p99 │
                  │                                           ●●●●●●××
           4.85ms │    ● ●     ●         ●
                  └───────────────────────────────────────────────▲═×───────────────
                   0                                                        1,190/s
        ● 达标 · × 未达标 · ▲ 保证值 · ═ 95 % 置信区间
        负载级        完成/s  紧张度     p50     p99         处理中  结论
        50/s 爬升       50.0    0.00   730µs  4.85ms    0.05 / 0.05  达标
        100/s 爬升       100    0.00   770µs  5.12ms    0.11 / 0.11  达标
        200/s 爬升       200    0.00   866µs  5.76ms    0.25 / 0.25  达标
        400/s 爬升       400    0.00  1.16ms  7.68ms    0.67 / 0.67  达标
        800/s 爬升       800    0.00  3.47ms  23.0ms       4.04 / 4  达标
        1,040/s 爬升   1,000      97   2.00s   2.00s  1,996 / 1,976  积压
        912/s 定界       912    1.23  7.88ms  52.3ms    10.5 / 10.4  http p99
        854/s 定界       854    0.07  4.75ms  31.5ms    5.91 / 5.85  达标
        820/s 细化       820    0.01  3.85ms  25.6ms    4.60 / 4.56  达标
        855/s 细化       855    0.07  4.78ms  31.8ms    5.96 / 5.90  达标
        891/s 细化       891    0.43  6.36ms  42.2ms    8.26 / 8.17  达标
        926/s 细化       926    2.47  9.37ms  62.2ms    12.6 / 12.5  http p99
        829/s 细化       829    0.02  4.05ms  26.9ms    4.90 / 4.85  达标
        864/s 细化       864    0.11  5.10ms  33.9ms    6.42 / 6.35  达标
        860/s 确认       860    0.09  4.95ms  32.9ms    6.20 / 6.14  达标
        1,190/s 过载   1,000      97   2.00s   2.00s  2,284 / 2,261  积压
        860/s 确认       860    0.09  4.95ms  32.9ms    6.20 / 6.14  达标
        处理中：实测 / 按利特尔定律
        紧张度：不合格尝试数与阈值所允许之比
        轻载止于 470 至 530/s：此后负载每增加 1 %，响应时间增加超过 1 %
        重载止于 970 至 1,010/s：此后吞吐量不再增长
        错误         80 (0.079 %) status-unexpected 位置：GET / · 责任方：被测服务
                     … --details 中还有其他错误：1 种
        运行目录     无 · 全部数据：加 --details 重新运行
    "#]]
    .assert_eq(&summary_text(&searched(found), &style));
}

#[test]
fn a_bracket_of_users_in_ascii() {
    let mut found = capacity();
    (found.unit, found.basis) = (LoadUnit::Users, Basis::Bracket);
    found.ended_by = EndedBy::Generator(GeneratorLimit::Ports);
    (found.carries, found.fails_at, found.overload.at) = (None, None, None);
    found.levels[16].verdict = LevelVerdict::GeneratorBound(GeneratorLimit::Ports);
    found.levels.extend(found.levels.clone());
    found.knee = <_>::default();
    let style = Style { ascii: true, width: 60, ..Style::plain() };
    expect![[r#"
        quick check | UNDECIDED | capacity not determined     exit 5
        https://127.0.0.1:8443 | 64 users | 10.0s of 12.0s measured
        not confirmed: thresholds met at 864 users, not met at 905
        users: http p99 < 50ms, errors < 0.1%; the generator reached
        its limit and ended the search: source ports
            1,000 |                                     xx   x     x
         served/s |                                 oo.o
                  |
                  |                 o
                  |     o   o
                0 |   o
            2.00s |                                          x     x
              p99 |
                  |                                 oo.oxx
           4.85ms |   o o   o       o
                  +-----------------------------------===-----------
                   0                                    1,190 users
        o met | x not met | . generator bound | = met to not met
        ~ and 14 earlier levels; --details shows all of them
        level              served/s     p99  verdict
        860 users confirm       860  32.9ms  met
        1,190 us~overload     1,000   2.00s  backlog
        860 users confirm       860  32.9ms  generator: source ports
        50 users climb         50.0  4.85ms  met
        100 users climb         100  5.12ms  met
        200 users climb         200  5.76ms  met
        400 users climb         400  7.68ms  met
        800 users climb         800  23.0ms  met
        1,040 users climb     1,000   2.00s  backlog
        912 users bracket       912  52.3ms  http p99
        854 users bracket       854  31.5ms  met
        820 users refine        820  25.6ms  met
        855 users refine        855  31.8ms  met
        891 users refine        891  42.2ms  met
        926 users refine        926  62.2ms  http p99
        829 users refine        829  26.9ms  met
        864 users refine        864  33.9ms  met
        860 users confirm       860  32.9ms  met
        1,190 us~overload     1,000   2.00s  backlog
        860 users confirm       860  32.9ms  generator: source ports
        errors       80 status-unexpected in GET / | blame: target
                     ~ more kinds of errors with --details: 1
        directory    none | run again with --details for all metrics
    "#]]
    .assert_eq(&summary_text(&searched(found), &style));
}

#[test]
fn details_have_every_level_and_fit_on_the_page() {
    let mut found = capacity();
    found.levels.extend(found.levels.clone());
    let levels = found.levels.len();
    let summary = searched(found);
    for width in [60, 80, 110] {
        let style = Style { width, details: true, ..Style::plain() };
        let text = summary_text(&summary, &style);
        assert!(text.lines().all(|line| super::width(line) <= width), "{text}");
        let rows = text.lines().filter(|line| line.contains(" / ")).count();
        assert!(rows >= levels, "{rows} of {levels}: {text}");
        let short = summary_text(&summary, &Style { details: false, ..style });
        assert!(short.lines().all(|line| super::width(line) <= width), "{short}");
        assert!(short.contains("… and 14 earlier levels"), "{short}");
    }
    let coloured = Style { colour: true, ..Style::plain() };
    let text = summary_text(&summary, &coloured);
    assert!(text.contains("\u{1b}[32m●"), "{text}");
    assert_eq!(without_colours(&text), summary_text(&summary, &Style::plain()));
}

#[test]
fn unusual_values_cause_no_errors() {
    let mut found = capacity();
    found.levels.iter_mut().for_each(|level| (level.p99_s, level.served) = (None, 0.0));
    found.levels[0].offered = f64::NAN;
    found.levels[1].served = f64::INFINITY;
    (found.low, found.high) = (Some(905.0), Some(864.0));
    let text = summary_text(&searched(found), &Style::plain());
    assert!(text.contains("carries 860/s"), "{text}");
    let nothing = Capacity { levels: Vec::new(), ..capacity() };
    assert!(!summary_text(&searched(nothing), &Style::plain()).contains("│"));
}
