"""What stands beside the judgements of a session and is no part of its ledger."""
