-- Lineage also goes from data and logged models to the runs that have read them.
CREATE INDEX datasets_by_digest ON datasets (digest);
CREATE INDEX runs_of_model ON run_models (model, run);
