-- Why a schedule is paused, where the server did it: its owner lost the right to submit.
ALTER TABLE schedules ADD COLUMN reason {text} NOT NULL DEFAULT '';
