//! What a machine can give a history: cores, instructions, memory, pages. Read from Linux's files; elsewhere most of
//! it is unknown.

use crate::process::{kib_field, line_after};
use serde::Serialize;
use std::fs;
use std::path::Path;

/// What was found. What could not be read is `None`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Machine {
    /// The processor's name.
    pub processor: Option<String>,
    /// Threads that this process may run at once.
    pub cores: Option<usize>,
    /// Whether the processor has AVX2, which the search in a node uses.
    pub avx2: bool,
    /// All memory, in bytes.
    pub memory_bytes: Option<u64>,
    /// Memory that can be had without swapping, in bytes.
    pub available_bytes: Option<u64>,
    /// The least limit of the control groups that this process is in, in bytes; `None` without a limit.
    pub limit_bytes: Option<u64>,
    /// When the kernel gives transparent huge pages: `always`, `madvise` (when asked) or `never`.
    pub transparent_huge_pages: Option<String>,
    /// The size of a page of the kernel's pool of huge pages, in bytes.
    pub huge_page_bytes: Option<u64>,
    /// How many pages of that pool are free.
    pub huge_pages_free: Option<u64>,
}

impl Machine {
    /// Looks at this machine.
    pub fn here() -> Machine {
        Machine {
            cores: std::thread::available_parallelism().ok().map(usize::from),
            avx2: has_avx2(),
            ..Machine::under(Path::new("/"))
        }
    }

    /// What the files below a root say. The processor is asked nothing.
    fn under(root: &Path) -> Machine {
        let read = |name: &str| fs::read_to_string(root.join(name)).ok();
        let memory = read("proc/meminfo").unwrap_or_default();
        let field = |name: &str| line_after(&memory, name).and_then(|value| value.parse::<u64>().ok());
        let kib = |name: &str| kib_field(&memory, name);
        let processor = read("proc/cpuinfo").and_then(|text| {
            let name = line_after(&text, "model name")?.trim_start_matches(':').trim();
            Some(name.to_owned())
        });
        // The mode in force stands in brackets.
        let transparent_huge_pages = read("sys/kernel/mm/transparent_hugepage/enabled")
            .and_then(|modes| Some(modes.split_once('[')?.1.split_once(']')?.0.to_owned()));
        Machine {
            processor,
            cores: None,
            avx2: false,
            memory_bytes: kib("MemTotal:"),
            available_bytes: kib("MemAvailable:"),
            limit_bytes: limit(root),
            transparent_huge_pages,
            huge_page_bytes: kib("Hugepagesize:"),
            huge_pages_free: field("HugePages_Free:"),
        }
    }

    /// The largest budget to recommend, in bytes: half of what can be had, within the limit. The other half is for
    /// batches, other processes and the cache of files.
    pub fn budget_bytes(&self) -> Option<u64> {
        let given = [self.available_bytes, self.limit_bytes].into_iter().flatten().min();
        given.map(|bytes| bytes / 2)
    }

    /// The name of the pages to recommend for a budget: the kernel's pool where it holds the budget, else transparent
    /// huge pages where the kernel gives them, else ordinary ones.
    pub fn pages(&self, budget_bytes: u64) -> &'static str {
        let pool = self.huge_pages_free.zip(self.huge_page_bytes);
        let pooled = pool.and_then(|(free, bytes)| free.checked_mul(bytes)).unwrap_or(0);
        match self.transparent_huge_pages.as_deref() {
            _ if pooled > budget_bytes => "hugetlb",
            Some("always" | "madvise") => "thp",
            _ => "4k",
        }
    }
}

/// The least memory limit from this process's control group up to the root, of either version of control groups.
fn limit(root: &Path) -> Option<u64> {
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
    let mut least: Option<u64> = None;
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (parts.next(), parts.next()) else { continue };
        let (top, file) = match controllers {
            "" => ("sys/fs/cgroup", "memory.max"),
            _ if controllers.split(',').any(|name| name == "memory") => {
                ("sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => continue,
        };
        for group in Path::new(group.trim_start_matches('/')).ancestors() {
            let text = fs::read_to_string(root.join(top).join(group).join(file)).unwrap_or_default();
            // Version 2 says "max", version 1 a number near 2^63, where there is no limit.
            let bytes = text.trim().parse::<u64>().ok().filter(|&bytes| bytes < 1 << 62);
            least = [least, bytes].into_iter().flatten().min();
        }
    }
    least
}

#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    std::is_x86_feature_detected!("avx2")
}

#[cfg(not(target_arch = "x86_64"))]
fn has_avx2() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A root with such files, gone when dropped.
    struct Root(std::path::PathBuf);

    impl Root {
        fn new(name: &str, files: &[(&str, &str)]) -> Root {
            let root = std::env::temp_dir().join(format!("resolver-machine-{name}-{}", std::process::id()));
            for (file, text) in files {
                let path = root.join(file);
                fs::create_dir_all(path.parent().expect("below the root")).expect("a scratch folder");
                fs::write(path, text).expect("a scratch file");
            }
            Root(root)
        }
    }

    impl Drop for Root {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn files_are_read_and_the_least_limit_on_the_way_up_counts() {
        let root = Root::new(
            "full",
            &[
                (
                    "proc/meminfo",
                    "MemTotal: 8192 kB\nMemAvailable: 4096 kB\nHugePages_Free: 3\nHugepagesize: 2048 kB\n",
                ),
                ("proc/cpuinfo", "processor\t: 0\nmodel name\t: Some Processor\n"),
                ("proc/self/cgroup", "0::/a/b\n"),
                ("sys/fs/cgroup/a/b/memory.max", "max\n"),
                ("sys/fs/cgroup/a/memory.max", "2097152\n"),
                ("sys/fs/cgroup/memory.max", "3145728\n"),
                ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
            ],
        );
        let machine = Machine::under(&root.0);
        assert_eq!(machine.processor.as_deref(), Some("Some Processor"));
        assert_eq!((machine.memory_bytes, machine.available_bytes), (Some(8 << 20), Some(4 << 20)));
        assert_eq!((machine.limit_bytes, machine.budget_bytes()), (Some(2 << 20), Some(1 << 20)));
        assert_eq!((machine.huge_page_bytes, machine.huge_pages_free), (Some(2 << 20), Some(3)));
        assert_eq!((machine.pages(1 << 20), machine.pages(6 << 20)), ("hugetlb", "thp"));
    }

    #[test]
    fn the_older_control_groups_have_a_limit_too() {
        let files = |limit| {
            [
                ("proc/self/cgroup", "4:cpu:/\n3:memory:/g\n"),
                ("sys/fs/cgroup/memory/g/memory.limit_in_bytes", limit),
            ]
        };
        let root = Root::new("older", &files("1048576\n"));
        assert_eq!(Machine::under(&root.0).limit_bytes, Some(1 << 20));
        let root = Root::new("unlimited", &files("9223372036854771712\n"));
        assert_eq!(Machine::under(&root.0).limit_bytes, None);
    }

    #[test]
    fn nothing_readable_is_nothing_known_and_ordinary_pages() {
        let machine = Machine::under(Path::new("/no/such/root"));
        assert_eq!((machine.memory_bytes, machine.limit_bytes, machine.budget_bytes()), (None, None, None));
        assert_eq!(machine.pages(1), "4k");
    }
}
