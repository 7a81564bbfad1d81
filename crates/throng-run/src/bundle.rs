//! Stores the scenario and all files that it was compiled from in the run directory, before the
//! load starts. The run compiles the scenario from these copies.

use std::collections::BTreeMap;
use std::io::{self, Read, Write as _};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use throng_base::secret::MASK;
use throng_base::{Diagnostic, Exit, Said, Secrets, Source, plain};
use throng_data::Origin;
use throng_extract::{Digest, Hasher};
use throng_program::Program;
use throng_results::directory::{
    BundleInfo, ChangedInfo, FileInfo, NoCopy, SCENARIO_FILE, VariableInfo,
};
use throng_results::record::create_file;
use throng_results::{RecordError, Run, RunInfo};
use throng_scenario::{
    CompileOptions, FileRole, LoadChanges, Masked, Recorded, RecordedFile, RunOptions,
    VariableState, compile_recorded, masked_in, masked_scenario, read_disk, read_variable, whole,
};

use crate::Operator;

/// Maximum total size of copied files. Protocol files do not count.
pub const COPIED_BYTES_MAX: u64 = 64 << 20;
/// Maximum size of one copy.
const COPY_BYTES_MAX: usize = 1 << 30;
/// Bytes per read.
const PIECE_BYTES: usize = 1 << 20;
/// The role of the scenario itself.
const SCENARIO: &str = "scenario";
/// Ends the label of a private key in a file (RFC 7468).
const KEY_LABEL: &[u8] = b"PRIVATE KEY-----";

/// Copies the files of a scenario into the run directory, lists them in `info`, and returns the
/// scenario as recorded. `masks` is the program whose secrets are masked. Generators pass `None`,
/// because they send the secrets.
pub fn write(
    directory: &Path,
    (recorded, masks): (&Recorded, Option<&Program>),
    bytes_max: u64,
    info: &mut RunInfo,
) -> Result<String, RecordError> {
    let mut writer = Writer { directory, masks, left: bytes_max };
    let mut files: Vec<Option<FileInfo>> = vec![None; recorded.files.len()];
    // Protocol files are always copied, so they come before the size limit applies.
    for protocols in [true, false] {
        for (file, told) in recorded.files.iter().zip(&mut files) {
            if (file.role == FileRole::Protocol) == protocols {
                *told = Some(writer.file(file)?);
            }
        }
    }
    let files: Vec<FileInfo> = files.into_iter().flatten().collect();
    let copied: Vec<bool> = files.iter().map(|file| file.copy.is_some()).collect();
    let text = recorded.text(&copied);
    let secrets = masks.map(|program| &program.secrets);
    let masked = secrets.map_or_else(|| text.clone(), |secrets| masked_scenario(&text, secrets));
    let value = |name: &str, value: &str| match secrets {
        Some(secrets) => secrets.mask_variable(name, value).into_owned(),
        None => value.to_string(),
    };
    info.sources.files = vec![FileInfo {
        role: SCENARIO.into(),
        path: recorded.path.display().to_string(),
        copy: Some(SCENARIO_FILE.into()),
        bytes: recorded.bytes,
        sha256: Some(recorded.sha256.clone()),
        copy_sha256: Some(Digest::Sha256.of(masked.as_bytes())),
        ..FileInfo::default()
    }];
    info.sources.files.extend(files);
    let set = recorded.set.iter();
    info.sources.bundle = Some(BundleInfo {
        set: set.map(|(name, given)| (name.clone(), value(name, given))).collect(),
        changed: changed_info(recorded.load),
        environment: recorded.environment.iter().map(variable_info).collect(),
        masked: masked != text,
        // Set by the command, or by the record of the run that is taken over.
        search: info.sources.bundle.take().and_then(|bundle| bundle.search),
    });
    Ok(masked)
}

fn changed_info(load: LoadChanges) -> ChangedInfo {
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    ChangedInfo {
        users: load.users,
        time_ns: load.time.map(nanos),
        soak_ns: load.soak.map(nanos),
        rate: load.rate,
        precision_ns: load.precision.map(nanos),
    }
}

fn changes_of(changed: &ChangedInfo) -> LoadChanges {
    LoadChanges {
        users: changed.users,
        time: changed.time_ns.map(Duration::from_nanos),
        soak: changed.soak_ns.map(Duration::from_nanos),
        rate: changed.rate,
        precision: changed.precision_ns.map(Duration::from_nanos),
    }
}

fn variable_info(variable: &throng_scenario::RecordedVariable) -> VariableInfo {
    let (secret, sha256) = match &variable.state {
        VariableState::Unset => (false, None),
        VariableState::Secret => (true, None),
        VariableState::Known(sha256) => (false, Some(sha256.clone())),
    };
    VariableInfo { name: variable.name.clone(), secret, sha256 }
}

struct Writer<'a> {
    directory: &'a Path,
    masks: Option<&'a Program>,
    /// Bytes that may still be copied.
    left: u64,
}

impl Writer<'_> {
    fn file(&mut self, file: &RecordedFile) -> Result<FileInfo, RecordError> {
        let told = FileInfo {
            role: file.role.word().into(),
            path: file.origin.as_ref().unwrap_or(&file.path).display().to_string(),
            ..FileInfo::default()
        };
        let size = match &file.read {
            Some(bytes) => Ok(bytes.len() as u64),
            None => std::fs::metadata(&file.path).and_then(|data| match data.is_file() {
                true => Ok(data.len()),
                false => Err(io::ErrorKind::InvalidInput.into()),
            }),
        };
        let opened = size.and_then(|size| {
            Ok((
                size,
                match &file.read {
                    Some(bytes) => Box::new(io::Cursor::new(bytes.clone())) as Box<dyn Read>,
                    None => Box::new(plain::open(&file.path)?),
                },
            ))
        });
        // The code that uses the file reports that it is unreadable.
        let Ok((size, input)) = opened else {
            return Ok(FileInfo { no_copy: Some(NoCopy::Unreadable), ..told });
        };
        let is_protocol = file.role == FileRole::Protocol;
        let no_copy = match &file.copy {
            None if file.role == FileRole::Include => Some(NoCopy::Merged),
            None => Some(NoCopy::Secret),
            Some(_) if self.masks.is_some_and(|it| has_secret_columns(it, &file.path)) => {
                Some(NoCopy::Secret)
            }
            Some(_) if !is_protocol && size > self.left => Some(NoCopy::Large),
            Some(_) => None,
        };
        let to = file.copy.as_ref().filter(|_| no_copy.is_none());
        let secrets = self.masks.filter(|_| !is_protocol).map(|program| &program.secrets);
        let path = to.map(|to| self.directory.join(to));
        let copied = copy(input, path.as_deref(), secrets)?;
        if path.is_some() && !copied.has_secret && !is_protocol {
            self.left = self.left.saturating_sub(copied.bytes);
        }
        let no_copy = no_copy.or(copied.has_secret.then_some(NoCopy::Secret));
        Ok(FileInfo {
            copy: to.filter(|_| no_copy.is_none()).map(|to| to.display().to_string()),
            no_copy,
            bytes: copied.bytes,
            sha256: Some(copied.sha256),
            ..told
        })
    }
}

struct Copied {
    bytes: u64,
    sha256: String,
    /// The file contains a secret, so it is not copied.
    has_secret: bool,
}

/// Copies whole lines until it finds a secret.
struct Copying<'a> {
    out: Option<(std::fs::File, PathBuf)>,
    /// Secrets to search for; `None` if there are none.
    secrets: Option<&'a Secrets>,
    /// Input that has not been written yet.
    lines: Vec<u8>,
    is_first: bool,
    has_secret: bool,
}

impl Copying<'_> {
    fn take(&mut self, piece: &[u8]) -> Result<(), RecordError> {
        let Some((file, path)) = &mut self.out else { return Ok(()) };
        self.lines.extend_from_slice(piece);
        let end = self.lines.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let is_all = piece.is_empty() || end == 0 && self.lines.len() > PIECE_BYTES;
        let whole = &self.lines[..if is_all { self.lines.len() } else { end }];
        self.has_secret =
            self.secrets.is_some_and(|secrets| holds_secret(secrets, whole, self.is_first));
        let written = match self.has_secret {
            true => std::fs::remove_file(&*path),
            false => file.write_all(whole),
        };
        written.map_err(|error| RecordError { path: path.clone(), error })?;
        self.is_first &= whole.is_empty();
        self.lines.drain(..whole.len());
        if self.has_secret {
            self.out = None;
        }
        Ok(())
    }
}

fn copy(
    mut input: Box<dyn Read>,
    to: Option<&Path>,
    secrets: Option<&Secrets>,
) -> Result<Copied, RecordError> {
    let out = to.map(|to| create_file(to).map(|file| (file, to.to_path_buf()))).transpose()?;
    let lines = Vec::new();
    let mut copying = Copying { out, secrets, lines, is_first: true, has_secret: false };
    let (mut hasher, mut bytes) = (Hasher::new(Digest::Sha256), 0);
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let count = match input.read(&mut piece) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => {
                return Err(RecordError { path: to.unwrap_or(Path::new("")).into(), error });
            }
        };
        hasher.update(&piece[..count]);
        bytes += count as u64;
        copying.take(&piece[..count])?;
        if count == 0 {
            let has_secret = copying.has_secret;
            return Ok(Copied { bytes, sha256: hasher.digits(), has_secret });
        }
    }
}

/// Whether these lines contain a secret. The first line may name columns.
fn holds_secret(secrets: &Secrets, lines: &[u8], is_first: bool) -> bool {
    let has_column = || {
        let first = lines.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let first = String::from_utf8_lossy(first);
        let is_table = !first.trim_start().starts_with(['{', '[', '<']);
        let is_end = |c: char| matches!(c, ',' | ';' | '\t' | '|');
        let name = |name: &str| name.trim().trim_matches('"').to_string();
        is_table && first.split(is_end).any(|column| secrets.is_name(&name(column)))
    };
    let has_key = || lines.windows(KEY_LABEL.len()).any(|window| window == KEY_LABEL);
    is_first && has_column() || has_key() || !secrets.ranges(lines).is_empty()
}

/// Whether the scenario names a column of this file like a secret.
fn has_secret_columns(program: &Program, file: &Path) -> bool {
    let secrets = &program.secrets;
    program.data.iter().any(|source| {
        let (path, columns) = match &source.origin {
            Origin::Csv { path, columns, .. } => (path, columns.as_deref().unwrap_or_default()),
            Origin::JsonLines { path } => (path, [].as_slice()),
            Origin::List(_) | Origin::Generate { .. } => return false,
        };
        let is_it = whole(path) == file;
        let mut names = columns.iter().map(String::as_str).chain(source.used());
        is_it && names.any(|name| secrets.is_name(name))
    })
}

/// Options of `throng rerun`.
#[derive(Debug, Default)]
pub struct Given {
    /// Values of secrets that are masked in the run directory.
    pub set: Vec<(String, String)>,
    pub labels: Vec<(String, String)>,
    /// Run even if files have changed.
    pub allow_changed: bool,
    /// Keep the recorded name of the scenario, because its directory is temporary.
    pub as_it_was: bool,
    /// Environment variables of the process that started the run.
    pub environment: BTreeMap<String, String>,
}

impl Given {
    fn variable(&self, name: &str) -> Option<String> {
        self.environment.get(name).cloned().or_else(|| read_variable(name))
    }
}

/// A valid scenario whose warnings have been reported.
pub struct Loaded {
    pub program: Program,
    pub warnings: usize,
    pub recorded: Recorded,
}

/// Compiles the scenario of a run from the run directory alone, and reports errors. Files that were
/// not copied must be unchanged.
pub fn load(run: &Run, given: &Given, errors: &dyn Operator) -> Result<Loaded, Exit> {
    compiled(run, given)
        .map_err(|diagnostics| {
            errors.diagnostics(&diagnostics);
            Exit::Usage
        })
        .map(|(loaded, warnings)| {
            errors.diagnostics(&warnings);
            loaded
        })
}

fn compiled(run: &Run, given: &Given) -> Result<(Loaded, Vec<Diagnostic>), Vec<Diagnostic>> {
    let Some(bundle) = &run.info.sources.bundle else { return Err(vec![without_bundle(run)]) };
    let (text, changes) = verified(run, bundle, given)?;
    let at_first = run.info.sources.files.first().filter(|_| given.as_it_was);
    let own = || run.directory.join(SCENARIO_FILE).display().to_string();
    let name = at_first.map_or_else(own, |file| file.path.clone());
    let source = Source::new(name, text);
    let labels = run.info.labels.iter().filter(|(_, value)| !value.contains(MASK));
    let labels = labels.map(|(name, value)| (name.clone(), value.clone()));
    let options = RunOptions {
        load: changes_of(&bundle.changed),
        labels: labels.chain(given.labels.clone()).collect(),
        ..RunOptions::fresh(Some(run.info.seed))
    };
    let read = |path: &Path, bytes_max: usize| match readable(run, path) {
        Some(path) => read_disk(&path, bytes_max),
        None => Err(io::Error::new(io::ErrorKind::NotFound, "it is not in the run directory")),
    };
    let compiled = CompileOptions {
        set: given.set.clone(),
        base: run.directory.clone(),
        read_file: &read,
        env: &|name| given.variable(name),
        run: options,
    };
    let (mut program, warnings, mut recorded) = compile_recorded(&source, &compiled)?;
    program.changes.extend(changes);
    // If the scenario has no name, its file name was used.
    program.name.clone_from(&run.info.name);
    // Record the original paths of the files and all given values.
    for file in &mut recorded.files {
        let origin = run
            .info
            .sources
            .files
            .iter()
            .find(|known| copy_of(run, known) == Some(whole(&file.path)));
        if let Some(origin) = origin {
            file.origin = Some(PathBuf::from(&origin.path));
        }
    }
    recorded.path =
        run.info.sources.files.first().map(|file| file.path.clone()).unwrap_or_default().into();
    for (name, value) in &bundle.set {
        if recorded.set.iter().all(|(given, _)| given != name) {
            recorded.set.push((name.clone(), value.clone()));
        }
    }
    Ok((Loaded { program, warnings: warnings.len(), recorded }, warnings))
}

/// The path of a file's copy; `None` if there is no copy, or if the path leads out of the
/// directory.
fn copy_of(run: &Run, file: &FileInfo) -> Option<PathBuf> {
    let copy = Path::new(file.copy.as_deref()?);
    let is_inside = copy.components().all(|part| matches!(part, Component::Normal(_)));
    is_inside.then(|| whole(&run.directory.join(copy)))
}

/// The file to read for a path that the scenario of a bundle names.
fn readable(run: &Run, path: &Path) -> Option<PathBuf> {
    let path = whole(path);
    let is_it = |file: &&FileInfo| {
        Path::new(&file.path) == path || copy_of(run, file).as_deref() == Some(&path)
    };
    let file = run.info.sources.files.iter().skip(1).find(is_it)?;
    match &file.copy {
        Some(_) => copy_of(run, file),
        None => Some(PathBuf::from(&file.path)),
    }
}

fn refused(message: Said, help: Said) -> Diagnostic {
    Diagnostic::error("rerun-impossible", message).help(help)
}

fn without_bundle(run: &Run) -> Diagnostic {
    let message = say!("{} was recorded without copies of its files", run.directory.display());
    let help = say!(
        "run its scenario: `throng run {}`; the data, bodies and environment of that run were \
         not recorded",
        run.directory.join(SCENARIO_FILE).display()
    );
    refused(message, help)
}

/// Checks all inputs of the run. Returns the text of the scenario, and what has changed if changes
/// are allowed.
fn verified(
    run: &Run,
    bundle: &BundleInfo,
    given: &Given,
) -> Result<(String, Vec<Said>), Vec<Diagnostic>> {
    let mut wrong: Vec<Diagnostic> = Vec::new();
    let mut text = None;
    let mut changed = Vec::new();
    for file in &run.info.sources.files {
        let is_merged = matches!(file.no_copy, Some(NoCopy::Merged | NoCopy::Unreadable));
        if let Some(copy) = &file.copy {
            let sha256 = file.copy_sha256.as_ref().or(file.sha256.as_ref());
            match copied_bytes(run, file) {
                Ok(bytes) if Some(&Digest::Sha256.of(&bytes)) == sha256 => {
                    if file.role == SCENARIO {
                        text = String::from_utf8(bytes).ok();
                    }
                }
                Ok(_) => wrong.push(edited(copy)),
                Err(error) => wrong.push(not_there(copy, &error)),
            }
        } else if !is_merged {
            changed.extend(changed_file(file));
        }
    }
    changed.extend(bundle.environment.iter().filter_map(|it| changed_variable(it, given)));
    let help = say!("restore it, or use --allow-changed to run with the current content");
    match given.allow_changed {
        true => {}
        false => wrong.extend(changed.drain(..).map(|it| refused(it, help.clone()))),
    }
    wrong.extend(text.iter().flat_map(|text| unfit_secrets(text, bundle, given)));
    match text {
        Some(text) if wrong.is_empty() => Ok((text, changed)),
        None if wrong.is_empty() => Err(vec![without_bundle(run)]),
        _ => Err(wrong),
    }
}

/// Reports secrets without a value, and values that are not secrets.
fn unfit_secrets(text: &str, bundle: &BundleInfo, given: &Given) -> Vec<Diagnostic> {
    let masked = if bundle.masked { masked_in(text) } else { Masked::default() };
    let lines = masked.lines.iter().map(|line| {
        let message = say!("line {line} of {SCENARIO_FILE} contains a masked secret");
        refused(
            message,
            say!(
                "keep secrets in variables, `vars: {{token: {{env: TOKEN}}}}`, and start a new \
                 run"
            ),
        )
    });
    let strangers = given.set.iter().filter(|(name, _)| !masked.names.contains(name));
    let strangers = strangers.map(|(name, _)| {
        let message = say!("`{name}` is not masked in this run directory");
        refused(
            message,
            say!("a rerun keeps the values that were set; to set other values, use `throng run`"),
        )
    });
    lines.chain(strangers).collect()
}

fn edited(copy: &str) -> Diagnostic {
    let message = say!("`{copy}` in the run directory was edited");
    refused(message, say!("restore the recorded version, or use `throng run`"))
}

fn not_there(copy: &str, error: &io::Error) -> Diagnostic {
    let error = Said::of_error(error);
    let message = say!("`{copy}` in the run directory cannot be read: {error}");
    refused(message, say!("restore the recorded version"))
}

/// Reads a copy. It must be a regular file in the directory, not a symbolic link.
fn copied_bytes(run: &Run, file: &FileInfo) -> io::Result<Vec<u8>> {
    let outside = || io::Error::new(io::ErrorKind::InvalidInput, "it is outside the directory");
    let path = copy_of(run, file).ok_or_else(outside)?;
    let inside = std::fs::canonicalize(&run.directory)?;
    if !std::fs::canonicalize(&path)?.starts_with(inside) || !std::fs::metadata(&path)?.is_file() {
        return Err(outside());
    }
    plain::read(&path, COPY_BYTES_MAX)
}

/// Describes how a file that was not copied has changed.
fn changed_file(file: &FileInfo) -> Option<Said> {
    let path = Path::new(&file.path);
    let read = plain::open(path).and_then(|mut input| {
        let (mut hasher, mut piece) = (Hasher::new(Digest::Sha256), vec![0; PIECE_BYTES]);
        loop {
            match input.read(&mut piece)? {
                0 => return Ok(hasher.digits()),
                count => hasher.update(&piece[..count]),
            }
        }
    });
    match read {
        Ok(sha256) if Some(&sha256) == file.sha256.as_ref() => None,
        Ok(_) => Some(say!("`{}` has changed since that run", file.path)),
        Err(error) => Some(say!(
            "`{}`, which that run used, cannot be read: {error}",
            file.path,
            error = Said::of_error(&error)
        )),
    }
}

fn changed_variable(known: &VariableInfo, given: &Given) -> Option<Said> {
    let name = &known.name;
    let value = given.variable(name);
    match (VariableState::of(value.as_deref()), known.secret, &known.sha256) {
        (VariableState::Unset, true, _) | (VariableState::Unset, _, Some(_)) => {
            Some(say!("the environment variable `{name}` was set in that run, but is not set now"))
        }
        (_, true, _) | (VariableState::Unset, _, None) => None,
        (VariableState::Known(now), _, Some(then)) if now == *then => None,
        _ => Some(say!("the environment variable `{name}` had a different value in that run")),
    }
}

#[cfg(test)]
mod tests;
