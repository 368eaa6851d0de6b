-- Objects of the blob store: artifacts, data and whatever else is kept by its content. The bytes are
-- elsewhere. "loose" is when an object was first seen without a name; it is removed some time later.
CREATE TABLE blobs (
    sha256 {text} NOT NULL PRIMARY KEY,
    md5 {text} NOT NULL,
    bytes {int} NOT NULL,
    created {int} NOT NULL,
    loose {int}
){strict};
CREATE INDEX blobs_by_md5 ON blobs (md5);
CREATE INDEX blobs_loose ON blobs (loose) WHERE loose IS NOT NULL;

-- What a team calls an object. "kind" says which names these are: paths of artifacts, or the MD5 sums
-- that DVC knows its files by.
CREATE TABLE blob_names (
    team {text} NOT NULL REFERENCES teams (name) ON DELETE CASCADE,
    kind {text} NOT NULL,
    name {text} NOT NULL,
    sha256 {text} NOT NULL REFERENCES blobs (sha256),
    bytes {int} NOT NULL,
    created {int} NOT NULL,
    "by" {text} NOT NULL,
    PRIMARY KEY (team, kind, name)
){strict};
CREATE INDEX blob_names_by_blob ON blob_names (sha256);

-- Versions of data. "hash" is what DVC calls it: an MD5 sum, with ".dir" after that of a folder.
CREATE TABLE data_versions (
    team {text} NOT NULL REFERENCES teams (name) ON DELETE CASCADE,
    name {text} NOT NULL,
    version {int} NOT NULL,
    hash {text} NOT NULL,
    bytes {int} NOT NULL,
    files {int} NOT NULL,
    parent {int},
    created {int} NOT NULL,
    "by" {text} NOT NULL,
    note {text} NOT NULL,
    PRIMARY KEY (team, name, version)
){strict};
CREATE INDEX data_versions_by_hash ON data_versions (team, hash);

-- What a team may keep in the blob store, where that is not what the server gives every team.
CREATE TABLE blob_quotas (
    team {text} NOT NULL PRIMARY KEY REFERENCES teams (name) ON DELETE CASCADE,
    bytes {int} NOT NULL
){strict};
