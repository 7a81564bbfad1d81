//! Free page reporting: a guest that returns free memory to the hypervisor gets it back page by
//! page when it is touched.

use super::memory::Cost;
use super::{Finding, Fix, Host, Needs, Severity};

const RULE: &str = "page-reporting";
const PARAMETER: &str = "sys/module/page_reporting/parameters/page_reporting_order";
const BALLOON: &str = "sys/bus/virtio/drivers/virtio_balloon";
/// VIRTIO_BALLOON_F_REPORTING of linux/virtio_balloon.h, counted from 0.
const REPORTING: usize = 5;
/// The largest block of the kernel's allocator on x86-64, if the kernel does not report it.
const ORDER_MAX: i64 = 10;
/// The memory of a smaller load is filled quickly in any case.
const BYTES_MIN: u64 = 1_000_000_000;
/// A hypervisor gives a guest one balloon; many more are an error.
const DEVICES_MAX: usize = 64;

pub(super) fn examine(host: &Host, needs: &Needs) -> Option<Finding> {
    let order = host.root.line(PARAMETER)?;
    let detail = say!(
        "this virtual machine returns free memory to its hypervisor and gets it back page by page, \
         which slows down adding users"
    );
    let mut finding = Finding::new(RULE, say!("free page reporting"), detail);
    let Ok(order) = order.parse::<i64>() else { return Some(finding) };
    let most = order_max(host);
    // A negative value: not requested yet; above the maximum, there are no such blocks.
    let is_on = if (0..=most).contains(&order) { is_taken(host) } else { Some(false) };
    let is_large = Cost::of(host, needs).most_of(needs.users) > BYTES_MIN;
    match is_on {
        None if !is_large => return None,
        None => {
            finding.value =
                say!("no virtio balloon driver was found; other balloon drivers cannot be checked");
            return Some(finding);
        }
        Some(false) => finding.value = say!("off (free memory is kept)"),
        Some(true) => finding.value = say!("on (in blocks of 2^{order} pages or more)"),
    }
    if is_on == Some(true) && is_large {
        finding.needed = say!("off (free memory is kept)");
        finding.fixes = cure(most);
    }
    Some(finding.judge(is_on == Some(false) || !is_large, Severity::Warn))
}

/// The largest order of a block: one less than there are columns of free blocks.
fn order_max(host: &Host) -> i64 {
    let zones = host.root.read("proc/buddyinfo").unwrap_or_default();
    // `Node 0, zone   Normal   12 3 …`
    let columns = |line: &str| line.split_whitespace().skip(4).count() as i64;
    match zones.lines().map(columns).max() {
        Some(columns @ 1..) => columns - 1,
        _ => ORDER_MAX,
    }
}

/// True if a virtio balloon requests free memory; `None` without a balloon.
fn is_taken(host: &Host) -> Option<bool> {
    let entries = std::fs::read_dir(host.root.path(BALLOON)).ok()?;
    let devices = entries.take(DEVICES_MAX).flatten().map(|entry| entry.file_name());
    let devices = devices.filter(|name| name.to_string_lossy().starts_with("virtio"));
    // The negotiated features, one digit each.
    let features = devices.filter_map(|name| {
        let path = format!("{BALLOON}/{}/features", name.to_string_lossy());
        Some(host.root.line(path)?.as_bytes().get(REPORTING)? == &b'1')
    });
    features.reduce(|one, other| one || other)
}

fn cure(most: i64) -> Vec<Fix> {
    let above = most + 1;
    let advice = say!(
        "the hypervisor can then no longer reclaim memory, so ask its administrator first; if the \
         kernel rejects {above}, use {most}: the virtual machine then returns only its largest \
         free blocks of memory"
    );
    let [here, on_the_host] = commands(above, most);
    vec![here, on_the_host, Fix::Advice(advice)]
}

/// Kernels refuse an order above their maximum; the maximum helps a little.
fn commands(above: i64, most: i64) -> [Fix; 2] {
    let here = Fix::Command {
        now: format!("echo {above} > /{PARAMETER} || echo {most} > /{PARAMETER}"),
        for_good: format!("GRUB_CMDLINE_LINUX: page_reporting.page_reporting_order={above}"),
    };
    let on_the_host = Fix::Command {
        now: String::new(),
        for_good: "QEMU: -device virtio-balloon-pci,free-page-reporting=off".to_string(),
    };
    [here, on_the_host]
}
