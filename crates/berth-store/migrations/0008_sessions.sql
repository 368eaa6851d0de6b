-- Browsers that are signed in. Of the secret in the cookie only a hash is kept. "token" is the token
-- that was signed in with, where it was one; "hint" is what the provider of identities gave, sealed.
CREATE TABLE sessions (
    id {text} NOT NULL PRIMARY KEY,
    "user" {text} NOT NULL REFERENCES users (name) ON DELETE CASCADE,
    hash {text} NOT NULL,
    scopes {text} NOT NULL,
    means {text} NOT NULL,
    token {text},
    created {int} NOT NULL,
    expires {int} NOT NULL,
    last_used {int} NOT NULL,
    "from" {text} NOT NULL,
    agent {text} NOT NULL,
    hint {text} NOT NULL
){strict};
CREATE INDEX sessions_by_user ON sessions ("user");

-- Which user somebody is whom a provider of identities knows. The id is a digest of the provider's
-- address and of what it calls them.
CREATE TABLE identities (
    id {text} NOT NULL PRIMARY KEY,
    "user" {text} NOT NULL REFERENCES users (name) ON DELETE CASCADE,
    issuer {text} NOT NULL,
    subject {text} NOT NULL,
    created {int} NOT NULL
){strict};
CREATE INDEX identities_by_user ON identities ("user");
