//! An image for containers in the layout of OCI (image-spec 1.1), as one file that podman, skopeo,
//! containerd and docker load. It is written here: a layer, three short files of JSON and their
//! digests need no builder, and the same commit makes the same bytes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::{Machine, epoch, finish, tar};
use crate::files::{self, copy, listed};
use crate::programs::text_of;
use crate::workspace::Workspace;

/// The trusted certificate authorities (Debian: `ca-certificates`).
const CERTIFICATES: &str = "etc/ssl/certs/ca-certificates.crt";
/// An ID that no other user of the host has; the manifests for Kubernetes name it, too.
const USER: &str = "65532:65532";
/// Where scenarios are, and where records are written.
const FOLDER: &str = "load";
/// Where an agent of a fleet keeps its unsent results.
const SPOOL: &str = "var/lib/throng";
/// The files that must accompany the binary.
const LICENCES: [&str; 4] = ["LICENSE-APACHE", "LICENSE-MIT", "THIRD-PARTY.gz", "copyright"];

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// Writes the image of a package's tree for this machine. `folder` is scratch space.
pub(super) fn write(
    workspace: &Workspace,
    machine: &Machine,
    version: &str,
    (tree, folder): (&Path, &Path),
    image: &Path,
) -> Result<(), String> {
    let root = folder.join("image-root");
    fill(tree, &root)?;
    let epoch = epoch(&workspace.root);
    let layout = folder.join("image");
    let blobs = layout.join("blobs/sha256");
    files::create(&blobs)?;
    let plain = folder.join("layer.tar");
    finish(tar(&epoch).arg("-cf").arg(&plain).arg("-C").arg(&root).arg("."))?;
    let diff = digest(&plain)?;
    finish(Command::new("gzip").args(["-9", "--no-name", "--force"]).arg(&plain))?;
    let layer = blob(&blobs, LAYER, fs::read(folder.join("layer.tar.gz")))?;
    let created = text_of(Command::new("date").args([
        "--utc",
        &format!("--date=@{epoch}"),
        "+%Y-%m-%dT%H:%M:%SZ",
    ]))?;
    let mut git = Command::new("git");
    let revision = text_of(git.args(["rev-parse", "HEAD"]).current_dir(&workspace.root));
    let labels = json!({
        "org.opencontainers.image.title": "throng",
        "org.opencontainers.image.description": "load-testing tool for long-lived connections and for HTTP",
        "org.opencontainers.image.version": version,
        "org.opencontainers.image.revision": revision.unwrap_or_default(),
        "org.opencontainers.image.created": created,
        "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
    });
    let config = json!({
        "architecture": machine.debian,
        "os": "linux",
        "created": created,
        "config": {
            "User": USER,
            "WorkingDir": format!("/{FOLDER}"),
            "Env": ["PATH=/usr/bin"],
            "Entrypoint": ["/usr/bin/throng"],
            "Cmd": ["--help"],
            "Labels": labels,
        },
        "rootfs": {"type": "layers", "diff_ids": [diff]},
        "history": [{"created": created, "created_by": "cargo xtask dist"}],
    });
    let config = blob(&blobs, CONFIG, Ok(config.to_string().into_bytes()))?;
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": config,
        "layers": [layer],
        "annotations": labels,
    });
    let mut manifest_of = blob(&blobs, MANIFEST, Ok(manifest.to_string().into_bytes()))?;
    let name = format!("throng:{version}");
    manifest_of["platform"] = json!({"architecture": machine.debian, "os": "linux"});
    manifest_of["annotations"] = json!({"org.opencontainers.image.ref.name": name});
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [manifest_of]});
    // Docker reads this file if it does not keep its images in containerd.
    let path = |of: &Value| format!("blobs/sha256/{}", hex(of));
    let docker = json!([{"Config": path(&config), "RepoTags": [name], "Layers": [path(&layer)]}]);
    for (name, what) in [
        ("oci-layout", json!({"imageLayoutVersion": "1.0.0"})),
        ("index.json", index),
        ("manifest.json", docker),
    ] {
        files::write(&layout.join(name), what.to_string())?;
    }
    let parts = ["oci-layout", "index.json", "manifest.json", "blobs"];
    finish(tar(&epoch).arg("-cf").arg(image).arg("-C").arg(&layout).args(parts))
}

/// The root of the container. Nothing else is in it: no shell, no libraries.
fn fill(tree: &Path, root: &Path) -> Result<(), String> {
    copy(&tree.join("usr/bin/throng"), &root.join("usr/bin/throng"), 0o755)?;
    let doc = Path::new("usr/share/doc/throng");
    for name in LICENCES {
        copy(&tree.join(doc).join(name), &root.join(doc).join(name), 0o644)?;
    }
    copy(&Path::new("/").join(CERTIFICATES), &root.join(CERTIFICATES), 0o644).map_err(|error| {
        format!("an image needs certificates of authorities (Debian: ca-certificates): {error}")
    })?;
    let user = format!("throng:x:{USER}::/{FOLDER}:/usr/bin/throng\n");
    files::write(&root.join("etc/passwd"), user)?;
    files::write(&root.join("etc/group"), b"throng:x:65532:\n")?;
    // Any user may write there; volumes take the mode of the folder that they cover.
    for name in ["tmp", FOLDER, SPOOL] {
        let folder = root.join(name);
        files::create(&folder)?;
        files::set_mode(&folder, 0o1777)?;
    }
    Ok(())
}

/// Stores bytes under the name of their digest, and returns their description.
fn blob(blobs: &Path, kind: &str, bytes: std::io::Result<Vec<u8>>) -> Result<Value, String> {
    let bytes = bytes.map_err(|error| error.to_string())?;
    let new = blobs.join("new");
    files::write(&new, &bytes)?;
    let digest = digest(&new)?;
    let described = json!({"mediaType": kind, "digest": digest, "size": bytes.len()});
    let place = blobs.join(hex(&described));
    fs::rename(&new, &place).map_err(|error| format!("{}: {error}", place.display()))?;
    Ok(described)
}

fn digest(file: &Path) -> Result<String, String> {
    let told = text_of(Command::new("sha256sum").arg(file))?;
    told.split_once(' ').map(|(hex, _)| format!("sha256:{hex}")).ok_or(told.clone())
}

/// The name of a blob in its folder.
fn hex(described: &Value) -> &str {
    described["digest"].as_str().unwrap_or_default().trim_start_matches("sha256:")
}

/// Unpacks an image as a runtime does, and checks that each part has the digest of its name: the
/// root of its container comes out.
pub(super) fn unpack(image: &Path, into: &Path) -> Result<PathBuf, String> {
    let (layout, root) = (into.join("layout"), into.join("container"));
    for folder in [&layout, &root] {
        files::create(folder)?;
    }
    finish(Command::new("tar").arg("-xf").arg(image).arg("-C").arg(&layout))?;
    let blobs = layout.join("blobs/sha256");
    for blob in listed(&blobs)? {
        if !blob.ends_with(digest(&blob)?.trim_start_matches("sha256:")) {
            return Err(format!("{}: it has another digest", blob.display()));
        }
    }
    let read = |path: &Path| {
        serde_json::from_str::<Value>(&files::text(path)?).map_err(|error| error.to_string())
    };
    let index = read(&layout.join("index.json"))?;
    let manifest = read(&blobs.join(hex(&index["manifests"][0])))?;
    let layer = blobs.join(hex(&manifest["layers"][0]));
    finish(Command::new("tar").arg("-xzpf").arg(&layer).arg("-C").arg(&root))?;
    let wanted = ["usr/bin/throng", CERTIFICATES, "etc/passwd", "etc/group", "tmp", FOLDER, SPOOL];
    match wanted.iter().find(|name| !root.join(name).exists()) {
        Some(name) => Err(format!("{} has no {name}", image.display())),
        None => Ok(root),
    }
}
