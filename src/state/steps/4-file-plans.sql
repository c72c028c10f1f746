-- changes of plain files that a running job has decided and may not have made yet, with the result of the job
CREATE TABLE file_plans (
    job TEXT PRIMARY KEY,
    plan TEXT NOT NULL,
    result TEXT NOT NULL
) WITHOUT ROWID;
