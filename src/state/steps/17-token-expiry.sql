-- the session of a browser ends by itself; a token without a time does not
ALTER TABLE door_tokens ADD COLUMN expires_at_ms INTEGER;
