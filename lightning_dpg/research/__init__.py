"""Methods that are not recommended: studies and negative results."""
