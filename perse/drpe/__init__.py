"""DRPE: role-players vote on texts against a reference, and their votes become a score."""
