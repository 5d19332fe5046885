"""The parts of a recipe: dictionaries, beliefs, forgetting and pruning rules, and the update that they share."""
