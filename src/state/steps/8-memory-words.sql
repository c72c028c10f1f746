-- The words of an agent's memories are those of this version of the tokeniser; of another, they are indexed again.
ALTER TABLE memory_agents ADD COLUMN words INTEGER NOT NULL DEFAULT 0;
