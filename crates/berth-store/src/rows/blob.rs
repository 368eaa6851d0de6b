//! What is kept by its content, and what teams call it. The bytes are elsewhere.

use crate::table::table;
use berth_model::Time;

table! {
    /// An object.
    #[derive(Debug)]
    BlobRow in "blobs", 1 of the columns are its key: &'k str;
    /// Hexadecimal, in lower case, as is the next one.
    sha256: String = "sha256",
    md5: String = "md5",
    bytes: u64 = "bytes",
    created: Time = "created",
    /// When it was first seen without a name.
    loose: Option<Time> = "loose",
}

table! {
    /// What a team calls an object. Goes when its team goes.
    #[derive(Debug)]
    BlobNameRow in "blob_names", 3 of the columns are its key: (&'k str, &'k str, &'k str);
    team: String = "team",
    kind: String = "kind",
    name: String = "name",
    sha256: String = "sha256",
    bytes: u64 = "bytes",
    created: Time = "created",
    by: String = "by",
}

table! {
    /// A version of data. Goes when its team goes.
    #[derive(Debug)]
    DataVersionRow in "data_versions", 3 of the columns are its key: (&'k str, &'k str, u64);
    team: String = "team",
    name: String = "name",
    version: u64 = "version",
    /// As DVC writes it: an MD5 sum, with `.dir` after that of a folder.
    hash: String = "hash",
    bytes: u64 = "bytes",
    files: u64 = "files",
    /// The version that it was made from.
    parent: Option<u64> = "parent",
    created: Time = "created",
    by: String = "by",
    note: String = "note",
}

table! {
    /// What a team may keep. Goes when its team goes.
    #[derive(Debug)]
    BlobQuotaRow in "blob_quotas", 1 of the columns are its key: &'k str;
    team: String = "team",
    bytes: u64 = "bytes",
}
