"""What a recipe is made of: dictionaries, beliefs, forgetting, pruning, and the one update that they share."""
