"""Methods that no user is told to take: studies and negative results."""
