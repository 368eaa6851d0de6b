-- Of the key that the portal sends beside the cookie, only a hash is kept. A session from before there
-- were keys has none, and nobody is signed in by it any more.
ALTER TABLE sessions ADD COLUMN key_hash {text};
