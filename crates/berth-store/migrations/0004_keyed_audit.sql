-- Which key a row of the audit log was signed with; none for rows from before there were keys.
ALTER TABLE audit ADD COLUMN "key" {text} NOT NULL DEFAULT '';
-- What the rights that changed with a row look like from then on, as JSON: digests of users,
-- members and tokens. Nothing for rows that changed none.
ALTER TABLE audit ADD COLUMN seals {text} NOT NULL DEFAULT '';
