"""How far a judge can be trusted: pure functions of records and judgements; nothing here knows an engine."""
