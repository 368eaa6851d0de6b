-- By what a token was made, so that it ends with that: another token, also where a browser had signed
-- in with it, and the session of a browser. Nothing for those that the server made.
ALTER TABLE tokens ADD COLUMN parent {text};
ALTER TABLE tokens ADD COLUMN session {text};
CREATE INDEX tokens_by_parent ON tokens (parent);
CREATE INDEX tokens_by_session ON tokens (session);
