-- Memories that say the same fact at different times: all of them have the number of one of them as `fact`, and the one with
-- the highest `fact_turn` that is not deleted is the current one. NULL: it replaces nothing and nothing replaces it.
ALTER TABLE memories ADD COLUMN fact INTEGER;
ALTER TABLE memories ADD COLUMN fact_turn INTEGER;
CREATE INDEX memories_fact ON memories (fact, fact_turn) WHERE fact IS NOT NULL;
