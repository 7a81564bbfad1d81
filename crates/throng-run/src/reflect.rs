//! Gets the descriptors of gRPC services from a server by reflection, before a load or for a file.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use throng_base::{Diagnostic, Exit, Said, Source, units};
use throng_engine::ReflectError;
use throng_program::Scheme;
use throng_scenario::bench::{Bench, write};
use throng_scenario::{CompileOptions, Url, compile};

use crate::files::write_whole;
use crate::guard::Guard;
use crate::{Operator, not_started};

/// The file name of descriptors obtained by reflection.
pub const FILE: &str = "reflection.desc";

/// Queries the target of a command line for these services, or for all of its services, and returns
/// a descriptor set.
///
/// # Errors
/// The exit code; the operator has received the error.
pub fn reflect(bench: &Bench, services: &[String], errors: &dyn Operator) -> Result<Vec<u8>, Exit> {
    let options = CompileOptions::of_process(Vec::new(), PathBuf::new());
    let program = compile(&Source::new(FILE, write(&way(bench))), &options);
    let (program, _) = program.map_err(|told| {
        errors.diagnostics(&told);
        Exit::Usage
    })?;
    let guard = Guard::read(errors)?;
    let found = throng_engine::reflect(&program, services, &bench.headers, &guard.lists);
    // The server's reply about an unknown name does not mention other names.
    let found = match found {
        Err(ReflectError::Failed { .. }) if !services.is_empty() => {
            throng_engine::reflect(&program, &[], &bench.headers, &guard.lists)
        }
        found => found,
    };
    match found {
        Ok(discovery) => Ok(discovery.descriptor_set()),
        Err(ReflectError::Start(error)) => Err(not_started(&error, errors)),
        Err(ReflectError::Failed { message, help }) => {
            let told = Diagnostic::error("reflection-failed", message).help(help);
            Err(errors.fail(&told, Exit::TargetUnreachable))
        }
    }
}

/// A command line with the same connection settings and no requests.
fn way(bench: &Bench) -> Bench {
    let url = Url::parse(&bench.url).ok();
    let plain = url.map(|url| Url {
        scheme: if url.scheme.is_secure() { Scheme::Tls } else { Scheme::Tcp },
        path: String::new(),
        user: None,
        ..url
    });
    Bench {
        url: plain.map_or_else(|| bench.url.clone(), |url| url.origin()),
        users: 1,
        iterations: Some(1),
        connect_timeout: bench.connect_timeout,
        verify_tls: bench.verify_tls,
        ca: bench.ca.clone(),
        certificate: bench.certificate.clone(),
        key: bench.key.clone(),
        server_name: bench.server_name.clone(),
        family: bench.family,
        route: bench.route.clone(),
        ..Bench::default()
    }
}

/// Queries a server (`throng protocol --reflect`) and writes the descriptors to a file; without a
/// file, returns them.
///
/// # Errors
/// The exit code; the operator has received the error.
pub fn write_descriptors(
    bench: &Bench,
    file: Option<&Path>,
    errors: &dyn Operator,
) -> Result<Option<Vec<u8>>, Exit> {
    let set = reflect(bench, &[], errors)?;
    let Some(path) = file else { return Ok(Some(set)) };
    let written = write_whole(path, &mut OpenOptions::new(), |file| file.write_all(&set));
    written.map_err(|error| errors.fail(&unwritable(path, &error), Exit::Usage))?;
    let size = units::format_bytes(set.len() as f64);
    let (path, proto) = (path.display(), tell!("use it in a scenario with `proto`"));
    errors.line(&format!("{path}: {size}; {proto}"));
    Ok(None)
}

fn unwritable(path: &Path, error: &std::io::Error) -> Diagnostic {
    let message = say!("cannot write {}: {error}", path.display(), error = Said::of_error(error));
    Diagnostic::error("file-unwritable", message).help(say!("give a file path with -o"))
}
