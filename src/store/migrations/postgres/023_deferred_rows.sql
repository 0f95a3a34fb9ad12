-- The index of runs is named as what it is.
ALTER TABLE run_marks RENAME TO run_index;
ALTER INDEX run_marks_pkey RENAME TO run_index_pkey;
