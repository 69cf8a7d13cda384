//! Writes a target's seeds into a folder: `seeds TARGET FOLDER`.
#![allow(clippy::print_stderr)] // says what is wrong

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [target, folder] = &arguments[..] else {
        eprintln!("usage: seeds TARGET FOLDER");
        return ExitCode::from(2);
    };
    if resolver_fuzz::TARGETS.iter().all(|known| known.name != target) {
        eprintln!("no such target: {target}");
        return ExitCode::from(2);
    }
    let folder = Path::new(folder);
    let written = std::fs::create_dir_all(folder).and_then(|()| {
        resolver_fuzz::seeds(target)
            .into_iter()
            .try_for_each(|(name, seed)| std::fs::write(folder.join(name), seed))
    });
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}: {error}", folder.display());
            ExitCode::from(2)
        }
    }
}
