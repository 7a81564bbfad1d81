// The page in English and Chinese. Sentences about a run are made by throng and come with their
// Chinese translation. Names of figures, and all other texts that throng has too, come from its
// catalogue (`catalogue`); these are the page's own. Where one is in both, the page means something
// else: "failed" is a verdict here, a count there.

/** Of `throng-base/words/zh.txt` the texts of the page, put in by `build.mjs`. */
declare const catalogue: Record<string, string>;

/** Words that come with the data of a run, or are made of others: no other source has them as a text. */
export const FROM_DATA = ["better", "bracket", "climb", "confirm", "refine", "requests", "silence", "stopped", "unknown", "worse"];

const chinese: Record<string, string> = {
  // Verdicts of runs and thresholds.
  "failed": "未通过",
  "no thresholds": "未设阈值",
  "running": "运行中",
  "connection lost": "连接已断开",
  "exit code": "退出码",
  "The result is invalid": "结果无效",
  "The run directory is not complete": "运行目录不完整",

  // The list of runs.
  "Loading …": "正在加载……",
  "Pages": "页面",
  "All runs": "全部运行",
  "Runs": "运行",
  "Trends": "趋势",
  "run": "运行",
  "start time": "开始时间",
  "targets": "被测服务",
  "Compare": "比较",
  "Select two to eight runs to compare them. The first one you select is the baseline.": "选择 2 到 8 次运行进行比较，最先选中的作为基线。",
  "Older runs not listed": "未列出的更早的运行",
  "This folder has no runs yet.": "此文件夹中还没有运行。",
  "Skipped": "已跳过",
  "Live page": "实时页面",
  "Report": "报告",
  "Started from this page": "从本页启动的运行",
  "Start a run": "启动运行",
  "The folder given with --allow-run has no scenarios.": "--allow-run 指定的文件夹中没有场景。",
  "Start": "启动",
  "Started {}": "已启动 {}",
  "Load for this run; empty fields keep the value of the scenario": "本次运行的负载；留空则与场景相同",

  // Comparisons and trends.
  "Comparison of runs": "运行比较",
  "Baseline": "基线",
  "previous run": "前一次运行",
  "All scenarios": "全部场景",
  "Successful attempts per second": "每秒成功的尝试",
  "Failed attempts per second": "每秒失败的尝试",
  "compared with the baseline": "与基线相比",
  "value": "数值",
  "unchanged": "无变化",
  "run too short": "运行太短，无法判断",
  "Other differences": "其他差异",
  "other changes": "其他变化",
  "Lasting changes": "持续性变化",
  "since": "自",

  // The live page and its controls.
  "The run has not started yet.": "运行尚未开始。",
  "The setup is running. The load starts when it is complete.": "正在执行准备步骤，完成后开始加压。",
  "The run has ended, or the link is not valid.": "运行已经结束，或者链接无效。",
  "This page could not keep up: {} lines are missing. The report will contain them.": "本页来不及显示，缺少 {} 行；报告中会有这些数据。",
  "so far": "到目前为止",
  "Load": "负载",
  "Controls": "控制",
  "starts per second": "每秒发起",
  "per second": "每秒",
  "Set": "设置",
  "Less": "减少",
  "More": "增加",
  "Pause": "暂停",
  "Resume": "继续",
  "End phase": "结束阶段",
  "Mark": "标记",
  "Name of the mark": "标记的名称",
  "Stop": "停止",
  "Click again to stop": "再次点击以停止",
  "The run does not respond.": "运行没有响应。",

  // Files to save.
  "Download": "下载",
  "One row per second and step": "每秒每个步骤一行",
  "The summary, as `throng report --json` prints it": "与 `throng report --json` 相同的汇总",
  "The report as one file": "单个文件的报告",
  "The run was in progress, or was killed: this report contains its first {}.": "保存时运行尚未结束，或者运行被强制终止：本报告只包含前 {}。",

  // Events on the time axis.
  "mark": "标记",
  "target unreachable": "被测服务失联",
  "growth paused": "暂停增长",
  "growth ended": "不再增长",
  "load reduced": "让出资源",
  "machine lost": "失去一台机器",

  // The highest load that the service carries.
  "Capacity": "容量",
  "capacity": "容量",
  "light load": "轻载",
  "collapse": "崩溃",
  "heavy load": "重载",
  "levels": "个负载级",
  "Levels of the search": "搜索的各级负载",
  "Levels": "各级负载",
  "level": "负载级",
  "all": "合计",
  "not online": "不在线",
  "by users": "（按用户数）",
  "by starts per second": "（按每秒发起数）",
  "offered/s": "应发/s",
  "by Little's law": "按利特尔定律",
  "lowest load that failed": "未达标的最低负载",
  "Served per second, by load": "每秒完成数（按负载）",
  "p99 by load": "p99（按负载）",
  "CPU": "CPU",

  // Figures at the top.
  "same host": "同一台主机",
  "failed attempts": "失败的尝试",
  "slowest attempt": "最慢的尝试",
  "Stability": "稳定性",
  "Bottlenecks": "瓶颈",
  "where the time went": "时间去向",
  "failed requests": "失败的请求",
  "slowest request": "最慢的请求",
  "at peak": "峰值",
  "thresholds met": "达标的阈值",
  "largest of {} values": "{} 个值中最大",
  "median": "中位数",
  "throughput": "吞吐量",
  "received": "接收",
  "Thresholds": "阈值",
  "Findings": "发现",
  "What failed": "失败之处",
  "certain": "确定",
  "likely": "很可能",
  "hint": "线索",
  "ruled out: {} ({})": "已排除：{} ({})",
  "Evidence": "证据",
  "Show in the charts": "在图中显示",
  "Events": "事件",
  "Output": "输出",
  "Around events": "事件前后",
  "Generator": "压力机",

  // Charts.
  "Over time": "随时间变化",
  "Charts over time": "随时间变化的图表",
  "Drag in a chart to zoom; double-click to reset. Keys: + and − zoom, ← and → move, 0 resets.": "在图上拖动可放大，双击还原。按键：+ 和 − 缩放，← 和 → 移动，0 还原。",
  "Zoom in": "放大",
  "Zoom out": "缩小",
  "Earlier": "更早",
  "Later": "更晚",
  "Reset zoom": "还原缩放",
  "Attempts per second": "每秒尝试",
  "Requests per second": "每秒请求",
  "Starts per second": "每秒发起",
  "actual": "实际",
  "Backlog of starts": "积压的发起",
  "Response times": "响应时间",
  "Users": "用户",
  "Failures by cause, per second": "每秒失败（按原因）",
  "Connections and requests": "连接与请求",
  "open": "打开",
  "opened per second": "每秒新建",
  "Connection setup time, p99": "建立连接的时间 p99",
  "Deliveries per second": "每秒投递",
  "lost heartbeats": "丢失的心跳",
  "Bytes per second": "每秒字节",
  "Generator lateness, p99": "压力机滞后 p99",
  "throng (cores)": "throng（核）",
  "host (share)": "主机（占比）",
  "Memory used by throng": "throng 占用的内存",
  "Cores used by throng, per machine": "各机器上 throng 占用的核数",
  "Host CPU load, per machine": "各机器的主机 CPU 负载",
  "Memory used by throng, per machine": "各机器上 throng 占用的内存",
  "Received, per machine": "各机器接收的流量",
  "Sent, per machine": "各机器发送的流量",
  "Users, per machine": "各机器的用户",
  "One step over time": "单个步骤随时间变化",
  "Step": "步骤",
  "Percentiles": "百分位",
  "all steps": "所有步骤",
  "share": "占比",
  "Heat map: distribution of response times over time": "热力图：响应时间分布随时间的变化",

  // Tables.
  "Details": "明细",
  "Filter": "筛选",
  "Steps": "步骤",
  "Transactions": "事务",
  "Phases": "阶段",
  "Deliveries": "投递",
  "Changes during the run": "运行期间的更改",
  "Targets": "被测服务",
  "Instances": "实例",
  "Machines by label": "按标签汇总的机器",
  "Sessions": "会话",
  "Slowest attempts": "最慢的尝试",
  "Slowest requests": "最慢的请求",
  "code": "代码",
  "Errors": "错误",
  "Errors by step and cause": "按步骤和原因的错误",
  "example": "示例",
  "Connections": "连接",
  "Connection funnel": "连接漏斗",
  "Connection stages": "建立连接的各阶段",
  "Ended connections": "已结束的连接",
  "Other sources": "其他来源",
  "Audits": "审计",
  "user": "用户",
  "error": "错误",
  "at": "时间",
  "audit": "审计",
  "view": "视图",
  "rounds": "轮次",
  "compared": "已比较",
  "agree": "一致",
  "false online": "误报在线",
  "false offline": "误报离线",
  "wrong node": "节点错误",
  "undecided": "未定",
  "twice": "重复",
  "strangers": "陌生条目",
  "time to agree (p99)": "达成一致的时间（p99）",
  "wrong users": "有误的用户",
  "last event": "最后的事件",
  "counted by the service": "账目",
  "at least": "至少",
  "at most": "至多",
  "off": "偏差",
  "series": "序列",
  "failed readings": "读取失败",

  // The population.
  "Population": "用户状态",
  "Full color: at least half of the users; pale: at least 5 %.": "深色：至少一半用户；浅色：至少 5 %。",
  "Now: {} users per cell": "当前：每格 {} 个用户",
  "Maximum number of users in each state over time": "各时段处于各状态的最多用户数",
  "States of users over time: {} users per row": "用户状态随时间变化：每行 {} 个用户",

  // The run itself.
  "Run": "运行",
  "command": "命令",
  "Rerun": "重新运行",
  "Scenario": "场景",
  "Theme": "主题",
};

/** Sentences of throng about a run: English, and their Chinese translation. */
const renderings = new Map<string, string>();

export const learn = (told: Record<string, string> | undefined): void => {
  for (const [english, rendered] of Object.entries(told ?? {})) renderings.set(english, rendered);
};

/** A sentence of throng's in the language of the page. */
export const tell = (text: string): string => (language === "zh" ? (renderings.get(text) ?? text) : text);

/** A word that comes in both languages. */
export const either = (word: string | [string, string]): string => (typeof word === "string" ? word : word[language === "zh" ? 1 : 0]);

let language = "en";

export const speak = (wanted: string): void => {
  language = wanted;
  document.documentElement.lang = wanted === "zh" ? "zh-CN" : "en";
};

export const spoken = (): string => language;

/** A text of the page in its language; each `{}` is replaced by one of the values, in order. */
export const say = (text: string, ...values: string[]): string => {
  const said = language === "zh" ? (chinese[text] ?? catalogue[text] ?? text) : text;
  return values.reduce((whole, value) => whole.replace("{}", () => value), said);
};
