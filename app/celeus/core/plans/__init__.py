"""Plans: the claim, policy, population bound and stopping rule, fixed before the first draw."""
